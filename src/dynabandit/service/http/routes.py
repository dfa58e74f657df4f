"""Routes: which handler serves which request, and the application that finds it."""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dynabandit.service import api_types, web
from dynabandit.service.errors import OverloadedError, StreamInterruptedError
from dynabandit.service.http import handlers
from dynabandit.service.http.handlers import Handler, Result
from dynabandit.service.http.limits import LARGE_BODY, SMALL_BODY, RefusalPacer
from dynabandit.service.http.openapi import Endpoint, document
from dynabandit.service.http.request_bodies import decode_body
from dynabandit.service.http.requests import authorise, path_name, read_body
from dynabandit.service.http.responses import HEADERS, JSON, add_headers, json_response, problem_response
from dynabandit.service.http.status_codes import OVERLOADED, OVERLOADED_CLOSE, error_response
from dynabandit.service.logging_setup import log_change
from dynabandit.service.service import Service

__all__ = ["DOCUMENT", "ENDPOINTS", "make_app"]


async def openapi(service: Service, request: Request, body: None) -> Response:
    return Response(DOCUMENT, media_type=JSON)


# The most frequent requests come first. The OpenAPI document is made from the same lines.
ENDPOINTS: dict[str, tuple[Endpoint, Handler]] = {
    endpoint.id: (endpoint, handler)
    for endpoint, handler in (
        (
            Endpoint(
                "PUT", "/v1/decisions/{id}/reward", "decide", api_types.Reward, api_types.Rewarded, (404, 409, 410)
            ),
            handlers.add_reward,
        ),
        (
            Endpoint(
                "POST", "/v1/bandits/{name}/decisions", "decide", api_types.Decide, api_types.Decisions, (404, 409),
                headers=("Idempotency-Key",),
            ),
            handlers.decide,
        ),
        (Endpoint("POST", "/v1/rewards", "decide", api_types.Rewards, api_types.RewardResults), handlers.add_rewards),
        (
            Endpoint(
                "PUT", "/v1/bandits/{name}", "admin", api_types.Create, api_types.BanditState, (201, 409), large=True
            ),
            handlers.create,
        ),
        (
            Endpoint(
                "GET", "/v1/bandits", "read", None, api_types.BanditList,
                query=(handlers.DELETED, handlers.AFTER_NAME, handlers.LIMIT_BANDITS),
            ),
            handlers.list_bandits,
        ),
        (Endpoint("GET", "/v1/bandits/{name}", "read", None, api_types.BanditState, (404,)), handlers.get_bandit),
        (
            Endpoint("POST", "/v1/bandits/{name}/arms", "admin", api_types.AddArm, api_types.Changed, (404, 409)),
            handlers.add_arm,
        ),
        (
            Endpoint(
                "PATCH", "/v1/bandits/{name}/arms/{arm}", "admin", api_types.ChangeArm, api_types.Changed, (404, 409)
            ),
            handlers.change_arm,
        ),
        (
            Endpoint("PUT", "/v1/bandits/{name}/policy", "admin", api_types.SetPolicy, api_types.Changed, (404,)),
            handlers.set_policy,
        ),
        (
            Endpoint(
                "POST", "/v1/bandits/{name}/policy/preview", "read", api_types.PreviewPolicy, api_types.Preview, (404,)
            ),
            handlers.preview_policy,
        ),
        (
            Endpoint(
                "GET", "/v1/bandits/{name}/events", "read", None, api_types.Events, (404,),
                query=(handlers.AFTER, handlers.LIMIT_EVENTS, handlers.ID, handlers.KIND, handlers.EVENT_FORMAT),
                media=(handlers.NDJSON,),
            ),
            handlers.get_events,
        ),
        (
            Endpoint(
                "GET", "/v1/bandits/{name}/export", "read", None, api_types.Exported, (404, 501),
                query=(handlers.EXPORT_FORMAT, handlers.DRAWS, handlers.ID),
                media=(handlers.NDJSON, handlers.PARQUET), returns_json=False,
            ),
            handlers.get_export,
        ),
        (
            Endpoint(
                "DELETE", "/v1/bandits/{name}", "admin", None, api_types.Deleted, (404,),
                query=(handlers.CONFIRM, handlers.ERASE, handlers.ID),
            ),
            handlers.delete,
        ),
        (Endpoint("GET", "/healthz", "", None, api_types.Ready), handlers.healthz),
        (Endpoint("GET", "/readyz", "", None, api_types.Ready), handlers.readyz),
        (Endpoint("GET", "/metrics", "read", None, None, media=("text/plain",), returns_json=False), handlers.metrics),
        (Endpoint("GET", "/openapi.json", "", None, None, media=(JSON,), returns_json=False), openapi),
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

    pacer = RefusalPacer()
    bound = {one.id: _bind(service, pacer, one, handler) for one, handler in ENDPOINTS.values()}
    routes = web.routes(service, follower, workers)
    pages = Starlette(lifespan=lifespan, routes=routes, exception_handlers={404: _not_found, 405: _not_allowed})
    pages.router.redirect_slashes = False

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await pages(scope, receive, send)
            return
        # Starlette's router decodes the path first, so that an encoded slash in a name would split it
        path = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0].decode("latin-1")
        found, methods = _match(path)
        if found is None:
            await pages(scope, receive, send)
            return
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if method not in methods:
            await _method_response(scope["method"], methods)(scope, receive, send)
            return
        scope["path_params"] = found.groupdict()
        response = await bound[methods[method]](Request(scope, receive))
        response = add_headers(response, scope["method"], HEADERS)
        with contextlib.suppress(StreamInterruptedError):  # the server then closes the connection
            await response(scope, receive, send)

    return app


def _method_response(given: str, methods: Collection[str]) -> Response:
    problem = f"the method must be {' or '.join(methods)} here, got {given[:20]}"
    return problem_response(405, problem, Allow=", ".join(methods))


async def _not_found(request: Request, error: Exception) -> Response:
    return problem_response(404, f"there is nothing at {request.url.path[:200]!r}")


async def _not_allowed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    methods = sorted((error.headers or {}).get("Allow", "GET").split(", "))
    return _method_response(request.method, methods)


def _patterns() -> list[tuple[re.Pattern[str], dict[str, str]]]:
    """Return a pattern for each path, and the endpoint of each of its methods."""
    found: dict[str, dict[str, str]] = {}
    for one, _ in ENDPOINTS.values():
        found.setdefault(one.path, {})[one.method] = one.id
    return [(re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", path)), methods) for path, methods in found.items()]


PATTERNS = _patterns()


def _match(path: str) -> tuple[re.Match[str] | None, dict[str, str]]:
    for pattern, methods in PATTERNS:
        found = pattern.fullmatch(path)
        if found is not None:
            return found, methods
    return None, {}


def _bind(
    service: Service, pacer: RefusalPacer, endpoint: Endpoint, handler: Handler
) -> Callable[[Request], Awaitable[Response]]:
    """Return a function that serves an endpoint: authorise, admit, decode, handle, count."""
    decoder: msgspec.json.Decoder[Any] | None = None if endpoint.body is None else msgspec.json.Decoder(endpoint.body)
    limit = LARGE_BODY if endpoint.large else SMALL_BODY
    method, path = endpoint.method, endpoint.path

    async def serve(request: Request) -> Response:
        started = time.perf_counter()
        try:
            key = authorise(service, request, endpoint.permission) if endpoint.permission else None
            if endpoint.permission == "decide":
                service.check_admission()
            body = None if decoder is None else decode_body(decoder, await read_body(request, limit))
            result = await handler(service, request, body)
            response = result if isinstance(result, Response) else json_response(result.content, result.status)
            if isinstance(result, Result) and result.changed:
                names = {part: path_name(request, part) for part in request.path_params}
                log_change(endpoint.id, names, key, msgspec.to_builtins(body) or dict(request.query_params))
        except OverloadedError:
            response = await _refuse(service, pacer)
            service.metrics.count_response(method, path, response.status_code, None)  # delayed on purpose
            return response
        except Exception as error:
            response = error_response(error)
        service.metrics.count_response(method, path, response.status_code, time.perf_counter() - started)
        return response

    return serve


async def _refuse(service: Service, pacer: RefusalPacer) -> Response:
    """Return the refusal of a request under overload, after a delay that slows clients down which retry at once."""
    service.metrics.refused.inc()
    delay = pacer.delay()
    if delay is None:
        return OVERLOADED_CLOSE
    if delay:
        await asyncio.sleep(delay)
    return OVERLOADED
