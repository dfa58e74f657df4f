"""Linearizability: concurrent requests have an order that explains every response, and it is the log's.

A history is linearizable if its calls can be put in one order in which each takes effect between its request and
its answer, and a plain model gives the same answers. The log is such an order, or it is not: each call is found
in it, calls that did not overlap must be in the order of the clock, and the model walks along it.
"""

import contextlib
import functools
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from dynabandit.client import Client, ServiceError
from dynabandit.service.api_types import Decision, Event
from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.names import read_public_id
from dynabandit.service.stores import open_store
from tools.harness import ManualClock, Running, assert_replay_agrees
from tools.postgres_server import patient
from tools.waiting import PATIENCE

LONG = bool(os.environ.get("DYNABANDIT_LONG_FAULTS"))
ARMS = ["a", "b", "c"]
POLICIES = ["ucb", "ts", "aff-ots", "eps-greedy"]
CONTEXT = {"hour": 7}
SETTINGS: dict[str, Any] = {
    "policy": "ucb", "features": {"hour": "number"}, "sticky_for": 3600, "holdout": {"share": 0.3, "control": "b"},
}  # fmt: skip
fresh_names = itertools.count()
Operation = tuple[Any, ...]

OPERATIONS = st.one_of(
    st.tuples(st.just("decide"), st.integers(1, 3), st.none() | st.sampled_from(["k1", "k2"])),
    st.tuples(st.just("assign"), st.sampled_from(["u1", "u2"])),
    st.tuples(st.just("reward"), st.integers(1, 6), st.sampled_from([0.0, 1.0])),
    st.tuples(st.just("pause"), st.sampled_from(ARMS)),
    st.tuples(st.just("resume"), st.sampled_from(ARMS)),
    st.tuples(st.just("add"), st.sampled_from(["d", "e"])),
    st.tuples(st.just("swap"), st.sampled_from(POLICIES)),
    st.tuples(st.just("state")),
)


class Done(NamedTuple):
    """A call with the times of its request and its answer."""

    operation: Operation
    asked: float
    answered: float
    status: int
    result: Any


def call(client: Client, name: str, id_of: Callable[[int], str], operation: Operation) -> Any:
    kind, *arguments = operation
    if kind == "decide":
        return client.decide_many(name, *arguments, context=CONTEXT)
    if kind == "assign":
        return client.decide(name, unit=arguments[0], context=CONTEXT)
    if kind == "reward":
        return client.reward(id_of(arguments[0]), arguments[1])
    if kind in ("pause", "resume"):
        return client.change_arm(name, arguments[0], paused=kind == "pause")
    if kind == "add":
        return client.add_arm(name, arguments[0])
    if kind == "swap":
        return client.set_policy(name, arguments[0])
    return client.state(name)


