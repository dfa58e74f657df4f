"""Responses: JSON bodies and the headers that every response has."""

import math
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from dynabandit.service import api_types
from dynabandit.service.decider_contacts import DeciderContacts
from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.names import public_id
from dynabandit.service.thread_pool import ConcurrencyLimit
from dynabandit.validation import listed

JSON = "application/json"
ENCODED_ARMS = 1000  # at a time
MAX_PROBLEM = 1000  # characters: a problem quotes values, which may be long
HEADERS = {"X-Content-Type-Options": "nosniff"}  # responses quote requests, so no browser may guess a type

encode = msgspec.json.Encoder().encode


def json_response(content: Any, status: int = 200) -> Response:
    """Return a response with a JSON body."""
    return Response(encode(content), status, media_type=JSON)


def cut(problem: str, longest: int) -> str:
    """Return what is wrong, of which at most so many characters are shown."""
    return problem if len(problem) <= longest else f"{problem[:longest]}..."


def problem_response(status: int, problem: str, **headers: str) -> Response:
    """Return a response that says what is wrong."""
    response = json_response(api_types.Problem(cut(problem, MAX_PROBLEM)), status)
    response.headers.update({**HEADERS, **headers})
    return response


def add_headers(response: Response, method: str, headers: Mapping[str, str]) -> Response:
    """Return a response with the headers that it lacks; for HEAD, without the work of making a stream."""
    if method == "HEAD" and isinstance(response, StreamingResponse):
        response = Response(media_type=response.media_type)
    for name, value in headers.items():
        response.headers.setdefault(name, value)
    return response


def encoded_view(view: api_types.BanditState) -> msgspec.Raw:
    """Return the JSON of a bandit, made in parts: other threads wait for each of them."""
    parts = (encode(view.arms[first : first + ENCODED_ARMS]) for first in range(0, len(view.arms), ENCODED_ARMS))
    arms = b",".join(part[1:-1] for part in parts)
    return msgspec.Raw(encode(msgspec.structs.replace(view, arms=[])).replace(b'"arms":[]', b'"arms":[%b]' % arms, 1))


class LimitedStream(StreamingResponse):
    """A stream that counts towards a limit while it is sent; making it fails if the limit is reached."""

    def __init__(self, limit: ConcurrencyLimit, content: AsyncIterator[bytes], media_type: str, **headers: str) -> None:
        limit.check()
        super().__init__(content, media_type=media_type, headers=headers)
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._limit.reserve():  # nothing runs between the check and this
            await super().__call__(scope, receive, send)


def bandit_view(state: LoggedState, contacts: DeciderContacts) -> Callable[[], api_types.BanditState]:
    """Copy a state now, and return a function that makes the API's view of the copy, later and in any thread."""
    state = state.copy()
    bandit, settings, monitoring = state.bandit, state.settings, state.monitoring

    def view() -> api_types.BanditState:
        arms, unshown, declared = [], list[str](), bandit.features
        known = (bandit.exact_propensities() if declared is None else None) or {}
        for name, arm in bandit.arms.items():
            share = arm.plays / bandit.step if bandit.step else 0.0
            mean = None if arm.mean != arm.mean else arm.mean
            if any(map(math.isinf, arm[:4])):
                unshown.append(name)
            limits = bandit.shares(name)
            next_one = known.get(name, 0.0) if known else None
            arms.append(api_types.ArmState(name, mean, *arm[1:6], share, arm.paused, *limits, arm.pending, next_one))
        return api_types.BanditState(
            name=settings.name,
            id=public_id(state.bandit_number),
            policy=bandit.policy.name,
            parameters=bandit.policy.parameters,
            reward_window=settings.reward_window,
            default_reward=settings.default_reward,
            learn=state.learner.rule,
            settling_age=state.learner.age,
            held=state.learner.held(bandit.step),
            seed=bandit.seed,
            step=bandit.step,
            sequence=state.sequence,
            state_hash=state.state_hash(),
            arms=arms,
            features=None if declared is None else declared.to_json()["features"] or None,  # those of arms may be all
            sticky_for=settings.sticky_for,
            holdout=None if monitoring.lift is None else monitoring.lift.view(),
            guardrails=monitoring.guardrails.views(bandit.names),
            deciders=contacts.listed(state.bandit_number, state.deciders),
            shadow=None if state.shadow is None else state.shadow.view(),
            problem=f"the estimates of {listed(unshown)} are not finite numbers" if unshown else None,
        )

    return view
