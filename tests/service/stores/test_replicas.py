"""Replicas on PostgreSQL: they share all bandits, and survive one that is killed and one that is cut off."""

import contextlib
import functools
import itertools
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest

from dynabandit.client import Client, ServiceError
from dynabandit.service.api_types import Decision
from dynabandit.service.domain.events import EventRow
from dynabandit.service.errors import StoreError, WriteConflictError
from dynabandit.service.stores import open_store
from dynabandit.service.stores.erasing import Eraser
from dynabandit.service.stores.postgres import LIMITS
from tools.harness import (
    ARMS,
    PRODUCT,
    ManualClock,
    assert_replay_agrees,
    process,
    running,
    status_of,
    talking,
    visitor,
)
from tools.postgres_server import without_limits
from tools.proxy import wire
from tools.waiting import PATIENCE, wait_for

Result = TypeVar("Result")
EACH = 400 if os.environ.get("DYNABANDIT_LONG_FAULTS") else 12


def ask_one_of(clients: list[Client], call: Callable[[Client], Result]) -> Result:
    """Ask one replica after the other until one gives a good answer."""
    limit = time.monotonic() + PATIENCE
    for client in itertools.cycle(clients):
        try:
            return call(client)
        except ServiceError as error:
            if error.status not in (0, 429, 503):
                raise
        assert time.monotonic() < limit, "no replica answers"
    raise AssertionError("there are clients")


class Caller(threading.Thread):
    """A client behind a load balancer: it asks the next replica where one gives no good answer."""

    def __init__(self, number: int, urls: list[str], target: int) -> None:
        super().__init__(daemon=True)
        self.number, self.target = number, target
        self.clients = [Client(url, tries=1, timeout=PATIENCE) for url in urls]
        self.decisions: dict[str, Decision] = {}
        self.rewards: dict[str, float] = {}
        self.done = 0
        self.problem: BaseException | None = None

    def ask(self, call: Callable[[Client], Result]) -> Result:
        first = (self.number + self.done) % len(self.clients)
        return ask_one_of([*self.clients[first:], *self.clients[:first]], call)

    def run(self) -> None:
        try:
            while self.done < self.target:
                key = f"{self.number}-{self.done}"
                asked = visitor(key, self.done)
                decision = self.ask(functools.partial(Client.decide, name="b", key=key, **asked))
                self.decisions[key] = decision
                again = self.ask(functools.partial(Client.decide, name="b", **asked))  # of any replica
                assert again.repeated
                assert (again.decision, again.arm) == (decision.decision, decision.arm)
                reward = float(self.done % 2)
                self.ask(functools.partial(Client.reward, decision=decision.decision, reward=reward))
                self.rewards[decision.decision] = reward
                self.done += 1
        except BaseException as error:
            self.problem = error
        finally:
            for client in self.clients:
                client.close()


