"""Routes: which handler serves which request, and the application that finds it."""

import asyncio
import contextlib
import functools
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Any, NamedTuple, Protocol

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dynabandit.service import api_types as api, local_types, monitoring_types as monitoring
from dynabandit.service.domain.deciders import SECRET_HEADER
from dynabandit.service.domain.events import KINDS
from dynabandit.service.errors import OverloadedError, WorkInterruptedError
from dynabandit.service.http import handlers, local_handlers, monitoring_handlers, personalizer
from dynabandit.service.http.authorisation import authorise, check_rate_limit, cost_of
from dynabandit.service.http.cross_origin import add_origin, allowed_origin, preflight_response
from dynabandit.service.http.handlers import NDJSON, PARQUET, Result
from dynabandit.service.http.limits import (
    COMMAS_AT_ONCE,
    DECODED_AT_ONCE,
    LARGE_BODY,
    LARGE_CONTAINERS,
    MAX_EVENTS,
    SMALL_BODY,
    RefusalPacer,
)
from dynabandit.service.http.openapi import Endpoint, Query, document
from dynabandit.service.http.request_bodies import MAX_CONTAINERS, decode_body
from dynabandit.service.http.requests import path_name, query_values, read_body
from dynabandit.service.http.responses import HEADERS, JSON, add_headers, json_response, problem_response
from dynabandit.service.http.status_codes import OVERLOADED, OVERLOADED_CLOSE, error_response
from dynabandit.service.keys import RATE_LIMITED
from dynabandit.service.logging_setup import log_change
from dynabandit.service.projections.log_follower import LogFollower
from dynabandit.service.service import Service
from dynabandit.service.web import live_pages, playground_page, static_files
from dynabandit.service.web.playground_workers import WorkerPool
from dynabandit.service.webhook import AlertSender


async def openapi(service: Service, request: Request, _: None) -> Response:
    return Response(DOCUMENT, media_type=JSON)


Serve = Callable[[Request], Awaitable[Response]]
BOOL = ("false", "true")
ID, AFTER, KIND = Query("id"), Query("after", 0, 0, 2**62), Query("kind", words=("all", *KINDS))

