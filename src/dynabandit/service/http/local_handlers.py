"""The requests of local deciders: the state from which they decide, and the batches that they send."""

import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from dynabandit.service import api_types, local_types
from dynabandit.service.domain import local_decisions
from dynabandit.service.domain.bandit_state import RULES, LoggedState
from dynabandit.service.domain.deciders import SECRET_HEADER, check_secret
from dynabandit.service.domain.local_bandit import local_id
from dynabandit.service.domain.names import public_id
from dynabandit.service.http.handlers import QueryValues, Result, encode_copy, reward_results
from dynabandit.service.http.requests import bandit_name, caller_of, checked_name, printable_header
from dynabandit.service.http.responses import JSON
from dynabandit.service.service import Service

MAX_ID = 16  # characters of the id of a decider


class EncodedState(NamedTuple):
    """A state as deciders get it; `unchanged` is for those who have it already."""

    bandit_number: int
    sequence: int
    content: bytes
    unchanged: bytes


async def get_local_state(service: Service, request: Request, query: QueryValues) -> Response:
    """GET /v1/bandits/{name}/local-state."""
    name, after, asked_at = bandit_name(request), query["after"], time.monotonic()
    state: EncodedState | None = service.local_state_cache.find(name, asked_at)
    if state is None or state.sequence < query["at_least"]:
        # With priority, because a pause must reach deciders also under overload; there are at most ten per second
        state = await encode_copy(service, name, encoder_of, priority=True)
        service.local_state_cache.keep(name, state, asked_at)
    if decider := query["decider"][:MAX_ID]:
        service.decider_contacts.note(state.bandit_number, name, decider, after, query["waiting"])
    return Response(state.unchanged if after == state.sequence else state.content, media_type=JSON)


def encoder_of(state: LoggedState) -> Callable[[], EncodedState]:
    """Copy a state now, and return a function that encodes the copy, later and in any thread."""
    holdout, bandit = state.settings.holdout, state.bandit.copy()
    view = local_types.LocalState(
        name=state.settings.name,
        id=public_id(state.bandit_number),
        sequence=state.sequence,
        rules=RULES,
        sticky_for=state.settings.sticky_for,
        holdout=None if holdout is None else api_types.HoldoutSettings(*holdout),
    )

    def encode() -> EncodedState:
        complete = msgspec.structs.replace(view, bandit=bandit.to_json())
        return EncodedState(
            state.bandit_number, view.sequence, msgspec.json.encode(complete), msgspec.json.encode(view)
        )

    return encode


async def add_local_decisions(service: Service, request: Request, body: local_types.LocalBatch) -> Result:
    """POST /v1/bandits/{name}/local-decisions."""
    name = bandit_name(request)
    check_secret(body.decider, printable_header(request, SECRET_HEADER, secret=True))
    for place, decision in enumerate(body.decisions):
        if decision.unit is not None:
            decision.unit = checked_name(decision.unit, f"decisions[{place}].unit")
    events = len(body.decisions) + len(body.rewards)
    stored = await service.writer.submit(
        lambda work: local_decisions.store_batch(work, name, body),
        name=name,
        events=events,
        takes_long=lambda work: local_decisions.takes_long(work, name, body),
        caller=caller_of(request),
    )
    ids = [local_id(one.decider, one.step) for one in body.rewards]
    return Result(local_types.LocalBatchResult(stored.step, stored.sequence, reward_results(ids, stored.errors)))