@pytest.mark.promise(41, 65)
def test_a_damaged_bandit_that_another_replica_erases_and_creates_again_is_served(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynabandit.service.writer.SEARCH_SECONDS", 0.0)  # then damaged bandits are tried again
    with running(open_store(postgres_url)) as one, talking(one.url) as (client, _):
        client.create("b", ARMS, seed=1)
        decision = client.decide("b").decision
        with contextlib.closing(one.store.reader()) as store:
            store.write([("UPDATE events SET arm = (arm + 1) % 3 WHERE step = 1", ())])
        with running(open_store(postgres_url)) as two, talking(two.url) as (other, http):
            assert status_of(other.state, "b") == 500
            client.delete("b", erase=True)
            wait_for(lambda: not two.service.writer._work.damaged)
            assert status_of(other.state, "b") == 404, "it remembers the name, but no state"
            assert status_of(other.reward, decision, 1.0) == 404
            client.create("b", ARMS, seed=2)
            assert other.create("b", ARMS, seed=2).seed == other.state("b").seed == 2
            assert other.decide("b").step == 1
            two.finish_maintenance()  # it would notice the deletion
            client.delete("b")
            assert 'bandit="b"' in http.get("/metrics").text
            assert status_of(other.state, "b") == 404
            assert 'bandit="b"' not in http.get("/metrics").text


def wait_until(callers: list[Caller], done: int) -> None:
    for caller in callers:
        while caller.done < min(done, caller.target) and caller.is_alive():
            caller.join(0.005)


def check_log(url: str, callers: list[Caller]) -> None:
    with running(open_store(url)) as server, talking(server.url) as (client, _):
        events = list(client.events("b", limit=10_000))
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    decided = {event.key: event for event in events if event.kind == "decision"}
    rewarded = {event.decision: event.reward for event in events if event.kind == "reward"}
    total = sum(caller.target for caller in callers)
    assert len(decided) == sum(event.kind == "decision" for event in events) == total
    assert len(rewarded) == sum(event.kind == "reward" for event in events) == total
    for caller in callers:
        for key, decision in caller.decisions.items():
            assert (decided[key].decision, decided[key].arm) == (decision.decision, decision.arm)
        for identity, reward in caller.rewards.items():
            assert rewarded[identity] == reward
    assert_replay_agrees(url)


@pytest.mark.promise(24, 68)
def test_three_replicas_one_killed_one_cut_off_lose_and_double_nothing(postgres_url: str) -> None:
    # The transaction in which the third replica may be cut off ends soon, as the store of a service demands
    with (
        wire(postgres_url, idle_in_transaction=LIMITS["idle_in_transaction_session_timeout"]) as (proxy, cut_url),
        running(open_store(postgres_url)) as one,
        process(postgres_url) as two,
    ):
        with running(open_store(cut_url)) as three:
            with Client(one.url, timeout=PATIENCE) as client:
                client.create("b", ARMS, seed=2, **{**PRODUCT, "policy": "ucb"})
            urls = [one.url, two.url, three.url]
            callers = [Caller(number, urls, EACH) for number in range(4)]
            for caller in callers:
                caller.start()
            wait_until(callers, EACH // 4)
            proxy.hold()  # the third replica is cut off, perhaps in the middle of a commit
            three.give_up_after(0.2)
            wait_until(callers, EACH // 2)
            two.kill()
            wait_until(callers, 3 * EACH // 4)
            three.give_up_after(PATIENCE)
            proxy.release()  # and comes back, with what it had sent late
            for caller in callers:
                caller.join(PATIENCE)
            assert [caller.problem for caller in callers] == [None] * len(callers)
            with talking(three.url) as (back, _), talking(one.url) as (other, _):
                returned = ask_one_of([back], lambda client: client.state("b"))
                assert returned == other.state("b"), "the replica that returned serves the same state"
    check_log(postgres_url, callers)


@pytest.mark.promise(69)
def test_a_replica_that_is_cut_off_within_a_transaction_blocks_its_bandits_for_two_seconds(postgres_url: str) -> None:
    usual_limits = without_limits(postgres_url)
    with contextlib.closing(open_store(usual_limits)) as cut_off, contextlib.closing(open_store(postgres_url)) as other:
        cut_off.prepare()
        shown = {name: cut_off.rows(f"SHOW {name}")[0][0] for name in LIMITS}
        assert shown == {"statement_timeout": "4s", "lock_timeout": "4s", "idle_in_transaction_session_timeout": "2s"}
        cut_off.begin({33: 0})
        other.begin({33: 0})  # waits for the lock, which the end of the other transaction gives it
        with pytest.raises(StoreError):
            cut_off.commit(())
        other.rollback()


@pytest.mark.promise(34)
def test_replicas_see_each_others_decisions_rewards_and_changes_at_once(postgres_url: str) -> None:
    with running(open_store(postgres_url)) as one, running(open_store(postgres_url)) as two:
        with talking(one.url) as (first, _), talking(two.url) as (second, _):
            first.create("b", ARMS, seed=3)
            for turn in range(20):
                here, there = (first, second) if turn % 2 else (second, first)
                decision = here.decide("b", key=f"k{turn}")
                assert there.decide("b", key=f"k{turn}") == decision
                there.reward(decision.decision, 1)
                assert first.state("b") == second.state("b")
            first.change_arm("b", "red", paused=True)
            assert "red" not in {one.arm for one in second.decide_many("b", 100)}
            second.set_policy("b", "ucb")
            assert first.state("b").policy == "ucb"
            first.set_shadow("b", "ts")
            for here, there in ((first, second), (second, first)):
                decision = here.decide("b")
                there.reward(decision.decision, 1)
                assert first.state("b") == second.state("b")
            second.promote_shadow("b", keep=True)
            first.decide("b")
            assert first.state("b") == second.state("b")
            first.delete("b")
            with pytest.raises(ServiceError, match="404"):
                second.decide("b")
            second.create("b", ARMS, seed=4)
            assert first.state("b").seed == 4
    assert_replay_agrees(postgres_url)


@pytest.mark.parametrize("erase", [False, True])
def test_a_bandit_that_one_replica_deletes_is_gone_on_all(postgres_url: str, erase: bool) -> None:
    with running(open_store(postgres_url)) as one, running(open_store(postgres_url)) as two:
        with talking(one.url) as (first, _), talking(two.url) as (second, http):
            for again in range(2):  # by the name, and by the id of a decision
                first.create("b", ARMS, seed=1)
                before = second.decide("b").decision
                first.delete("b", erase=erase)
                by_name = functools.partial(status_of, second.decide, "b")
                by_id = functools.partial(status_of, second.reward, before, 1)
                assert [call() for call in ((by_id, by_name) if again else (by_name, by_id))] == [404, 404]
            assert http.get("/v1/bandits/b").status_code == 404
            first.create("b", ARMS, seed=1)
            second.decide("b")
            first.delete("b", erase=erase)
            assert second.create("b", ARMS[:2], seed=2).sequence == 1, "the name is free"
            assert first.state("b").seed == 2
    with contextlib.closing(open_store(postgres_url)) as store:
        orphans = "SELECT * FROM events WHERE bandit NOT IN (SELECT number FROM bandits)"
        assert store.rows(orphans) == []
    assert_replay_agrees(postgres_url)


def test_a_bandit_that_another_replica_erases_is_not_swept(postgres_url: str) -> None:
    clock = ManualClock()
    with running(open_store(postgres_url)) as one, running(open_store(postgres_url), clock=clock) as two:
        with talking(one.url) as (first, _), talking(two.url) as (second, _):
            for name in ("gone", "stays"):
                first.create(name, ARMS, seed=1, reward_window=10)
                second.decide_many(name, 5)
            first.delete("gone", erase=True)
            clock.seconds += 11
            wait_for(lambda: second.state("stays").sequence == 11)
    with contextlib.closing(open_store(postgres_url)) as store:
        assert store.rows("SELECT count(*) FROM events") == [(11,)]


def test_a_replica_without_a_connection_is_not_the_leader(postgres_url: str, tmp_path: Path) -> None:
    with contextlib.closing(open_store(postgres_url)) as one, contextlib.closing(open_store(postgres_url)) as two:
        assert (one.is_leader(), two.is_leader()) == (True, False)
        one.rollback()
        wait_for(two.is_leader)
        assert not one.is_leader()
    with pytest.raises(StoreError):  # the follower of the log tries again after it, and logs all others
        open_store(f"postgresql:///none?host={tmp_path}").is_leader()


@pytest.mark.promise(142)
def test_requests_do_not_wait_while_another_replica_erases_the_same_bandit(postgres_url: str) -> None:
    with contextlib.closing(open_store(postgres_url)) as store, psycopg.connect(postgres_url) as other:
        store.prepare()
        store.rows("INSERT INTO bandits VALUES (33, 'locked', 2), (34, 'free', 2)")
        other.execute("SELECT pg_advisory_xact_lock(33)")
        eraser = Eraser(store)
        eraser.find()
        assert [eraser.step() for _ in range(3)] == [False, True, False], "a statement that waits for the lock fails"
        assert store.rows("SELECT number FROM bandits") == [(33,)]
        other.rollback()
        assert eraser.step()
        assert not eraser
        assert store.rows("SELECT number FROM bandits") == []


def test_replicas_that_create_the_same_bandit_at_once_make_one(postgres_url: str) -> None:
    with running(open_store(postgres_url)) as one, running(open_store(postgres_url)) as two:
        made = []
        start = threading.Barrier(8)

        def create(url: str) -> None:
            with Client(url, timeout=PATIENCE) as client:
                start.wait(PATIENCE)
                made.append(client.create("b", ARMS).id)

        callers = [threading.Thread(target=create, args=(url,)) for url in [one.url, two.url] * 4]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(PATIENCE)
        assert len(made) == 8
        assert len(set(made)) == 1


@pytest.mark.promise(28)
def test_two_replicas_give_a_default_once(postgres_url: str) -> None:
    clocks = [ManualClock(), ManualClock()]
    with running(open_store(postgres_url), clock=clocks[0]) as one:
        with running(open_store(postgres_url), clock=clocks[1]) as two:
            with talking(one.url) as (first, _), talking(two.url) as (second, _):
                first.create("b", ARMS, reward_window=10, default_reward=0)
                first.decide_many("b", 300)
                second.decide_many("b", 300)
                for clock in clocks:
                    clock.seconds += 11
                wait_for(lambda: sum(event.kind == "close" for event in second.events("b")) >= 600)
                for server in (one, two):
                    server.finish_maintenance()
                events = list(second.events("b"))
                assert sum(event.kind == "close" for event in events) == 600
                learned = [(event.change or {})["to"] for event in events if event.kind == "learn"]
                assert (learned[-1], learned) == (600, sorted(set(learned))), "each decision is learned once"
    assert_replay_agrees(postgres_url)


@pytest.mark.promise(67)
def test_a_row_that_another_process_wrote_first_is_refused_by_the_store(store_url: str) -> None:
    """The fence itself: with or without locks, one sequence number has one row."""
    from dynabandit.service import api_types
    from dynabandit.service.clock import Clock
    from dynabandit.service.domain.changes import create
    from dynabandit.service.domain.decisions import decide
    from dynabandit.service.domain.unit_of_work import UnitOfWork

    stores = [open_store(store_url), open_store(store_url).reader()]
    stores[0].prepare()
    works = [UnitOfWork(store, Clock()) for store in stores]
    stores[0].begin({})
    number = create(works[0], "b", api_types.Create(arms=ARMS, seed=1))[0].bandit_number
    stores[0].commit(works[0].events, works[0].created)
    works[0].clear()
    for work in works:
        work.state(number)
        decide(work, "b", api_types.Decide())
    stores[0].begin({})
    stores[0].commit(works[0].events)
    stores[1].begin({})
    with pytest.raises(WriteConflictError):
        stores[1].commit(works[1].events)
    for store in stores:
        store.close()


@pytest.mark.promise(67)
def test_the_store_refuses_a_second_settlement_and_a_second_use_of_a_key(store_url: str) -> None:
    with contextlib.closing(open_store(store_url)) as store:
        store.prepare()
        decision = EventRow(7, 1, "decision", 1, None, 0, None, 0.0, 0.0, "key", None)
        reward = EventRow(7, 2, "reward", None, 1, 0, 1.0, 0.0, 0.0, None, None)
        store.begin({})
        store.commit([decision, reward])
        close = reward._replace(sequence=3, kind="close", value=0.0)
        for event in (close, decision._replace(sequence=3, step=2), decision._replace(sequence=3, key=None)):
            store.begin({})
            with pytest.raises(WriteConflictError):
                store.commit([event])
            store.rollback()
