"""The server: where it listens, and the guard at its door."""

import asyncio
import contextlib
import threading
from importlib.metadata import version
from typing import Any

import structlog
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dynabandit.service.http.responses import RETRY_SECONDS, plain
from dynabandit.service.http.routes import make_app
from dynabandit.service.service import Service

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

__all__ = ["MOST_CONNECTIONS", "Guard", "Server", "make_server"]

log = structlog.get_logger("dynabandit.service")
MOST_CONNECTIONS = 1000
REQUEST_SECONDS = 30.0  # from the first byte of a request to its last
LARGEST_HEAD = 1 << 16
KEEP_ALIVE_SECONDS = 75  # longer than load balancers do: it is for them to hang up on an idle connection
OTHER_FILES = 128  # that a service has open besides its connections
BUSY = plain(503, "there are too many connections; try again", **{"Retry-After": RETRY_SECONDS}, Connection="close")


class Guard(HttpToolsProtocol):
    """A connection that has a place, a time and a size; `limit_concurrency` of the configuration is how many have one.

    Whoever comes beyond that gets the place of one that stands idle. Where none does they are told so, up to as many
    again; the rest is cut off.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._places, self.limit_concurrency = self.limit_concurrency or MOST_CONNECTIONS, None
        self._in_head = self._in_request = False
        self._head = 0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._places and not self._make_room():
            self.app = BUSY
        if len(self.connections) > 2 * self._places:
            transport.abort()
        self._set_deadline()

    def _make_room(self) -> bool:
        """Close a connection that stands idle after an answer; return whether there was one."""
        for other in self.connections:
            if isinstance(other, Guard) and other.idle:
                other.transport.close()
                self.connections.discard(other)
                return True
        return False

    @property
    def idle(self) -> bool:
        """Whether the latest request was answered and no other has begun."""
        return not self._in_request and self.cycle is not None and self.cycle.response_complete

    def connection_lost(self, exc: Exception | None) -> None:
        self._lift_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._in_request or self.transport.is_closing():
            return
        if self._in_head:
            self._head += len(data)
            if self._head > LARGEST_HEAD:
                self._hang_up(431, f"the head of the request must have at most {LARGEST_HEAD} bytes")
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
        self._lift_deadline()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._say(400, msg)
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        pass  # the request is answered as if it had not asked for another protocol

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(
            REQUEST_SECONDS, self._hang_up, 408, f"the request must arrive within {REQUEST_SECONDS:g} seconds"
        )

    def _lift_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _may_speak(self) -> bool:
        """Whether the next words on the wire can be the answer to the request that is arriving."""
        if not self._in_request or self.pipeline:
            return False
        before = self.cycle is None or self.cycle.response_complete
        return before if self._in_head else before or not self.cycle.response_started

    def _hang_up(self, status: int, why: str) -> None:
        """Close the connection, and say why unless an answer has begun."""
        if self.transport.is_closing():
            return
        if self._may_speak():
            self._say(status, why)
        self.transport.close()

    def _say(self, status: int, why: str) -> None:
        body = bytes(plain(status, why).body)
        head = f"HTTP/1.1 {status} \r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(f"{head}connection: close\r\n\r\n".encode() + body)


class Server(uvicorn.Server):
    """A server that says where it listens: port 0 asks the system for a free one."""

    closing: threading.Event | None = None  # set when it is about to stop

    async def shutdown(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        if self.closing is not None:
            self.closing.set()  # pages that watch would keep it waiting
        await super().shutdown(sockets)  # type: ignore[arg-type]
        log.info("stopped")  # here, since the process ends by the signal that stopped it

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        for server in self.servers:
            for socket in server.sockets:
                address, port = socket.getsockname()[:2]
                shown = f"[{address}]" if ":" in address else address
                try:
                    print(_welcome(f"http://{shown}:{port}"), flush=True)
                except OSError as error:  # a full disk under the output is no reason to turn callers away
                    log.warning("cannot print where it listens", address=f"{shown}:{port}", problem=str(error))
                log.info("started", address=f"{shown}:{port}", version=version("dynabandit"))


def _welcome(url: str) -> str:
    """Return what is told at the start: the first line, which scripts read, ends with the address.

    Examples
    --------
    >>> print(_welcome("http://127.0.0.1:8000"))
    dynabandit serves http://127.0.0.1:8000
      playground  http://127.0.0.1:8000/playground
      API         http://127.0.0.1:8000/openapi.json
    """
    return f"dynabandit serves {url}\n  playground  {url}/playground\n  API         {url}/openapi.json"


def make_server(
    service: Service, host: str = "127.0.0.1", port: int = 0, most_connections: int = MOST_CONNECTIONS
) -> Server:
    """Return a server for a service; it is started by its `run`."""
    config = uvicorn.Config(
        make_app(service),
        host=host,
        port=port,
        http=Guard,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_places(most_connections),
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=10,
    )
    server = Server(config)
    server.closing = service.closing
    return server


def _places(wanted: int) -> int:
    """Return how many connections fit into the files that this process may have open, after asking for more."""
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
