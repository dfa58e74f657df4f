"""HTTP: reads a request, makes one call of the service, writes the answer."""

import contextlib
import functools
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from typing import Any, NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dynabandit.service import api_types, export, web
from dynabandit.service.domain.events import KINDS
from dynabandit.service.errors import Interrupted, Refused
from dynabandit.service.http import request_bodies
from dynabandit.service.http.limits import Overloaded
from dynabandit.service.http.openapi import Endpoint, Query, document
from dynabandit.service.http.responses import (
    ALWAYS,
    JSON,
    authorise,
    cleaned,
    complete,
    may_still_read,
    new_name,
    path_part,
    plain,
    problem,
    query_values,
    read_body,
    response,
    turn_away,
)
from dynabandit.service.logging_setup import note_change
from dynabandit.service.service import Service
from dynabandit.service.stores import Store

__all__ = ["ENDPOINTS", "make_app"]

SMALL_BODY = 1 << 20
LARGE_BODY = 1 << 26  # a hundred thousand arms with long names
MOST_EVENTS = 10_000
NDJSON = "application/x-ndjson"
PARQUET = "application/vnd.apache.parquet"


DELETED = Query("deleted", words=("false", "true"))
AFTER_NAME = Query("after")
LIMIT_BANDITS = Query("limit", 100, 1, 1000)
AFTER = Query("after", 0, 0, 2**62)
LIMIT_EVENTS = Query("limit", 1000, 1, MOST_EVENTS)
ID = Query("id")
KIND = Query("kind", words=("all", *KINDS))
EVENT_FORMAT = Query("format", words=("json", "ndjson"))
EXPORT_FORMAT = Query("format", words=("ndjson", "parquet"))
DRAWS = Query("draws", 200, 1, 100_000)
CONFIRM = Query("confirm", required=True)
ERASE = Query("erase", words=("false", "true"))


class Answer(NamedTuple):
    """A body and its status, and whether anything is other than before, which only an admin can make it."""

    content: Any
    status: int = 200
    changed: bool = False


Handler = Callable[[Service, Request, Any], Awaitable[Answer | Response]]


async def create(service: Service, request: Request, body: api_types.Create) -> Answer:
    body.arms = [new_name(arm, "an arm's name") for arm in body.arms]
    status, state = await service.create(new_name(path_part(request, "name"), "name"), body)
    return Answer(state, status, changed=status == 201)


async def list_bandits(service: Service, request: Request, body: None) -> Answer:
    query = query_values(request, DELETED, AFTER_NAME, LIMIT_BANDITS)
    return Answer(await service.bandits(query["deleted"] == "true", query["after"], query["limit"]))


async def get_bandit(service: Service, request: Request, body: None) -> Answer:
    return Answer(await service.state(path_part(request, "name")))


async def decide(service: Service, request: Request, body: api_types.Decide) -> Answer:
    keys = [bytes(value) for name, value in request.scope["headers"] if name == b"idempotency-key"]
    if len(keys) > 1:
        raise Refused(422, f"Idempotency-Key must be given at most once, got {len(keys)}")
    key = keys[0].decode("latin-1") if keys else None
    if key is not None and not (1 <= len(key) <= 255 and key.isascii() and key.isprintable()):
        raise Refused(422, f"Idempotency-Key must have 1 to 255 printable ASCII characters, got {key[:100]!r}")
    return Answer(await service.decide(path_part(request, "name"), body.count, key))


async def reward(service: Service, request: Request, body: api_types.Reward) -> Answer:
    return Answer(await service.reward(request.path_params["id"], body.reward))


async def rewards(service: Service, request: Request, body: api_types.Rewards) -> Answer:
    return Answer(await service.rewards(body.rewards))


async def add_arm(service: Service, request: Request, body: api_types.AddArm) -> Answer:
    answer, changed = await service.add_arm(path_part(request, "name"), new_name(body.arm, "an arm's name"))
    return Answer(answer, changed=changed)


async def change_arm(service: Service, request: Request, body: api_types.ChangeArm) -> Answer:
    answer, changed = await service.change_arm(path_part(request, "name"), path_part(request, "arm"), body)
    return Answer(answer, changed=changed)


async def set_policy(service: Service, request: Request, body: api_types.SetPolicy) -> Answer:
    answer, changed = await service.set_policy(path_part(request, "name"), body)
    return Answer(answer, changed=changed)


async def preview_policy(service: Service, request: Request, body: api_types.PreviewPolicy) -> Answer:
    return Answer(await service.preview_policy(path_part(request, "name"), body))


