"""What all pages share: templates, files that never change under their address, and headers that keep others out."""

import asyncio
import functools
import gzip
import hashlib
import importlib.resources
import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import jinja2
import plotly
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dynabandit.service.http.requests import authorise
from dynabandit.service.http.responses import add_headers, problem_response
from dynabandit.service.http.status_codes import error_response
from dynabandit.service.service import Service

__all__ = ["HEADERS", "PageHandler", "page", "render", "routes"]

HERE = importlib.resources.files(__name__.rpartition(".")[0])
KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
PLOTLY = "plotly.js"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# Plotly writes the styles of its maps into the page, unless an element with their id is there; we draw no maps. Its
# other rules it adds by script to the stylesheet with the id plotly.js-style-global, which is ours
MAP_STYLE = re.compile(r'getElementById\("([0-9a-f]{64})"\)')
FOR_EVER = "public, max-age=31536000, immutable"

PageHandler = Callable[[Service, Request], Awaitable[Response]]


class File(NamedTuple):
    """A file as it is sent."""

    content: bytes
    packed: bytes
    kind: str
    tag: str


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__name__.rpartition(".")[0]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["static"] = lambda name: f"/static/{_version()}/{name}"
    environment.globals["map_styles"] = MAP_STYLE.findall(_names()[PLOTLY].read_text(encoding="utf-8"))
    return environment


@functools.cache
def _names() -> dict[str, Any]:
    """Return where each file is: ours, and Plotly's script in the package that is installed."""
    found: dict[str, Any] = {one.name: one for one in (HERE / "static").iterdir() if one.is_file()}
    found[PLOTLY] = importlib.resources.files(plotly) / "package_data" / "plotly.min.js"
    return found


@functools.cache
def _version() -> str:
    """Return a name for the files as they are now; it is a part of their address, so browsers may keep them."""
    digest = hashlib.sha256(plotly.__version__.encode())
    for name, path in sorted(_names().items()):
        if name != PLOTLY:
            digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


@functools.cache
def _file(name: str) -> File:
    content = _names()[name].read_bytes()
    kind = KINDS.get(f".{name.rpartition('.')[2]}", "application/octet-stream")
    return File(content, gzip.compress(content, 6, mtime=0), kind, f'"{hashlib.sha256(content).hexdigest()[:16]}"')


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _names():
        return problem_response(404, f"there is nothing at {request.url.path[:200]!r}")
    file = await asyncio.to_thread(_file, name)
    headers = {**HEADERS, "ETag": file.tag, "Vary": "Accept-Encoding"}
    headers["Cache-Control"] = FOR_EVER if request.path_params["version"] == _version() else "no-cache"
    if file.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=file.kind)
    return Response(file.content, headers=headers, media_type=file.kind)


def routes() -> list[Route]:
    """Return the routes of the files that pages load."""
    return [Route("/static/{version}/{name}", _static)]


def render(service: Service, template: str, status: int = 200, **values: Any) -> Response:
    """Return a page. No page holds anything that needs a key: what does is fetched with one."""
    text = _environment().get_template(template).render(needs_keys=service.needs_keys, **values)
    headers = {**HEADERS, "Cache-Control": "no-cache"}
    return Response(text, status, headers=headers, media_type="text/html; charset=utf-8")


def page(service: Service, path: str, handler: PageHandler, permission: str = "", method: str = "GET") -> Route:
    """Return the route of a page or of what a page fetches; `permission` is what a key must allow.

    A page itself has no permission. It is still only shown to this machine where the service needs no keys.
    """

    async def handle(request: Request) -> Response:
        try:
            if permission or not service.needs_keys:
                authorise(service, request, permission)
            answer = await handler(service, request)
        except Exception as error:
            answer = error_response(error)
        return add_headers(answer, request.method, HEADERS)

    return Route(path, handle, methods=[method])
