"""Decisions whose activation is deferred: the default reward is learned only if they are activated."""

from typing import Any

import pytest

from dynabandit.service.compaction import compact
from dynabandit.service.domain.decision_details import DecisionDetails
from dynabandit.service.domain.decisions import activate, make_decisions
from dynabandit.service.domain.rewards import settle_due
from dynabandit.service.domain.steps import finish
from tools.shop import Shop

ARM = 1


def decide(shop: Shop, *, deferred: bool = True) -> int:
    """Make a decision for the same arm every time, and return its step."""
    details = DecisionDetails(among=[ARM], deferred=deferred)
    [event] = shop.run(lambda: finish(make_decisions(shop.work, shop.state, details, None)))
    assert event.step is not None
    return int(event.step)


def settle(shop: Shop, seconds: float) -> None:
    shop.clock.seconds = seconds
    while shop.run(lambda: settle_due(shop.work, shop.bandit_number)):
        pass


def known(shop: Shop) -> tuple[float, int]:
    """How many rewards of the arm were learned, and how many of its plays are pending."""
    arm = shop.state.bandit.arms[shop.state.bandit.names[ARM]]
    return arm.effective_size, arm.pending


@pytest.mark.promise(216)
@pytest.mark.parametrize("learn", ["at-once", "held", "settled"])
def test_the_default_reward_is_learned_once_and_only_after_an_activation(make_shop: Any, learn: str) -> None:
    shop = make_shop(policy="ucb", reward_window=10, default_reward=0, learn=learn)
    seen, _, _ = (decide(shop) for _ in range(3))
    usual = decide(shop, deferred=False)
    for step in (seen, seen, usual):
        shop.run(lambda step=step: activate(shop.work, shop.state, step))
    shop.clock.seconds = 5.0
    decide(shop)
    assert known(shop) == (0.0, 5)
    settle(shop, 11.0)
    assert known(shop) == (2.0, 1), "the last one is still open"
    settle(shop, 16.0)
    assert known(shop) == (2.0, 0)
    assert shop.state.deferred == set()
    shop.assert_replays()


@pytest.mark.promise(216)
@pytest.mark.parametrize("learn", ["at-once", "settled"])
def test_a_snapshot_and_a_compacted_log_know_what_was_not_activated(make_shop: Any, learn: str) -> None:
    shop = make_shop(policy="ucb", reward_window=10, default_reward=0, learn=learn)
    first, second = decide(shop), decide(shop)
    shop.run(lambda: activate(shop.work, shop.state, first))
    state = shop.state.copy()
    state.deferred.clear()
    assert state.state_hash() != shop.state.state_hash()
    [compacted] = compact(shop.store, before=2e12, now=0.0)
    assert compacted.problem is None
    shop.store.save_snapshot(shop.bandit_number, shop.work.snapshot(shop.bandit_number))
    shop.work.states.clear()
    assert shop.state.deferred == {second}
    settle(shop, 11.0)
    assert known(shop) == (1.0, 0)
    shop.assert_replays()
