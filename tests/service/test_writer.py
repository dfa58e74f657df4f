"""The writer: requests that share a commit, time-outs, snapshots and maintenance."""

import asyncio
import contextlib
import functools
import itertools
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from dynabandit.bandit import Bandit
from dynabandit.client import ServiceError
from dynabandit.service import snapshots
from dynabandit.service.api_types import Create
from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.changes import create
from dynabandit.service.domain.events import EventRow
from dynabandit.service.domain.names import from_bytes
from dynabandit.service.domain.rewards import learning_cost, takes_long
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.errors import ReplayMismatchError, StoreError
from dynabandit.service.failure_log import LINE_SECONDS, MAX_PROBLEMS, OTHERS, FailureLog
from dynabandit.service.request_queue import WriterRequest
from dynabandit.service.service import READY_CACHED, Service
from dynabandit.service.stores import Snapshot, SqliteStore, Store, open_store
from dynabandit.service.turns import MOST_BEGUN, LongRun, Turns
from tools.harness import (
    ARMS,
    HeldStore,
    assert_replay_agrees,
    captured_log,
    run_apart,
    running,
    status_of,
    talking,
)
from tools.patient_service import LONG_LIMITS
from tools.waiting import PATIENCE, wait_for


@pytest.mark.promise(66)
def test_requests_of_one_commit_see_the_effects_of_each_other(sqlite_url: str) -> None:
    store = HeldStore(sqlite_url.removeprefix("sqlite:///"))
    with running(store) as server, talking(server.url) as (client, _), ThreadPoolExecutor(17) as pool:
        client.create("b", ARMS)
        decision = client.decide("b").decision
        store.hold()
        first = pool.submit(client.decide, "b")
        assert store.begun.wait(PATIENCE)  # all others wait for this commit, and then have one together
        keyed = [pool.submit(client.decide, "b", "same") for _ in range(8)]
        rewards = [pool.submit(status_of, client.reward, decision, 1) for _ in range(8)]
        wait_for(lambda: server.service.writer.admission.requests >= 17)
        store.open.set()
        assert first.result(PATIENCE).step == 2
        assert {one.result(PATIENCE).step for one in keyed} == {3}
        assert [one.result(PATIENCE) for one in rewards] == [200] * 8
        assert sorted(event.kind for event in client.events("b")) == ["create", *["decision"] * 3, "reward"]
    assert_replay_agrees(sqlite_url)


