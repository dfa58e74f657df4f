"""Exports: what a download may cost others, and how it ends."""

import asyncio
import contextlib
import socket
import sqlite3
import threading
from urllib.parse import urlsplit

import httpx
import pytest

from dynabandit.service import export
from dynabandit.service.errors import StreamInterruptedError
from dynabandit.service.keys import new_key
from dynabandit.service.service import Service
from dynabandit.service.stores import SqliteStore, open_store
from service.harness import process, run_apart, running, talking, wait_for


class Held:
    """A database whose `hold()` waits inside a statement, and that notes whether one ran when it was closed."""

    def __init__(self, path: str) -> None:
        self.begun, self.release, self.inside = threading.Event(), threading.Event(), False
        self.closed: list[bool] = []
        self.store = SqliteStore(path, connect=self.connect)

    def connect(self, path: str) -> sqlite3.Connection:
        held = self

        class Connection(sqlite3.Connection):
            def close(self) -> None:
                held.closed.append(held.inside)
                if not held.inside:
                    super().close()

        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Connection)
        connection.create_function("hold", 0, self.hold)
        return connection

    def hold(self) -> int:
        self.inside = True
        self.begun.set()
        assert self.release.wait(60)
        self.inside = False
        return 1


def test_a_connection_is_closed_after_the_statement_that_runs_on_it_whoever_hangs_up(tmp_path):
    held = Held(f"{tmp_path}/x.db")

    def pieces(store, wanted):
        yield b"first"
        store.rows("SELECT hold()")
        yield b"second"

    async def hang_up() -> None:
        service = Service(held.store)
        stream = service.stream(pieces, lambda: True)
        assert await anext(stream) == b"first"
        listening = asyncio.create_task(anext(stream))
        await asyncio.to_thread(held.begun.wait, 60)
        listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listening
        assert held.closed == []
        held.release.set()
        await asyncio.to_thread(wait_for, lambda: held.closed)
        service._exports.shutdown()

    run_apart(hang_up())
    assert held.closed == [False]


ARMS = [f"arm {number}" for number in range(100)]


def ask(url: str, path: str, stack: contextlib.ExitStack) -> socket.socket:
    """Begin a download, and return when the answer has begun."""
    where = urlsplit(url)
    wire = stack.enter_context(socket.create_connection((where.hostname, where.port), timeout=60))
    wire.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert b" 200 " in wire.recv(100)
    return wire


def test_exports_that_take_long_keep_neither_other_exports_nor_the_end_waiting(sqlite_url):
    with process(sqlite_url) as server, talking(server.url, tries=6) as (client, http), contextlib.ExitStack() as stack:
        client.create("long", ARMS, policy="ts", seed=1)
        client.decide_many("long", 1000)  # of which all but the first hundred are drawn again
        client.create("short", ARMS[:2], seed=1)
        client.decide_many("short", 10)
        for wire in [ask(server.url, "/v1/bandits/long/export?draws=20000", stack) for _ in range(2)]:
            wire.close()
        ask(server.url, "/v1/bandits/long/export?draws=20000", stack)
        ask(server.url, "/v1/bandits/long/export?draws=20000", stack)
        assert len(http.get("/v1/bandits/short/export?draws=10").text.splitlines()) == 10
        server.stop()


def test_an_export_that_would_draw_too_often_is_refused_by_the_number_of_arms(server):
    with talking(server.url) as (client, http):
        client.create("b", [str(number) for number in range(500)])
        assert http.get("/v1/bandits/b/export?draws=40000").status_code == 200
        refused = http.get("/v1/bandits/b/export?draws=40001")
        assert refused.status_code == 422
        assert "draws must be at most 40000 with 500 arms, got 40001" in refused.json()["problem"]


@pytest.fixture
def log(server):
    """The log of a bandit, with a swap in it that learns all rewards again."""
    with talking(server.url) as (client, _):
        client.create("b", ARMS[:3], policy="ts", seed=1)
        client.reward_many([(one.decision, 1) for one in client.decide_many("b", 20)])
        client.set_policy("b", "aff-ots")
        client.decide_many("b", 20)
    with contextlib.closing(server.store.reader()) as store:
        yield store, store.find("b")


def test_an_export_in_many_pieces_is_the_export_in_one(log, monkeypatch):
    whole = [list(export.decisions(*log, 10))]
    monkeypatch.setattr(export, "PIECE_SECONDS", 0.0)
    pieces = list(export.decisions(*log, 10))
    assert max(map(len, pieces)) == 1
    assert [one for piece in pieces for one in piece] == [one for piece in whole[0] for one in piece]
    assert len(b"".join(export.decision_lines(log[0], "b", None, 10)).splitlines()) == 40


def test_an_export_that_nobody_wants_ends_before_the_next_event_and_the_next_reward(log):
    for asked in range(61 + 20):  # 61 events, and 20 rewards that the swap learns
        answers = iter([True] * asked)
        with pytest.raises(StreamInterruptedError):
            list(export.decisions(*log, 10, lambda answers=answers: next(answers, False)))


@pytest.mark.parametrize("path", ["export", "export?format=parquet", "events?format=ndjson"])
def test_a_download_ends_when_its_key_is_revoked_and_does_not_look_whole(sqlite_url, monkeypatch, path):
    key, row = new_key("admin")
    store = open_store(sqlite_url)
    store.create_tables()
    store.add_key(row)
    held = threading.Event()

    def lines(*_):
        yield b"first\n"
        assert held.wait(60)
        yield b"second\n"
        yield b"third\n"

    for name in ("decision_lines", "parquet_pieces", "event_lines"):
        monkeypatch.setattr(export, name, lines)
    with running(store, needs_keys=True) as server, talking(server.url, key) as (client, http):
        client.create("b", ARMS[:2])
        with http.stream("GET", f"/v1/bandits/b/{path}") as answer:
            found = answer.iter_lines()
            assert next(found) == "first"
            with contextlib.closing(open_store(sqlite_url)) as other:
                other.revoke_key(row.id, 1.0)
            wait_for(lambda: http.get("/metrics").status_code == 401)
            held.set()
            with pytest.raises(httpx.RemoteProtocolError):
                assert "third" not in list(found)
