"""Connections: their limits, and callers that send nothing, send slowly or do not read."""

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import httpx
import psutil  # type: ignore[import-untyped]
import pytest

from dynabandit.service.http import connections
from dynabandit.service.http.connections import ConnectionTable, LimitedConnection
from dynabandit.service.http.limits import RefusalPacer
from dynabandit.service.metrics import ServiceMetrics
from dynabandit.service.stores import open_store
from dynabandit.service.web.static_files import PLOTLY, static_url
from tools.harness import ARMS, HeldStore, Running, captured_log, process, running, talking
from tools.patient_service import LONG_LIMITS
from tools.waiting import PATIENCE, wait_for

LONG = bool(os.environ.get("DYNABANDIT_LONG_FAULTS"))
HEAD = b" HTTP/1.1\r\nHost: 127.0.0.1\r\n"
SILENT, SLOW = b"", b"GET /healthz HTTP/1.1\r\nHost: 127"
NEVER_READS = b"GET " + static_url(PLOTLY).encode() + HEAD + b"\r\n"
CLOSING = b"Connection: close\r\n"
JSON = HEAD + CLOSING + b"Content-Type: application/json\r\n"
DECIDE = b"POST /v1/bandits/b/decisions" + JSON + b"Content-Length: 2\r\n\r\n{}"


def connect(url: str, sent: bytes, source: str = "127.0.0.1") -> socket.socket:
    where = urlsplit(url)
    wire = socket.socket()
    wire.settimeout(PATIENCE)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.bind((source, 0))
    wire.connect((where.hostname, where.port))
    with contextlib.suppress(ConnectionError):  # closed at once
        wire.sendall(sent)
    return wire


def everything(wire: socket.socket) -> bytes:
    """Return all that comes until the other side closes the connection."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := wire.recv(1 << 16):
            found += piece
    wire.close()
    return found


def get(url: str, path: str) -> httpx.Response:
    return httpx.get(f"{url}{path}", timeout=PATIENCE, verify=False)


def health(url: str) -> httpx.Response:
    return get(url, "/healthz")


def sockets_of(server: Running) -> list[LimitedConnection]:
    """Return the connections that are not closed yet."""
    return list(server.server._table._sockets)


def count_closed(server: Running) -> int:
    """Return how many connections a limit has closed so far."""
    (family,) = server.service.metrics.connections_closed.collect()
    return int(sum(sample.value for sample in family.samples))


def have_all_unsent_bytes(server: Running) -> bool:
    """Whether every connection has a response that its caller does not read."""
    return all(one.transport.get_write_buffer_size() > 0 for one in sockets_of(server))


@pytest.fixture
def attackers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[socket.socket]]]:
    with contextlib.ExitStack() as stack:

        def attack(url: str, sent: bytes, count: int, source: str = "127.0.0.1") -> list[socket.socket]:
            return [stack.enter_context(connect(url, sent, source)) for _ in range(count)]

        yield attack


ATTACKS = pytest.mark.parametrize("sent", [SILENT, SLOW, NEVER_READS], ids=["silent", "slow", "never reads"])


@pytest.mark.promise(57, 61)
@ATTACKS
def test_callers_that_keep_the_service_waiting_are_replaced_by_others(
    sqlite_url: str, attackers: Callable[..., list[socket.socket]], sent: bytes
) -> None:
    with captured_log("http.connections") as lines, running(open_store(sqlite_url), max_connections=5) as server:
        assert get(server.url, static_url(PLOTLY)).status_code == 200  # loads the file
        attackers(server.url, sent, 40)
        wait_for(lambda: count_closed(server) >= 35)
        wait_for(lambda: sent != NEVER_READS or have_all_unsent_bytes(server))
        for _ in range(10):
            assert health(server.url).status_code == 200
        wait_for(lambda: len(sockets_of(server)) <= 5)
        page = get(server.url, "/metrics").text
        assert 'dynabandit_connections_closed_total{reason="replaced"}' in page
    assert {line["event"] for line in lines} == {"closed connections"}
    assert sum(line.get("replaced", 0) for line in lines) > 0


@pytest.mark.promise(60)
@ATTACKS
def test_an_attack_on_a_process_with_few_files_leaves_files_for_the_store(sqlite_url: str, sent: bytes) -> None:
    """Many connections from one address, while another address decides, exports and runs the playground."""
    count, files = (2100, 2128) if LONG else (700, 600)
    with process(sqlite_url, "--most-connections", "1000", files=files) as server, contextlib.ExitStack() as stack:
        with talking(server.url) as (client, _):
            client.create("b", ARMS)
        guests = [stack.enter_context(connect(server.url, sent, "127.0.0.2")) for _ in range(count)]
        for _ in range(5):
            with talking(server.url) as (client, http):  # each time on new connections
                client.reward(client.decide("b").decision, 1)
                assert http.get("/v1/bandits/b/export").status_code == 200
                assert http.get("/v1/bandits").status_code == 200
        assert psutil.Process(server.process.pid).num_fds() < files - 64
        assert len(guests) == count
        logged = server.stop()
    assert "closed connections" in logged


@pytest.mark.promise(59)
def test_a_response_that_the_caller_does_not_read_is_aborted(
    sqlite_url: str, attackers: Callable[..., list[socket.socket]]
) -> None:
    limits = LONG_LIMITS._replace(check=0.02, write=0.2)
    with running(open_store(sqlite_url), limits=limits) as server, captured_log("http.connections") as lines:
        (wire,) = attackers(server.url, NEVER_READS, 1)
        wait_for(lambda: lines)
        assert lines[0]["stalled"] == 1
        wait_for(lambda: not sockets_of(server))
        assert len(everything(wire)) < 4 << 20, "it was not sent whole"


@pytest.mark.promise(59, 61)
def test_responses_that_nobody_reads_take_bounded_memory(
    sqlite_url: str, attackers: Callable[..., list[socket.socket]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the callers take a byte now and then; those of another address keep their responses."""
    with running(open_store(sqlite_url), limits=LONG_LIMITS._replace(check=0.02)) as server:
        size = len(get(server.url, static_url(PLOTLY)).content)
        sent = NEVER_READS[:-2] + CLOSING + b"\r\n"
        (other,) = attackers(server.url, sent, 1, "127.0.0.2")
        wait_for(lambda: any(one.transport.get_write_buffer_size() > 0 for one in sockets_of(server)))
        monkeypatch.setattr(connections, "MAX_UNSENT", 4 * size)
        attackers(server.url, NEVER_READS, 12)
        wait_for(lambda: count_closed(server) >= 9)
        wait_for(lambda: len(sockets_of(server)) == 4)
        assert count_closed(server) == 9
        assert len(everything(other)) > size, "it waited for longer, but its address has less"


