"""Overload: requests beyond the limits are refused early, and admitted ones are served soon."""

import heapq
import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import httpx
import pytest

from dynabandit.service import api_types, field_types, snapshots
from dynabandit.service.admission import MAX_EVENTS_WAITING
from dynabandit.service.http.limits import MAX_CONNECTIONS, RefusalPacer
from dynabandit.service.stores import open_store
from dynabandit.service.thread_pool import ConcurrencyLimit
from service.stores.test_store_faults import LockedSqlite
from tools.harness import (
    ARMS,
    HeldStore,
    Running,
    assert_replay_agrees,
    process,
    run_apart,
    running,
    talking,
)
from tools.waiting import PATIENCE, wait_for

Held = tuple[HeldStore, Running, httpx.Client]
LONG = bool(os.environ.get("DYNABANDIT_LONG_FAULTS"))


@pytest.mark.promise(56)
def test_refusals_are_spread_over_time_and_delayed_for_a_limited_time() -> None:
    now = [0.0]
    pacer = RefusalPacer(per_second=100, max_delay=0.5, timer=lambda: now[0])
    waits = [pacer.delay() for _ in range(60)]
    assert waits[:3] == pytest.approx([0.0, 0.01, 0.02])
    assert waits[51:] == [None] * 9
    assert max(wait for wait in waits if wait is not None) <= 0.5
    now[0] = 10.0
    assert pacer.delay() == 0.0, "after a while of peace nobody is held back"


@pytest.mark.promise(56)
def test_no_connection_is_closed_although_the_callers_of_all_are_refused_and_retry_at_once() -> None:
    now = 0.0
    pacer, due = RefusalPacer(timer=lambda: now), [0.0] * MAX_CONNECTIONS
    for _ in range(5 * MAX_CONNECTIONS):  # always the connection whose refusal is sent next
        now = heapq.heappop(due)
        delay = pacer.delay()
        assert delay is not None
        heapq.heappush(due, now + delay)
    assert now == pytest.approx(4 * MAX_CONNECTIONS / 500, abs=0.01)


@pytest.fixture
def held(sqlite_url: str) -> Iterator[Held]:
    store = HeldStore(sqlite_url.removeprefix("sqlite:///"))
    with running(store, max_waiting=8) as server, talking(server.url) as (client, http):
        client.create("b", ARMS)
        try:
            yield store, server, http
        finally:
            store.open.set()
    assert_replay_agrees(sqlite_url)


def decide(url: str) -> httpx.Response:
    return httpx.post(f"{url}/v1/bandits/b/decisions", json={}, timeout=PATIENCE, verify=False)


def fill(store: HeldStore, server: Running, pool: ThreadPoolExecutor) -> list[Future[httpx.Response]]:
    """Let as many calls wait as may, and return their answers to come."""
    store.hold()
    waiting = [pool.submit(decide, server.url) for _ in range(8)]
    assert store.begun.wait(PATIENCE)
    admission = server.service.writer.admission
    wait_for(lambda: admission.requests == 8)
    return waiting


@pytest.mark.promise(53)
def test_a_request_is_refused_before_its_body_is_read(held: Held) -> None:
    store, server, _ = held
    with ThreadPoolExecutor(8) as pool:
        waiting = fill(store, server, pool)
        where = urlsplit(server.url)
        with socket.create_connection((where.hostname, where.port)) as wire:
            wire.sendall(
                b"POST /v1/bandits/b/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                b"Content-Length: 1000000\r\n\r\n"
            )
            answer = wire.recv(1 << 16).lower()
        assert answer.startswith(b"http/1.1 429")
        assert b"\r\nretry-after: 1\r\n" in answer
        store.open.set()
        assert [one.result(PATIENCE).status_code for one in waiting] == [200] * 8


