"""The server: where it listens, and the limits of its connections."""

import asyncio
import contextlib
import threading
from importlib.metadata import version
from typing import Any

import structlog
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dynabandit.service.http.limits import MAX_CONNECTIONS
from dynabandit.service.http.responses import problem_response
from dynabandit.service.http.routes import make_app
from dynabandit.service.http.status_codes import BUSY
from dynabandit.service.service import Service

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

log = structlog.get_logger("dynabandit.service")
REQUEST_SECONDS = 30.0  # from the first byte of a request to its last
MAX_HEAD = 1 << 16
KEEP_ALIVE_SECONDS = 75  # longer than load balancers, so that they are the ones to close an idle connection
OTHER_FILES = 128  # open files besides the connections


class LimitedConnection(HttpToolsProtocol):
    """A connection with a limit on the time and size of its requests; `limit_concurrency` limits the connections.

    A connection beyond the limit replaces an idle one. If none is idle it gets 503, up to as many connections
    again; further ones are closed at once.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._max_connections, self.limit_concurrency = self.limit_concurrency or MAX_CONNECTIONS, None
        self._in_head = self._in_request = False
        self._head = 0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._max_connections and not self._close_idle():
            self.app = BUSY
        if len(self.connections) > 2 * self._max_connections:
            transport.abort()
        self._set_deadline()

    def _close_idle(self) -> bool:
        """Close a connection that is idle after a response; return whether there was one."""
        for other in self.connections:
            if isinstance(other, LimitedConnection) and other.is_idle:
                other.transport.close()
                self.connections.discard(other)
                return True
        return False

    @property
    def is_idle(self) -> bool:
        """Whether the latest request was answered and no other has begun."""
        return not self._in_request and self.cycle is not None and self.cycle.response_complete

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._in_request or self.transport.is_closing():
            return
        if self._in_head:
            self._head += len(data)
            if self._head > MAX_HEAD:
                self._close_with(431, f"the head of the request must have at most {MAX_HEAD} bytes")
        if self._deadline is None:
            self._set_deadline()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = self._in_request = True
        self._head = 0

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_request = False
        self._cancel_deadline()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._send_problem(400, msg)
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        pass  # the request is served as if it had not asked for another protocol

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(
            REQUEST_SECONDS, self._close_with, 408, f"the request must arrive within {REQUEST_SECONDS:g} seconds"
        )

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _may_respond(self) -> bool:
        """Whether the next bytes sent can be the response to the request that is arriving."""
        if not self._in_request or self.pipeline:
            return False
        before = self.cycle is None or self.cycle.response_complete
        return before if self._in_head else before or not self.cycle.response_started

    def _close_with(self, status: int, why: str) -> None:
        """Close the connection, and say why unless a response has begun."""
        if self.transport.is_closing():
            return
        if self._may_respond():
            self._send_problem(status, why)
        self.transport.close()

    def _send_problem(self, status: int, why: str) -> None:
        body = bytes(problem_response(status, why).body)
        head = f"HTTP/1.1 {status} \r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(f"{head}connection: close\r\n\r\n".encode() + body)


class Server(uvicorn.Server):
    """A server that prints where it listens: port 0 asks the system for a free port."""

    closing: threading.Event | None = None  # set when it is about to stop

    async def shutdown(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        if self.closing is not None:
            self.closing.set()  # the streams of open pages would delay it
        await super().shutdown(sockets)  # type: ignore[arg-type]
        log.info("stopped")  # not later, because the signal ends the process

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        for server in self.servers:
            for socket in server.sockets:
                address, port = socket.getsockname()[:2]
                shown = f"[{address}]" if ":" in address else address
                try:
                    print(_greeting(f"http://{shown}:{port}"), flush=True)
                except OSError as error:  # such as a full disk under the output; the service works all the same
                    log.warning("cannot print where it listens", address=f"{shown}:{port}", problem=str(error))
                log.info("started", address=f"{shown}:{port}", version=version("dynabandit"))


def _greeting(url: str) -> str:
    """Return what is printed at the start; the first line, which scripts read, ends with the address.

    Examples
    --------
    >>> print(_greeting("http://127.0.0.1:8000"))
    dynabandit serves http://127.0.0.1:8000
      playground  http://127.0.0.1:8000/playground
      API         http://127.0.0.1:8000/openapi.json
    """
    return f"dynabandit serves {url}\n  playground  {url}/playground\n  API         {url}/openapi.json"


def make_server(
    service: Service, host: str = "127.0.0.1", port: int = 0, max_connections: int = MAX_CONNECTIONS
) -> Server:
    """Return a server for a service; it is started by its `run`."""
    config = uvicorn.Config(
        make_app(service),
        host=host,
        port=port,
        http=LimitedConnection,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_fitting_connections(max_connections),
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=10,
    )
    server = Server(config)
    server.closing = service.closing
    return server


def _fitting_connections(wanted: int) -> int:
    """Return how many connections the limit of open files allows, after trying to raise it."""
    needed = 2 * wanted + OTHER_FILES
    if resource is None or _file_limit() >= needed:
        return wanted
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    more = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
    return max(1, min(wanted, int(_file_limit() - OTHER_FILES) // 2))


def _file_limit() -> float:
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return float("inf") if soft == resource.RLIM_INFINITY else soft
