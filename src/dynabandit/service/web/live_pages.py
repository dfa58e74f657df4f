"""The live pages: the overview of all bandits, the page of one bandit, and the streams that keep them up to date."""

import asyncio
import contextlib
import difflib
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette import convertors
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dynabandit.catalogue import fields_of, part_menus, part_names, summary
from dynabandit.plugins import composes
from dynabandit.policies import AUTO, CONTEXTUAL_POLICIES, POLICIES, Policy, policy_class, resolved
from dynabandit.service.domain.names import MAX_NAME, in_namespace, is_whole
from dynabandit.service.domain.warm_start import bandit_to_compile, is_compiled, needed_functions
from dynabandit.service.errors import NotFoundError, StoreError
from dynabandit.service.http.authorisation import may_still_read
from dynabandit.service.http.requests import checked_name, header, namespace_of
from dynabandit.service.http.responses import LimitedStream, json_response
from dynabandit.service.projections.log_follower import BanditPage, LogFollower, Overview, Page
from dynabandit.service.service import Service
from dynabandit.service.stores import Store
from dynabandit.service.web.rendering import page, render

POLL_SECONDS = 0.1
KEEP_ALIVE_SECONDS = 2.0  # a page takes the server for unreachable after SILENCE_SECONDS
MAX_COMPARED_NAMES = 1_000
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class BanditNameConvertor(convertors.PathConvertor):
    """The rest of a path, which may contain slashes and line breaks."""

    regex = r"[\s\S]*"


convertors.register_url_convertor("bandit", BanditNameConvertor())


def described(policies: Mapping[str, type[Policy]]) -> list[dict[str, Any]]:
    """Return the name, description and parameters of each policy, for the forms of the pages.

    Examples
    --------
    >>> next(one for one in described(POLICIES) if one["name"] == "aff-ots")["fields"][0]["name"]
    'step_size'
    """
    # An oracle policy knows the true means, so it can only be simulated
    return [describe(policy) for policy in policies.values() if not policy.informed]


def describe(policy: type[Policy]) -> dict[str, Any]:
    """Return the name, description, parameters and parts of a policy."""
    fields = [field._asdict() for field in fields_of(policy)]
    return {"name": policy.name, "text": summary(policy), "fields": fields, "parts": part_names(policy)}


def similar_names(store: Store, name: str) -> list[str] | None:
    """Return the names of bandits that are similar to a name, or None if there is a bandit with this name."""
    if store.find(name) is not None:
        return None
    names = [row.name for row in store.bandits(limit=MAX_COMPARED_NAMES) if is_whole(row.name)]
    return difflib.get_close_matches(name, names, n=5)


def routes(service: Service, follower: LogFollower) -> list[Route]:
    """Return the routes of the live pages and of the data they fetch."""

    async def overview(service: Service, request: Request) -> Response:
        return render(service, "overview.html")

    async def bandit(service: Service, request: Request) -> Response:
        name = checked_name(request.path_params["name"], "name")
        similar = None
        # With keys the page is the same for every name: who has none may not learn which bandits exist. If the store is
        # not available now, the page is shown and waits for it
        if not service.needs_keys:
            with contextlib.suppress(StoreError):
                similar = await service.read(lambda store: similar_names(store, name))
        if similar is None:
            return render(service, "bandit.html", name=name, similar=[])
        return render(service, "unknown_bandit.html", 404, name=name, similar=similar)

    async def catalogue(service: Service, request: Request) -> Response:
        with_features = {"policies": described(CONTEXTUAL_POLICIES), "recommended": resolved(AUTO, contextual=True)}
        return json_response(
            {
                "policies": described(POLICIES), "recommended": resolved(AUTO), "with_features": with_features,
                "parts": part_menus() if composes() else None,
            }
        )  # fmt: skip

    async def policy(service: Service, request: Request) -> Response:
        try:
            return json_response({"policy": describe(policy_class(request.query_params.get("name", "")[:MAX_NAME]))})
        except ValueError as error:  # the parts do not fit, which a form shows beside its menus
            return json_response({"problem": str(error)})

    async def compiled(service: Service, request: Request) -> Response:
        name = request.query_params.get("policy", "")[:MAX_NAME]
        try:
            policy_class(name)
        except ValueError:
            raise NotFoundError(f"there is no policy {name[:100]!r}") from None
        bandit = bandit_to_compile(name, {})
        return json_response(
            {"compiled": await asyncio.to_thread(is_compiled, bandit.policy, *needed_functions(bandit))}
        )

    async def role(service: Service, request: Request) -> Response:
        key = service.keyring.find(header(request, b"authorization"))
        return json_response({"role": "admin" if key is None else key.role, "namespace": namespace_of(request)})

    async def overview_stream(service: Service, request: Request) -> Response:
        search = request.query_params.get("search", "")[:MAX_NAME]
        return _stream(service, request, follower, Overview(namespace_of(request), search))

    async def bandit_stream(service: Service, request: Request) -> Response:
        name = checked_name(request.query_params.get("name", ""), "name")
        if not in_namespace(name, namespace_of(request)):
            raise NotFoundError(f"there is no bandit {name!r}")
        await service.read(lambda store: store.find_log(name, None))  # 404 before the stream starts
        control = request.query_params.get("control", "")
        return _stream(service, request, follower, BanditPage(name, control if 0 < len(control) <= MAX_NAME else None))

    return [
        page(service, "/", overview),
        page(service, "/bandits/{name:bandit}", bandit),
        page(service, "/pages/policies", catalogue, "read"),
        page(service, "/pages/policy", policy, "read"),
        page(service, "/pages/compiled", compiled, "read"),
        page(service, "/pages/who", role, "read"),
        page(service, "/pages/bandits", overview_stream, "read"),
        page(service, "/pages/bandit", bandit_stream, "read"),
    ]


def _stream(service: Service, request: Request, follower: LogFollower, page: Page) -> Response:
    events = _events(service, request, follower, page)
    return LimitedStream(service.live_pages, events, "text/event-stream", **STREAM_HEADERS)


async def _events(service: Service, request: Request, follower: LogFollower, page: Page) -> AsyncIterator[bytes]:
    """Yield a server-sent event whenever the page data has changed, and a comment when it has not for a while.

    sse-starlette would save only the formatting: the end of a stream with its key or with the service is ours.
    """
    version, sent_at = 0, 0.0
    with follower.following(page):
        while may_still_read(service, request) and not service.closing.is_set():
            data = follower.page_data(page)
            if data is not None and data.version != version:
                version, sent_at = data.version, time.monotonic()
                yield b"event: view\ndata: " + data.content + b"\n\n"  # JSON contains no line breaks
            elif time.monotonic() - sent_at >= KEEP_ALIVE_SECONDS:
                sent_at = time.monotonic()
                yield b": keep-alive\n\n"
            await asyncio.sleep(POLL_SECONDS)
