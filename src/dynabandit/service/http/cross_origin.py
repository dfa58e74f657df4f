"""Calls from web pages of other origins (CORS), for the origins that `dynabandit serve --allow-origin` names.

Starlette's `CORSMiddleware` is not used: it also answers for pages and calls that other origins may not use.
"""

import re
from collections.abc import Collection

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Scope, Send

ORIGIN = re.compile(r"(https?)://([a-z0-9.-]+|\[[0-9a-f:]+\])(?::(\d{1,5}))?")
DEFAULT_PORTS = {"http": "80", "https": "443"}
REQUEST_HEADERS = "Authorization, Content-Type, Idempotency-Key"
PREFLIGHT_SECONDS = 7200  # for which browsers may remember what is allowed


def check_origin(origin: str) -> str:
    """Return an origin as browsers send it.

    Examples
    --------
    >>> check_origin("https://Shop.example:443")
    'https://shop.example'
    """
    found = ORIGIN.fullmatch(origin.lower())
    if found is None:
        raise ValueError(f"--allow-origin must be like https://shop.example or http://localhost:3000, got {origin!r}")
    scheme, host, port = found.groups()
    return f"{scheme}://{host}" + (f":{port}" if port is not None and port != DEFAULT_PORTS[scheme] else "")


def allowed_origin(scope: Scope, allowed: Collection[str]) -> str | None:
    """Return the origin of the page that sends a request, if it is allowed."""
    given = next((bytes(value).decode("latin-1") for name, value in scope["headers"] if name == b"origin"), None)
    return given if given in allowed else None


def preflight_response(methods: Collection[str]) -> Response:
    """Return the response to a browser that asks what it may send."""
    headers = {
        "Access-Control-Allow-Methods": ", ".join(methods),
        "Access-Control-Allow-Headers": REQUEST_HEADERS,
        "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
    }
    return Response(status_code=204, headers=headers)


def add_origin(send: Send, origin: str | None) -> Send:
    """Return a `send` whose responses a page of this origin may read; None if the origin is not allowed."""

    async def send_with_origin(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            allow(headers, origin)
            if origin is not None:
                headers["Access-Control-Expose-Headers"] = "Retry-After"
        await send(message)

    return send_with_origin


def allow(headers: MutableHeaders, origin: str | None) -> None:
    """Let a page of this origin read a response; None if the origin is not allowed."""
    headers.add_vary_header("Origin")  # in any case: a cache must not give the response of one origin to another
    if origin is not None:
        headers["Access-Control-Allow-Origin"] = origin
