"""Exports: what a download may cost others, and how it ends."""

import asyncio
import contextlib
import functools
import io
import json
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

import dynabandit as db
from dynabandit import offline
from dynabandit.service import export
from dynabandit.service.errors import WorkInterruptedError
from dynabandit.service.export import decisions
from dynabandit.service.keys import new_key
from dynabandit.service.service import Service
from dynabandit.service.stores import SqliteStore, Store, open_store
from dynabandit.service.stores.key_tables import add_key, revoke_key
from tools.harness import ARMS, DirectWriter, ManualClock, Running, run_apart, running, talking
from tools.waiting import PATIENCE, wait_for


@pytest.fixture
def server(sqlite_server: Running) -> Running:
    return sqlite_server


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
        assert self.release.wait(PATIENCE)
        self.inside = False
        return 1


def test_a_connection_is_closed_after_the_statement_that_runs_on_it_whoever_hangs_up(tmp_path: Path) -> None:
    held = Held(f"{tmp_path}/x.db")

    def pieces(store: Store, is_wanted: Callable[[], bool]) -> Iterator[bytes]:
        yield b"first"
        store.rows("SELECT hold()")
        yield b"second"

    async def hang_up() -> None:
        service = Service(held.store)
        stream = service.stream(pieces, lambda: True)
        assert await anext(stream) == b"first"
        listening = asyncio.ensure_future(anext(stream))
        assert await asyncio.to_thread(held.begun.wait, PATIENCE)
        listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listening
        assert held.closed == []
        held.release.set()
        await asyncio.to_thread(wait_for, lambda: held.closed)
        service._exports.shutdown()

    run_apart(hang_up())
    assert held.closed == [False]


MANY_ARMS = [f"arm {number}" for number in range(101)]  # so many that propensities of Thompson sampling are estimated


def ask(url: str, path: str, stack: contextlib.ExitStack) -> socket.socket:
    """Begin a download, and return when the answer has begun."""
    where = urlsplit(url)
    wire = stack.enter_context(socket.create_connection((where.hostname, where.port), timeout=PATIENCE))
    wire.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert b" 200 " in wire.recv(100)
    return wire


@pytest.mark.promise(9)
def test_long_exports_delay_neither_other_exports_nor_the_shutdown(sqlite_url: str) -> None:
    with (
        running(open_store(sqlite_url)) as server,
        talking(server.url, tries=6) as (client, http),
        contextlib.ExitStack() as stack,
    ):
        client.create("long", MANY_ARMS, policy="ts", seed=1)
        client.decide_many("long", 1000)  # of which all but the first hundred are drawn again
        client.create("short", MANY_ARMS[:2], seed=1)
        client.decide_many("short", 10)
        path = "/v1/bandits/long/export?draws=100000"  # each takes longer than any test
        for wire in [ask(server.url, path, stack) for _ in range(2)]:
            wire.close()
        ask(server.url, path, stack)
        ask(server.url, path, stack)
        assert len(http.get("/v1/bandits/short/export?draws=10").text.splitlines()) == 10
        server.stop()


@pytest.mark.promise(9)
def test_an_export_that_would_draw_too_often_is_refused_by_the_number_of_arms(server: Running) -> None:
    with talking(server.url) as (client, http):
        client.create("b", [str(number) for number in range(500)])
        assert http.get("/v1/bandits/b/export?draws=40000").status_code == 200
        refused = http.get("/v1/bandits/b/export?draws=40001")
        assert refused.status_code == 422
        assert "draws must be at most 40000 with 500 arms, got 40001" in refused.json()["problem"]


@pytest.fixture
def log(server: Running) -> Iterator[tuple[Store, int]]:
    """The log of a bandit, with a swap in it that learns all rewards again."""
    with talking(server.url) as (client, _):
        client.create("b", MANY_ARMS[:3], policy="ts", seed=1)
        client.reward_many([(one.decision, 1) for one in client.decide_many("b", 20)])
        client.set_policy("b", "aff-ots")
        client.decide_many("b", 20)
    with contextlib.closing(server.store.reader()) as store:
        yield store, store.find_log("b", None)


