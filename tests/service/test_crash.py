"""kill -9 at any moment under load loses nothing that was acknowledged, and nothing happens twice."""

import contextlib
import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dynabandit as db
from dynabandit.client import Client, ServiceError
from dynabandit.service.api_types import Decision, Event
from tools import decider_process
from tools.harness import ARMS, PRODUCT, assert_replay_agrees, process, talking, visitor
from tools.proxy import address
from tools.waiting import PATIENCE, wait_for

LONG = bool(os.environ.get("DYNABANDIT_LONG_FAULTS"))
KILLS = 20 if LONG else 1
CALLERS = 6


class Caller(threading.Thread):
    """Decides and rewards as fast as it can, and keeps what was acknowledged and what was asked."""

    def __init__(self, number: int, url: str, killed: threading.Event, has_units: bool) -> None:
        super().__init__(daemon=True)
        self.number, self.url, self.killed, self.has_units = number, url, killed, has_units
        self.asked: dict[str, dict[str, Any]] = {}  # key -> context and unit
        self.keys: dict[str, Decision | None] = {}  # key -> the decision that was acknowledged, or None
        self.rewards: dict[str, tuple[float, bool]] = {}  # decision -> reward, whether acknowledged
        self.acknowledged = 0

    def run(self) -> None:
        with Client(self.url, tries=1, timeout=PATIENCE) as client:
            turn = 0
            while not self.killed.is_set():
                turn += 1
                key = f"{self.number}-{turn}-{random.random()}"
                self.keys[key] = None
                # Two decisions for each unit, of which the second is the first one
                self.asked[key] = visitor(f"{self.number}-{turn // 2}", turn // 2) if self.has_units else {}
                try:
                    decision = client.decide("b", key=key, **self.asked[key])
                    self.keys[key] = decision
                    self.acknowledged += 1
                    reward = float(decision.step % 2)
                    self.rewards[decision.decision] = (reward, False)
                    client.reward(decision.decision, reward)
                    self.rewards[decision.decision] = (reward, True)
                    self.acknowledged += 1
                except ServiceError:
                    return


def any_alive(callers: list[Caller]) -> bool:
    return any(caller.is_alive() for caller in callers)


def kill_under_load(url: str, seed: int, **settings: Any) -> list[Caller]:
    """Kill the server when a random number of calls was acknowledged, at whatever it is doing then."""
    killed = threading.Event()
    with process(url) as server, address() as known:
        known.lead_to(server.url)
        with Client(server.url, timeout=PATIENCE) as client:
            client.create("b", ARMS, seed=1, **settings)
        callers = [Caller(number, known.url, killed, "sticky_for" in settings) for number in range(CALLERS)]
        for caller in callers:
            caller.start()
        enough = random.Random(seed).randrange(100, 400)
        wait_for(lambda: sum(caller.acknowledged for caller in callers) >= enough or not any_alive(callers))
        assert any_alive(callers)
        known.lead_to(None)  # another program may get the port of this service
        server.kill()
        killed.set()
        for caller in callers:
            caller.join(PATIENCE)
            assert not caller.is_alive()
    return callers


@pytest.mark.promise(23, 24, 92)
@pytest.mark.parametrize(
    "settings",
    [PRODUCT, {"reward_window": 3600, "default_reward": 0}],
    ids=["at once, with contexts, units and a holdout", "settled"],
)
def test_kill_9_under_load_loses_and_doubles_nothing(sqlite_url: str, settings: dict[str, Any]) -> None:
    for seed in range(KILLS):
        callers = kill_under_load(sqlite_url, seed, **settings)
        with process(sqlite_url) as server, talking(server.url) as (client, http):
            events = list(client.events("b", limit=10_000))
            check_acknowledged(callers, events)
            finish(client, callers)
            check_acknowledged(callers, list(client.events("b", limit=10_000)))
            assert http.get("/readyz").status_code == 200
            if "reward_window" in settings:  # with ten rewards the settling age is known, and all is learned soon
                client.reward_many([(one.decision, 1.0) for one in client.decide_many("b", 100)])
                wait_for(lambda: client.state("b").held == 0)
            server.kill()
        assert_replay_agrees(sqlite_url)


def check_acknowledged(callers: list[Caller], events: list[Event]) -> None:
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    decisions = [event for event in events if event.kind == "decision"]
    decided, by_id = {event.key: event for event in decisions}, {event.decision: event for event in decisions}
    rewarded = [(event.decision, event.reward) for event in events if event.kind == "reward"]
    without_key = sum(event.key is None for event in decisions)  # further decisions of a call for many
    assert len(decided) == len(decisions) - max(without_key - 1, 0), "no decision twice"
    units = [event.unit for event in decisions if event.unit is not None]
    assert len(set(units)) == len(units), "no second decision for a unit"
    assert len({decision for decision, _ in rewarded}) == len(rewarded), "no reward twice"
    for caller in callers:
        for key, decision in caller.keys.items():
            if decision is not None:
                logged = by_id[decision.decision] if decision.repeated else decided[key]
                asked = caller.asked[key]
                assert (logged.decision, logged.arm, logged.step, logged.unit, logged.context, logged.holdout) == (
                    decision.decision,
                    decision.arm,
                    decision.step,
                    asked.get("unit"),
                    asked.get("context"),
                    decision.holdout,
                )
        for identity, (reward, acknowledged) in caller.rewards.items():
            if acknowledged:
                assert (identity, reward) in rewarded


def finish(client: Client, callers: list[Caller]) -> None:
    """Try again whatever got no answer, as a client would: every key and every reward must be taken once."""
    for caller in callers:
        for key, before in caller.keys.items():
            decision = client.decide("b", key=key, **caller.asked[key])
            assert before is None or before == decision
            caller.keys[key] = decision
            reward = caller.rewards.get(decision.decision, (float(decision.step % 2), False))[0]
            client.reward(decision.decision, reward)
            caller.rewards[decision.decision] = (reward, True)


@pytest.mark.promise(28, 92)
@pytest.mark.skipif(not LONG, reason="windows end ten seconds later after a start")
def test_kill_9_while_windows_end_settles_each_decision_once(store_url: str) -> None:
    for number in range(3):
        with process(store_url) as server, talking(server.url) as (client, _):
            if number == 0:
                client.create("b", ARMS, "ucb", seed=1, reward_window=1, default_reward=0)
            for _ in range(10):
                client.decide_many("b", 1000)
            before = client.state("b").sequence
            wait_for(lambda client=client, before=before: client.state("b").sequence > before)  # type: ignore[misc]
            server.kill()
    with process(store_url) as server, talking(server.url) as (client, _):
        wait_for(lambda: client.state("b").held == 0)
        wait_for(lambda: len(settled_steps(client)) == 30_000)
        assert sorted(settled_steps(client)) == list(range(1, 30_001))
    assert_replay_agrees(store_url)


def settled_steps(client: Client) -> list[int]:
    return [event.step for event in client.events("b", kind="reward", limit=10_000) if event.step is not None]


class DeciderProcess:
    """A local decider in a process of its own; `durable` has the arms of the decisions that it has flushed."""

    def __init__(self, url: str, folder: Path) -> None:
        command = [sys.executable, decider_process.__file__, url, str(folder), str(PATIENCE)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.durable: dict[str, str] = {}

    def _lines(self) -> Iterator[str]:
        assert self.process.stdout is not None
        return iter(self.process.stdout.readline, "")

    def read(self, decisions: int) -> None:
        """Wait for more durable decisions."""
        wanted = len(self.durable) + decisions
        for line in self._lines():
            self.durable.update(json.loads(line))
            if len(self.durable) >= wanted:
                return
        raise AssertionError("the decider has ended")

    def close(self) -> None:
        """Kill it, and read what it has printed."""
        self.process.kill()
        lines = list(self._lines())
        self.durable.update(pair for line in lines if line.endswith("\n") for pair in json.loads(line))
        self.process.communicate()


@pytest.mark.promise(187)
def test_kill_9_of_a_decider_and_of_the_service_loses_and_doubles_nothing(tmp_path: Path) -> None:
    for seed in range(KILLS):
        url, folder, turns = f"sqlite:///{tmp_path}/{seed}.db", tmp_path / f"local{seed}", random.Random(seed)
        with contextlib.ExitStack() as stack:
            with process(url) as server, talking(server.url) as (client, _):
                client.create("b", ARMS, "ucb", seed=1)
                known = stack.enter_context(address())
                known.lead_to(server.url)
                decider = stack.enter_context(contextlib.closing(DeciderProcess(known.url, folder)))
                decider.read(turns.randrange(20, 1000))
                known.lead_to(None)  # another program may get the port of this service
                server.kill()
            decider.read(turns.randrange(20, 1000))  # without the service
            with process(url) as server, talking(server.url) as (client, _):
                before = client.state("b").step
                known.lead_to(server.url)
                wait_for(lambda client=client, before=before: client.state("b").step > before)  # type: ignore[misc]
                decider.read(turns.randrange(1, 1000))
                known.lead_to(None)
                server.kill()
        with process(url) as server, talking(server.url) as (client, _):
            with db.LocalDecider(server.url, "b", folder, timeout=PATIENCE) as heir:
                heir.sync()
                assert (heir.waiting, heir.rejected) == (0, 0)
            check_durable(decider.durable, list(client.events("b", limit=10_000)))
            server.kill()
        assert_replay_agrees(url)


def check_durable(durable: dict[str, str], events: list[Event]) -> None:
    """Each decision that was durable at the decider is in the log once, with its arm and its reward."""
    logged = {f"{event.decider}-{event.local_step}": event for event in events if event.kind == "decision"}
    assert len(logged) == sum(event.kind == "decision" for event in events), "no decision twice"
    rewards = {event.step: event.reward for event in events if event.kind == "reward"}
    assert durable.items() <= {decision: event.arm for decision, event in logged.items()}.items()
    assert all(rewards[logged[decision].step] == float(arm == "blue") for decision, arm in durable.items())