@pytest.mark.promise(85)
def test_snapshots_are_saved_and_of_old_ones_the_hash_is_kept(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynabandit.service.snapshots.SNAPSHOT_EVERY", 50)
    with running(open_store(store_url)) as server, talking(server.url) as (client, _):
        client.create("b", ARMS)
        for _ in range(6):
            client.decide_many("b", 50)
    with contextlib.closing(open_store(store_url)) as reader:
        number = reader.find("b")
        assert number is not None
        assert len(reader.snapshot_hashes(number)) >= 5
        assert reader.rows("SELECT count(*) FROM snapshots WHERE body IS NOT NULL") == [(2,)]
    assert_replay_agrees(store_url)


def test_a_state_that_disagrees_with_its_log_is_loaded_again(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failures, advance = list[ReplayMismatchError](), LoggedState._advance

    def failing(state: LoggedState, event: EventRow) -> None:
        if failures:
            raise failures.pop()
        advance(state, event)

    monkeypatch.setattr(LoggedState, "_advance", failing)
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, http):
        client.create("b", ARMS, seed=1)
        for step, call in enumerate(("/v1/bandits/b/decisions", "/v1/rewards"), start=1):
            made = client.decide("b")
            assert made.step == step
            failures.append(ReplayMismatchError("b", 3, "it is not true"))
            asked = {"rewards": [{"decision": made.decision, "reward": 1}]} if call == "/v1/rewards" else {}
            assert http.post(call, json=asked).status_code == 500
            client.reward(made.decision, 1)
    assert_replay_agrees(sqlite_url)


class FailingStore(SqliteStore):
    """A store that accepts no writes while it has a problem, and counts how often it saved the time of the clock."""

    problem: str | None = None
    saved = 0

    def save_time(self, now: float) -> None:
        if self.problem is not None:
            raise StoreError(self.problem)
        self.saved += 1
        super().save_time(now)

    def commit(self, *arguments: Any) -> None:
        if self.problem is not None:
            raise StoreError(self.problem)
        super().commit(*arguments)


def test_readiness_writes_to_the_store_only_now_and_then(tmp_path: Path) -> None:
    store, seconds = FailingStore(str(tmp_path / "store.db")), [100.0]
    service = Service(store, timer=lambda: seconds[0], ready_seconds=PATIENCE)

    async def ask() -> list[int]:
        await service.start()
        for _ in range(2):  # the second one comes after the first maintenance, which writes, too
            await service.writer.submit(lambda work: None)
        saved = []
        for later in (0.0, READY_CACHED / 2, READY_CACHED, 0.0):
            seconds[0] += later
            await service.check_ready()
            saved.append(store.saved)
        store.problem = "gone"
        service.writer.requests.failures += 1
        with pytest.raises(StoreError):
            await service.check_ready()
        store.problem = None
        await service.stop()
        return saved

    first, *later = run_apart(ask())
    assert [one - first for one in later] == [0, 1, 1]


def test_a_request_that_the_store_does_not_answer_in_time_fails(tmp_path: Path) -> None:
    store, seconds = HeldStore(str(tmp_path / "store.db")), [0.0]
    service = Service(store, patience=0.2, timer=lambda: seconds[0])

    async def ask() -> None:
        await service.start()
        store.hold()
        asked = service.writer.submit(lambda work: create(work, "b", Create(arms=ARMS)), name="b", alone=True)
        assert await asyncio.to_thread(store.begun.wait, PATIENCE)
        assert not asked.done()
        seconds[0] += 0.3
        with pytest.raises(StoreError, match="the store did not answer in time"):
            await asked
        assert service.writer.admission.requests == 0
        store.open.set()
        await service.stop()

    run_apart(ask())


@pytest.mark.promise(103)
def test_a_store_that_fails_is_logged_when_it_begins_once_per_minute_and_when_it_works_again(tmp_path: Path) -> None:
    seconds, names = [0.0], itertools.count()
    with contextlib.closing(FailingStore(str(tmp_path / "store.db"))) as store:
        writer = Service(store, timer=lambda: seconds[0]).writer

        def call(problem: str | None, calls: int) -> None:
            store.problem = problem
            asked = [functools.partial(create, name=f"b{next(names)}", asked=Create(arms=ARMS)) for _ in range(calls)]
            requests = [WriterRequest(one, alone=True, future=mock.Mock()) for one in asked]
            writer._serve(requests)
            assert [request.error is None for request in requests] == [problem is None] * calls

        with captured_log("failure_log") as lines, captured_log("writer") as others:
            for second in range(125):  # a call per second fails, and maintenance, too
                seconds[0] = second
                call("locked" if second == 90 else "full", calls=1)
                writer._maintain()
            for second in range(125, 200):  # for a moment it seems to work
                seconds[0] = second
                call("full" if second == 130 else None, calls=1)
                writer._maintain()
    assert others == []
    assert [(line["log_level"], line["event"]) for line in lines] == [
        ("error", "store failed"),
        ("error", "store still fails"),
        ("error", "store still fails"),
        ("info", "store works again"),
    ]
    began, first, later, end = lines
    assert (began["problem"], began["calls"]) == ("full", 1)
    assert (first["seconds"], first["calls"]) == (60.0, {"full": 60})
    assert (later["seconds"], later["calls"]) == (120.0, {"full": 59, "locked": 1})
    assert (end["seconds"], end["calls"]) == (131.0, {"full": 125, "locked": 1})


def test_a_line_names_a_limited_number_of_problems() -> None:
    seconds = [0.0]
    failures = FailureLog("store", lambda: seconds[0])
    with captured_log("failure_log") as lines:
        for number in range(1000):
            failures.note_failure(f"problem {number}")
        seconds[0] = LINE_SECONDS
        failures.note_failure("problem 0")
    [_, line] = lines
    assert line["calls"] == {**{f"problem {number}": 1 for number in range(MAX_PROBLEMS)}, OTHERS: 990}


def test_maintenance_that_fails_for_another_reason_is_logged_when_it_fails_and_when_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems: list[str | None] = [None, "odd", "odd", "even", None, None, "odd"]

    def find() -> None:
        if (problem := problems.pop(0)) is not None:
            raise ArithmeticError(problem)

    with contextlib.closing(SqliteStore(str(tmp_path / "store.db"))) as store:
        writer = Service(store).writer
        monkeypatch.setattr(writer._settler, "find", find)
        with captured_log("writer") as lines:
            while problems:
                writer._maintain()
    assert [(line["log_level"], line["event"], line.get("problem")) for line in lines] == [
        ("error", "maintenance failed", "odd"),
        ("error", "maintenance failed", "even"),
        ("info", "maintenance works again", None),
        ("error", "maintenance failed", "odd"),
    ]


def saved_snapshots(store: Store) -> dict[str, int]:
    """Return the event of the latest snapshot of each bandit that has one."""
    rows = store.rows(
        "SELECT b.name, max(s.sequence) FROM snapshots s JOIN bandits b ON b.number = s.bandit GROUP BY 1"
    )
    return {from_bytes(bytes(name)): sequence for name, sequence in rows}


@pytest.mark.promise(91)
def test_the_last_snapshots_save_what_changed_while_there_is_time_and_the_rest_is_in_the_log(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "GROUP_SNAPSHOTS", 2)
    steps = {"few": 1, "many": 9, "some": 5, "most": 20, "same": 0}
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
        for name in steps:
            client.create(name, ARMS)
    seconds, snapshot = [0.0], UnitOfWork.snapshot

    def slow(work: UnitOfWork, bandit_number: int) -> Snapshot:
        seconds[0] += 1.0
        return snapshot(work, bandit_number)

    with running(open_store(sqlite_url), timer=lambda: seconds[0], snapshot_seconds=1.0) as server:
        wait_for(lambda: len(server.service.writer._work.states) == len(steps))
        with talking(server.url) as (client, _):
            for name, count in steps.items():
                for _ in range(count):
                    client.decide(name)
        monkeypatch.setattr(UnitOfWork, "snapshot", slow)
        with captured_log("snapshots") as lines:
            server.stop()
    assert [(line["event"], line["bandits"]) for line in lines] == [("snapshots left out", 2)]
    with contextlib.closing(open_store(sqlite_url)) as store:
        assert saved_snapshots(store) == {"few": 1, "many": 10, "some": 1, "most": 21, "same": 1}
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
        assert {name: client.state(name).step for name in steps} == steps
    assert_replay_agrees(sqlite_url)


def test_a_bandit_that_did_not_change_is_not_saved_again(sqlite_url: str) -> None:
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
        client.create("b", ARMS)
    with running(open_store(sqlite_url)) as server:
        wait_for(lambda: server.service.writer._work.states)
        server.run_in_writer(lambda work: work.store.write([("DELETE FROM snapshots", ())]))
    with contextlib.closing(open_store(sqlite_url)) as store:
        assert saved_snapshots(store) == {}


@contextlib.contextmanager
def held_turns(
    monkeypatch: pytest.MonkeyPatch, made: int, name: str = "long", method: str = "decide"
) -> Iterator[threading.Event]:
    """Hold all long requests at the time of so many calls of a bandit's method; yield the event at which this is so."""
    count, reached, released = 0, threading.Event(), threading.Event()
    call, take = getattr(LoggedState, method), Turns.take

    def counted(state: LoggedState, *arguments: Any, **named: Any) -> EventRow:
        nonlocal count
        if state.settings.name == name:
            count += 1
            if count == made:
                reached.set()
        event: EventRow = call(state, *arguments, **named)
        return event

    def held(turns: Turns) -> LongRun | None:
        if reached.is_set() and not released.wait(0.001):
            return None
        return take(turns)

    monkeypatch.setattr(LoggedState, method, counted)
    monkeypatch.setattr(Turns, "take", held)
    monkeypatch.setattr("dynabandit.service.turns.SLICE_SECONDS", 0.0)
    try:
        yield reached
    finally:
        released.set()


@pytest.mark.promise(291)
def test_other_bandits_are_served_while_many_decisions_are_made_and_nobody_sees_a_part_of_these(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(open_store(store_url)) as server, talking(server.url) as (client, _), ThreadPoolExecutor(4) as pool:
        for name in ("long", "short"):
            client.create(name, ARMS, seed=1)
        with held_turns(monkeypatch, made=10) as reached:
            long = pool.submit(client.decide_many, "long", 100, "key")
            assert reached.wait(PATIENCE)
            behind: list[Future[Any]] = [pool.submit(client.decide, "long"), pool.submit(client.state, "long")]
            assert client.decide("short").step == 1
            wait_for(lambda: len(server.service.writer._parked) == 2)
            assert client.state("short").step == 1
            server.finish_maintenance()
            assert not long.done()
            with contextlib.closing(open_store(store_url)) as reader:
                number = reader.find("long")
                assert number is not None
                assert reader.last_sequence(number) == 1, "all or nothing"
        decisions = long.result(PATIENCE)
        assert [one.step for one in decisions] == list(range(1, 101))
        assert {behind[0].result(PATIENCE).step, behind[1].result(PATIENCE).step} <= {100, 101}
        assert client.decide_many("long", 100, "key") == decisions
        assert client.decide_many("long", 21, "key two")[-1].step == 122
        assert status_of(client.decide_many, "long", 50, "key") == 409
        assert status_of(client.decide_many, "missing", 50) == 404
        client.reward(decisions[50].decision, 1)
    assert_replay_agrees(store_url)


@pytest.mark.promise(291)
@pytest.mark.parametrize("asked", [{"rank": 2}, {"context": {"x": 1.0}}])
def test_other_bandits_are_served_while_a_few_decisions_are_made_that_may_take_long(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    monkeypatch.setattr("dynabandit.service.domain.decisions.DRAWS_AT_ONCE", 50)
    store = open_store(sqlite_url)
    with running(store) as server, talking(server.url) as (client, http), ThreadPoolExecutor(1) as pool:
        client.create("long", ARMS, "ucb", features={"x": "number"} if "context" in asked else None)
        client.create("short", ARMS)
        with held_turns(monkeypatch, made=2) as reached:
            long = pool.submit(http.post, "/v1/bandits/long/decisions", json={"count": 5, **asked})
            assert reached.wait(PATIENCE)
            assert client.decide("short").step == 1
            assert not long.done()
        assert len(long.result(PATIENCE).json()["decisions"]) == 5
    assert_replay_agrees(sqlite_url)


@pytest.mark.promise(291)
def test_many_decisions_are_made_again_if_another_replica_decides_meanwhile(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        running(open_store(postgres_url)) as one,
        running(open_store(postgres_url)) as two,
        talking(one.url) as (client, _),
        talking(two.url) as (other, _),
        ThreadPoolExecutor(1) as pool,
    ):
        client.create("long", ARMS, seed=1)
        with held_turns(monkeypatch, made=10) as reached:
            long = pool.submit(client.decide_many, "long", 100, "key")
            assert reached.wait(PATIENCE)
            assert other.decide("long").step == 1
        decisions = long.result(PATIENCE)
        assert [made.step for made in decisions] == list(range(2, 102))
        assert other.decide_many("long", 100, "key") == decisions
    assert_replay_agrees(postgres_url)


@pytest.mark.promise(291)
def test_many_decisions_for_a_bandit_that_was_created_again_while_they_waited_are_seen_by_nobody_before_their_end(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynabandit.service.turns.MOST_BEGUN", 1)
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _), ThreadPoolExecutor(2) as pool:
        for name in ("long", "late"):
            client.create(name, ARMS, seed=1)
        with held_turns(monkeypatch, made=10, name="late") as late_reached:
            with held_turns(monkeypatch, made=10) as reached:
                long = pool.submit(client.decide_many, "long", 100)
                assert reached.wait(PATIENCE)
                late = pool.submit(client.decide_many, "late", 100)
                wait_for(lambda: server.service.writer._turns._waiting)
                client.delete("late")
                client.create("late", ARMS, seed=1)
            assert late_reached.wait(PATIENCE)
            assert client.decide("late").step == 1
            assert [event.sequence for event in client.events("late")] == [1, 2], "none is missing after kill -9"
        assert len(long.result(PATIENCE)) == 100
        assert [one.step for one in late.result(PATIENCE)] == list(range(2, 102))
    assert_replay_agrees(sqlite_url)


@pytest.mark.promise(291)
def test_other_bandits_are_served_while_many_rewards_are_learned_and_nobody_sees_a_part_of_these(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynabandit.service.domain.rewards.LEARNED_AT_ONCE", 50)
    with running(open_store(store_url)) as server, talking(server.url) as (client, _), ThreadPoolExecutor(2) as pool:
        for name in ("long", "short"):
            client.create(name, ARMS, seed=1)
        made = client.decide_many("long", 100)
        pairs = [(one.decision, float(one.step % 2)) for one in made]
        with held_turns(monkeypatch, made=10, method="append") as reached:
            long = pool.submit(client.reward_many, [*pairs, ("unknown", 1.0), (pairs[0][0], 0.0)])
            assert reached.wait(PATIENCE)
            behind = pool.submit(status_of, client.reward, made[20].decision, 1 - made[20].step % 2)
            short = client.decide("short")
            client.reward_many([(short.decision, 1.0)])
            server.finish_maintenance()
            assert not long.done()
            with contextlib.closing(open_store(store_url)) as reader:
                number = reader.find("long")
                assert number is not None
                assert reader.last_sequence(number) == 101, "all or nothing"
        assert [one.status for one in long.result(PATIENCE)] == [200] * 100 + [404, 409]
        assert behind.result(PATIENCE) == 409
        assert {one.status for one in client.reward_many(pairs, "long")} == {200}
        assert status_of(client.reward_many, [*pairs, (pairs[0][0], 1e9)]) == 422
        assert status_of(client.reward_many, pairs, "missing") == 404
        assert len(list(client.events("long"))) == 201
    assert_replay_agrees(store_url)


def test_rewards_of_large_models_count_for_as_many_as_they_take_time() -> None:
    def state(columns: int, policy: str = "lin-ts") -> Any:
        features = {f"f{number}": "number" for number in range(columns)} if columns else None
        bandit = Bandit(policy, ["a", "b"], seed=1, features=features)
        return mock.Mock(bandits=[bandit])

    assert learning_cost(state(0, "ts")) == learning_cost(state(5)) == 1
    assert learning_cost(state(200)) > 10 * learning_cost(state(40))
    work: Any = mock.Mock(states={1: state(0, "ts"), 2: state(40)})
    assert not takes_long(work, [1] * 400)
    assert takes_long(work, [1] * 401)
    assert takes_long(work, [2] * 400)
    assert not takes_long(work, [2] * 5 + [3])


@pytest.mark.promise(291)
def test_many_decisions_that_fail_in_the_middle_leave_nothing(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _), ThreadPoolExecutor(1) as pool:
        client.create("long", ARMS, seed=1)
        with held_turns(monkeypatch, made=10) as reached:
            long = pool.submit(status_of, client.decide_many, "long", 100, "key")
            assert reached.wait(PATIENCE)
            monkeypatch.setattr(LoggedState, "decide", mock.Mock(side_effect=MemoryError("none is left")))
        assert long.result(PATIENCE) == 500
        monkeypatch.undo()
        assert client.state("long").step == 0
        assert [one.step for one in client.decide_many("long", 30, "key")] == list(range(1, 31))
    assert_replay_agrees(sqlite_url)


@pytest.mark.promise(291)
def test_a_service_that_stops_ends_what_has_begun(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadPoolExecutor(1) as pool:
        with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
            client.create("long", ARMS, seed=1)
            with held_turns(monkeypatch, made=10) as reached:
                long = pool.submit(client.decide_many, "long", 100, "key")
                assert reached.wait(PATIENCE)
                server.server.should_exit = True
            assert len(long.result(PATIENCE)) == 100
    assert_replay_agrees(sqlite_url)


@pytest.mark.promise(91)
def test_a_long_call_that_was_given_up_does_not_keep_the_service_from_stopping(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ThreadPoolExecutor(1) as pool, held_turns(monkeypatch, made=10) as reached:
        with (
            running(open_store(sqlite_url), limits=LONG_LIMITS._replace(shutdown=1)) as server,
            talking(server.url) as (client, _),
        ):
            client.create("long", ARMS, seed=1)
            long = pool.submit(client.decide_many, "long", 100)
            assert reached.wait(PATIENCE)
            server.stop()
            assert isinstance(long.exception(PATIENCE), ServiceError)
        with contextlib.closing(open_store(sqlite_url)) as store:
            assert [(event.kind, event.sequence) for event in store.log(store.find("long") or 0)] == [("create", 1)]
    assert_replay_agrees(sqlite_url)


def steps(name: str, done: list[str], count: int = 3) -> Callable[[Any], Generator[None, None, str]]:
    def run(work: Any) -> Generator[None, None, str]:
        for _ in range(count):
            done.append(name)
            yield
        return name

    return run


def test_bandits_have_their_turns_in_order_and_requests_of_one_bandit_follow_each_other() -> None:
    done, ended = list[str](), list[str]()
    work = mock.Mock(states={})
    turns = Turns(work, timer=mock.Mock(side_effect=itertools.count()))
    asked = (("a", 1), ("a again", 1), ("b", 2), ("c", 3), ("gave up", 4))
    requests = [WriterRequest(steps(name, done), bandits_needed={bandit}) for name, bandit in asked]
    work.states.update((bandit, mock.Mock(sequence=1)) for _, bandit in asked)
    requests[-1].abandoned = True
    turns.add(requests)
    while turns:
        run = turns.take()
        if run is not None:
            ended.append(run.request.result)
    # Each takes three slices, and a fourth in which it ends
    assert done == ["a", "b", "c"] * 3 + ["a again"] * 3
    assert ended == ["a", "b", "c", "a again"]
    assert not turns.busy


@pytest.mark.promise(291)
def test_a_caller_with_many_functions_has_as_many_turns_as_one_with_few() -> None:
    done = list[str]()
    work = mock.Mock(states={bandit: mock.Mock(sequence=1) for bandit in range(200)})
    turns = Turns(work, timer=mock.Mock(side_effect=itertools.count()))
    many = [WriterRequest(steps(f"many {bandit}", done), bandits_needed={bandit}, caller="m") for bandit in range(100)]
    turns.add(many)
    for _ in range(50):
        turns.take()
    before, most = len(done), len(turns._begun)
    few = [WriterRequest(steps(name, done), bandits_needed={100}, caller="f") for name in ("few", "few again")]
    turns.add([*few, WriterRequest(steps("other", done), bandits_needed={0}, caller="o")])
    for _ in range(60):
        turns.take()
    places = [place for place, name in enumerate(done[before:]) if name in ("few", "few again")]
    # One slice of each of the two others between two of its own, twice as many where the first one ends
    most_between = max(b - a for a, b in itertools.pairwise(places))
    assert (len(places), places[0] <= 2, most_between <= 5) == (6, True, True), places
    assert done.count("other") == 3, "nor does it keep another caller from the bandits for which it waits"
    assert most == MOST_BEGUN


@pytest.mark.promise(291)
def test_requests_of_several_callers_for_one_bandit_have_their_turns_in_the_order_of_the_callers() -> None:
    done = list[str]()
    turns = Turns(mock.Mock(states={1: mock.Mock(sequence=1)}), timer=mock.Mock(side_effect=itertools.count()))
    asked = (("a", "a"), ("a two", "a"), ("a three", "a"), ("b", "b"), ("b two", "b"))
    turns.add([WriterRequest(steps(name, done, 1), bandits_needed={1}, caller=caller) for name, caller in asked])
    while turns:
        turns.take()
    assert done == ["a", "b", "a two", "b two", "a three"]
