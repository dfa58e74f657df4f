"""HTML pages: templates, and routes that check the caller and handle errors as the API does."""

import functools
import re
from collections.abc import Awaitable, Callable
from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dynabandit.service.http.authorisation import authorise
from dynabandit.service.http.responses import add_headers
from dynabandit.service.http.status_codes import error_response
from dynabandit.service.service import Service
from dynabandit.service.web.static_files import PLOTLY, SECURITY_HEADERS, static_files, static_url

PageHandler = Callable[[Service, Request], Awaitable[Response]]

SILENCE_SECONDS = 8.0  # after which a page takes a stream for broken; live_pages.py sends something every 2 seconds

# Plotly adds inline styles for its maps, which the Content-Security-Policy forbids, unless an element with a certain id
# exists. No page has a map, so base.html contains empty elements with these ids. Plotly's other styles go into the
# stylesheet with the id plotly.js-style-global, which is ours.
MAP_STYLE_ID = re.compile(r'getElementById\("([0-9a-f]{64})"\)')


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["static"] = static_url
    script = static_files()[PLOTLY].read_text(encoding="utf-8")
    environment.globals["map_style_ids"] = MAP_STYLE_ID.findall(script)
    return environment


def render(service: Service, template: str, status: int = 200, **values: Any) -> Response:
    """Return a page. A page contains nothing that needs a key; its scripts fetch the data with the key."""
    values |= {"needs_keys": service.needs_keys, "silence_seconds": SILENCE_SECONDS}
    text = _environment().get_template(template).render(**values)
    headers = {**SECURITY_HEADERS, "Cache-Control": "no-cache"}
    return Response(text, status, headers, media_type="text/html; charset=utf-8")


def page(service: Service, path: str, handler: PageHandler, permission: str = "", method: str = "GET") -> Route:
    """Return the route of a page, or of data that a page fetches, for which a key must have the permission.

    A page itself needs none; without keys it is still shown only to callers on this machine.
    """

    async def handle(request: Request) -> Response:
        try:
            if permission or not service.needs_keys:
                authorise(service, request, permission)
            answer = await handler(service, request)
        except Exception as error:
            answer = error_response(error)
        return add_headers(answer, request.method, SECURITY_HEADERS)

    return Route(path, handle, methods=[method])
