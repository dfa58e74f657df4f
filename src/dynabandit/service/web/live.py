"""The live page: all bandits, one bandit, and the streams that keep them up to date."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from starlette import convertors
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from dynabandit.catalogue import entries, fields_of
from dynabandit.policies import POLICIES
from dynabandit.service.http.requests import checked_name, header, may_still_read
from dynabandit.service.http.responses import json_response
from dynabandit.service.projections.log_follower import OVERVIEW, Watcher
from dynabandit.service.service import Service
from dynabandit.service.web.frame import page, render

__all__ = ["event", "policies", "routes"]

LOOK_SECONDS = 0.1
ALIVE_SECONDS = 2.0  # a page that hears nothing for longer takes the server for gone
NO_CACHE = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class NameConvertor(convertors.PathConvertor):
    """A name in a path: all that is left of it, line breaks included."""

    regex = r"[\s\S]*"


convertors.register_url_convertor("bandit", NameConvertor())


def event(name: str, data: bytes) -> bytes:
    """Return a server-sent event; JSON has no line breaks of its own."""
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


def policies() -> list[dict[str, Any]]:
    """Return what a form tells and asks about each policy, from the policies' own words.

    Examples
    --------
    >>> next(one for one in policies() if one["name"] == "aff-ots")["fields"][0]["name"]
    'step_size'
    """
    described = []
    for entry in entries(POLICIES):
        kind = POLICIES[entry.name]
        if not kind.informed:  # a yardstick that knows the true means decides nothing for real
            fields = [one._asdict() for one in fields_of(kind)]
            described.append(
                {"name": entry.name, "text": entry.description, "fields": fields, "needed": kind().left_open}
            )
    return described


def routes(service: Service, watcher: Watcher) -> list[Route]:
    """Return the routes of the live page and of what it fetches."""

    async def overview(service: Service, request: Request) -> Response:
        return render(service, "live.html")

    async def bandit(service: Service, request: Request) -> Response:
        return render(service, "bandit.html", name=checked_name(request.path_params["name"], "name"))

    async def catalogue(service: Service, request: Request) -> Response:
        return json_response({"policies": policies()})

    async def who(service: Service, request: Request) -> Response:
        key = service.keyring.find(header(request, b"authorization"))
        return json_response({"role": "admin" if key is None else key.role})

    async def watch_all(service: Service, request: Request) -> Response:
        return _stream(service, request, watcher, OVERVIEW)

    async def watch(service: Service, request: Request) -> Response:
        name = checked_name(request.query_params.get("name", ""), "name")
        await service.read(lambda store: store.find_log(name, None))  # 404 before the stream begins
        return _stream(service, request, watcher, name)

    return [
        page(service, "/", overview),
        page(service, "/bandits/{name:bandit}", bandit),
        page(service, "/pages/policies", catalogue, "read"),
        page(service, "/pages/who", who, "read"),
        page(service, "/pages/bandits", watch_all, "read"),
        page(service, "/pages/bandit", watch, "read"),
    ]


def _stream(service: Service, request: Request, watcher: Watcher, name: str) -> Response:
    views = _views(service, request, watcher, name)
    return StreamingResponse(views, media_type="text/event-stream", headers=NO_CACHE)


async def _views(service: Service, request: Request, watcher: Watcher, name: str) -> AsyncIterator[bytes]:
    """Send a view whenever it has changed, and a sign of life when it has not."""
    seen, spoke = 0, 0.0
    with watcher.watching(name):
        while may_still_read(service, request) and not service.closing.is_set():
            view = watcher.view(name)
            if view is not None and view[0] != seen:
                seen, spoke = view[0], time.monotonic()
                yield event("view", view[1])
            elif time.monotonic() - spoke >= ALIVE_SECONDS:
                spoke = time.monotonic()
                yield b": alive\n\n"
            await asyncio.sleep(LOOK_SECONDS)
