"""Compaction: old events are removed, and states, rewards, replays and later changes are what they would have been."""

import contextlib
import itertools
import lzma
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dynabandit.client import Client
from dynabandit.service import compaction, policy_change
from dynabandit.service.clock import Clock
from dynabandit.service.command_line import app
from dynabandit.service.domain.events import KINDS
from dynabandit.service.domain.log_start import read_start
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.domain.warm_start import WarmStart, warm_up
from dynabandit.service.loading import Loader
from dynabandit.service.projections.bandit_history import BanditHistory
from dynabandit.service.stores import Store, open_store
from dynabandit.service.verify import verify
from service.stores.test_schema import STORE_OF_0_1_0
from tools.harness import ARMS, ManualClock, Running, failed_command, running, status_of, talking
from tools.waiting import PATIENCE, wait_for

AT_ONCE: dict[str, Any] = {}
SETTLED = {"reward_window": 100.0, "default_reward": 0.0}
ROUNDS = 300 if os.environ.get("DYNABANDIT_LONG_FAULTS") else 10
OLD, NEW = 1000.0, 2000.0  # wall-clock times


class Shop:
    """A running service whose wall clock is set by the test, and a bandit "b"."""

    def __init__(self, url: str, server: Running, client: Client, clock: ManualClock) -> None:
        self.url, self.server, self.client, self.clock = url, server, client, clock
        self.wall = OLD
        clock.wall = lambda: self.wall

    def learn(self, steps: int, every: int = 3) -> list[str]:
        """Decide, reward some decisions, and return those without a reward."""
        made = self.client.decide_many("b", steps)
        self.client.reward_many([(one.decision, float(one.arm == "blue")) for one in made[::every]])
        return [one.decision for place, one in enumerate(made) if place % every]

    def compact(self, before: float) -> compaction.Compacted:
        with contextlib.closing(open_store(self.url)) as store:
            [result] = compaction.compact(store, before, self.wall)
        return result

    def read(self, statement: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(open_store(self.url)) as store:
            return store.rows(statement)


@contextlib.contextmanager
def shop_on(url: str, clock: ManualClock) -> Iterator[Shop]:
    with running(open_store(url), clock=clock) as server, talking(server.url) as (client, _):
        yield Shop(url, server, client, clock)


def drop_snapshots(url: str) -> None:
    with contextlib.closing(open_store(url)) as store:
        store.write([("DELETE FROM snapshots", ()), ("DELETE FROM histories", ())])


def check_replay(url: str, start: int) -> str:
    """Replay the log from its start, and return the hash of the state."""
    with contextlib.closing(open_store(url)) as store:
        [result] = verify(store)
    assert (result.problem, result.start) == (None, start)
    return result.state_hash


@pytest.mark.promise(5, 128)
def test_the_idempotency_key_of_a_decision_that_stays_is_kept(store_url: str, clock: ManualClock) -> None:
    with shop_on(store_url, clock) as shop:
        client = shop.client
        client.create("b", ARMS, seed=1)
        kept, removed = client.decide("b", key="kept"), client.decide("b", key="removed")
        several = client.decide_many("b", 3, key="several")
        for decision in (removed, several[1]):
            client.reward(decision.decision, 1)
        shop.wall = NEW
        shop.learn(10)
        assert shop.compact(NEW).removed > 0
        assert client.decide("b", key="kept") == kept
        assert client.decide("b", key="removed").step == 16
        assert [one.step for one in client.decide_many("b", 3, key="several")] == [17, 18, 19]
        assert client.decide("b", key="kept") == kept


@pytest.mark.promise(127, 166)
def test_the_metrics_of_a_decision_that_stays_are_kept_and_count_once(store_url: str, clock: ManualClock) -> None:
    rules = {metric: {"bound": 5.0, "direction": "max", "range": [0, 10]} for metric in ("latency", "cost")}
    with shop_on(store_url, clock) as shop:
        client = shop.client

        def counts() -> list[int]:
            return [sum(arm.count for arm in one.arms) for one in client.state("b").guardrails]

        def metrics() -> list[tuple[Any, ...]]:
            return shop.read("SELECT key FROM events WHERE kind = 'metric' ORDER BY sequence")

        client.create("b", ARMS, seed=1, guardrails=rules)
        kept, removed = client.decide_many("b", 2)
        for decision in (removed, kept):
            client.metrics(decision.decision, {"latency": 1, "cost": 2})
        client.reward(removed.decision, 1)
        shop.wall = NEW
        shop.learn(3)
        assert shop.compact(NEW).removed == 3, "a decision and its two metrics, but not the last event"
        assert metrics() == [("metric\n1\nlatency",), ("metric\n1\ncost",)]
        client.metrics(kept.decision, {"latency": 1, "cost": 2})
        assert counts() == [2, 2]
        assert status_of(client.metrics, kept.decision, {"latency": 3}) == 409
        assert status_of(client.metrics, removed.decision, {"latency": 1}) == 410
        client.reward(kept.decision, 1)
        shop.wall = NEW + 10
        shop.learn(3)
        shop.compact(NEW + 1)
        assert metrics() == []
        state = client.state("b")
    drop_snapshots(store_url)
    assert check_replay(store_url, state.sequence - 4) == state.state_hash


@pytest.mark.promise(120, 124, 125, 127, 128, 131)
@pytest.mark.parametrize("settings", [AT_ONCE, SETTLED], ids=["at once", "settled"])
def test_a_compacted_log_leads_to_the_same_state_and_keeps_what_is_still_needed(
    store_url: str, clock: ManualClock, settings: dict[str, Any]
) -> None:
    with shop_on(store_url, clock) as shop:
        client = shop.client
        client.create("b", ARMS, seed=1, **settings)
        assert shop.compact(OLD) == ("b", 0, 0, None), "there is nothing to remove yet"
        rewarded = client.decide("b", key="old")
        client.reward(rewarded.decision, 1)
        shop.learn(60)
        clock.seconds += 60
        client.add_arm("b", "new")
        open_decisions = shop.learn(30)
        if settings:  # the first decisions are learned, and closed; the others are held
            clock.seconds += 50
            wait_for(lambda: client.state("b").held == 30)
            wait_for(lambda: shop.read("SELECT count(*) FROM events WHERE kind = 'close'") == [(40,)])
        shop.wall = NEW
        shop.learn(10)
        shop.server.finish_maintenance()  # it learns from these rewards when rewards come
        client.reward(open_decisions[0], 1)
        before = client.state("b")
        done = shop.compact(NEW)
        assert done.problem is None
        assert done.removed > 59
        assert client.state("b") == before
        assert check_replay(store_url, done.start) == before.state_hash
        assert shop.compact(NEW).removed == 0
        kinds = [event.kind for event in client.events("b") if event.sequence <= done.start]
        assert [kind for kind in kinds if kind in KINDS["change"]] == ["create", "arm"], "changes are kept"
        assert [status_of(client.reward, rewarded.decision, value) for value in (1, 0)] == [410, 410]
        assert [status_of(client.reward, one, 1) for one in open_decisions] == [200] * 20
        assert client.decide("b", key="old").step == 102, "keys of removed decisions are forgotten"
        assert next(iter(client.export("b", draws=10))).step == 92
        assert client.create("b", ARMS, seed=1, **settings).sequence == client.state("b").sequence
        if settings:
            clock.seconds += 120
            wait_for(lambda: client.state("b").held == 0)
        last = client.state("b")
    drop_snapshots(store_url)
    assert check_replay(store_url, done.start) == last.state_hash
    with shop_on(store_url, clock) as shop:
        assert shop.client.state("b") == last, "a start needs no snapshot"


@pytest.mark.promise(129)
@pytest.mark.parametrize("settings", [AT_ONCE, SETTLED], ids=["at once", "settled"])
def test_a_new_policy_learns_the_rewards_that_are_left_and_replays_learn_the_same(
    sqlite_url: str, clock: ManualClock, settings: dict[str, Any]
) -> None:
    with shop_on(sqlite_url, clock) as shop:
        shop.client.create("b", ARMS, seed=1, **settings)
        learned = [one.decision for one in shop.client.decide_many("b", 60)]
        shop.client.reward_many([(one, 1.0) for one in learned[::2]])
        clock.seconds += 50
        wait_for(lambda: shop.client.state("b").held == 0)
        shop.wall = NEW
        first = shop.compact(NEW)
        assert first.removed >= 59
        shop.client.reward(learned[1], 1.0)  # after its decision was learned with the default reward
        shop.learn(15)
        clock.seconds += 200
        wait_for(lambda: shop.client.state("b").held == 0)
        assert shop.client.preview_policy("b", "ucb", draws=10).rewards == (16 if settings else 6)
        shop.client.set_policy("b", "ucb")
        shop.learn(5)
        shop.wall = NEW + 10
        shop.learn(5)
        assert (shop.compact(NEW).start, shop.compact(NEW).removed) == (first.start, 0)
        state = shop.client.state("b")
    drop_snapshots(sqlite_url)
    assert check_replay(sqlite_url, first.start) == state.state_hash
    with shop_on(sqlite_url, clock) as shop:
        second = shop.compact(NEW + 1)
        assert second.start > first.start
        assert shop.client.state("b") == state
    assert check_replay(sqlite_url, second.start) == state.state_hash


@pytest.mark.promise(130)
def test_rewards_that_a_later_policy_has_learned_are_not_removed(sqlite_url: str, clock: ManualClock) -> None:
    with shop_on(sqlite_url, clock) as shop:
        shop.client.create("b", ARMS, seed=1)
        shop.learn(30)
        shop.wall = NEW
        shop.client.set_policy("b", "ucb")
        result = shop.compact(NEW)
        assert (result.removed, "policy that was set by event" in str(result.problem)) == (0, True)
        shop.wall = NEW + 10
        shop.learn(5)
        assert shop.compact(NEW + 1).removed == 20
    assert check_replay(sqlite_url, 42)


def test_a_policy_that_learns_while_its_rewards_are_removed_starts_again(
    store_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shop_on(store_url, clock) as shop:
        shop.client.create("b", ARMS, seed=1)
        shop.learn(30)
        shop.wall = NEW
        shop.learn(6)
        attempts = list[WarmStart]()

        def warm_up_and_compact(*arguments: Any) -> Any:
            warm = warm_up(*arguments)
            assert warm is not None
            attempts.append(warm)
            if len(attempts) == 1:
                warm.learn(arguments[0], arguments[0].last_sequence(warm.bandit_number))
                assert shop.compact(NEW).removed > 0
            return warm

        monkeypatch.setattr(policy_change, "warm_up", warm_up_and_compact)
        shop.client.set_policy("b", "ucb")
        assert len(attempts) == 2
        assert sum(arm.plays for arm in shop.client.state("b").arms) == 36
    drop_snapshots(store_url)
    check_replay(store_url, attempts[1].start.sequence)


def test_a_compaction_that_was_interrupted_is_finished_by_the_next(
    store_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "REMOVED_ROWS", 7)
    with shop_on(store_url, clock) as shop:
        shop.client.create("b", ARMS, seed=1)
        shop.learn(30, every=1)
        shop.wall = NEW
        state = shop.client.state("b")
        write, writes = Store.write, [0]

        def fail(store: Store, statements: Any) -> None:
            writes[0] += statements[0][0] == compaction.REMOVE
            assert writes[0] < 4, "interrupted"
            write(store, statements)

        with monkeypatch.context() as patched:
            patched.setattr(Store, "write", fail)
            with pytest.raises(AssertionError, match="interrupted"):
                shop.compact(NEW)
        assert check_replay(store_url, 61) == state.state_hash
        assert shop.compact(NEW).removed == 59 - 20
        assert shop.client.state("b") == state
    assert check_replay(store_url, 61) == state.state_hash


def test_compaction_under_load_and_changes_of_policy_loses_and_doubles_nothing(store_url: str) -> None:
    made: dict[str, float] = {}
    with running(open_store(store_url)) as server, talking(server.url) as (client, _):
        client.create("b", ARMS, seed=1)

        def call(number: int) -> None:
            with Client(server.url, timeout=PATIENCE) as caller:
                for turn in range(ROUNDS):
                    pairs = [(one.decision, float((turn + number) % 2)) for one in caller.decide_many("b", 10)]
                    assert {one.status for one in caller.reward_many(pairs)} == {200}
                    made.update(pairs)

        with ThreadPoolExecutor(3) as pool, contextlib.closing(open_store(store_url)) as store:
            callers = [pool.submit(call, number) for number in range(3)]
            for turn in itertools.count():
                compaction.compact(store, time.time(), time.time())
                client.set_policy("b", ("ucb", "ts")[turn % 2])
                if all(caller.done() for caller in callers):
                    break
            for caller in callers:
                caller.result()
            [last] = compaction.compact(store, time.time() + 1, time.time())
        assert last.start > 30 * ROUNDS
        state = client.state("b")
        assert (state.step, [arm.pending for arm in state.arms]) == (30 * ROUNDS, [0, 0, 0])
        assert {one.status for one in client.reward_many(list(made.items())[:1000])} <= {200, 410}
        assert client.state("b") == state, "no reward is counted again"
    drop_snapshots(store_url)
    assert check_replay(store_url, last.start) == state.state_hash


def test_a_replica_that_was_behind_continues_from_the_start_of_the_log(postgres_url: str) -> None:
    with running(open_store(postgres_url)) as one, running(open_store(postgres_url)) as two:
        with (
            talking(one.url) as (first, _),
            talking(two.url) as (second, http),
            contextlib.closing(open_store(postgres_url)) as store,
        ):
            first.create("b", ARMS, seed=1)
            number = store.find_log("b", None)
            for round_ in range(2):
                second.reward_many([(one.decision, 1.0) for one in second.decide_many("b", 10)])
                old = UnitOfWork(store, Clock()).snapshot(number)
                first.reward_many([(one.decision, 1.0) for one in first.decide_many("b", 600)])
                assert compaction.compact(store, time.time() + 1, time.time())[0].removed > 600
                if round_:  # as a replica does that stops before it reads the new events
                    store.save_snapshot(number, old)
                    second.create("other", ARMS)
                    two.run_in_writer(lambda work: work.states.pop(number))
                assert http.post("/v1/bandits/b/decisions", json={}).status_code == 200
                assert first.state("b") == second.state("b")


def test_loading_starts_again_if_events_are_removed_meanwhile(
    sqlite_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shop_on(sqlite_url, clock) as shop:
        shop.client.create("b", ARMS, seed=1)
        shop.learn(30, every=1)
    drop_snapshots(sqlite_url)
    monkeypatch.setattr("dynabandit.service.domain.unit_of_work.LOADED_ROWS", 10)
    with contextlib.closing(open_store(sqlite_url)) as store:
        work = UnitOfWork(store, clock)
        loader, number = Loader(work, iter(range(100)).__next__), store.find_log("b", None)
        loader.add([number])
        assert loader.step() is None
        assert compaction.compact(store, NEW, NEW)[0].removed == 59
        while (done := loader.step()) is None:
            pass
        assert (done, work.states[number].bandit.step) == ((number, 0), 30)


@pytest.mark.promise(126)
def test_a_damaged_log_is_not_compacted(sqlite_url: str, clock: ManualClock) -> None:
    with shop_on(sqlite_url, clock) as shop:
        shop.client.create("b", ARMS, seed=1)
        shop.learn(10)
    with contextlib.closing(open_store(sqlite_url)) as store:
        store.write([("UPDATE events SET arm = (arm + 1) % 3 WHERE step = 5", ())])
        [result] = compaction.compact(store, NEW, NEW)
        assert (result.removed, "the log chose arm" in str(result.problem)) == (0, True)
        store.write([("UPDATE events SET arm = (arm + 2) % 3 WHERE step = 5", ())])
        [result] = compaction.compact(store, NEW, NEW)
        assert result.removed > 0
        store.write([("UPDATE events SET body = replace(body, '\"b\\\"', '\"c\\\"') WHERE sequence = 0", ())])
        [result] = compaction.compact(store, NEW, NEW)
        assert "the start of the log" in str(result.problem)
    assert "the start of the log does not have its own hash" in failed_command("verify", "--store", sqlite_url)
    drop_snapshots(sqlite_url)
    for body in (None, "{"):
        if body is not None:
            with contextlib.closing(open_store(sqlite_url)) as store:
                store.write([("UPDATE events SET body = ? WHERE sequence = 0", (body,))])
        with shop_on(sqlite_url, clock) as shop:
            assert status_of(shop.client.decide, "b") == 500
            assert shop.client.create("other", ARMS).sequence == 1, "other bandits are served"
            shop.client.delete("other", erase=True)


@pytest.mark.promise(132)
def test_the_page_of_a_compacted_log_starts_where_the_log_starts(sqlite_url: str, clock: ManualClock) -> None:
    with shop_on(sqlite_url, clock) as shop:
        shop.client.create("b", ARMS, seed=1)
        shop.learn(30)
        shop.client.add_arm("b", "new")
        shop.wall = NEW
        shop.learn(10)
        shop.compact(NEW)
        state = shop.client.state("b")
    with contextlib.closing(open_store(sqlite_url)) as store:
        number = store.find_log("b", None)
        history = BanditHistory.at_start(number, store)
        assert (history.sequence, history.steps) == (read_start(store, number).sequence, 30)
        for event in store.log(number, history.sequence):
            history.apply(event)
    assert (history.steps, history.plays) == (40, [arm.plays for arm in state.arms])
    assert [history.bandit.belief(column).mean for column in range(3)] == [arm.mean for arm in state.arms[:3]]
    assert history.series().step.tolist() == list(range(31, 41))


def test_the_command_checks_the_age_and_the_version_of_the_store(sqlite_url: str, tmp_path: Path) -> None:
    with shop_on(sqlite_url, ManualClock()) as shop:
        shop.client.create("b", ARMS, seed=1)
        shop.learn(10)
        shop.wall = 4e9
        shop.learn(1)
        done = CliRunner().invoke(app, ["compact", "--before", "1h", "--store", sqlite_url])
        assert done.exit_code == 0
        assert "compacted  'b': 7 events removed, the log starts after event 15" in done.output
    assert "compacted up to event 15" in CliRunner().invoke(app, ["verify", "--store", sqlite_url]).output
    for age in ("0h", "90", "1.5d", "-1d", "1m"):
        assert "--before must be an age such as 90d" in failed_command("compact", "--before", age, code=2)
    (tmp_path / "old.db").write_bytes(lzma.decompress(STORE_OF_0_1_0.read_bytes()))
    old = f"sqlite:///{tmp_path}/old.db"
    assert "let dynabandit serve migrate it first" in failed_command("compact", "--before", "1d", "--store", old)
