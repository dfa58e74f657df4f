"""HTTP: reads a request, makes one call of the service, writes the answer."""

import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dynabandit.service import export, types
from dynabandit.service.errors import Differs, Refused, StoreFailed
from dynabandit.service.keys import ROLES
from dynabandit.service.names import clean_name
from dynabandit.service.openapi import Endpoint, Query, document
from dynabandit.service.service import Service
from dynabandit.service.writer import RETRY_SECONDS, Overloaded

__all__ = ["ENDPOINTS", "make_app"]

SMALL_BODY = 1 << 20
LARGE_BODY = 1 << 26  # a hundred thousand arms with long names
MOST_EVENTS = 10_000
JSON = "application/json"
NDJSON = "application/x-ndjson"
PARQUET = "application/vnd.apache.parquet"
LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]", "testserver"})

HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 413: {"Connection": "close"}}  # what is left is not read

DELETED = Query("deleted", words=("false", "true"))
AFTER_NAME = Query("after")
LIMIT_BANDITS = Query("limit", 100, 1, 1000)
AFTER = Query("after", 0, 0, 2**62)
LIMIT_EVENTS = Query("limit", 1000, 1, MOST_EVENTS)
ID = Query("id")
EVENT_FORMAT = Query("format", words=("json", "ndjson"))
EXPORT_FORMAT = Query("format", words=("ndjson", "parquet"))
DRAWS = Query("draws", 200, 1, 100_000)
CONFIRM = Query("confirm", required=True)
ERASE = Query("erase", words=("false", "true"))

encode = msgspec.json.Encoder().encode
log = structlog.get_logger("dynabandit.service")


class Answer(NamedTuple):
    """A body and its status."""

    content: Any
    status: int = 200


Handler = Callable[[Service, Request, Any], Awaitable[Answer | Response]]


async def create(service: Service, request: Request, body: types.Create) -> Answer:
    body.arms = [_clean(arm, "an arm's name") for arm in body.arms]
    status, state = await service.create(_path(request, "name"), body)
    return Answer(state, status)


async def list_bandits(service: Service, request: Request, body: None) -> Answer:
    query = _query(request, DELETED, AFTER_NAME, LIMIT_BANDITS)
    return Answer(await service.bandits(query["deleted"] == "true", query["after"], query["limit"]))


async def get_bandit(service: Service, request: Request, body: None) -> Answer:
    return Answer(await service.state(_path(request, "name")))


async def decide(service: Service, request: Request, body: types.Decide) -> Answer:
    key = request.headers.get("idempotency-key")
    if key is not None and not (1 <= len(key) <= 255 and key.isascii() and key.isprintable()):
        raise Refused(422, "Idempotency-Key must have 1 to 255 printable ASCII characters")
    return Answer(await service.decide(_path(request, "name"), body.count, key))


async def reward(service: Service, request: Request, body: types.Reward) -> Answer:
    return Answer(await service.reward(request.path_params["id"], body.reward))


async def rewards(service: Service, request: Request, body: types.Rewards) -> Answer:
    return Answer(await service.rewards(body.rewards))


async def add_arm(service: Service, request: Request, body: types.AddArm) -> Answer:
    return Answer(await service.add_arm(_path(request, "name"), _clean(body.arm, "an arm's name")))


async def change_arm(service: Service, request: Request, body: types.ChangeArm) -> Answer:
    return Answer(await service.change_arm(_path(request, "name"), _path(request, "arm"), body))


async def set_policy(service: Service, request: Request, body: types.SetPolicy) -> Answer:
    return Answer(await service.set_policy(_path(request, "name"), body))


async def get_events(service: Service, request: Request, body: None) -> Answer | Response:
    query = _query(request, AFTER, LIMIT_EVENTS, ID, EVENT_FORMAT)
    name, identity, after = _path(request, "name"), query["id"] or None, query["after"]
    if query["format"] == "json":
        return Answer(await service.events(name, identity, after, query["limit"]))
    await service.events(name, identity, 0, 1)  # 404 before the stream begins
    pieces = service.stream(lambda store: export.event_lines(store, name, identity, after))
    return StreamingResponse(pieces, media_type=NDJSON)


async def get_export(service: Service, request: Request, body: None) -> Response:
    query = _query(request, EXPORT_FORMAT, DRAWS, ID)
    name, identity, draws = _path(request, "name"), query["id"] or None, query["draws"]
    await service.events(name, identity, 0, 1)
    if query["format"] == "ndjson":
        pieces = service.stream(lambda store: export.decision_lines(store, name, identity, draws))
        return StreamingResponse(pieces, media_type=NDJSON)
    if not export.has_parquet():
        raise Refused(501, "Parquet needs pyarrow, which is not installed: pip install 'dynabandit[lab]'")
    pieces = service.stream(lambda store: export.parquet_pieces(store, name, identity, draws))
    return StreamingResponse(pieces, media_type=PARQUET)