# The most frequent endpoints come first. The OpenAPI document is made from the same table.
ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("PUT", "/v1/decisions/{id}/reward", "page", handlers.add_reward, api.Reward, api.Rewarded,
             (404, 409, 410), cross_origin=True),
    Endpoint("POST", "/v1/bandits/{name}/decisions", "page", handlers.decide, api.Decide, api.Decisions, (404, 409),
             headers=("Idempotency-Key",), cross_origin=True),
    Endpoint("POST", "/v1/bandits/{name}/local-decisions", "decide", local_handlers.add_local_decisions,
             local_types.LocalBatch, local_types.LocalBatchResult, (404, 409), headers=(SECRET_HEADER,)),
    Endpoint("GET", "/v1/bandits/{name}/local-state", "decide", local_handlers.get_local_state, None,
             local_types.LocalState, (404,),
             query=(AFTER, Query("at_least", 0, 0, 2**62), Query("decider"), Query("waiting", 0, 0, 2**62))),
    Endpoint("POST", "/v1/rewards", "page", handlers.add_rewards, api.Rewards, api.RewardResults,
             cross_origin=True),
    # The same with the name of the bandit, by which a load balancer can choose the replica
    Endpoint("PUT", "/v1/bandits/{name}/decisions/{id}/reward", "page", handlers.add_reward, api.Reward, api.Rewarded,
             (404, 409, 410), cross_origin=True),
    Endpoint("POST", "/v1/bandits/{name}/rewards", "page", handlers.add_rewards, api.Rewards, api.RewardResults,
             (404,), cross_origin=True),
    Endpoint("PUT", "/v1/bandits/{name}", "admin", handlers.create, api.Create, api.BanditState, (201, 409),
             large=True),
    Endpoint("GET", "/v1/bandits", "read", handlers.list_bandits, None, api.BanditList,
             query=(Query("deleted", words=BOOL), Query("after"), Query("limit", 100, 1, 1000))),
    Endpoint("GET", "/v1/bandits/{name}", "read", handlers.get_bandit, None, api.BanditState, (404,)),
    Endpoint("POST", "/v1/bandits/{name}/arms", "admin", handlers.add_arm, api.AddArm, api.Changed, (404, 409)),
    Endpoint("PATCH", "/v1/bandits/{name}/arms/{arm}", "admin", handlers.change_arm, api.ChangeArm, api.Changed,
             (404, 409)),
    Endpoint("PUT", "/v1/bandits/{name}/policy", "admin", handlers.set_policy, api.SetPolicy, api.Changed,
             (404, 409)),
    Endpoint("POST", "/v1/bandits/{name}/policy/preview", "read", handlers.preview_policy, api.PreviewPolicy,
             api.Preview, (404,)),
    Endpoint("PUT", "/v1/decisions/{id}/metrics", "page", monitoring_handlers.add_metrics, monitoring.Metrics,
             monitoring.CountedMetrics, (404, 409, 410), cross_origin=True),
    Endpoint("PUT", "/v1/bandits/{name}/decisions/{id}/metrics", "page", monitoring_handlers.add_metrics,
             monitoring.Metrics, monitoring.CountedMetrics, (404, 409, 410), cross_origin=True),
    Endpoint("PUT", "/v1/bandits/{name}/guardrails", "admin", monitoring_handlers.set_guardrails,
             monitoring.SetGuardrails, api.Changed, (404,)),
    Endpoint("GET", "/v1/bandits/{name}/alerts", "read", monitoring_handlers.get_alerts, None, monitoring.Alerts,
             (404,), query=(AFTER, Query("limit", 1000, 1, MAX_EVENTS), ID)),
    Endpoint("PUT", "/v1/bandits/{name}/shadow", "admin", handlers.set_shadow, api.SetPolicy, api.Changed, (404,)),
    Endpoint("DELETE", "/v1/bandits/{name}/shadow", "admin", handlers.end_shadow, None, api.Changed, (404,)),
    Endpoint("POST", "/v1/bandits/{name}/shadow/promote", "admin", handlers.promote_shadow, api.PromoteShadow,
             api.Changed, (404, 409)),
    Endpoint("GET", "/v1/bandits/{name}/events", "read", handlers.get_events, None, api.Events, (404,),
             query=(AFTER, Query("limit", 1000, 1, MAX_EVENTS), ID, KIND, Query("format", words=("json", "ndjson"))),
             media=(NDJSON,)),
    Endpoint("GET", "/v1/bandits/{name}/export", "read", handlers.get_export, None, api.Exported, (404, 501),
             query=(Query("format", words=("ndjson", "parquet")), Query("draws", 200, 1, 100_000), ID),
             media=(NDJSON, PARQUET), returns_json=False),
    Endpoint("DELETE", "/v1/bandits/{name}", "admin", handlers.delete, None, api.Deleted, (202, 404),
             query=(Query("confirm", required=True), Query("erase", words=BOOL), ID)),
    *personalizer.endpoints("/personalizer/v1.0"),
    *personalizer.endpoints("/v1/bandits/{name}/personalizer/v1.0"),
    Endpoint("GET", "/healthz", "", handlers.healthz, None, api.Ready),
    Endpoint("GET", "/readyz", "", handlers.readyz, None, api.Ready),
    Endpoint("GET", "/metrics", "read", handlers.metrics, None, None, media=("text/plain",), returns_json=False),
    Endpoint("GET", "/openapi.json", "", openapi, None, None, media=(JSON,), returns_json=False),
)  # fmt: skip
DOCUMENT = document(ENDPOINTS)


class Resource(NamedTuple):
    """A path: its pattern, the function that serves each method, and the methods that other origins may use."""

    pattern: re.Pattern[str]
    methods: dict[str, Serve]
    cross_origin: tuple[str, ...]


class Instrumentation(Protocol):
    """What records requests; see `http/telemetry.py`."""

    def wrap(self, endpoint: Endpoint, serve: Serve) -> Serve:
        """Return a function that serves an endpoint and records each request."""
        ...

    def stop(self) -> None:
        """Export what was recorded."""
        ...


