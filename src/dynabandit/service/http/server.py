"""The server: where it listens, and how many connections and open files it may have."""

import asyncio
import contextlib
import functools
import math
import os
import signal
import socket
import sys
import threading
from importlib.metadata import version
from types import FrameType

import uvicorn

from dynabandit.service.http.connections import USUAL_LIMITS, ConnectionTable, LimitedConnection, TimeLimits
from dynabandit.service.http.limits import MAX_CONNECTIONS, SHARE_PER_ADDRESS
from dynabandit.service.http.routes import Instrumentation, make_app
from dynabandit.service.logging_setup import log
from dynabandit.service.service import Service

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

MIN_BACKLOG = 64  # connections that the system accepts before the server does
OTHER_FILES = 192  # open files besides the connections: of the store, of the processes of the playground
SEND_BUFFER = 1 << 18  # bytes that the system keeps of a response that the caller does not read


class Server(uvicorn.Server):
    """A server that prints where it listens: port 0 asks the system for a free port.

    `closing` is set when it is about to stop. What has not ended at the deadline is left as it is, as after kill -9:
    whatever was acknowledged is in the store.
    """

    def __init__(self, config: uvicorn.Config, table: ConnectionTable, closing: threading.Event) -> None:
        super().__init__(config)
        self._table, self._closing = table, closing
        self._signal: int | None = None

    async def shutdown(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        self._closing.set()  # the streams of open pages would delay it
        self._table.begin_to_stop()
        seconds = self._table.limits.stop
        try:
            await asyncio.wait_for(super().shutdown(sockets), seconds)  # type: ignore[arg-type]
        except TimeoutError:
            log.warning("stopped before all was done", seconds=seconds)
            self._end_process()
            self._table.stop()
        else:
            self._table.stop()
            log.info("stopped")  # not later, because the signal ends the process

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._signal = sig
        super().handle_exit(sig, frame)

    def _end_process(self) -> None:
        """End as the signal would, without waiting for threads."""
        if self._signal is not None:
            signal.signal(self._signal, signal.SIG_DFL)
            signal.raise_signal(self._signal)

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        self._table.start(asyncio.get_running_loop())
        for server in self.servers:
            for listening in server.sockets:
                # Accepted connections inherit it; otherwise the system may keep megabytes for each of them
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
                address, port = listening.getsockname()[:2]
                shown = f"[{address}]" if ":" in address else address
                try:
                    print(_greeting(f"http://{shown}:{port}"), flush=True)
                except OSError as error:  # such as a full disk under the output; the service works all the same
                    log.warning("cannot print where it listens", address=f"{shown}:{port}", problem=str(error))
                    # At the end the command line would try to write again what is still buffered, and report it
                    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it stays open until the end
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
    service: Service,
    host: str = "127.0.0.1",
    port: int = 0,
    max_connections: int = MAX_CONNECTIONS,
    max_per_address: int | None = None,
    telemetry: Instrumentation | None = None,
    limits: TimeLimits = USUAL_LIMITS,
) -> Server:
    """Return a server for a service; it is started by its `run`.

    By default the connections of one address leave a tenth of `max_connections` to others.
    """
    most = _fitting_connections(max_connections)
    share = math.ceil(SHARE_PER_ADDRESS * most) if max_per_address is None else max_per_address
    table = ConnectionTable(most, share, service.metrics, service.note_refusal, limits)
    config = uvicorn.Config(
        make_app(service, telemetry),
        host=host,
        port=port,
        http=functools.partial(LimitedConnection, table),  # type: ignore[arg-type]
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nothing here uses the address or the scheme that a proxy tells
        backlog=max(most, MIN_BACKLOG),
        timeout_keep_alive=limits.keep_alive,
        timeout_graceful_shutdown=limits.shutdown,
    )
    return Server(config, table, service.closing)


def _fitting_connections(wanted: int) -> int:
    """Return how many connections the limit of open files allows, after trying to raise it.

    As many again may be answered with 503, and as many may arrive at once before any of them can be closed.
    """
    needed = 3 * wanted + OTHER_FILES
    if resource is None or _file_limit() >= needed:
        return wanted
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    more = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
    return max(1, min(wanted, int(_file_limit() - OTHER_FILES) // 3))


def _file_limit() -> float:
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return float("inf") if soft == resource.RLIM_INFINITY else soft