async def delete(service: Service, request: Request, body: None) -> Answer:
    query = _query(request, CONFIRM, ERASE)
    name = _path(request, "name")
    if not query["confirm"] or _clean(query["confirm"], "confirm") != name:
        raise Refused(422, "confirm must repeat the name of the bandit")
    return Answer(await service.delete(name, query["erase"] == "true"))


async def healthz(service: Service, request: Request, body: None) -> Answer:
    return Answer(types.Ready("live"))


async def readyz(service: Service, request: Request, body: None) -> Answer:
    await service.ready()
    return Answer(types.Ready("ready"))


async def metrics(service: Service, request: Request, body: None) -> Response:
    return Response(service.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def openapi(service: Service, request: Request, body: None) -> Response:
    return Response(DOCUMENT, media_type=JSON)


# One line a call; the first ones are asked for most. The OpenAPI document is made from the same lines.
ENDPOINTS: dict[str, tuple[Endpoint, Handler]] = {
    endpoint.id: (endpoint, handler)
    for endpoint, handler in (
        (
            Endpoint("PUT", "/v1/decisions/{id}/reward", "decide", types.Reward, types.Rewarded, (404, 409, 410)),
            reward,
        ),
        (
            Endpoint(
                "POST", "/v1/bandits/{name}/decisions", "decide", types.Decide, types.Decisions, (404, 409),
                headers=("Idempotency-Key",),
            ),
            decide,
        ),
        (Endpoint("POST", "/v1/rewards", "decide", types.Rewards, types.RewardResults), rewards),
        (
            Endpoint(
                "PUT", "/v1/bandits/{name}", "admin", types.Create, types.BanditState, (201, 409), large=True
            ),
            create,
        ),
        (
            Endpoint(
                "GET", "/v1/bandits", "read", None, types.BanditList, query=(DELETED, AFTER_NAME, LIMIT_BANDITS)
            ),
            list_bandits,
        ),
        (Endpoint("GET", "/v1/bandits/{name}", "read", None, types.BanditState, (404,)), get_bandit),
        (Endpoint("POST", "/v1/bandits/{name}/arms", "admin", types.AddArm, types.Changed, (404, 409)), add_arm),
        (
            Endpoint(
                "PATCH", "/v1/bandits/{name}/arms/{arm}", "admin", types.ChangeArm, types.Changed, (404, 409)
            ),
            change_arm,
        ),
        (
            Endpoint("PUT", "/v1/bandits/{name}/policy", "admin", types.SetPolicy, types.Changed, (404,)),
            set_policy,
        ),
        (
            Endpoint(
                "GET", "/v1/bandits/{name}/events", "read", None, types.Events, (404,),
                query=(AFTER, LIMIT_EVENTS, ID, EVENT_FORMAT), media=(NDJSON,),
            ),
            get_events,
        ),
        (
            Endpoint(
                "GET", "/v1/bandits/{name}/export", "read", None, types.Exported, (404, 501),
                query=(EXPORT_FORMAT, DRAWS, ID), media=(NDJSON, PARQUET), answers_json=False,
            ),
            get_export,
        ),
        (
            Endpoint(
                "DELETE", "/v1/bandits/{name}", "admin", None, types.Deleted, (404,),
                query=(CONFIRM, ERASE),
            ),
            delete,
        ),
        (Endpoint("GET", "/healthz", "", None, types.Ready), healthz),
        (Endpoint("GET", "/readyz", "", None, types.Ready), readyz),
        (Endpoint("GET", "/metrics", "read", None, None, media=("text/plain",), answers_json=False), metrics),
        (Endpoint("GET", "/openapi.json", "", None, None, media=(JSON,), answers_json=False), openapi),
    )
}  # fmt: skip
DOCUMENT = document([endpoint for endpoint, _ in ENDPOINTS.values()])


def make_app(service: Service) -> ASGIApp:
    """Return the ASGI application of a service."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    routes: dict[str, dict[str, Callable[[Request], Awaitable[Response]]]] = {}
    for endpoint, handler in ENDPOINTS.values():
        routes.setdefault(endpoint.path, {})[endpoint.method] = _bound(service, endpoint, handler)
    app = Starlette(
        routes=[Route(path, _by_method(methods), methods=list(methods)) for path, methods in routes.items()],
        lifespan=lifespan,
        exception_handlers={HTTPException: _http_problem},
    )

    async def with_raw_path(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":  # a slash inside a name is data, so the path is cut before it is decoded
            raw = scope.get("raw_path") or scope["path"].encode()
            scope = {**scope, "path": raw.partition(b"?")[0].decode("latin-1"), "root_path": ""}
        await app(scope, receive, send)

    return with_raw_path


def _by_method(
    methods: dict[str, Callable[[Request], Awaitable[Response]]],
) -> Callable[[Request], Awaitable[Response]]:
    if len(methods) == 1:
        return next(iter(methods.values()))

    async def endpoint(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await methods[method](request)

    return endpoint


def _bound(service: Service, endpoint: Endpoint, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    decoder: msgspec.json.Decoder[Any] | None = (
        None if endpoint.body is None else msgspec.json.Decoder(endpoint.body)
    )
    limit = LARGE_BODY if endpoint.large else SMALL_BODY
    method, path = endpoint.method, endpoint.path

    async def handle(request: Request) -> Response:
        started = time.perf_counter()
        try:
            if endpoint.permission:
                _authorise(service, request, endpoint.permission)
            body = None if decoder is None else decoder.decode(await _body(request, limit))
            answer = await handler(service, request, body)
            response = answer if isinstance(answer, Response) else _response(*answer)
        except Exception as error:
            response = _problem(service, error)
        service.metrics.answered(method, path, response.status_code, time.perf_counter() - started)
        return response

    return handle


def _response(content: Any, status: int = 200) -> Response:
    return Response(encode(content), status, media_type=JSON)


def _problem(service: Service, error: Exception) -> Response:
    """Return the answer to a call that failed."""
    headers: dict[str, str] = {}
    if isinstance(error, Refused):
        status, problem = error.status, error.problem
        headers = HEADERS.get(status, {})
    elif isinstance(error, msgspec.ValidationError):
        status, problem = 422, str(error)
    elif isinstance(error, (msgspec.DecodeError, RecursionError)):
        status, problem = 400, f"the body must be JSON: {error}"
    elif isinstance(error, Overloaded):
        service.metrics.turned_away.inc()
        status, problem, headers = 429, "too many calls wait already", {"Retry-After": RETRY_SECONDS}
    elif isinstance(error, StoreFailed):
        status, problem, headers = 503, "the store is not available", {"Retry-After": RETRY_SECONDS}
    elif isinstance(error, Differs):
        log.error("log and replay disagree", bandit=error.bandit, sequence=error.sequence, problem=error.problem)
        status, problem = 500, f"event {error.sequence} of this bandit's log and its replay disagree"
    else:
        log.error("call failed", exc_info=error)
        status, problem = 500, "something went wrong; the log of the service says what"
    response = _response(types.Problem(problem), status)
    response.headers.update(headers)
    return response


async def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    response = _response(types.Problem(str(error.detail)), error.status_code)
    response.headers.update(error.headers or {})
    return response


def _authorise(service: Service, request: Request, permission: str) -> None:
    """Refuse a caller without the key for it, before anything is looked up."""
    if service.needs_keys:
        role = service.keyring.role(request.headers.get("authorization"))
        if role is None:
            raise Refused(401, "this needs a valid API key, as: Authorization: Bearer dyna_...")
        if permission not in ROLES[role]:
            raise Refused(403, f"this needs a key that may {permission}")
    elif request.headers.get("host", "").rsplit(":", 1)[0] not in LOCAL_HOSTS:
        # A page on the web can point a name of its own at this address, but cannot choose another Host header
        raise Refused(421, "without API keys only requests to 127.0.0.1 or localhost are answered")


async def _body(request: Request, limit: int) -> bytes:
    """Return the body, or refuse one that is too large or not declared as JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:  # browsers ask before they send this type to another site
        raise Refused(415, f"Content-Type must be {JSON}, got {kind[:100]!r}")
    size, chunks = 0, []
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise Refused(413, f"the body must have at most {limit} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def _path(request: Request, part: str) -> str:
    try:
        return _clean(unquote(request.path_params[part], errors="strict"), part)
    except UnicodeDecodeError:
        raise Refused(422, f"{part} must be UTF-8, percent-encoded") from None


def _clean(name: str, what: str) -> str:
    try:
        return clean_name(name, what)
    except ValueError as error:
        raise Refused(422, str(error)) from None


def _query(request: Request, *known: Query) -> dict[str, Any]:
    """Return the value of each parameter, or refuse."""
    given = dict(request.query_params)
    values = {one.name: _value(one, given.pop(one.name)) if one.name in given else _default(one) for one in known}
    if given:
        names = ", ".join(one.name for one in known)
        raise Refused(422, f"unknown parameter {next(iter(given))[:100]!r}. Known: {names}")
    return values


def _default(query: Query) -> int | str:
    return query.words[0] if query.words else query.default


def _value(query: Query, text: str) -> int | str:
    if query.words:
        if text not in query.words:
            raise Refused(422, f"{query.name} must be one of {', '.join(query.words)}, got {text[:100]!r}")
        return text
    if isinstance(query.default, int):
        digits = text.isascii() and text.isdigit() and len(text) < 20
        if not digits or not query.low <= int(text) <= query.high:
            valid = f"a whole number from {query.low} to {query.high}"
            raise Refused(422, f"{query.name} must be {valid}, got {text[:100]!r}")
        return int(text)
    return text