class FakeTransport:
    def __init__(self) -> None:
        self.unsent = 0

    def get_write_buffer_size(self) -> int:
        return self.unsent


def test_only_a_caller_that_takes_nothing_is_stalled() -> None:
    """Not one that reads slowly, nor one for which a stream adds more than it has read since the last check."""
    wire: Any = LimitedConnection.__new__(LimitedConnection)
    wire.transport, wire._unsent, wire._progress_at = FakeTransport(), 0, 0.0
    now, stalled = 0.0, []
    for unsent in (0, 0, 500, 400, 400, 400, 300, 300, 310, 320, 320, 0, 700):
        now += 1.0
        wire.transport.unsent = unsent
        stalled.append(wire.stalled_seconds(now))
    assert stalled == [0, 0, 0, 0, 1, 2, 0, 1, 2, 3, 4, 0, 0]


@pytest.mark.promise(57)
def test_connections_beyond_the_limit_get_503_while_the_service_works_on_all_others(sqlite_url: str) -> None:
    store = HeldStore(sqlite_url.removeprefix("sqlite:///"))
    with running(store, max_connections=3) as server, ThreadPoolExecutor(3) as pool:
        with talking(server.url) as (client, _):
            client.create("b", ARMS)
        store.hold()
        working = [pool.submit(everything, connect(server.url, DECIDE)) for _ in range(3)]
        wait_for(lambda: server.service.writer.admission.requests == 3)
        answer = health(server.url)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert answer.headers["Connection"] == "close"
        wait_for(lambda: len(sockets_of(server)) == 3)
        silent = [connect(server.url, b"") for _ in range(3)]
        wait_for(lambda: len(sockets_of(server)) == 6)
        assert everything(connect(server.url, b"")) == b"", "closed at once"
        for wire in silent:
            wire.close()
        store.open.set()
        assert {one.result(PATIENCE)[:12] for one in working} == {b"HTTP/1.1 200"}
        wait_for(lambda: not sockets_of(server))
        with talking(server.url) as (client, _):
            assert [one.name for one in client.bandits()] == ["b"]


def test_a_new_connection_replaces_an_idle_one(sqlite_url: str) -> None:
    with running(open_store(sqlite_url), max_connections=3) as server, contextlib.ExitStack() as stack:
        guests = [stack.enter_context(talking(server.url))[1] for _ in range(6)]
        assert [guest.get("/healthz").status_code for guest in guests] == [200] * 6


