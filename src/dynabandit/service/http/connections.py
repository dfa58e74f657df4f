"""Connections: their number, in total and per address, and the time and size of their requests and responses."""

import asyncio
import ipaddress
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dynabandit.service.http.limits import MAX_UNSENT, RefusalPacer
from dynabandit.service.http.responses import problem_response
from dynabandit.service.http.status_codes import BUSY
from dynabandit.service.logging_setup import log
from dynabandit.service.metrics import ServiceMetrics

LOG_SECONDS = 10.0  # between two lines of the log
MAX_HEAD = 1 << 16  # bytes
MAX_PIPELINED = 32  # requests that a connection may send before the response to the first one

# Uvicorn warns of each malformed request, which anybody can send; the table counts them
CONNECTION_LOGGER = logging.getLogger("uvicorn.error.connection")
CONNECTION_LOGGER.setLevel(logging.ERROR)


class TimeLimits(NamedTuple):
    """Seconds that a server waits for its callers."""

    request: float = 30.0  # from the first byte of a request to its last
    refused: float = 5.0  # the same for a connection that is only answered with 503
    fresh: float = 0.1  # during which a connection that waits for its caller is not replaced
    write: float = 30.0  # during which the caller takes at least one byte of an unsent response
    stop_write: float = 1.0  # the same while the server stops, or for a connection that was replaced
    stop_request: float = 1.0  # for the rest of a request while the server stops
    check: float = 0.5  # between two checks of the unsent responses
    keep_alive: int = 75  # longer than load balancers, so that they are the ones to close an idle connection
    shutdown: int = 7  # from the start of stopping until requests in progress are interrupted
    stop: float = 10.0  # from the start of stopping until the process ends, whatever it still does


USUAL_LIMITS = TimeLimits()


