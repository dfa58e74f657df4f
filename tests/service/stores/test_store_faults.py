"""A store that is down, slow or full: nothing is acknowledged falsely, and the service recovers by itself."""

import contextlib
import itertools
import os
import resource
import sqlite3
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from dynabandit.client import Client
from dynabandit.service.api_types import Decision
from dynabandit.service.stores import open_store
from tools.harness import ARMS, PRODUCT, Running, assert_replay_agrees, process, running, status_of, talking, visitor
from tools.proxy import wire
from tools.waiting import PATIENCE

LONG = bool(os.environ.get("DYNABANDIT_LONG_FAULTS"))


def count_rewards(client: Client) -> int:
    return sum(event.kind == "reward" for event in client.events("b"))


class LockedSqlite:
    """Another program that holds SQLite's lock."""

    def __init__(self, url: str) -> None:
        self.connection = sqlite3.connect(url.removeprefix("sqlite:///"), PATIENCE, isolation_level=None)

    def take(self) -> None:
        self.connection.execute("BEGIN EXCLUSIVE")

    def give(self) -> None:
        self.connection.execute("ROLLBACK")
        self.connection.close()


def check_down_and_up(server: Running, down: Callable[[], None], up: Callable[[], None]) -> None:
    """While the store is away nothing is acknowledged; when it is back all goes on, with no restart."""
    with talking(server.url) as (client, http), Client(server.url, timeout=PATIENCE, tries=12) as patient:
        client.create("b", ARMS)
        first, second = client.decide_many("b", 2)
        client.reward(first.decision, 1)
        server.give_up_after(0.2)  # only now: a store that is slow because the machine is busy must not be given up
        down()
        refused = http.put(f"/v1/decisions/{second.decision}/reward", json={"reward": 1})
        assert refused.status_code == 503
        assert refused.headers["Retry-After"] == "1"
        assert [status_of(client.decide, "b"), status_of(client.reward, first.decision, 1)] == [503, 503]
        assert http.get("/readyz").status_code == 503
        assert http.get("/healthz").status_code == 200
        server.give_up_after(PATIENCE)
        up()
        patient.reward(second.decision, 1)  # a connection that was broken is noticed when it is used
        patient.reward(first.decision, 1)
        assert http.get("/readyz").status_code == 200
        assert count_rewards(client) == 2


@pytest.mark.promise(11, 12, 21, 98)
def test_a_locked_sqlite_file_gives_503_and_recovers(sqlite_url: str) -> None:
    with running(open_store(sqlite_url)) as server:
        other = LockedSqlite(sqlite_url)
        check_down_and_up(server, other.take, other.give)
    assert_replay_agrees(sqlite_url)


@pytest.mark.promise(11, 12, 21, 98)
def test_a_database_that_goes_down_gives_503_and_recovers(postgres_url: str) -> None:
    with wire(postgres_url) as (proxy, url), running(open_store(url)) as server:
        check_down_and_up(server, proxy.refuse, proxy.accept)
    assert_replay_agrees(postgres_url)


@pytest.mark.promise(11, 12, 21, 98)
def test_a_database_that_does_not_answer_gives_503_and_recovers(postgres_url: str) -> None:
    with wire(postgres_url) as (proxy, url), running(open_store(url)) as server:
        check_down_and_up(server, proxy.hold, proxy.release)
    assert_replay_agrees(postgres_url)


def fill(client: Client) -> list[Decision]:
    """Decide until the disk is full, by fewer and fewer at a time; return what was acknowledged."""
    made: list[Decision] = []
    for count in (100, 10, 1):
        refused = 0
        while refused < 5:  # one refusal may make room: SQLite clears its journal
            before = len(made)
            status = status_of(
                lambda count=count: made.extend(client.decide_many("b", count, context=visitor("u", count)["context"]))
            )
            assert status in (200, 503)
            refused = refused + 1 if status == 503 else 0
            assert len(made) == before + (count if status == 200 else 0)
            assert len(made) < 100_000, "the disk is never full"
    return made