def test_an_export_in_many_pieces_is_the_export_in_one(log: tuple[Store, int], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list(export.decisions(*log, draws=10))
    monkeypatch.setattr(export, "PIECE_SECONDS", 0.0)
    pieces = list(export.decisions(*log, draws=10))
    assert max(map(len, pieces)) == 1
    assert [one for piece in pieces for one in piece] == [one for piece in whole for one in piece]
    assert len(b"".join(export.decision_lines(*log, draws=10)).splitlines()) == 40


def test_an_export_that_nobody_wants_ends_before_the_next_event_or_page_of_rewards(log: tuple[Store, int]) -> None:
    for asked in range(61 + 1):  # 61 events, and a page with the rewards that the swap learns
        answers = iter([True] * asked)
        with pytest.raises(WorkInterruptedError):
            list(export.decisions(*log, draws=10, is_wanted=functools.partial(next, answers, False)))


@pytest.mark.promise(9)
@pytest.mark.parametrize("path", ["export", "export?format=parquet", "events?format=ndjson"])
def test_a_download_ends_when_its_key_is_revoked_and_does_not_look_whole(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    key, row = new_key("admin")
    store = open_store(sqlite_url)
    store.create_tables()
    add_key(store, row)
    held = threading.Event()

    def lines(*_: Any) -> Iterator[bytes]:
        yield b"first\n"
        assert held.wait(PATIENCE)
        yield b"second\n"
        yield b"third\n"

    for name in ("decision_lines", "parquet_pieces", "event_lines"):
        monkeypatch.setattr(export, name, lines)
    with running(store, needs_keys=True) as server, talking(server.url, key) as (client, http):
        client.create("b", MANY_ARMS[:2])
        with http.stream("GET", f"/v1/bandits/b/{path}") as answer:
            found = answer.iter_lines()
            assert next(found) == "first"
            with contextlib.closing(open_store(sqlite_url)) as other:
                revoke_key(other, row.id, 1.0)
            wait_for(lambda: http.get("/metrics").status_code == 401)
            held.set()
            with pytest.raises(httpx.RemoteProtocolError):
                assert "third" not in list(found)


@pytest.mark.promise(104, 106)
def test_export_has_every_decision_with_its_reward_and_propensity(
    server: Running, clock: ManualClock, tmp_path: Path
) -> None:
    with talking(server.url) as (client, http):
        client.create("b", ARMS, policy="eps-greedy", parameters={"epsilon": 0.5}, seed=1, reward_window=10)
        for _ in range(60):
            decision = client.decide("b")
            client.reward(decision.decision, decision.arm == "blue")
        client.decide("b")
        lines = http.get("/v1/bandits/b/export", params={"draws": 2000}).text.splitlines()
        rows = [json.loads(line) for line in lines]
        assert [row["step"] for row in rows] == list(range(1, 62))
        logged = {event.step: event for event in client.events("b") if event.kind == "decision"}
        assert all(row["arm"] == logged[row["step"]].arm for row in rows)
        assert rows[-1]["reward"] is None
        assert all(row["reward"] == (row["arm"] == "blue") for row in rows[:-1])
        assert [row["propensity"] for row in rows[:3]] == [1.0] * 3, "the burn-in leaves nothing to chance"
        # 2001 draws: a share of 2/3 or 1/6 is off by 0.06 with probability under 1e-8
        for row in rows[3:]:
            expected = 1 - 0.5 + 0.5 / 3 if row["arm"] == "blue" else 0.5 / 3
            assert abs(row["propensity"] - expected) < 0.06
        pq = pytest.importorskip("pyarrow.parquet")
        content = http.get("/v1/bandits/b/export", params={"draws": 2000, "format": "parquet"}).content
        assert pq.read_table(io.BytesIO(content)).to_pylist() == rows
        (tmp_path / "log.parquet").write_bytes(content)
    log = offline.read(tmp_path / "log.parquet", skip_bad=True)  # the last decision has no reward
    assert (log.rows, log.has_propensities, log.is_uniform) == (60, True, False)
    found = offline.replay(log, "eps-greedy", epsilon=0.5)
    assert found.ips.low < found.logged.value < found.ips.high


def test_propensities_estimate_a_policys_value_without_bias(sqlite_url: str) -> None:
    """Off-policy evaluation, the purpose of the export: the value of always playing blue, from a log of TS."""
    writer = DirectWriter(sqlite_url, "ts")
    writer.learn(1500)
    rows = [row for piece in decisions(writer.store, writer.bandit_number, 50) for row in piece]
    weighted = [(row.reward or 0.0) / row.propensity for row in rows if row.arm == "blue"]
    # Rewards of blue are 1 with probability 0.7, and 0.1 is about 3 standard errors; the seed is fixed
    assert abs(sum(weighted) / len(rows) - 0.7) < 0.1
    writer.store.close()


@pytest.mark.promise(104)
def test_propensities_know_shares_pauses_and_certainty() -> None:
    bandit = db.Bandit("ucb", ARMS, seed=1)
    for _ in range(30):
        arm = bandit.choose()
        bandit.reward(arm, arm == "blue")
    assert sorted(bandit.propensities(10).values()) == [0.0, 0.0, 1.0]
    bandit.limit_arm("red", min_share=0.25)
    mixed = bandit.propensities(10)
    assert mixed["red"] in (0.25, 1.0)
    assert sum(mixed.values()) == pytest.approx(1.0)
    bandit.pause_arm("green")
    assert set(bandit.propensities(10)) == {"red", "blue"}
    before = bandit.state_hash()
    bandit.propensities(10)
    assert bandit.state_hash() == before, "asking changes nothing"


def test_a_head_request_starts_no_replay(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynabandit.service.export.decisions", None)
    with talking(server.url) as (client, http):
        client.create("b", ARMS)
        answer = http.head("/v1/bandits/b/export")
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/x-ndjson")
        assert http.head("/v1/bandits/c/export").status_code == 404


def test_long_exports_do_not_delay_readers(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    held, begun = threading.Event(), threading.Semaphore(0)

    def endless(*_: Any) -> Iterator[bytes]:
        yield b"a line\n"
        begun.release()
        assert held.wait(PATIENCE)

    monkeypatch.setattr("dynabandit.service.export.decision_lines", endless)
    with talking(server.url) as (client, http), contextlib.ExitStack() as stack:
        client.create("b", ARMS)
        for _ in range(40):  # more than there are threads
            where = urlsplit(server.url)
            wire = stack.enter_context(socket.create_connection((where.hostname, where.port)))
            wire.sendall(b"GET /v1/bandits/b/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            assert all(begun.acquire(timeout=PATIENCE) for _ in range(2)), "as many as there are threads"
            assert http.get("/v1/bandits").status_code == 200
            assert http.get("/v1/bandits/b/events").status_code == 200
        finally:
            held.set()
