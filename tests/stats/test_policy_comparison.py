"""The comparison of a policy with another one that did not decide: unbiased, with intervals that hold at all times."""

import numpy as np
import pytest

from dynabandit.stats.policy_comparison import (
    MIN_PROPENSITY,
    ComparisonSums,
    add_reward,
    compare_policies,
    is_covered,
)

MEANS = np.array([0.3, 0.6])


def play(rng: np.random.Generator, steps: int, scale: float = 1.0) -> tuple[list[ComparisonSums], np.ndarray]:
    """Return the sums after each reward, and the true mean difference so far.

    The policy takes the second arm with a probability that changes over time, the other one nearly always. Rewards are
    0 or `scale`, and their means change after half of the steps.
    """
    sums, found, truth, total = ComparisonSums(), [], np.zeros(steps), 0.0
    for step in range(steps):
        means = scale * (MEANS if step < steps // 2 else MEANS[::-1])
        probabilities = np.array([0.5 + 0.4 * np.sin(step / 50), 0.5 - 0.4 * np.sin(step / 50)])
        column, other = rng.choice(2, p=probabilities), int(rng.random() < 0.9)
        reward = scale * float(rng.random() * scale < means[column])
        sums = add_reward(sums, float(probabilities[other]), bool(column == other), reward)
        total += means[other] - probabilities @ means
        truth[step] = total / (step + 1)
        found.append(sums)
    return found, truth


@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_the_estimate_is_unbiased_and_its_intervals_hold_at_all_times(scale: float) -> None:
    """Over 100 runs at most 5 % of the intervals may fail at any time; more than 11 have a probability below 0.5 %."""
    rng, failed, errors = np.random.default_rng(1), 0, []
    for _ in range(100):
        found, truth = play(rng, 600, scale)
        compared = [(compare_policies(found[step], scale == 1.0).difference, truth[step]) for step in range(9, 600, 30)]
        failed += any(one.low > true or one.high < true for one, true in compared)
        errors.append(compared[-1][0].value - compared[-1][1])
    assert failed <= 11
    assert abs(np.mean(errors)) < 3.5 * np.std(errors) / 10


def test_intervals_become_narrow() -> None:
    found, truth = play(np.random.default_rng(2), 4000)
    difference = compare_policies(found[1999], is_bounded=True).difference
    assert -0.05 < difference.low < truth[1999] < difference.high < 0.25
    wide = compare_policies(found[199], is_bounded=True).difference
    assert difference.high - difference.low < (wide.high - wide.low) / 2


def test_decisions_that_say_nothing_are_counted_and_left_out() -> None:
    sums = add_reward(ComparisonSums(), None, is_equal=True, reward=1.0)
    sums = add_reward(sums, MIN_PROPENSITY / 2, is_equal=False, reward=1.0)
    assert (sums.rewards, sums.unknown, sums.uncovered) == (0, 1, 1)
    assert not is_covered(sums)
    assert np.isnan(compare_policies(sums, is_bounded=True).policy)
    sums = add_reward(sums, 1.0, is_equal=True, reward=1.0)  # a policy without randomness, at which both agree
    assert not is_covered(sums)
    for _ in range(2):
        sums = add_reward(sums, 0.5, is_equal=True, reward=1.0)
    assert is_covered(sums)


def test_unbounded_rewards_have_an_interval_after_some_of_equal_and_of_different_choices() -> None:
    found, _ = play(np.random.default_rng(3), 400, scale=5.0)
    known = [not np.isnan(compare_policies(one, is_bounded=False).difference.low) for one in found]
    first = known.index(True)
    assert (found[first].equal >= 100, found[first].rewards - found[first].equal >= 20) == (True, True)
    assert found[first - 1].equal < 100 or found[first - 1].rewards - found[first - 1].equal < 20
    assert all(known[first:])
