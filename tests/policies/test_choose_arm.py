"""From scores to a choice: ties, exploration and the traps that the notes name."""

import math

import numpy as np
import pytest
from scipy import stats

import dynabandit as db
from dynabandit.core.compilation import compiled
from dynabandit.core.streams import stream
from dynabandit.policies import aff_shared
from dynabandit.policies.aff_ucb2 import LARGEST_BONUS
from dynabandit.policies.base import Policy
from dynabandit.policies.choose_arm import SCRATCH_ROWS, make_choose, make_largest

ALPHA = 1e-6  # the chance that a sound test of a law fails, were its seed drawn anew
largest = make_largest()


class Played:
    """A policy whose arms were fed by hand."""

    def __init__(self, policy: Policy, arms: int) -> None:
        self.policy, self.numbers = policy, policy.numbers(arms)
        self.memory = np.zeros((policy.memory_size(), arms))
        self.shared = np.zeros(policy.shared_size())
        self.last, self.scratch = np.zeros(arms, dtype=np.int64), np.zeros((SCRATCH_ROWS, arms))
        self.table = policy.kernels.table(arms, 100)
        for arm in range(arms):
            policy.kernels.start(self.memory, self.shared, arm, self.numbers)

    def feed(self, arm: int, *rewards: float) -> "Played":
        for reward in rewards:
            self.policy.kernels.learn(self.memory, self.shared, arm, reward, self.numbers)
        return self

    def scores_at(self, step: int) -> np.ndarray:
        make_choose(self.policy.kernels)(
            self.memory, self.shared, self.last, self.scratch, step, self.numbers, self.table, stream(1)
        )
        return self.scratch[0].copy()


def test_ties_are_broken_uniformly_over_all_tied_arms() -> None:
    scores = np.array([1.0, 0.0, 1.0, 0.5, 1.0])
    picks = [largest(scores, step, stream(3)) for step in range(1, 3001)]
    counts = np.bincount(picks, minlength=5)
    assert counts[[1, 3]].sum() == 0
    assert stats.chisquare(counts[[0, 2, 4]]).pvalue > ALPHA


def test_infinite_scores_tie_too() -> None:
    picks = {largest(np.array([math.inf, 0.0, math.inf]), step, stream(3)) for step in range(1, 50)}
    assert picks == {0, 2}


def test_exploration_reaches_every_arm_equally_often() -> None:
    run = db.simulate(
        db.policy("eps-greedy", epsilon=1.0),
        db.environment("fixed", means=[0.5] * 7),
        horizon=7007,
        seed=2,
        keep=("arms",),
    )
    assert run.arms is not None
    counts = np.bincount(run.arms[0, 7:], minlength=7)
    assert stats.chisquare(counts).pvalue > ALPHA


@pytest.mark.parametrize("name", ["eps-greedy", "ucb", "d-ucb", "sw-ucb", "aff-d-greedy", "aff-ucb1", "aff-ucb2"])
def test_an_arm_nobody_has_seen_comes_first(name: str) -> None:
    played = Played(db.policy(name).tuned(1, 100), arms=3).feed(0, 1.0, 1.0).feed(2, 1.0)
    assert played.scores_at(4)[1] == math.inf


def test_idle_arm_forgets_its_data_but_not_its_prior() -> None:
    played = Played(db.policy("aff-ts", step_size=0.2, prior=(2.0, 3.0)), arms=2).feed(0, *[0.0] * 9, *[1.0] * 3)
    column = played.memory[:, 0]
    assert column[played.policy.slots.index("forgetting")] < 1.0
    from dynabandit.policies.aff_thompson import posterior
    from dynabandit.policies.base import Now

    fresh = posterior(played.memory, 0, 0, Now(13, 2, 0.0), played.numbers)
    idle = posterior(played.memory, 0, 10_000, Now(13, 2, 0.0), played.numbers)
    assert sum(fresh) > 6.0
    assert idle == pytest.approx((2.0, 3.0), abs=1e-9)


def test_the_printed_bonus_of_aff_ucb2_never_grows_and_the_repaired_one_does() -> None:
    rewards = [*[0.0] * 20, *[1.0] * 10]
    printed = Played(db.policy("aff-ucb2", step_size=0.01), arms=2).feed(0, *rewards)
    growing = Played(db.policy("aff-ucb2-growing", step_size=0.01), arms=2).feed(0, *rewards)
    assert printed.scores_at(2)[0] == printed.scores_at(10_000)[0]
    assert growing.scores_at(1)[0] == pytest.approx(printed.scores_at(1)[0], rel=1e-12)
    assert growing.scores_at(10)[0] > growing.scores_at(2)[0]
    mean = growing.memory[growing.policy.slots.index("mean"), 0]
    assert growing.scores_at(10_000)[0] == pytest.approx(mean + LARGEST_BONUS, rel=1e-12)


def test_aff_ucb1_gives_an_idle_arm_without_variance_no_bonus_as_printed() -> None:
    trapped = Played(db.policy("aff-ucb1"), arms=2).feed(0, *[0.0] * 10)
    mended = Played(db.policy("aff-ucb1", variance_floor=0.05), arms=2).feed(0, *[0.0] * 10)
    assert trapped.scores_at(5000)[0] == 0.0
    assert mended.scores_at(5000)[0] > 1.0


def test_dts_never_holds_more_than_its_memory_and_never_scores_nan() -> None:
    played = Played(db.policy("dts", memory=5.0), arms=2).feed(0, *[1.0] * 5000)
    a, b = played.memory[:, 0]
    assert a + b == pytest.approx(5.0, rel=1e-9)
    assert b < 1e-30  # a long run of equal rewards drives it towards 0
    assert not np.isnan(played.scores_at(5001)).any()


def test_adaptive_discount_of_a_forgetting_factor_of_zero_is_one_when_fresh_and_zero_when_idle() -> None:
    assert aff_shared.discount(aff_shared.LOG_ZERO, 0, 100) == 1.0
    assert aff_shared.discount(aff_shared.LOG_ZERO, 1, 100) == 0.0


def test_a_sliding_window_longer_than_the_run_is_no_window() -> None:
    world = db.environment("case-1", arms=3)
    short, long = (
        db.simulate(db.policy("sw-ucb", window=window), world, horizon=500, seed=1, keep=("arms",)).arms
        for window in (500, 2**32 - 1)
    )
    assert (short == long).all()


def test_the_chosen_arms_and_scores_are_the_same_compiled_and_interpreted() -> None:
    for name in db.policies.POLICIES:
        played = Played(db.policy(name).tuned(1, 100), arms=3).feed(0, 1.0, 0.0).feed(1, 1.0, 1.0).feed(2, 0.0, 1.0)
        interpreted = played.scores_at(9)
        compiled(make_choose(played.policy.kernels))(
            played.memory, played.shared, played.last, played.scratch, 9, played.numbers, played.table, stream(1)
        )
        assert (interpreted == played.scratch[0]).all(), name
