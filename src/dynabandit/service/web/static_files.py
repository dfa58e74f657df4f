"""Static files: those of the pages, Plotly's script and the JavaScript client; and the headers of pages and files.

Starlette's `StaticFiles` is not used: it serves one folder, while Plotly's script is in another package; it does not
compress, and a middleware that compresses Plotly's 4 MB for each request would block the event loop; and it cannot
tell the current version of an address, which may be cached without a limit, from an old one.
"""

import asyncio
import functools
import gzip
import hashlib
import importlib.resources
from typing import Any, NamedTuple

import plotly
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dynabandit.service.http.cross_origin import allow, allowed_origin
from dynabandit.service.http.responses import problem_response
from dynabandit.service.service import Service

PLOTLY = "plotly.js"
CLIENT = ("dynabandit.js", "dynabandit.d.ts")  # the JavaScript client and its types
MEDIA_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "ts": "text/plain"}
CACHE_WITHOUT_LIMIT = "public, max-age=31536000, immutable"
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class StaticFile(NamedTuple):
    """A file as it is sent."""

    content: bytes
    compressed: bytes
    media_type: str
    etag: str


@functools.cache
def static_files() -> dict[str, Any]:
    """Return the path of each file by name."""
    folder = importlib.resources.files(__package__) / "static"
    paths: dict[str, Any] = {path.name: path for path in folder.iterdir() if path.is_file()}
    paths[PLOTLY] = importlib.resources.files(plotly) / "package_data" / "plotly.min.js"
    client = importlib.resources.files(__package__) / "javascript_client"
    return paths | {name: client / name for name in CLIENT}


@functools.cache
def _version() -> str:
    """Return a hash of all files. It is part of their address, so that browsers may cache them without a limit."""
    digest = hashlib.sha256(plotly.__version__.encode())
    for name, path in sorted(static_files().items()):
        if name != PLOTLY:
            digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def static_url(name: str) -> str:
    """Return the address of a file."""
    return f"/static/{_version()}/{name}"


@functools.cache
def _load(name: str) -> StaticFile:
    content = static_files()[name].read_bytes()
    media_type = MEDIA_TYPES.get(name.rpartition(".")[2], "application/octet-stream")
    etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    return StaticFile(content, gzip.compress(content, 6, mtime=0), media_type, etag)


def _respond(request: Request, file: StaticFile) -> Response:
    headers = {**SECURITY_HEADERS, "ETag": file.etag, "Vary": "Accept-Encoding"}
    current = request.path_params.get("version") == _version()
    headers["Cache-Control"] = CACHE_WITHOUT_LIMIT if current else "no-cache"
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.compressed, headers={**headers, "Content-Encoding": "gzip"}, media_type=file.media_type)
    return Response(file.content, headers=headers, media_type=file.media_type)


def routes(service: Service) -> list[Route]:
    """Return the routes of the static files."""
    loading: dict[str, asyncio.Task[StaticFile]] = {}  # each file once, however many requests wait for it

    async def send(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in static_files():
            return problem_response(404, f"there is nothing at {request.url.path[:200]!r}")
        if name not in loading:
            loading[name] = asyncio.create_task(asyncio.to_thread(_load, name))
        try:
            return _respond(request, await asyncio.shield(loading[name]))
        except OSError:
            loading.pop(name, None)
            raise

    async def send_client(request: Request) -> Response:
        if request.path_params["name"] not in CLIENT:
            return problem_response(404, f"there is nothing at {request.url.path[:200]!r}")
        response = await send(request)
        if service.allowed_origins:  # without them, only pages of the service itself may load a module
            allow(response.headers, allowed_origin(request.scope, service.allowed_origins))
        return response

    return [Route("/static/{version}/{name}", send), Route("/client/{name}", send_client)]