@pytest.mark.promise(57)
def test_a_connection_that_has_just_come_is_not_replaced_before_its_request_is_read(sqlite_url: str) -> None:
    limits = LONG_LIMITS._replace(fresh=PATIENCE)
    with running(open_store(sqlite_url), max_connections=1, limits=limits) as server:
        first = connect(server.url, b"")
        wait_for(lambda: len(sockets_of(server)) == 1)
        with mock.patch.object(RefusalPacer, "delay", return_value=0.0) as delay:
            assert health(server.url).status_code == 503
        assert delay.call_count == 1, "callers who connect again at once are slowed down"
        first.sendall(GET + CLOSE)
        assert everything(first)[:12] == b"HTTP/1.1 200"


@pytest.mark.promise(57)
def test_a_response_that_was_written_just_now_is_sent_before_its_connection_is_replaced(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop sends what was written at its end, so another connection may come before."""
    completed = LimitedConnection.on_response_complete

    def on_response_complete(wire: LimitedConnection) -> None:
        completed(wire)
        assert wire.transport.get_write_buffer_size() > 0
        wire.close_for_another(at_once=False)

    monkeypatch.setattr(LimitedConnection, "on_response_complete", on_response_complete)
    with running(open_store(sqlite_url)) as server:
        assert everything(connect(server.url, GET + b"\r\n")).endswith(b'{"status":"live"}')


def test_a_caller_that_does_not_read_is_replaced_although_it_sends_more_requests(
    sqlite_url: str, attackers: Callable[..., list[socket.socket]]
) -> None:
    with running(open_store(sqlite_url), max_connections=1) as server:
        (wire,) = attackers(server.url, NEVER_READS, 1)
        wait_for(lambda: sockets_of(server) and have_all_unsent_bytes(server))
        (connection,) = sockets_of(server)
        wire.sendall(NEVER_READS * 2)
        wait_for(lambda: connection.pipeline)
        assert health(server.url).status_code == 200


def test_connections_that_are_being_closed_count_until_their_files_are_free(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that was closed with a response is open until the caller reads it."""
    path = static_url(PLOTLY)
    opened, sockets = ConnectionTable.open, []

    def open_and_count(table: ConnectionTable, new: LimitedConnection, address: str) -> None:
        opened(table, new, address)
        sockets.append(len(table._sockets))

    with running(open_store(sqlite_url), max_connections=2) as server, contextlib.ExitStack() as stack:
        assert get(server.url, path).status_code == 200  # loads the file
        wait_for(lambda: not sockets_of(server))
        monkeypatch.setattr(ConnectionTable, "open", open_and_count)
        for number in range(30):
            stack.enter_context(connect(server.url, b"GET " + path.encode() + HEAD + CLOSE))
            wait_for(lambda number=number: len(sockets) > number)  # type: ignore[misc]
        assert max(sockets) <= 5
        wait_for(lambda: have_all_unsent_bytes(server))
        assert health(server.url).status_code == 200
        wait_for(lambda: len(sockets_of(server)) <= 4)


def test_a_request_that_is_replaced_while_it_arrives_gets_503(sqlite_url: str) -> None:
    with running(open_store(sqlite_url), max_connections=1) as server:
        slow = connect(server.url, SLOW)
        wait_for(lambda: any(one._in_request for one in sockets_of(server)))
        assert health(server.url).status_code == 200
        answer = everything(slow).lower()
        assert answer.startswith(b"http/1.1 503")
        assert b"\r\nretry-after: 1\r\n" in answer


@pytest.mark.promise(58)
def test_one_address_cannot_have_all_connections(
    sqlite_url: str, attackers: Callable[..., list[socket.socket]]
) -> None:
    with running(open_store(sqlite_url), max_connections=10, max_per_address=4) as server:
        (other,) = attackers(server.url, SILENT, 1, "127.0.0.3")
        attackers(server.url, SILENT, 30, "127.0.0.2")
        wait_for(lambda: count_closed(server) == 26)
        wait_for(lambda: len(sockets_of(server)) == 5)
        other.sendall(b"GET /healthz" + HEAD + b"\r\n")
        assert other.recv(1 << 16).startswith(b"HTTP/1.1 200"), "the oldest of another address is kept"


@pytest.mark.promise(58)
def test_the_addresses_of_an_ipv6_network_are_one_caller() -> None:
    table = ConnectionTable(10, 2, ServiceMetrics())
    assert connections.counted_address("2001:db8::1") == connections.counted_address("2001:db8::ffff:2")
    assert connections.counted_address("2001:db8::1") != connections.counted_address("2001:db8:0:1::1")
    assert connections.counted_address("fe80::1%eth0") == "fe80::/64"
    assert table._by_address == {}


HALF_A_BODY = b"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"


@pytest.mark.promise(59)
def test_the_connection_of_a_request_that_does_not_begin_is_closed(sqlite_url: str) -> None:
    with running(open_store(sqlite_url), limits=LONG_LIMITS._replace(request=0.1)) as server:
        assert everything(connect(server.url, b"")) == b""


@pytest.mark.promise(59)
@pytest.mark.parametrize("sent", [SLOW, b"PUT /v1/bandits/x HTTP/1.1\r\n" + HALF_A_BODY], ids=["head", "body"])
def test_the_connection_of_a_request_that_does_not_end_gets_408(sqlite_url: str, sent: bytes) -> None:
    with running(open_store(sqlite_url)) as server:
        wire = connect(server.url, sent)
        wait_for(lambda: any(one._in_request for one in sockets_of(server)))
        (connection,) = sockets_of(server)
        assert connection._deadline is not None
        connection.loop.call_soon_threadsafe(connection._time_out)  # as the deadline does
        assert everything(wire)[9:12] == b"408"
        assert health(server.url).status_code == 200


def test_a_request_that_has_arrived_may_take_as_long_as_it_takes(sqlite_url: str) -> None:
    store = HeldStore(sqlite_url.removeprefix("sqlite:///"))
    with running(store) as server, ThreadPoolExecutor(1) as pool, talking(server.url) as (client, _):
        client.create("b", ARMS)
        store.hold()
        answer = pool.submit(client.decide, "b")
        assert store.begun.wait(PATIENCE)
        (connection,) = sockets_of(server)
        assert connection._deadline is None
        store.open.set()
        assert answer.result(PATIENCE).step == 1


def test_the_connection_of_a_head_without_an_end_is_closed(sqlite_url: str) -> None:
    with running(open_store(sqlite_url)) as server:
        wire = connect(server.url, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        sent = 0
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while sent < 64 << 20:
                wire.sendall(b"X-More: " + b"x" * 8000 + b"\r\n")
                sent += 8000
        wire.close()
        assert sent < 64 << 20


GET, CLOSE = b"GET /healthz" + HEAD, CLOSING + b"\r\n"
CHUNKED = b"POST /v1/rewards" + HEAD + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"


@pytest.mark.promise(59)
@pytest.mark.parametrize("piece", [b"name: value\r\n" * 1000, b"x" * 10_000], ids=["many", "long"])
def test_headers_after_a_body_are_as_limited_as_those_before_it(sqlite_url: str, piece: bytes) -> None:
    with running(open_store(sqlite_url)) as server:
        wire = connect(server.url, CHUNKED + b"first: ")
        sent = 0
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while sent < 64 << 20:
                wire.sendall(piece)
                sent += len(piece)
        wire.close()
        assert sent < 64 << 20
        answer = everything(connect(server.url, CHUNKED + b"x: " + b"y" * 70_000 + b"z" * 200_000))
        assert answer[9:12] in (b"431", b""), "reset before it was read"
        small = everything(
            connect(server.url, CHUNKED.replace(b"0\r\n", b"2\r\n{}\r\n0\r\nname: value\r\n\r\n") + GET + CLOSE)
        )
        assert [part[:3] for part in small.split(b"HTTP/1.1 ")[1:]] == [b"422", b"200"]


def test_a_request_for_another_protocol_is_served_and_the_connection_closed(sqlite_url: str) -> None:
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    with running(open_store(sqlite_url)) as server:
        answer = everything(connect(server.url, GET + upgrade + GET + b"\r\n"))
        assert (answer.count(b"HTTP/1.1 200"), answer.count(b"connection: close")) == (1, 1)


def test_malformed_requests_are_counted_and_not_logged_one_by_one(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with captured_log("http.connections") as lines, running(open_store(sqlite_url)) as server:
        for sent in (b"\x16\x03\x01", b"GET /\xff" + HEAD + b"\r\n", b"nonsense\r\n\r\n"):
            assert everything(connect(server.url, sent))[9:12] == b"400"
    assert sum(line["malformed"] for line in lines) == 3
    assert caplog.records == []


@pytest.mark.promise(22)
@pytest.mark.parametrize("garbage", [b"\x16\x03\x01", b"CONNECT a:80" + HEAD + b"\r\n", b"GET /\xff" + HEAD + b"\r\n"])
@pytest.mark.parametrize("head", [JSON, JSON.replace(CLOSING, b"")], ids=["close", "keep-alive"])
def test_a_malformed_request_is_not_the_answer_to_the_one_before_it(
    sqlite_url: str, garbage: bytes, head: bytes
) -> None:
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
        client.create("b", ARMS, seed=1)
        sent = b"POST /v1/bandits/b/decisions" + head + b"Content-Length: 2\r\n\r\n{}" + garbage
        found = everything(connect(server.url, sent))
        assert [piece[:3] for piece in found.split(b"HTTP/1.1 ")[1:]] == [b"200"]
        assert client.state("b").step == 1
        chunked = sent.removesuffix(garbage) + b"POST /v1/rewards" + head + b"Transfer-Encoding: chunked\r\n\r\nxyz"
        assert b" 400 " not in everything(connect(server.url, chunked))


@pytest.mark.promise(3)
def test_an_address_that_begins_with_two_slashes_is_not_served_as_what_follows_them(sqlite_url: str) -> None:
    with running(open_store(sqlite_url)) as server:
        for path in (b"//healthz", b"//127.0.0.1/healthz", b"//v1/healthz?a=b", b"///healthz"):
            answer = everything(connect(server.url, b"GET " + path + HEAD + b"\r\n" + GET + CLOSE))
            assert answer.startswith(b"HTTP/1.1 404"), path
            assert b"there is nothing at '%b'" % path.partition(b"?")[0] in answer
        assert b" 200 " in everything(connect(server.url, b"GET http://127.0.0.1/healthz" + HEAD + CLOSE))


LARGE = b"X-More: " + b"x" * 100_000 + b"\r\n\r\n"
HEADS = {
    "in one piece": (GET + LARGE, [b"431"]),
    "in the address": (b"GET /healthz?" + b"x" * 70_000 + HEAD + b"\r\n", [b"431"]),
    "of many headers": (GET + b"a: b\r\n" * 12_000 + b"\r\n", [b"431"]),
    "after another request": (GET + b"\r\n" + GET + LARGE, [b"200", b"431"]),
    "small, after a large body": (
        b"POST /v1/rewards" + HEAD + b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
        + b" " * 100_000 + GET + CLOSE, [b"400", b"200"],
    ),
}  # fmt: skip


@pytest.mark.promise(59)
@pytest.mark.parametrize("case", HEADS)
def test_a_large_head_gets_431_however_it_arrives(case: str, sqlite_url: str) -> None:
    sent, codes = HEADS[case]
    with running(open_store(sqlite_url)) as server:
        found = everything(connect(server.url, sent))
        assert [piece[:3] for piece in found.split(b"HTTP/1.1 ")[1:]] == codes


@pytest.mark.promise(59)
def test_requests_that_are_sent_ahead_take_bounded_memory(sqlite_url: str) -> None:
    store = HeldStore(sqlite_url.removeprefix("sqlite:///"))
    with running(store) as server, talking(server.url) as (client, _):
        client.create("b", ARMS)
        few = everything(connect(server.url, (GET + b"\r\n") * 20 + GET + CLOSE))
        assert few.count(b"HTTP/1.1 200") == 21
        store.hold()  # so that the response to the first request does not come before the others
        assert everything(connect(server.url, DECIDE.replace(CLOSING, b"") + (GET + b"\r\n") * 1000)) == b""
        assert health(server.url).status_code == 200
        store.open.set()


def test_a_caller_that_does_not_read_does_not_delay_the_end(
    sqlite_url: str, attackers: Callable[..., list[socket.socket]]
) -> None:
    with running(open_store(sqlite_url)) as server:  # which would wait for the limit of its shutdown
        attackers(server.url, NEVER_READS, 3)
        wait_for(lambda: len(sockets_of(server)) == 3)
        wait_for(lambda: have_all_unsent_bytes(server))
        server.stop()
    assert count_closed(server) == 3


@pytest.mark.promise(91)
def test_a_request_that_is_not_sent_whole_does_not_delay_the_end(sqlite_url: str) -> None:
    with running(open_store(sqlite_url), limits=LONG_LIMITS._replace(stop_request=0.01)) as server:
        half = connect(server.url, b"PUT /v1/bandits/b" + JSON + b"Content-Length: 100\r\n\r\n{")
        wait_for(lambda: any(one.cycle is not None for one in sockets_of(server)))
        server.stop()
    assert everything(half).startswith(b"HTTP/1.1 503")