async def get_events(service: Service, request: Request, body: None) -> Answer | Response:
    query = query_values(request, AFTER, LIMIT_EVENTS, ID, KIND, EVENT_FORMAT)
    name, identity, after = path_part(request, "name"), query["id"] or None, query["after"]
    kinds = KINDS.get(query["kind"], ())
    if query["format"] == "json":
        return Answer(await service.events(name, identity, after, query["limit"], kinds))
    await service.events(name, identity, 0, 1)  # 404 before the stream begins
    return _stream(service, request, lambda store, _: export.event_lines(store, name, identity, after, kinds), NDJSON)


async def get_export(service: Service, request: Request, body: None) -> Response:
    query = query_values(request, EXPORT_FORMAT, DRAWS, ID)
    name, identity, draws = path_part(request, "name"), query["id"] or None, query["draws"]
    await service.read(lambda store: export.check_draws(store, name, identity, draws))
    lines, media = export.decision_lines, NDJSON
    if query["format"] == "parquet":
        lines, media = export.parquet_pieces, PARQUET
    if media == PARQUET and not export.has_parquet():
        raise Refused(501, "Parquet needs pyarrow, which is not installed: pip install 'dynabandit[lab]'")
    return _stream(service, request, lambda store, wanted: lines(store, name, identity, draws, wanted), media)


def _stream(
    service: Service, request: Request, make: Callable[[Store, Callable[[], bool]], Iterator[bytes]], media: str
) -> Response:
    may_go_on = functools.partial(may_still_read, service, request)
    return StreamingResponse(service.stream(make, may_go_on), media_type=media)


async def delete(service: Service, request: Request, body: None) -> Answer:
    query = query_values(request, CONFIRM, ERASE, ID)
    name = path_part(request, "name")
    if not query["confirm"] or cleaned(query["confirm"], "confirm") != name:
        raise Refused(422, f"confirm must repeat the name of the bandit, {name!r}, got {query['confirm'][:200]!r}")
    answer, changed = await service.delete(name, query["id"] or None, query["erase"] == "true")
    return Answer(answer, changed=changed)


async def healthz(service: Service, request: Request, body: None) -> Answer:
    return Answer(api_types.Ready("live"))


async def readyz(service: Service, request: Request, body: None) -> Answer:
    await service.ready()
    return Answer(api_types.Ready("ready"))


async def metrics(service: Service, request: Request, body: None) -> Response:
    return Response(service.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def openapi(service: Service, request: Request, body: None) -> Response:
    return Response(DOCUMENT, media_type=JSON)


# One line a call; the first ones are asked for most. The OpenAPI document is made from the same lines.
ENDPOINTS: dict[str, tuple[Endpoint, Handler]] = {
    endpoint.id: (endpoint, handler)
    for endpoint, handler in (
        (
            Endpoint(
                "PUT", "/v1/decisions/{id}/reward", "decide", api_types.Reward, api_types.Rewarded, (404, 409, 410)
            ),
            reward,
        ),
        (
            Endpoint(
                "POST", "/v1/bandits/{name}/decisions", "decide", api_types.Decide, api_types.Decisions, (404, 409),
                headers=("Idempotency-Key",),
            ),
            decide,
        ),
        (Endpoint("POST", "/v1/rewards", "decide", api_types.Rewards, api_types.RewardResults), rewards),
        (
            Endpoint(
                "PUT", "/v1/bandits/{name}", "admin", api_types.Create, api_types.BanditState, (201, 409), large=True
            ),
            create,
        ),
        (
            Endpoint(
                "GET", "/v1/bandits", "read", None, api_types.BanditList, query=(DELETED, AFTER_NAME, LIMIT_BANDITS)
            ),
            list_bandits,
        ),
        (Endpoint("GET", "/v1/bandits/{name}", "read", None, api_types.BanditState, (404,)), get_bandit),
        (
            Endpoint("POST", "/v1/bandits/{name}/arms", "admin", api_types.AddArm, api_types.Changed, (404, 409)),
            add_arm,
        ),
        (
            Endpoint(
                "PATCH", "/v1/bandits/{name}/arms/{arm}", "admin", api_types.ChangeArm, api_types.Changed, (404, 409)
            ),
            change_arm,
        ),
        (
            Endpoint("PUT", "/v1/bandits/{name}/policy", "admin", api_types.SetPolicy, api_types.Changed, (404,)),
            set_policy,
        ),
        (
            Endpoint(
                "POST", "/v1/bandits/{name}/policy/preview", "read", api_types.PreviewPolicy, api_types.Preview, (404,)
            ),
            preview_policy,
        ),
        (
            Endpoint(
                "GET", "/v1/bandits/{name}/events", "read", None, api_types.Events, (404,),
                query=(AFTER, LIMIT_EVENTS, ID, KIND, EVENT_FORMAT), media=(NDJSON,),
            ),
            get_events,
        ),
        (
            Endpoint(
                "GET", "/v1/bandits/{name}/export", "read", None, api_types.Exported, (404, 501),
                query=(EXPORT_FORMAT, DRAWS, ID), media=(NDJSON, PARQUET), answers_json=False,
            ),
            get_export,
        ),
        (
            Endpoint(
                "DELETE", "/v1/bandits/{name}", "admin", None, api_types.Deleted, (404,),
                query=(CONFIRM, ERASE, ID),
            ),
            delete,
        ),
        (Endpoint("GET", "/healthz", "", None, api_types.Ready), healthz),
        (Endpoint("GET", "/readyz", "", None, api_types.Ready), readyz),
        (Endpoint("GET", "/metrics", "read", None, None, media=("text/plain",), answers_json=False), metrics),
        (Endpoint("GET", "/openapi.json", "", None, None, media=(JSON,), answers_json=False), openapi),
    )
}  # fmt: skip
DOCUMENT = document([endpoint for endpoint, _ in ENDPOINTS.values()])


def make_app(service: Service) -> ASGIApp:
    """Return the ASGI application of a service."""
    follower, workers = web.LogFollower(service), web.WorkerPool(closing=service.closing)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await service.start()
        follower.start()
        yield
        await workers.stop()
        await follower.stop()
        await service.stop()

    bound = {one.id: _bound(service, one, handler) for one, handler in ENDPOINTS.values()}
    routes = web.routes(service, follower, workers)
    rest = Starlette(lifespan=lifespan, routes=routes, exception_handlers={404: _nothing, 405: _other})
    rest.router.redirect_slashes = False

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await rest(scope, receive, send)
            return
        # A slash inside a name is data, so the path is cut before it is decoded
        path = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0].decode("latin-1")
        found, methods = _find(path)
        if found is None:  # a page, or nothing
            await rest(scope, receive, send)
            return
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if method not in methods:
            await _wrong_method(scope["method"], methods)(scope, receive, send)
            return
        scope["path_params"] = found.groupdict()
        answer = await bound[methods[method]](Request(scope, receive))
        answer = complete(answer, scope["method"], ALWAYS)
        with contextlib.suppress(Interrupted):  # the server hangs up on an answer without its end
            await answer(scope, receive, send)

    return app


