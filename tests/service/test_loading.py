"""Loading: no request waits for other bandits, states survive a failing store, and replicas skip old events."""

import asyncio
import functools
import os
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dynabandit.bandit import Bandit
from dynabandit.service import api_types
from dynabandit.service.clock import Clock
from dynabandit.service.domain import changes
from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.decisions import decide
from dynabandit.service.domain.events import EventRow
from dynabandit.service.domain.unit_of_work import FEW_EVENTS, UnitOfWork
from dynabandit.service.errors import OverloadedError, StoreError
from dynabandit.service.service import Service
from dynabandit.service.stores import SqliteStore, Store, open_store
from service.stores.test_store_faults import LockedSqlite
from tools.harness import ARMS, DirectWriter, assert_replay_agrees, run_apart, running, talking
from tools.proxy import wire
from tools.trees_of_few_arms import trees_from
from tools.waiting import PATIENCE, wait_for

LONG = bool(os.environ.get("DYNABANDIT_LONG_FAULTS"))
DECISIONS, IDLE = (9_000, 200) if LONG else (300, 0)


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How many events of each bandit have been applied since the test began."""
    count, apply = Counter[int](), LoggedState.apply

    def counting(state: LoggedState, event: EventRow) -> None:
        count[state.bandit_number] += 1
        apply(state, event)

    monkeypatch.setattr(LoggedState, "apply", counting)
    return count


class ClosedStore(SqliteStore):
    """A store that the writer can use when it is opened."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.opened = threading.Event()

    def prepare(self) -> None:
        assert self.opened.wait(PATIENCE)
        super().prepare()


def fill(url: str, names: list[str], decisions: int) -> dict[str, int]:
    """Make bandits, of one event and some decisions each, as a crash leaves them: without snapshots."""
    writer, asked = DirectWriter(url), api_types.Create(arms=ARMS, seed=1)
    for name in names:
        writer.commit(lambda name=name: changes.create(writer.work, name, asked))  # type: ignore[misc]
        writer.commit(lambda name=name: decide(writer.work, name, api_types.Decide(decisions)))  # type: ignore[misc]
    writer.store.close()
    return {name: writer.work.names[name] for name in names}


def one_event_per_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynabandit.service.loading.STEP_SECONDS", -1.0)


