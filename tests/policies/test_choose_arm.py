"""From scores to a choice: ties, exploration and the traps that the notes name."""

import math

import numpy as np
import pytest
from scipy import stats

import dynabandit as db
from dynabandit.core.streams import stream
from dynabandit.core.tie_breaking import make_argmax
from dynabandit.policies.memories.adaptive import LOG_ZERO
from dynabandit.policies.memories.base import exponential
from tools.driver import Driver

ALPHA = 1e-6  # the probability that a correct distribution fails its test, over random seeds
argmax = make_argmax()


def scores_at(driver: Driver, number: int) -> np.ndarray:
    driver.choose(number)
    return driver.scores.copy()


def test_ties_are_broken_uniformly_over_all_tied_arms() -> None:
    scores = np.array([1.0, 0.0, 1.0, 0.5, 1.0])
    picks = [argmax(scores, step, stream(3)) for step in range(1, 3001)]
    counts = np.bincount(picks, minlength=5)
    assert counts[[1, 3]].sum() == 0
    assert stats.chisquare(counts[[0, 2, 4]]).pvalue > ALPHA


def test_infinite_scores_tie_too() -> None:
    picks = {argmax(np.array([math.inf, 0.0, math.inf]), step, stream(3)) for step in range(1, 50)}
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
def test_an_arm_without_rewards_comes_first(name: str) -> None:
    played = Driver(db.policy(name).tuned(1, 100), arms=3).feed(0, 1.0, 1.0).feed(2, 1.0)
    assert scores_at(played, 4)[1] == math.inf


def test_idle_arm_forgets_its_data_but_not_its_prior() -> None:
    played = Driver(db.policy("aff-ts", step_size=0.2, prior=(2.0, 3.0)), arms=2).feed(0, *[0.0] * 9, *[1.0] * 3)
    column = played.memory[:, 0]
    assert column[played.policy.slots.index("forgetting")] < 1.0
    played.last_played[0] = 12
    posterior = played.functions.posterior
    fresh, idle = (posterior(played.state, 0, played.step(number), played.params) for number in (13, 10_013))
    assert sum(fresh) > 6.0
    assert idle == pytest.approx((2.0, 3.0), abs=1e-9)


def test_the_printed_bonus_of_aff_ucb2_never_grows_and_the_repaired_one_does() -> None:
    rewards = [*[0.0] * 20, *[1.0] * 10]
    printed = Driver(db.policy("aff-ucb2", step_size=0.01), arms=2).feed(0, *rewards)
    growing = Driver(db.policy("aff-ucb2-growing", step_size=0.01), arms=2).feed(0, *rewards)
    assert scores_at(printed, 2)[0] == scores_at(printed, 10_000)[0]
    assert scores_at(growing, 1)[0] == pytest.approx(scores_at(printed, 1)[0], rel=1e-12)
    assert scores_at(growing, 10)[0] > scores_at(growing, 2)[0]
    mean = growing.memory[growing.policy.slots.index("mean"), 0]
    assert scores_at(growing, 10_000)[0] == pytest.approx(mean + math.sqrt(math.log(20) / 2), rel=1e-12)


def test_aff_ucb1_gives_an_idle_arm_without_variance_no_bonus_as_printed() -> None:
    trapped = Driver(db.policy("aff-ucb1"), arms=2).feed(0, *[0.0] * 10)
    mended = Driver(db.policy("aff-ucb1", variance_floor=0.05), arms=2).feed(0, *[0.0] * 10)
    assert scores_at(trapped, 5000)[0] == 0.0
    assert scores_at(mended, 5000)[0] > 1.0


def test_dts_never_holds_more_than_its_memory_and_never_scores_nan() -> None:
    played = Driver(db.policy("dts", memory=5.0), arms=2).feed(0, *[1.0] * 5000)
    a, b = played.memory[:, 0]
    assert a + b == pytest.approx(5.0, rel=1e-9)
    assert b < 1e-30  # a long run of equal rewards drives it towards 0
    assert not np.isnan(scores_at(played, 5001)).any()


def test_adaptive_discount_of_a_forgetting_factor_of_zero_is_one_when_fresh_and_zero_when_idle() -> None:
    assert exponential(LOG_ZERO, 0, 100, 0.0) == 1.0
    assert exponential(LOG_ZERO, 1, 100, 0.0) == 0.0


def test_a_sliding_window_longer_than_the_run_is_no_window() -> None:
    world = db.environment("case-1", arms=3)
    short, long = (
        db.simulate(db.policy("sw-ucb", window=window), world, horizon=500, seed=1, keep=("arms",)).arms
        for window in (500, 2**32 - 1)
    )
    assert np.array_equal(np.asarray(short), np.asarray(long))