def run_program(servers: list[Running], programs: list[list[Operation]]) -> tuple[str, list[Done]]:
    """Run each program in a thread of its own, all at once, over the servers in turn."""
    name = f"b{next(fresh_names)}"
    with Client(servers[0].url, timeout=PATIENCE) as client:
        number = read_public_id(client.create(name, ARMS, seed=5, **SETTINGS).id)
    with contextlib.closing(servers[0].store.reader()) as store:
        id_of = functools.partial(store.decision_ids().make, number or 0)
    history: list[Done] = []
    start = threading.Barrier(len(programs))

    def work(number: int, operations: list[Operation]) -> None:
        with Client(servers[number % len(servers)].url, timeout=PATIENCE, tries=1) as client:
            start.wait(PATIENCE)
            for operation in operations:
                asked, status, result = time.monotonic(), 200, None
                try:
                    result = call(client, name, id_of, operation)
                except ServiceError as error:
                    status = error.status
                history.append(Done(operation, asked, time.monotonic(), status, result))

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(programs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    return name, history


class Model:
    """What a bandit is to its callers, without any policy."""

    def __init__(self) -> None:
        self.arms = list(ARMS)
        self.paused: set[str] = set()
        self.step = 0
        self.rewards: dict[int, float] = {}
        self.keys: dict[str, list[str]] = {}
        self.units: dict[str, str] = {}  # -> arm

    def take(self, event: Event) -> None:
        if event.kind == "decision":
            self.step += 1
            assert event.step == self.step
            assert event.arm in self.arms
            assert event.arm not in self.paused, "a paused arm was chosen"
            if event.unit is not None:
                before = self.units.get(event.unit)
                assert before is None or before in self.paused, "a unit got a second decision"
                self.units[event.unit] = event.arm
        elif event.kind == "reward":
            assert event.step is not None
            assert event.reward is not None
            assert event.step <= self.step
            assert event.step not in self.rewards, "a reward counted twice"
            self.rewards[event.step] = event.reward
        elif event.kind == "arm":
            change = event.change or {}
            if change.get("add"):
                assert change["arm"] not in self.arms
                self.arms.append(change["arm"])
            elif change["paused"]:
                self.paused.add(change["arm"])
            else:
                self.paused.discard(change["arm"])


def place(done: Done, events: list[Event]) -> tuple[int, int]:
    """Return the first and the last sequence number at which a call can have taken effect."""
    kind = done.operation[0]
    last = events[-1].sequence
    if kind == "decide" and done.status == 200:
        found = {event.decision: event for event in events if event.kind == "decision"}
        mine = [found[one.decision] for one in done.result]
        assert [one.arm for one in done.result] == [event.arm for event in mine]
        key = done.operation[2]
        if key is not None:  # the first to use a key takes effect, the others read
            assert mine[0].key == key
            return mine[-1].sequence, last
        return mine[-1].sequence, mine[-1].sequence
    if kind == "assign" and done.status == 200:
        return place_assignment(done, events)
    if kind == "assign":
        assert done.status == 409
        return all_paused(events), last
    if kind == "decide":
        assert done.status == 409
        if done.operation[2] is not None and any(event.key == done.operation[2] for event in events):
            return 1, last
        return all_paused(events), last
    if kind == "reward":
        return place_reward(done, events)
    assert done.status == 200, done
    sequence = done.result.sequence
    if kind in ("pause", "resume"):  # an event, or the arm was so already
        model = Model()
        for event in events[:sequence]:
            model.take(event)
        assert (done.operation[1] in model.paused) == (kind == "pause")
    return sequence, sequence


def place_assignment(done: Done, events: list[Event]) -> tuple[int, int]:
    """A new decision for a unit takes effect at its event; a repeated one until the next event for the unit."""
    own = [event for event in events if event.kind == "decision" and event.unit == done.operation[1]]
    [place] = [place for place, event in enumerate(own) if event.decision == done.result.decision]
    found = own[place]
    assert (done.result.arm, done.result.holdout) == (found.arm, found.holdout)
    assert found.arm == "b" or not found.holdout
    if not done.result.repeated:
        return found.sequence, found.sequence
    return found.sequence, own[place + 1].sequence - 1 if place + 1 < len(own) else events[-1].sequence


def all_paused(events: list[Event]) -> int:
    """Return the first sequence number at which no arm could be chosen."""
    model = Model()
    for event in events:
        model.take(event)
        if model.paused >= set(model.arms):
            return event.sequence
    raise AssertionError("a decision was refused though an arm could be chosen")


def place_reward(done: Done, events: list[Event]) -> tuple[int, int]:
    _, step, value = done.operation
    settled = [event for event in events if event.kind == "reward" and event.step == step]
    decided = [event for event in events if event.kind == "decision" and event.step == step]
    if done.status == 404:
        return 1, decided[0].sequence - 1 if decided else events[-1].sequence
    assert len(settled) == 1
    assert (settled[0].reward == value) == (done.status == 200), done
    return settled[0].sequence, events[-1].sequence


def check_history(history: list[Done], events: list[Event]) -> None:
    model, at = Model(), {}
    for event in events:
        model.take(event)
        at[event.sequence] = (model.step, frozenset(model.paused), len(model.arms))
    fit(history, events)
    for done in history:
        if done.operation[0] == "state":
            step, paused, arms = at[done.result.sequence]
            assert done.result.step == step
            assert {arm.arm for arm in done.result.arms if arm.paused} == paused
            assert len(done.result.arms) == arms


def fit(history: list[Done], events: list[Event]) -> None:
    """Give each call the earliest place that the calls answered before it leave; it must not be too late."""
    placed: list[tuple[Done, int]] = []
    for done in sorted(history, key=lambda one: one.asked):
        first, last = place(done, events)
        earliest = max([first, *(at for earlier, at in placed if earlier.answered < done.asked)])
        assert earliest <= last, (done, first, last, earliest)
        placed.append((done, earliest))


def check_hashes(url: str, history: list[Done]) -> None:
    """Every state that was shown must be the state of the log at that place."""
    seen = {done.result.sequence: done.result for done in history if done.operation[0] == "state"}
    if not seen:
        return
    store = open_store(url)
    number = store.find_log(next(iter(seen.values())).name, None)
    state = LoggedState(number, store)
    for row in store.log(number):
        state.apply(row)
        if row.sequence in seen:
            assert state.state_hash() == seen[row.sequence].state_hash
    store.close()


@pytest.fixture(scope="module", params=["one service", "two replicas"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, list[Running]]]:
    if request.param == "one service":
        url = f"sqlite:///{tmp_path_factory.mktemp('lin')}/store.db"
    else:
        url = patient(request.getfixturevalue("postgres_server"))
    servers = [Running(open_store(url)) for _ in range(1 if request.param == "one service" else 2)]
    yield url, servers
    for server in servers:
        server.stop()
    assert_replay_agrees(url)


PROGRAMS = st.lists(st.lists(OPERATIONS, min_size=2, max_size=7), min_size=2, max_size=4)


@pytest.mark.promise(23)
@settings(max_examples=200 if LONG else 12, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs=PROGRAMS)
def test_concurrent_histories_are_linearizable(
    served: tuple[str, list[Running]], programs: list[list[Operation]]
) -> None:
    url, servers = served
    name, history = run_program(servers, programs)
    with Client(servers[-1].url, timeout=PATIENCE) as client:
        events = list(client.events(name))
    check_history(history, events)
    check_hashes(url, history)


class OneCaller(RuleBasedStateMachine):
    """One caller, a clock and restarts, against a model that knows the documented answers."""

    decisions = Bundle("decisions")
    folder: Any = None

    @initialize()
    def begin(self) -> None:
        self.url = f"sqlite:///{self.folder}/machine{next(fresh_names)}.db"
        self.clock = ManualClock()
        self.open()
        self.client.create("b", ARMS, seed=3, reward_window=10, default_reward=0, sticky_for=8)
        self.model: dict[str, tuple[float, float | None]] = {}  # decision -> time, reward
        self.paused: set[str] = set()
        self.keys: dict[str, Decision] = {}
        self.units: dict[str, tuple[float, Decision]] = {}

    def open(self) -> None:
        self.server = Running(open_store(self.url), clock=self.clock)
        self.client = Client(self.server.url, timeout=PATIENCE)

    @rule(target=decisions, key=st.none() | st.sampled_from("xyz"))
    def decide(self, key: Any) -> str:
        if len(self.paused) == len(ARMS) and key not in self.keys:
            with pytest.raises(ServiceError, match="409"):
                self.client.decide("b", key)
            return "000000000000-1"
        made = self.client.decide("b", key)
        if key is not None and key in self.keys:
            assert made == self.keys[key]
            return made.decision
        if key is not None:
            self.keys[key] = made
        assert made.step == len(self.model) + 1
        assert made.arm not in self.paused
        self.model[made.decision] = (self.clock.seconds, None)
        return made.decision

    @rule(target=decisions, unit=st.sampled_from("uv"))
    def assign(self, unit: str) -> str:
        if len(self.paused) == len(ARMS):
            with pytest.raises(ServiceError, match="409"):
                self.client.decide("b", unit=unit)
            return "000000000000-1"
        made = self.client.decide("b", unit=unit)
        decided, before = self.units.get(unit, (0.0, None))
        keeps = before is not None and self.clock.seconds - decided < 8 and before.arm not in self.paused
        assert made.repeated == keeps
        if before is not None and keeps:
            assert (made.decision, made.arm) == (before.decision, before.arm)
            return made.decision
        assert made.step == len(self.model) + 1
        assert made.arm not in self.paused
        self.model[made.decision] = (self.clock.seconds, None)
        self.units[unit] = (self.clock.seconds, made)
        return made.decision

    @rule(decision=decisions, value=st.sampled_from([0.0, 0.5, 1.0]))
    def reward(self, decision: Any, value: float) -> None:
        expected = 404
        if decision in self.model:
            time, known = self.model[decision]
            if known is not None:
                expected = 200 if known == value else 409
            else:
                expected = 410 if self.clock.seconds - time > 10 else 200
        try:
            self.client.reward(decision, value)
            status = 200
        except ServiceError as error:
            status = error.status
        assert status == expected
        if status == 200:
            self.model[decision] = (self.model[decision][0], value)

    @rule(arm=st.sampled_from(ARMS), paused=st.booleans())
    def pause(self, arm: str, paused: bool) -> None:
        self.client.change_arm("b", arm, paused=paused)
        (self.paused.add if paused else self.paused.discard)(arm)

    @rule(policy=st.sampled_from(POLICIES))
    def swap(self, policy: str) -> None:
        self.client.set_policy("b", policy)

    @rule(seconds=st.sampled_from([1.0, 6.0]))
    def wait(self, seconds: float) -> None:
        self.clock.seconds += seconds

    @rule()
    def restart(self) -> None:
        before = self.client.state("b")
        self.client.close()
        self.server.stop()
        self.open()
        after = self.client.state("b")
        assert (after.step, [arm.paused for arm in after.arms]) == (
            before.step,
            [arm.paused for arm in before.arms],
        )

    @invariant()
    def rewards_are_those_that_were_acknowledged(self) -> None:
        if not hasattr(self, "client"):
            return
        given = {event.decision: event.reward for event in self.client.events("b") if event.kind == "reward"}
        assert given == {one: reward for one, (_, reward) in self.model.items() if reward is not None}

    @invariant()
    def decisions_are_learned_in_their_order_and_those_after_them_are_held(self) -> None:
        if not hasattr(self, "client"):
            return
        learned = [(event.change or {})["to"] for event in self.client.events("b") if event.kind == "learn"]
        assert learned == sorted(set(learned))
        state = self.client.state("b")
        assert state.held <= state.step - max(learned, default=0), "maintenance may have learned more since"
        for one, (decided, _) in self.model.items():
            assert int(one.split("-")[1]) > max(learned, default=0) or self.clock.seconds - decided > 10, "too early"

    def teardown(self) -> None:
        if hasattr(self, "client"):
            self.client.close()
            self.server.stop()
            assert_replay_agrees(self.url)


@pytest.mark.promise(23, 24)
def test_one_caller_gets_the_documented_answers_through_restarts(tmp_path: Path) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    OneCaller.folder = tmp_path
    run_state_machine_as_test(
        OneCaller,
        settings=settings(
            max_examples=100 if LONG else 5,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