@pytest.mark.promise(71)
def test_after_a_crash_no_request_waits_for_another_bandit(
    tmp_path: Path, applied: Counter[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    one_event_per_step(monkeypatch)
    names = ["a", *(f"idle {number}" for number in range(IDLE)), "large", "z"]
    numbers = fill(f"sqlite:///{tmp_path}/store.db", names, DECISIONS)
    store = ClosedStore(str(tmp_path / "store.db"))
    service = Service(store, patience=PATIENCE)

    counts: dict[str, Counter[int]] = {}  # of events that were applied before each request ran

    def run(work: UnitOfWork, name: str) -> None:
        counts[name] = applied.copy()
        if name == "new":
            changes.create(work, name, api_types.Create(arms=ARMS))
        else:
            decide(work, name, api_types.Decide())

    async def ask() -> None:
        await service.start()
        asked = [
            service.writer.submit(functools.partial(run, name=name), name=name) for name in ("z", "large", "z", "new")
        ]
        store.opened.set()
        await asyncio.gather(*asked)
        await service.stop()

    run_apart(ask())
    assert list(counts) == ["new", "z", "large"]
    assert counts["new"].total() <= 2, "a bandit that needs no loading is not kept waiting"
    assert (counts["z"][numbers["z"]], counts["z"].total() <= DECISIONS + 3) == (DECISIONS + 1, True), (
        "the first one is loaded first"
    )
    assert counts["large"][numbers["a"]] <= 2, "those that nobody asks for come last"
    assert_replay_agrees(f"sqlite:///{tmp_path}/store.db")


@pytest.mark.promise(71)
@pytest.mark.parametrize(("limit", "most", "events"), [("MAX_PARKED", 40, 1), ("MAX_PARKED_EVENTS", 4000, 100)])
def test_requests_that_wait_for_a_bandit_to_be_loaded_take_no_place_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, events: int
) -> None:
    monkeypatch.setattr(f"dynabandit.service.request_queue.{limit}", most)
    fill(f"sqlite:///{tmp_path}/store.db", ["a"], 10)
    store = SqliteStore(str(tmp_path / "store.db"))
    loading, began = threading.Event(), time.monotonic()
    # No time passes before all requests are there: one that waits for long keeps the others from waiting
    timer = lambda: time.monotonic() if loading.is_set() else began  # noqa: E731
    service = Service(store, patience=PATIENCE, max_waiting=50, timer=timer)
    step = service.writer._loader.step
    monkeypatch.setattr(service.writer._loader, "step", lambda: step() if loading.is_set() else None)

    async def ask() -> list[Any]:
        await service.start()
        one = api_types.Decide()
        waiting = [
            service.writer.submit(lambda work: decide(work, "a", one), name="a", events=events) for _ in range(50)
        ]
        while service.writer.admission.requests:
            await asyncio.sleep(0.001)
        await service.writer.submit(lambda work: changes.create(work, "new", api_types.Create(arms=ARMS)))
        loading.set()
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        await service.stop()
        return answers

    answers = run_apart(ask())
    assert [type(one) for one in answers] == [list] * 40 + [OverloadedError] * 10
    assert [made.step for [made] in answers[:40]] == list(range(11, 51)), "in the order in which they came"


@pytest.mark.promise(71)
def test_a_request_whose_bandit_is_not_loaded_in_time_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(f"sqlite:///{tmp_path}/store.db", ["a"], 10)
    seconds = [0.0]
    service = Service(SqliteStore(str(tmp_path / "store.db")), patience=1.0, timer=lambda: seconds[0])
    monkeypatch.setattr(service.writer._loader, "step", lambda: None)

    async def ask() -> None:
        await service.start()
        late = service.writer.submit(lambda work: decide(work, "a", api_types.Decide()), name="a")
        while service.writer.admission.requests:
            await asyncio.sleep(0.001)
        seconds[0] += 1.1
        with pytest.raises(StoreError, match="still being loaded"):
            await late
        stopped = service.writer.submit(lambda work: decide(work, "a", api_types.Decide()), name="a")
        await service.stop()
        with pytest.raises(StoreError, match="stopping"):
            await stopped

    run_apart(ask())


@pytest.mark.promise(73)
def test_a_foreign_lock_delays_requests_and_drops_no_state(
    sqlite_url: str, applied: Counter[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynabandit.service.stores.sqlite.BUSY_SECONDS", 0.02)
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
        for name in ("a", "b"):
            client.create(name, ARMS, seed=1)
        decision = client.decide("a").decision
        other, failures = LockedSqlite(sqlite_url), server.service.metrics.store_failures
        other.take()
        reward = threading.Thread(target=client.reward, args=(decision, 1))
        reward.start()
        wait_for(lambda: failures._value.get() >= 3)
        other.give()
        reward.join(PATIENCE)
        assert [event.kind for event in client.events("a")] == ["create", "decision", "reward"]
        assert client.decide("b").step == 1
    assert applied.total() == 0, "no state was read again"
    assert_replay_agrees(sqlite_url)


@pytest.mark.promise(74)
def test_a_commit_that_fails_drops_only_the_states_that_it_changed(
    store_url: str, applied: Counter[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(open_store(store_url)) as server, talking(server.url) as (client, http):
        for name in ("a", "b"):
            client.create(name, ARMS, seed=1)
            client.decide_many(name, 20)
        commit = server.store.commit

        def fail(*arguments: Any) -> None:
            if arguments[0]:
                raise StoreError("disk full")
            commit(*arguments)

        monkeypatch.setattr(server.store, "commit", fail)
        assert http.post("/v1/bandits/a/decisions", json={}).status_code == 503
        monkeypatch.setattr(server.store, "commit", commit)
        assert [client.decide(name).step for name in ("a", "b")] == [21, 21]
    assert set(applied.values()) == {21}, "one of the two"
    assert_replay_agrees(store_url)


def test_a_database_that_goes_down_leaves_the_states_in_memory(postgres_url: str, applied: Counter[int]) -> None:
    with wire(postgres_url) as (proxy, url), running(open_store(url)) as server:
        with talking(server.url) as (client, http):
            client.create("a", ARMS, seed=1)
            client.decide_many("a", 20)
            proxy.refuse()
            assert http.post("/v1/bandits/a/decisions", json={}).status_code == 503
            proxy.accept()
            wait_for(lambda: http.post("/v1/bandits/a/decisions", json={}).status_code == 200)
    assert applied.total() == 0
    assert_replay_agrees(postgres_url)


def add_events(store: Store, name: str, count: int, snapshot: bool) -> None:
    """Let another process decide, as one does while this one gets no requests for the bandit."""
    work = UnitOfWork(store, Clock(lambda: 0.0))
    store.begin({})
    number = work.named(name).bandit_number
    decide(work, name, api_types.Decide(count))
    store.commit(work.events)
    if snapshot:
        store.save_snapshot(number, work.snapshot(number))


@pytest.mark.promise(72)
@pytest.mark.parametrize("may_stay_locked", [True, False])
@pytest.mark.parametrize("snapshot", [True, False])
def test_a_replica_that_is_behind_takes_a_newer_snapshot_and_locks_only_for_the_last_events(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, snapshot: bool, may_stay_locked: bool
) -> None:
    one_event_per_step(monkeypatch)
    monkeypatch.setattr("dynabandit.service.writer.LOCKED_SECONDS", PATIENCE if may_stay_locked else -1.0)
    with running(open_store(postgres_url), maintenance_seconds=1000) as server:
        with talking(server.url) as (client, _):
            client.create("b", ARMS, seed=1)
            client.decide("b")
            other = open_store(postgres_url)
            add_events(other, "b", 2 * FEW_EVENTS, snapshot)
            locked, free, apply = [0], [0], LoggedState.apply

            def counting(state: LoggedState, event: EventRow) -> None:
                (locked if server.store.in_transaction else free)[0] += 1
                apply(state, event)

            monkeypatch.setattr(LoggedState, "apply", counting)
            assert client.decide("b").step == 2 * FEW_EVENTS + 2
            other.close()
    if may_stay_locked:
        assert (locked[0], free[0]) == (2 * FEW_EVENTS, 0)
    else:
        assert locked[0] == 1, "one event shows that there are many"
        assert free[0] == (0 if snapshot else 2 * FEW_EVENTS - 1)
    assert_replay_agrees(postgres_url)


@pytest.mark.promise(143)
def test_a_policy_is_compiled_when_a_bandit_is_loaded_and_not_while_it_is_locked(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trees_from(4):
        with running(open_store(store_url)) as server, talking(server.url) as (client, _):
            for name, arms in (("a", ARMS), ("b", ARMS), ("many", [*ARMS, "pink"])):
                client.create(name, arms, "aff-ots", seed=1)
            client.set_shadow("b", "ucb")
            states = {name: client.state(name) for name in ("a", "b", "many")}
        store, compiled = open_store(store_url), []
        monkeypatch.setattr(
            Bandit, "compile", lambda one: compiled.append((one.policy.name, len(one.names), store.in_transaction))
        )
        with running(store) as server, talking(server.url) as (client, _):
            assert {name: client.state(name) for name in states} == states
    assert sorted(compiled) == [("aff-ots", 3, False), ("aff-ots", 4, False), ("ucb", 3, False)], "one for both"


@pytest.mark.promise(143)
def test_other_bandits_are_served_while_a_policy_is_compiled(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    began, may_end = threading.Event(), threading.Event()

    def compile_slowly(bandit: Bandit) -> None:
        if bandit.policy.name == "aff-ots":
            began.set()
            assert may_end.wait(PATIENCE)

    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
        client.create("slow", ARMS, "aff-ots", seed=1)
        client.decide_many("slow", 3)
        before = client.state("slow")
    monkeypatch.setattr(Bandit, "compile", compile_slowly)
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.state, "slow")
        assert began.wait(PATIENCE)
        client.create("quick", ARMS, "ucb", seed=1)
        assert client.decide("quick").step == 1
        assert not waiting.done()
        may_end.set()
        assert waiting.result(PATIENCE) == before
