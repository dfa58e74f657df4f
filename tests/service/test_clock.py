"""The clock: windows stand still while no reward can be accepted, and a refused reward can be sent again."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dynabandit.client import Client
from dynabandit.service import api_types
from dynabandit.service.clock import GRACE_SECONDS, MAX_STEP, Clock
from dynabandit.service.domain import changes
from dynabandit.service.domain.decisions import decide
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.loading import Loader
from dynabandit.service.stores import Store, open_store
from dynabandit.service.writer import SHARE_TIME_SECONDS
from tools.harness import ARMS, Running, process, running, status_of, talking
from tools.waiting import PATIENCE, wait_for

LONG = bool(os.environ.get("DYNABANDIT_LONG_FAULTS"))
WINDOW = 5.0


class Seconds:
    """Seconds that tests let pass; as a clock reads them, a jump looks like a process that was stopped."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.clock = Clock(lambda: self.now)

    def jump(self, seconds: float) -> None:
        self.now += seconds

    def let_pass(self, seconds: float) -> None:
        """Let the writer read the clock again and again meanwhile."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + MAX_STEP / 4)
            wait_for(lambda: self.clock._read_at == self.now)


@contextlib.contextmanager
def served(store: Store, **options: Any) -> Iterator[tuple[Running, Seconds, Client]]:
    seconds = Seconds()
    options = {**options, "clock": seconds.clock, "timer": lambda: seconds.now}
    with running(store, **options) as server, talking(server.url) as (client, _):
        seconds.let_pass(GRACE_SECONDS)
        yield server, seconds, client


def closed(client: Client) -> int:
    """Return how many windows have ended, after the maintenance at this time."""
    for _ in range(2):  # the writer may take the first call together with the heartbeat that the maintenance follows
        client.state("b")
    return sum(event.kind == "close" for event in client.events("b"))


@pytest.mark.promise(31)
def test_only_time_between_frequent_readings_counts() -> None:
    seconds = Seconds()
    clock = seconds.clock
    for step in (0.25, MAX_STEP, 0.5):
        seconds.jump(step)
        clock.now()
    assert clock.now() == 0.75 + MAX_STEP
    seconds.jump(3600)
    assert clock.now() == 0.75 + MAX_STEP
    clock.stop()
    for _ in range(3):
        seconds.jump(0.5)
        assert clock.now() == 0.75 + MAX_STEP
    clock.resume()
    seconds.jump(0.5)
    assert clock.now() == 1.25 + MAX_STEP


@pytest.mark.promise(32)
def test_windows_end_later_for_ten_seconds_after_the_start_an_interruption_or_a_refusal() -> None:
    seconds = Seconds()
    clock = seconds.clock

    def graces() -> list[float]:
        found = [clock.grace()]
        for _ in range(4):
            for _ in range(5):
                seconds.jump(GRACE_SECONDS / 20)
                clock.now()
            found.append(clock.grace())
        return found

    once = [GRACE_SECONDS] * 4 + [0.0]
    assert graces() == once
    seconds.jump(2 * MAX_STEP)
    clock.now()
    assert graces() == once
    clock.note_refusal()
    assert graces() == once
    clock.stop()
    assert graces() == [0.0] + [GRACE_SECONDS] * 4, "as long as it stands still"
    clock.resume()
    assert graces() == once


@pytest.mark.promise(31, 32)
def test_no_window_ends_while_the_process_is_stopped(store_url: str) -> None:
    with served(open_store(store_url)) as (_, seconds, client):
        client.create("b", ARMS, "ucb", reward_window=WINDOW, default_reward=0)
        made = [one.decision for one in client.decide_many("b", 100)]
        seconds.let_pass(WINDOW - 0.1)
        seconds.jump(3600)
        seconds.let_pass(GRACE_SECONDS - 1)
        assert closed(client) == 0
        assert {one.status for one in client.reward_many([(one, 1) for one in made[1:]])} == {200}
        seconds.let_pass(WINDOW + 1)
        wait_for(lambda: closed(client) == 1)
        assert status_of(client.reward, made[0], 1) == 410


@pytest.mark.promise(31, 32)
def test_a_reward_that_got_503_in_time_is_accepted_when_the_store_is_back(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(open_store(store_url)) as (server, seconds, client):
        client.create("b", ARMS, "ucb", reward_window=WINDOW, default_reward=0)
        first, second, third = (one.decision for one in client.decide_many("b", 3))
        seconds.let_pass(WINDOW - 0.1)
        is_down, connect = [True], server.store._open  # type: ignore[attr-defined]  # every store has it

        def failing_connect() -> object:
            if is_down[0]:
                raise OSError("gone")
            return connect()

        monkeypatch.setattr(server.store, "_open", failing_connect)
        assert status_of(client.reward, first, 1) == 503
        stopped_at = server.clock.now()
        seconds.let_pass(60)
        assert status_of(client.reward, second, 1) == 503
        assert server.clock.now() == stopped_at
        is_down[0] = False
        seconds.let_pass(2)
        assert server.clock.now() > stopped_at, "nobody needs to ask"
        seconds.let_pass(GRACE_SECONDS - 3)
        assert [status_of(client.reward, one, 1) for one in (first, second)] == [200, 200]
        assert closed(client) == 0
        seconds.let_pass(WINDOW + 1)
        assert status_of(client.reward, third, 1) == 410


@pytest.mark.promise(32)
@pytest.mark.parametrize("refused", [True, False])
def test_a_reward_that_got_429_in_time_is_accepted_soon_after(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    with served(open_store(sqlite_url)) as (server, seconds, client):
        client.create("b", ARMS, "ucb", reward_window=WINDOW, default_reward=0)
        decision = client.decide("b").decision
        seconds.let_pass(WINDOW)
        with monkeypatch.context() as patch:
            patch.setattr(server.service.writer.admission, "is_full", lambda *_: True)
            if refused:
                assert status_of(client.reward, decision, 1) == 429
        seconds.let_pass(GRACE_SECONDS - 1)
        assert status_of(client.reward, decision, 1) == (200 if refused else 410)


@pytest.mark.promise(31)
def test_the_clock_stands_still_while_a_reward_waits_for_its_bandit_to_be_loaded(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(open_store(sqlite_url)) as (_, _, client):
        client.create("b", ARMS, "ucb", reward_window=WINDOW, default_reward=0)
        decision = client.decide("b").decision
    may_load, step = threading.Event(), Loader.step
    monkeypatch.setattr(Loader, "step", lambda loader: step(loader) if may_load.is_set() else None)
    with served(open_store(sqlite_url), patience=5.0) as (server, seconds, client):
        assert status_of(client.state, "missing") == 404  # this needs no bandit
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(status_of, client.reward, decision, 1)
            wait_for(lambda: server.clock.stopped)
            seconds.let_pass(60)
            assert waiting.result(PATIENCE) == 503
            assert server.clock.stopped
        may_load.set()
        wait_for(lambda: not server.clock.stopped)
        assert status_of(client.reward, decision, 1) == 200


@pytest.mark.promise(31)
def test_a_bandit_with_a_later_time_does_not_shorten_the_windows_of_others(store_url: str) -> None:
    """After kill -9 the saved time of the clock is older than the latest events."""
    with contextlib.closing(open_store(store_url)) as store:
        store.prepare()
        for name, hours in (("late", 1), ("b", 0)):
            work = UnitOfWork(store, Clock(lambda: 0.0))
            work.clock.advance_to(3600.0 * hours)
            store.begin({})
            changes.create(work, name, api_types.Create(arms=ARMS, policy="ucb", reward_window=WINDOW))
            store.commit(work.events, work.created)
        work.clear()
        decide(work, "b", api_types.Decide())
        assert work.now(work.named("late")) == 3600.0
        assert work.now(work.named("b")) == work.named("b").time == 0.0


@pytest.mark.promise(33)
def test_a_stopped_replica_follows_the_others_before_it_decides(postgres_url: str) -> None:
    with (
        served(open_store(postgres_url)) as (healthy, seconds, client),
        served(open_store(postgres_url)) as (_, frozen, other),
    ):
        client.create("b", ARMS, "ucb", reward_window=WINDOW, default_reward=0)
        client.create("idle", ARMS)
        old = client.decide("b").decision
        seconds.let_pass(60)
        wait_for(lambda: closed(client) == 1)  # callers could have reported to the healthy replica
        frozen.jump(60)
        decision = other.decide("b").decision
        made = [event.time for event in other.events("b") if event.decision == decision and event.kind == "decision"]
        assert made[0] >= healthy.clock.now() - SHARE_TIME_SECONDS
        assert status_of(other.reward, old, 1) == 410
        seconds.let_pass(WINDOW - SHARE_TIME_SECONDS)
        assert status_of(client.reward, decision, 1) == 200


@pytest.mark.promise(31)
@pytest.mark.skipif(not LONG, reason="it takes the time for which the process is stopped")
def test_sigstop_ends_no_window(store_url: str) -> None:
    window = 60.0  # much longer than the calls take
    with process(store_url) as server, talking(server.url) as (client, _):
        client.create("b", ARMS, "ucb", reward_window=window, default_reward=0)
        made = client.decide_many("b", 1000)
        server.process.send_signal(signal.SIGSTOP)
        threading.Event().wait(window + GRACE_SECONDS + 5)
        server.process.send_signal(signal.SIGCONT)
        assert {one.status for one in client.reward_many([(one.decision, 1) for one in made])} == {200}
        assert closed(client) == 0