class ConnectionTable:
    """The open connections of a server: at most `most`, and at most `most_per_address` from one address.

    A connection beyond a limit replaces the one that has waited for its caller for the longest time: for a request, for
    the rest of a request, or because the caller does not read the response. A connection whose request the service is
    working on is never replaced, nor one that came a moment ago: callers that connect again without a pause would
    replace each other before their requests are read. If there is none to replace, the new connection is refused: it
    gets 503, after a delay, up to as many connections again; further ones are closed at once. `note_refusal` is called
    for each that is replaced or refused: it may have brought a reward.
    """

    def __init__(
        self,
        most: int,
        most_per_address: int,
        metrics: ServiceMetrics,
        note_refusal: Callable[[], None] = lambda: None,
        limits: TimeLimits = USUAL_LIMITS,
    ) -> None:
        self.limits = limits
        self._most, self._most_per_address = most, most_per_address
        self._metrics = metrics
        self._note_refusal = note_refusal
        self._sockets: set[LimitedConnection] = set()  # also those that are being closed
        self._admitted: dict[LimitedConnection, str] = {}  # with the address
        self._by_address: Counter[str] = Counter()
        self._waiting: dict[LimitedConnection, float] = {}  # for their callers, and since when, in order
        self._pacer = RefusalPacer()
        self._closed: Counter[str] = Counter()  # by reason, since the last line of the log
        self._next_log = 0.0
        self._next_check: asyncio.TimerHandle | None = None
        self._is_stopping = False

    def open(self, new: "LimitedConnection", address: str) -> None:
        """Admit a new connection, refuse it or close it."""
        self._sockets.add(new)
        full_address = self._by_address[address] >= self._most_per_address
        if full_address or len(self._admitted) >= self._most:
            replaced = self._find_replaceable(address if full_address else None)
            self._note_refusal()
            if replaced is None:
                self._refuse(new)
                return
            self._leave(replaced)
            replaced.close_for_another(at_once=self._has_many_sockets())
            self.count("replaced")
        self._admitted[new] = address
        self._by_address[address] += 1
        self._waiting[new] = time.monotonic()

    def _find_replaceable(self, address: str | None) -> "LimitedConnection | None":
        """Return the connection, of one address or of any, that has waited longest, unless it is fresh."""
        found = next((one for one in self._waiting if address is None or self._admitted[one] == address), None)
        is_fresh = found is not None and time.monotonic() - self._waiting[found] < self.limits.fresh
        return None if is_fresh else found

    def _refuse(self, new: "LimitedConnection") -> None:
        if self._has_many_sockets():
            self.count("closed")
            new.transport.abort()
        else:
            self.count("refused")
            new.refuse()

    async def answer_refused(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request of a refused connection, after a delay that slows down callers who connect again."""
        await asyncio.sleep(self._pacer.delay() or 0.0)
        await BUSY(scope, receive, send)

    def _has_many_sockets(self) -> bool:
        """Whether as many connections as are admitted are refused, or are being closed."""
        return len(self._sockets) > 2 * self._most

    def wait(self, connection: "LimitedConnection") -> None:
        """Note that from now on a connection waits for its caller."""
        if connection in self._admitted:
            self._waiting.pop(connection, None)
            self._waiting[connection] = time.monotonic()

    def work(self, connection: "LimitedConnection") -> None:
        """Note that from now on the service works on the request of a connection."""
        self._waiting.pop(connection, None)

    def remove(self, connection: "LimitedConnection") -> None:
        """Forget a connection that is closed."""
        self._sockets.discard(connection)
        self._leave(connection)

    def _leave(self, connection: "LimitedConnection") -> None:
        self._waiting.pop(connection, None)
        address = self._admitted.pop(connection, None)
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Check the unsent responses from now on."""
        self._next_check = loop.call_later(self.limits.check, self._check, loop)

    def begin_to_stop(self) -> None:
        """Wait less long for callers that do not read or do not send all of a request, because the server stops."""
        self._is_stopping = True
        for connection in self._sockets:
            connection.begin_to_stop()

    def stop(self) -> None:
        """Close the connections that are still open, and check no more."""
        self._log_closed(time.monotonic())
        for connection in self._sockets:
            connection.transport.abort()
        if self._next_check is not None:
            self._next_check.cancel()

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        now = time.monotonic()
        self._metrics.connections.set(len(self._sockets))
        for connection in list(self._sockets):
            limit = self.limits.stop_write if self._is_stopping else connection.write_seconds
            if connection.stalled_seconds(now) > limit:
                connection.transport.abort()
                self.count("stalled")
        self._drop_unread()
        if now >= self._next_log:
            self._log_closed(now)
        self.start(loop)

    def _drop_unread(self) -> None:
        """Close connections whose callers read slowly, while too much is unsent in total.

        Those of the address with the most go first, and of these the one that has waited for its caller for the longest
        time.
        """
        unsent = {one: one.transport.get_write_buffer_size() for one in self._sockets}
        total = sum(unsent.values())
        if total <= MAX_UNSENT:
            return
        by_address = Counter[str]()
        for one, size in unsent.items():
            by_address[self._admitted.get(one, "")] += size
        large = [one for one, size in unsent.items() if size > HIGH_WATER_LIMIT]
        now = time.monotonic()
        large.sort(key=lambda one: (-by_address[self._admitted.get(one, "")], self._waiting.get(one, now)))
        for one in large:
            if total <= MAX_UNSENT:
                return
            total -= unsent[one]
            one.transport.abort()
            self.count("stalled")

    def _log_closed(self, now: float) -> None:
        if self._closed:
            self._next_log = now + LOG_SECONDS
            log.warning("closed connections", open=len(self._sockets), **self._closed)
            self._closed.clear()

    def count(self, reason: str) -> None:
        """Count a connection that is closed, for the metrics and the log."""
        self._closed[reason] += 1
        self._metrics.connections_closed.labels(reason).inc()


class LimitedConnection(HttpToolsProtocol):
    """A connection with limits on the time and size of its requests, and on the time of its responses."""

    def __init__(self, table: ConnectionTable, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._table = table
        self.logger = CONNECTION_LOGGER
        self._in_head = self._in_request = False
        self._piece = 0  # bytes of the piece that is being parsed
        # Bytes of the head, or of the headers after a body, in earlier pieces; negative if the request began after
        # another one in its piece
        self._head = 0
        self._has_body = False  # whether this piece has a part of a body
        self._has_ended = False  # whether a request has ended in this piece
        self._deadline: asyncio.TimerHandle | None = None
        self._is_refused = self._is_stopping = False
        self.write_seconds = table.limits.write
        self._unsent = 0  # bytes at the latest check
        self._progress_at = 0.0  # time of a check when fewer bytes were unsent than before

    # Calls of the event loop and of the parser

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_deadline(self._table.limits.request)
        self._table.open(self, counted_address(self.client[0]) if self.client else "")

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        self._table.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._piece, self._has_ended, self._has_body = len(data), False, False
        super().data_received(data)
        if not self._in_request or self.transport.is_closing():
            return
        self._head = 0 if self._has_body else self._head + self._piece
        if self._head > MAX_HEAD:
            self._close_with(_too_large_head())
        if self._deadline is None:
            self._set_deadline(self._table.limits.request)
            self._table.wait(self)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = self._in_request = True
        self._head = -self._piece if self._has_ended else 0

    def on_headers_complete(self) -> None:
        if (self._head > 0 or self._piece > MAX_HEAD) and self._head_size() > MAX_HEAD:
            self.app, self.url = _too_large_head(), b"/"  # the parser of addresses fails for a large one
        if len(self.pipeline) >= MAX_PIPELINED:
            self.transport.abort()
            return
        super().on_headers_complete()
        self._in_head = False  # not if the address was malformed

    def on_body(self, body: bytes) -> None:
        self._has_body = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_request, self._has_ended = False, True
        self._cancel_deadline()
        super().on_message_complete()
        if not self.cycle.response_complete and not self.flow.write_paused:
            self._table.work(self)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.pipeline:
            self._table.wait(self)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._table.wait(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unsent = 0
        if not self._in_request and self.cycle is not None and not self.cycle.response_complete:
            self._table.work(self)

    def send_400_response(self, msg: str) -> None:
        self._table.count("malformed")
        has_whole_request = self._in_head or not self._in_request
        if has_whole_request and self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False  # the requests before are answered, and then the connection is closed
            return
        self._close_with(problem_response(400, msg))

    def _unsupported_upgrade_warning(self) -> None:
        self.cycle.keep_alive = False  # the request is served, but the parser reads nothing after it

    # Calls of the table

    def refuse(self) -> None:
        """Answer the request, when it comes, with 503."""
        self._is_refused, self.app = True, self._table.answer_refused
        self._set_deadline(self._table.limits.refused)

    def close_for_another(self, at_once: bool) -> None:
        """Close the connection, because a new one replaces it."""
        self.write_seconds = self._table.limits.stop_write
        if at_once or self._unsent or self.transport.get_write_buffer_size() > HIGH_WATER_LIMIT:
            self.transport.abort()  # closing would wait until the caller reads
        else:
            self._close_with(BUSY)  # after a small response, which may have been written just now

    def begin_to_stop(self) -> None:
        """Wait less long for the rest of a request, because the server stops."""
        if self._in_request:
            self._is_stopping = True
            self._set_deadline(self._table.limits.stop_request)

    def stalled_seconds(self, now: float) -> float:
        """Return for how long the caller has not taken a byte of the unsent response; call it regularly.

        While a caller takes nothing, a stream adds to what is unsent until it is paused.
        """
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent < self._unsent or self._unsent == 0:
            self._progress_at = now
        self._unsent = unsent
        return now - self._progress_at

    # Limits of a request

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _set_deadline(self, seconds: float) -> None:
        self._cancel_deadline()
        self._deadline = self.loop.call_later(seconds, self._time_out)

    def _time_out(self) -> None:
        is_refused = self._is_stopping or self._is_refused
        problem = f"the request must arrive within {self._table.limits.request:g} seconds"
        self._close_with(BUSY if is_refused else problem_response(408, problem))

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

    def _close_with(self, response: Response) -> None:
        """Close the connection with a response, or without one if another has begun or no request has."""
        if self.transport.is_closing():
            return
        if self._may_respond():
            self._send(response)
        self.transport.close()

    def _send(self, response: Response) -> None:
        headers = {**response.headers, "connection": "close"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.transport.write(f"HTTP/1.1 {response.status_code} \r\n{lines}\r\n".encode() + bytes(response.body))


def counted_address(address: str) -> str:
    """Return whose connections are counted together: an IPv4 address, or the IPv6 network that one caller may have.

    Examples
    --------
    >>> counted_address("192.0.2.7"), counted_address("::ffff:192.0.2.7"), counted_address("2001:db8::1")
    ('192.0.2.7', '192.0.2.7', '2001:db8::/64')
    """
    if ":" not in address:
        return address
    number = ipaddress.IPv6Address(address.partition("%")[0])
    return str(number.ipv4_mapped or ipaddress.IPv6Network((int(number), 64), strict=False))


def _too_large_head() -> Response:
    return problem_response(431, f"the head of the request must have at most {MAX_HEAD} bytes", Connection="close")