def make_app(service: Service, telemetry: Instrumentation | None = None) -> ASGIApp:
    """Return the ASGI application of a service."""
    follower, workers = LogFollower(service), WorkerPool(closing=service.closing)
    sender = None if service.webhook is None else AlertSender(service, service.webhook)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await service.start()
        follower.start()
        if sender is not None:
            sender.start()
        yield
        if sender is not None:
            await sender.stop()
        await workers.stop()
        await follower.stop()
        await service.stop()
        if telemetry is not None:
            await asyncio.to_thread(telemetry.stop)

    resources = _bind_endpoints(service, telemetry)
    routes = [*static_files.routes(service), *live_pages.routes(service, follower)]
    routes += playground_page.routes(service, workers)
    pages = Starlette(lifespan=lifespan, routes=routes, exception_handlers={404: _not_found, 405: _not_allowed})
    pages.router.redirect_slashes = False

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await pages(scope, receive, send)
            return
        # Starlette's router decodes the path first, so that an encoded slash in a name would split it
        path = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0].decode("latin-1")
        matches = ((found, resource) for resource in resources if (found := resource.pattern.fullmatch(path)))
        matched, resource = next(matches, (None, None))
        if matched is None or resource is None:
            await pages(scope, receive, send)
            return
        if resource.cross_origin and service.allowed_origins:
            origin = allowed_origin(scope, service.allowed_origins)
            send = add_origin(send, origin)
            if scope["method"] == "OPTIONS" and origin is not None:
                await preflight_response(resource.cross_origin)(scope, receive, send)
                return
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if method not in resource.methods:
            await _method_response(scope["method"], resource.methods)(scope, receive, send)
            return
        scope["path_params"] = matched.groupdict()
        response = await resource.methods[method](Request(scope, receive))
        response = add_headers(response, scope["method"], HEADERS)
        with contextlib.suppress(WorkInterruptedError):  # the server then closes the connection
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


def _bind_endpoints(service: Service, telemetry: Instrumentation | None) -> list[Resource]:
    """Return the resource of each path."""
    pacer, found = RefusalPacer(), dict[str, Resource]()
    for one in ENDPOINTS:
        serve = _bind(service, pacer, one)
        if one.path not in found:
            shared = tuple(each.method for each in ENDPOINTS if each.path == one.path and each.cross_origin)
            found[one.path] = Resource(re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", one.path)), {}, shared)
        found[one.path].methods[one.method] = serve if telemetry is None else telemetry.wrap(one, serve)
    return list(found.values())


def _bind(service: Service, pacer: RefusalPacer, endpoint: Endpoint) -> Serve:
    """Return a function that serves an endpoint: authorise, admit, decode, handle, count."""
    decoder: msgspec.json.Decoder[Any] | None = None if endpoint.body is None else msgspec.json.Decoder(endpoint.body)
    limit, containers = (LARGE_BODY, LARGE_CONTAINERS) if endpoint.large else (SMALL_BODY, MAX_CONTAINERS)
    method, path = endpoint.method, endpoint.path

    async def serve(request: Request) -> Response:
        started = time.perf_counter()
        try:
            api_key = authorise(service, request, endpoint.permission) if endpoint.permission else None
            if endpoint.permission in RATE_LIMITED:  # before the body is read
                check_rate_limit(service, api_key)
                if method != "GET" and service.writer.admission.is_full():
                    raise OverloadedError
            if decoder is not None:
                body = await read_body(request, limit)
                decode = functools.partial(decode_body, decoder, body, containers)
                is_small = len(body) <= DECODED_AT_ONCE and body.count(b",") <= COMMAS_AT_ONCE
                content = decode() if is_small else await service.run_apart(decode)
                if endpoint.permission in RATE_LIMITED:
                    check_rate_limit(service, api_key, cost_of(content), paid=1)
            else:
                content = query_values(request, *endpoint.query) if endpoint.query else None
            result = await endpoint.handler(service, request, content)
            response = result if isinstance(result, Response) else json_response(result.content, result.status)
            if isinstance(result, Result) and result.changed:
                names = {part: path_name(request, part) for part in request.path_params}
                service.local_state_cache.forget(names.get("name", ""))
                change = result.change
                if change is None:
                    change = msgspec.to_builtins(content) if decoder else dict(request.query_params)
                log_change(endpoint.id, names, None if api_key is None else api_key.id, change)
        except OverloadedError:
            response = await _refuse(service, pacer)
            service.metrics.count_response(method, path, response.status_code, None)  # delayed on purpose
            return response if endpoint.problem is api.Problem else personalizer.error_response(response)
        except asyncio.CancelledError:
            if not service.closing.is_set():
                raise
            response = error_response(WorkInterruptedError())  # it took longer than the server waits when it stops
        except Exception as error:
            response = error_response(error)
            if response.status_code in (429, 503):
                service.note_refusal()
            if endpoint.problem is not api.Problem:
                response = personalizer.error_response(response)
        service.metrics.count_response(method, path, response.status_code, time.perf_counter() - started)
        return response

    return serve


async def _refuse(service: Service, pacer: RefusalPacer) -> Response:
    """Return the refusal of a request under overload, after a delay that slows clients down which retry at once."""
    service.metrics.refused.inc()
    service.note_refusal()
    delay = pacer.delay()
    if delay is None:
        return OVERLOADED_CLOSE
    if delay:
        await asyncio.sleep(delay)
    return OVERLOADED