@pytest.mark.promise(11, 21, 55)
def test_under_overload_health_and_changes_are_served_and_nothing_is_acknowledged_falsely(held: Held) -> None:
    store, server, http = held
    with ThreadPoolExecutor(16) as pool:
        waiting = fill(store, server, pool)
        refused = list(pool.map(lambda _: decide(server.url), range(20)))
        assert {answer.status_code for answer in refused} == {429}
        assert {answer.headers["Retry-After"] for answer in refused} == {"1"}
        reward = http.put("/v1/decisions/000000000000-1/reward", json={"reward": 1})
        assert reward.status_code == 429
        pause = pool.submit(http.patch, "/v1/bandits/b/arms/red", json={"paused": True})
        wait_for(lambda: server.service.writer.admission.requests == 9)
        assert http.get("/healthz").status_code == 200
        assert "dynabandit_turned_away_total 21.0" in http.get("/metrics").text
        store.open.set()
        assert pause.result(PATIENCE).status_code == 200
        served = [one.result(PATIENCE).json()["decisions"][0]["step"] for one in waiting]
    assert sorted(served) == list(range(1, 9)), "only what was acknowledged happened"
    assert http.get("/v1/bandits/b").json()["step"] == 8


def test_a_large_request_is_refused_like_the_many_that_it_replaces(held: Held) -> None:
    store, server, http = held
    many = field_types.MAX_REWARDS
    body = {"rewards": [{"decision": "x", "reward": 1}] * many}
    with ThreadPoolExecutor(8) as pool:
        store.hold()
        first = pool.submit(decide, server.url)
        assert store.begun.wait(PATIENCE)
        accepted = [pool.submit(http.post, "/v1/rewards", json=body) for _ in range(MAX_EVENTS_WAITING // many)]
        admission = server.service.writer.admission
        wait_for(lambda: admission.is_full(many))
        assert http.post("/v1/rewards", json=body).status_code == 429
        store.open.set()
        assert first.result(PATIENCE).status_code == 200
        assert {one.result(PATIENCE).status_code for one in accepted} <= {200, 429}


STREAMS = [
    ("streams", "/v1/bandits/b/export"),
    ("streams", "/v1/bandits/b/events?format=ndjson"),
    ("live_pages", "/pages/bandits"),
    ("live_pages", "/pages/bandit?name=b"),
]


@pytest.mark.promise(133, 134)
@pytest.mark.parametrize(("kind", "path"), STREAMS)
def test_streams_have_a_limit_because_each_holds_a_connection(sqlite_url: str, kind: str, path: str) -> None:
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, http):
        client.create("b", ARMS)
        client.decide("b")
        limit: ConcurrencyLimit = getattr(server.service, kind)
        limit._most = 1
        assert http.head(path).status_code == 200, "it has no content and takes no place"
        for _ in range(2):
            with http.stream("GET", path) as answer:
                assert answer.status_code == 200
                assert next(answer.iter_bytes())
            wait_for(lambda: limit.running == 0)
        with limit.reserve():
            refused = http.get(path)
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")


@pytest.mark.promise(135)
def test_few_large_states_are_copied_at_once(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, http):
        client.create("b", ARMS)
        small = client.state("b")
        monkeypatch.setattr(snapshots, "LARGE_STATE_ARMS", 3)
        assert client.state("b") == small
        limit = server.service.large_states
        limit._most = 1
        with limit.reserve():
            assert http.get("/v1/bandits/b").status_code == 429
        assert (client.state("b"), limit.running) == (small, 0)


def test_all_who_ask_whether_the_service_is_ready_share_one_write(held: Held) -> None:
    store, server, _ = held
    service = server.service
    with (
        ThreadPoolExecutor(11) as pool,
        mock.patch.object(service, "check_ready", wraps=service.check_ready) as asked,
        mock.patch.object(service, "_try_to_write", wraps=service._try_to_write) as written,
    ):
        store.hold()
        waiting = pool.submit(decide, server.url)
        assert store.begun.wait(PATIENCE)
        asking = [pool.submit(httpx.get, f"{server.url}/readyz", timeout=PATIENCE, verify=False) for _ in range(10)]
        wait_for(lambda: asked.call_count == 10)
        store.open.set()
        assert {one.result(PATIENCE).status_code for one in asking} == {200}
        assert waiting.result(PATIENCE).status_code == 200
        assert written.call_count == 1


def test_a_service_that_does_not_write_in_time_is_not_ready(held: Held) -> None:
    store, server, http = held
    with ThreadPoolExecutor(1) as pool:
        store.hold()
        waiting = pool.submit(decide, server.url)
        assert store.begun.wait(PATIENCE)
        server.service._ready_seconds = 0.1
        assert http.get("/readyz").status_code == 503
        server.service._ready_seconds = PATIENCE
        store.open.set()
        assert waiting.result(PATIENCE).status_code == 200
        assert http.get("/readyz").status_code == 200


def test_pages_of_a_log_do_not_delay_other_reads(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, begun = threading.Event(), threading.Semaphore(0)

    def page_of_events(*arguments: Any) -> list[api_types.Event]:
        begun.release()
        assert go_on.wait(PATIENCE)
        return []

    monkeypatch.setattr("dynabandit.service.export.page_of_events", page_of_events)
    with (
        running(open_store(sqlite_url)) as server,
        ThreadPoolExecutor(30) as pool,
        talking(server.url) as (client, http),
    ):
        client.create("b", ARMS)
        path = f"{server.url}/v1/bandits/b/events"
        readers = [pool.submit(httpx.get, path, timeout=PATIENCE, verify=False) for _ in range(30)]
        try:
            assert begun.acquire(timeout=PATIENCE)
            assert [one.name for one in client.bandits()] == ["b"]
            assert http.get("/v1/bandits/c/events").status_code == 404
        finally:
            go_on.set()
        assert {one.result(PATIENCE).status_code for one in readers} == {200}


def test_ten_times_the_load_loses_nothing(sqlite_url: str) -> None:
    """benchmarks/service_limits.py measures the memory that it takes."""
    callers, rounds = (160, 40) if LONG else (64, 3)
    with process(sqlite_url, "--most-waiting", "6") as server, talking(server.url) as (client, http):
        client.create("b", ARMS)
        client.decide_many("b", 100)
        answers: list[httpx.Response] = []
        other = LockedSqlite(sqlite_url)
        other.take()  # so that calls wait for the store, however fast they are
        with ThreadPoolExecutor(1) as pool:
            flooding = pool.submit(flood, server.url, callers, rounds, answers)
            wait_for(lambda: any(answer.status_code == 429 for answer in list(answers)))
            other.give()
            flooding.result(PATIENCE)
        assert len(answers) == callers * rounds
        assert {answer.status_code for answer in answers} == {200, 429}
        assert all("Retry-After" in answer.headers for answer in answers if answer.status_code != 200)
        served = [answer.json()["decisions"][0]["decision"] for answer in answers if answer.status_code == 200]
        assert len(set(served)) == len(served)
        assert client.state("b").step == 100 + len(served)
        assert http.get("/readyz").status_code == 200
    assert_replay_agrees(sqlite_url)


def flood(url: str, callers: int, rounds: int, answers: list[httpx.Response]) -> None:
    """Send from many connections at once, never slow down, and collect the answers."""
    import asyncio

    async def ask(http: httpx.AsyncClient, key: str) -> httpx.Response:
        while True:
            try:
                return await http.post("/v1/bandits/b/decisions", json={}, headers={"Idempotency-Key": key})
            except httpx.TransportError:  # hung up on: the same key gives the same decision
                continue

    async def call(http: httpx.AsyncClient, caller: int) -> None:
        for number in range(rounds):
            answer = await ask(http, f"{caller}-{number}")
            answers.append(answer)

    async def all_of_them() -> None:
        limits = httpx.Limits(max_connections=callers, max_keepalive_connections=callers)
        async with httpx.AsyncClient(base_url=url, limits=limits, timeout=PATIENCE, verify=False) as http:
            await asyncio.gather(*(call(http, caller) for caller in range(callers)))

    run_apart(all_of_them())