def _wrong_method(given: str, methods: Collection[str]) -> Response:
    allowed = ", ".join(methods)
    return plain(405, f"the method must be {' or '.join(methods)} here, got {given[:20]}", Allow=allowed)


async def _nothing(request: Request, error: Exception) -> Response:
    return plain(404, f"there is nothing at {request.url.path[:200]!r}")


async def _other(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    methods = sorted((error.headers or {}).get("Allow", "GET").split(", "))
    return _wrong_method(request.method, methods)


def _patterns() -> list[tuple[re.Pattern[str], dict[str, str]]]:
    """Return a pattern for each path, and the endpoint that each of its methods goes to."""
    found: dict[str, dict[str, str]] = {}
    for one, _ in ENDPOINTS.values():
        found.setdefault(one.path, {})[one.method] = one.id
    return [(re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", path)), methods) for path, methods in found.items()]


PATTERNS = _patterns()


def _find(path: str) -> tuple[re.Match[str] | None, dict[str, str]]:
    for pattern, methods in PATTERNS:
        found = pattern.fullmatch(path)
        if found is not None:
            return found, methods
    return None, {}


def _bound(service: Service, endpoint: Endpoint, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    decoder: msgspec.json.Decoder[Any] | None = None if endpoint.body is None else msgspec.json.Decoder(endpoint.body)
    limit = LARGE_BODY if endpoint.large else SMALL_BODY
    method, path = endpoint.method, endpoint.path

    async def handle(request: Request) -> Response:
        started = time.perf_counter()
        try:
            key = authorise(service, request, endpoint.permission) if endpoint.permission else None
            if endpoint.permission == "decide":
                service.check_room()
            body = None if decoder is None else request_bodies.read(decoder, await read_body(request, limit))
            answer = await handler(service, request, body)
            result = answer if isinstance(answer, Response) else response(answer.content, answer.status)
            if isinstance(answer, Answer) and answer.changed:
                names = {part: path_part(request, part) for part in request.path_params}
                note_change(endpoint.id, names, key, msgspec.to_builtins(body) or dict(request.query_params))
        except Overloaded:
            result = await turn_away(service)
        except Exception as error:
            result = problem(service, error)
        service.metrics.answered(method, path, result.status_code, time.perf_counter() - started)
        return result

    return handle