def first_refused(client: Client, made: list[Decision]) -> dict[str, Any]:
    """Decide for units until the store refuses one, as a checkpoint may have made room; return what was asked."""
    for number in itertools.count():
        asked = visitor(f"u{number}", number)
        status = status_of(lambda asked=asked: made.append(client.decide("b", **asked)))
        if status != 200:
            break
    assert status == 503
    return asked


def check_full_disk(url: str, server_url: str, make_full: Callable[[], None], make_room: Callable[[], None]) -> None:
    with talking(server_url) as (client, http):
        client.create("b", ARMS, **{**PRODUCT, "policy": "ucb"})
        make_full()
        made = fill(client)
        asked = first_refused(client, made)
        make_room()
        assert status_of(client.reward, made[0].decision, 1) == 200
        assert http.get("/readyz").status_code == 200
        logged = [event.decision for event in client.events("b", limit=10_000) if event.kind == "decision"]
        assert logged == [one.decision for one in made]
        assert client.decide("b", **asked).step == len(made) + 1
        assert client.decide("b", **asked).repeated, "the unit was not assigned before"


def check_whole(url: str) -> None:
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as check:
        assert check.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert_replay_agrees(url)


@pytest.mark.promise(98)
def test_a_file_that_cannot_grow_gives_503_corrupts_nothing_and_recovers(sqlite_url: str) -> None:
    with process(sqlite_url) as server:
        pid = server.process.pid
        _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)

        def limit(size: int) -> None:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, most))

        check_full_disk(sqlite_url, server.url, lambda: limit(1 << 20), lambda: limit(most))
        server.kill()
    check_whole(sqlite_url)


def test_a_full_disk_gives_503_corrupts_nothing_and_recovers(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a small disk; the limited file above stands in for it")
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(2 << 20))
    try:
        url = f"sqlite:///{disk}/store.db"
        with running(open_store(url)) as server:
            check_full_disk(url, server.url, lambda: None, ballast.unlink)
        check_whole(url)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.promise(54)
def test_calls_beyond_those_that_may_wait_get_429_and_those_that_wait_are_served(sqlite_url: str) -> None:
    with (
        running(open_store(sqlite_url), max_waiting=8) as server,
        talking(server.url) as (client, _),
    ):
        client.create("b", ARMS)
        other = LockedSqlite(sqlite_url)
        other.take()
        turned_away, all_turned_away = [], threading.Semaphore(0)

        def ask(number: int) -> int:
            answer = httpx.post(f"{server.url}/v1/bandits/b/decisions", json={}, timeout=PATIENCE, verify=False)
            if answer.status_code != 200:
                turned_away.append(answer)
                all_turned_away.release()
            return answer.status_code

        with ThreadPoolExecutor(40) as pool:
            asked = pool.map(ask, range(40))
            for _ in range(32):
                assert all_turned_away.acquire(timeout=PATIENCE)
            other.give()
            statuses = list(asked)
    assert [answer.status_code for answer in turned_away] == [429] * 32
    assert all(answer.headers["Retry-After"] == "1" for answer in turned_away)
    assert sorted(statuses) == [200] * 8 + [429] * 32
    assert_replay_agrees(sqlite_url)


@pytest.mark.promise(22, 42)
def test_a_bandit_that_cannot_be_erased_is_not_half_deleted(sqlite_url: str) -> None:
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, http):
        client.create("b", ARMS, seed=1)
        client.decide_many("b", 10)
        other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), PATIENCE)
        other.execute("CREATE TRIGGER full BEFORE DELETE ON bandits BEGIN SELECT RAISE(ABORT, 'no'); END")
        asked = {"confirm": "b", "erase": "true"}
        assert http.delete("/v1/bandits/b", params=asked).status_code == 503
        assert client.decide("b").step == 11, "nothing has happened"
        other.execute("DROP TRIGGER full")
        other.close()
        assert http.delete("/v1/bandits/b", params=asked).status_code == 200
        assert http.get("/v1/bandits", params={"deleted": "true"}).json()["bandits"] == []
