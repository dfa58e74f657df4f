"""Personalizer's API, version 1.0: its clients use a bandit after a change of their endpoint (docs/personalizer.md)."""

import contextlib
import http
import secrets

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from dynabandit.service import api_types, personalizer_types as types, policy_change
from dynabandit.service.domain import changes, personalizer
from dynabandit.service.domain.names import in_namespace
from dynabandit.service.errors import ConflictError, LateRewardError, NotFoundError
from dynabandit.service.http.authorisation import authorise
from dynabandit.service.http.handlers import Result
from dynabandit.service.http.openapi import Endpoint
from dynabandit.service.http.requests import bandit_name, caller_of, namespace_of, path_text
from dynabandit.service.http.responses import HEADERS, json_response
from dynabandit.service.service import Service

NAME = "personalizer"  # of the bandit if the path has none
CODES = {400: "BadRequest", 404: "ResourceNotFound", 500: "InternalServerError", 503: "InternalServerError"}


async def rank(service: Service, request: Request, body: types.RankRequest) -> Result:
    """POST /personalizer/v1.0/rank: make a decision; the first one creates the bandit."""
    name, event_id = _bandit_name(request), body.event_id or secrets.token_hex(16)
    personalizer.check(body)
    try:
        return await _rank(service, request, name, body, event_id)
    except NotFoundError:
        authorise(service, request, "admin")
    asked = personalizer.new_bandit(body)
    await policy_change.compile_before_use(service, changes.recommended_for(asked), asked.parameters, len(asked.arms))
    await service.writer.submit(
        lambda work: personalizer.create(work, name, asked), name=name, alone=True, priority=True
    )
    result = await _rank(service, request, name, body, event_id)
    return result._replace(changed=True, change={"created": name, "actions": asked.arms})


async def _rank(service: Service, request: Request, name: str, body: types.RankRequest, event_id: str) -> Result:
    ranked, added = await service.writer.submit(
        lambda work: personalizer.rank(work, name, body, event_id),
        name=name,
        idempotency_key=event_id,
        takes_long=lambda work: personalizer.takes_long(work, name, body),
        caller=caller_of(request),
    )
    return Result(ranked, 201, changed=bool(added), change={"actions": added})  # not the features of users


async def reward(service: Service, request: Request, body: types.RewardRequest) -> Response:
    """POST /personalizer/v1.0/events/{id}/reward: a second reward and a late one change nothing."""
    name, event_id = _bandit_name(request), _event_id(request)
    with contextlib.suppress(ConflictError, LateRewardError):
        await service.writer.submit(
            lambda work: personalizer.reward(work, name, event_id, body.value),
            name=name,
            idempotency_key=event_id,
            caller=caller_of(request),
        )
    return Response(status_code=204)


async def activate(service: Service, request: Request, _: None) -> Response:
    """POST /personalizer/v1.0/events/{id}/activate."""
    name, event_id = _bandit_name(request), _event_id(request)
    await service.writer.submit(
        lambda work: personalizer.activate(work, name, event_id),
        name=name,
        idempotency_key=event_id,
        caller=caller_of(request),
    )
    return Response(status_code=204)


def endpoints(path: str) -> tuple[Endpoint, ...]:
    """Return the endpoints under a path."""
    return (
        Endpoint("POST", f"{path}/rank", "decide", rank, types.RankRequest, types.RankResponse, (404, 409),
                 success=201, problem=types.ErrorResponse),
        Endpoint("POST", f"{path}/events/{{id}}/reward", "decide", reward, types.RewardRequest, None, (404,),
                 success=204, problem=types.ErrorResponse),
        Endpoint("POST", f"{path}/events/{{id}}/activate", "decide", activate, None, None, (404,),
                 success=204, problem=types.ErrorResponse),
    )  # fmt: skip


def error_response(response: Response) -> Response:
    """Return the response to a request that failed as Personalizer would."""
    status = 400 if response.status_code == 422 else response.status_code
    problem = msgspec.json.decode(response.body, type=api_types.Problem).problem
    code = CODES.get(status) or http.HTTPStatus(status).phrase.replace(" ", "")
    converted = json_response(types.ErrorResponse(types.PersonalizerError(code, problem)), status)
    headers = {name: value for name, value in response.headers.items() if not name.startswith("content-")}
    converted.headers.update({**HEADERS, **headers})
    return converted


def _bandit_name(request: Request) -> str:
    if "name" in request.path_params:
        return bandit_name(request)
    if not in_namespace(NAME, namespace_of(request)):
        raise NotFoundError(f"there is no bandit {NAME!r} for this key; name one in the endpoint: /v1/bandits/NAME")
    return NAME


def _event_id(request: Request) -> str:
    """Return the id of an event in the path."""
    event_id = path_text(request, "id")
    if not personalizer.is_event_id(event_id):
        raise NotFoundError(f"there is no event {event_id[:100]!r}")
    return event_id
