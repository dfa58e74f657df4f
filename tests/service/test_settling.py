"""Settling: closing windows and learning held decisions keep up with deciding, and many bandits share a commit."""

import functools
import itertools
from pathlib import Path
from typing import Any

import pytest

from dynabandit.service import api_types
from dynabandit.service.domain import changes
from dynabandit.service.domain.decisions import decide
from dynabandit.service.errors import StoreError, WriteConflictError
from dynabandit.service.request_queue import WriterRequest
from dynabandit.service.service import Service
from dynabandit.service.settling import SETTLED_BANDITS
from dynabandit.service.stores import SqliteStore
from tools.harness import ARMS, ManualClock, assert_replay_agrees

WINDOW = 10.0


class CountingStore(SqliteStore):
    """A store that counts commits, and fails before or after some of them."""

    commits = 0
    fail: tuple[str, type[StoreError]] | None = None

    def commit(self, *arguments: Any) -> None:
        self.commits += 1
        (when, error), self.fail = self.fail or ("", StoreError), None
        if when == "before":
            raise error("gone")
        super().commit(*arguments)
        if when == "after":
            raise error("no answer")


class Loop:
    """The writer of a service without its thread: tests run one turn after the other."""

    def __init__(self, path: Path, names: list[str], learn: str = "settled") -> None:
        self.store, self.clock = CountingStore(str(path / "store.db")), ManualClock()
        self.writer = Service(self.store, clock=self.clock, maintenance_seconds=0.0).writer
        asked = api_types.Create(
            arms=ARMS,
            policy="ucb",
            seed=1,
            reward_window=WINDOW,
            default_reward=0,
            learn=learn,  # type: ignore[arg-type]
        )
        self.turn(*(WriterRequest(functools.partial(changes.create, name=name, asked=asked)) for name in names))

    def turn(self, *requests: WriterRequest) -> None:
        """Do what the thread does with some requests."""
        self.writer._serve(list(requests))
        assert [request.error for request in requests] == [None] * len(requests)
        self.writer._maintain()
        if self.writer._loader:
            self.writer._work_between_commits()
        if self.writer._settler:
            self.writer._settle(sum(request.events for request in requests))

    def turn_until(self, failure: tuple[str, type[StoreError]] | None) -> None:
        """Take turns until a commit has failed."""
        self.store.fail = failure
        while self.store.fail is not None:
            self.turn()

    def decide(self, name: str, count: int) -> WriterRequest:
        return WriterRequest(functools.partial(decide, name=name, asked=api_types.Decide(count)), name, events=count)

    def count(self, kind: str) -> int:
        return int(self.store.rows("SELECT count(*) FROM events WHERE kind = ?", (kind,))[0][0])

    def stop(self) -> None:
        self.writer._shutdown()
        assert_replay_agrees(self.store.url)


@pytest.mark.promise(29)
@pytest.mark.parametrize("learn", ["settled", "at-once"])
def test_closing_and_learning_keep_up_with_the_decisions_of_each_turn(tmp_path: Path, learn: str) -> None:
    loop = Loop(tmp_path, ["b"], learn)
    for _ in range(3):
        loop.turn(loop.decide("b", 1000), loop.decide("b", 1000), loop.decide("b", 1000))
    loop.clock.seconds += WINDOW + 1  # 9,000 decisions are due
    for _ in range(4):
        loop.turn(loop.decide("b", 1000), loop.decide("b", 1000), loop.decide("b", 1000))
        loop.clock.seconds += WINDOW + 1
    assert loop.count("decision") == 21_000
    assert loop.count("close") >= 21_000 - 3000, "only those of the last turn are open"
    [state] = loop.writer._work.states.values()
    assert state.learner.held(21_000) <= 3000
    loop.stop()


@pytest.mark.promise(28)
@pytest.mark.parametrize("learn", ["settled", "at-once"])
def test_decisions_are_settled_once_although_commits_fail_before_or_after_they_took_effect(
    tmp_path: Path, learn: str
) -> None:
    loop = Loop(tmp_path, ["b"], learn)
    for _ in range(8):
        loop.turn(loop.decide("b", 1000))
    loop.clock.seconds += WINDOW + 1
    for failure in itertools.product(("before", "after"), (StoreError, WriteConflictError)):
        loop.turn_until(failure)
        while loop.writer._loader:  # the state that was dropped is loaded again, although no request needs it
            loop.turn()
    loop.turn()
    while loop.writer._settler:
        loop.turn()
    [state] = loop.writer._work.states.values()
    assert (loop.count("close"), state.learner.held(8000)) == (8000, 0)
    loop.stop()


def test_without_requests_a_turn_is_short_and_the_next_one_goes_on(tmp_path: Path) -> None:
    loop = Loop(tmp_path, ["b"])
    for _ in range(3):
        loop.turn(loop.decide("b", 1000))
    loop.clock.seconds += WINDOW + 1
    closed = []
    for _ in range(4):
        loop.turn()
        closed.append(loop.count("close"))
    assert closed == [1000, 2000, 3000, 3000]
    loop.stop()


def test_many_bandits_share_a_commit_and_none_waits_for_one_with_many_decisions(tmp_path: Path) -> None:
    names = [f"b{number}" for number in range(SETTLED_BANDITS + 2)]
    loop = Loop(tmp_path, names)
    loop.turn(loop.decide(names[0], 1000), *(loop.decide(name, 2) for name in names[1:]))
    loop.clock.seconds += WINDOW + 1
    before = loop.store.commits
    loop.turn()
    loop.turn()
    assert loop.store.commits == before + 2
    numbers = loop.store.rows("SELECT DISTINCT bandit FROM events WHERE kind = 'close'")
    assert len(numbers) == len(names)
    assert len(loop.store.rows("SELECT 1 FROM events WHERE kind = 'learn'")) >= len(names)
    while loop.writer._settler:
        loop.turn()
    assert loop.count("close") == loop.count("decision")
    loop.stop()
