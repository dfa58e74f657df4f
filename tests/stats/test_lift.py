"""The lift is unbiased, and its confidence sequence holds at all times together."""

import itertools
import math

import numpy as np
import pytest

from dynabandit.stats.confidence_sequences import bounded_limit, bounded_log_evidence, normal_limit
from dynabandit.stats.lift import FIRST_REPORT, WARM_UP, LiftSums, add_reward, estimate_lift


def sums_after(rewards: np.ndarray, in_holdout: np.ndarray, share: float, is_bounded: bool = True) -> LiftSums:
    sums = LiftSums()
    for reward, held_out in zip(rewards.tolist(), in_holdout.tolist(), strict=True):
        sums = add_reward(sums, share, is_bounded, reward, held_out)
    return sums


def test_the_terms_are_unbiased_whatever_happened_before() -> None:
    before = sums_after(np.array([1.0, 0.0, 0.0, 1.0, 1.0]), np.array([True, False, True, False, False]), 0.3)
    of_policy, of_holdout = add_reward(before, 0.3, True, 0.9, False), add_reward(before, 0.3, True, 0.2, True)
    for name, expected in (("policy_terms", 0.9), ("holdout_terms", 0.2)):
        change = 0.7 * getattr(of_policy, name) + 0.3 * getattr(of_holdout, name) - getattr(before, name)
        assert change == pytest.approx(expected)


def test_the_sums_are_those_of_the_formulas() -> None:
    rng = np.random.default_rng(3)
    in_holdout, rewards, share = rng.random(60) < 0.3, rng.random(60), 0.3
    terms, differences, holdout_errors = [], [], []
    for step in range(60):
        overall = rewards[:step].sum() / (step + 1)
        means = [
            (rewards[:step][group].sum() + overall) / (group.sum() + 1)
            for group in (~in_holdout[:step], in_holdout[:step])
        ]
        error = 0.0 if in_holdout[step] else (rewards[step] - means[0]) / (1 - share)
        held_out_error = (rewards[step] - means[1]) / share if in_holdout[step] else 0.0
        terms.append((means[0] + error, means[1] + held_out_error))
        differences.append(error - held_out_error)
        holdout_errors.append(held_out_error)
    sums = sums_after(rewards, in_holdout, share)
    assert (sums.policy_terms, sums.holdout_terms) == pytest.approx(np.sum(terms, axis=0))
    assert sums.difference_errors == pytest.approx(np.square(differences).sum())
    assert sums.holdout_errors == pytest.approx(np.square(holdout_errors).sum())


@pytest.mark.parametrize("values", [(-1.0, 1.0), (-1.0, 0.25), (-0.2, 5.0)])
def test_the_evidence_of_bounded_terms_is_at_most_1_on_average(values: tuple[float, float]) -> None:
    low, high = values
    odds = high / (high - low), -low / (high - low)  # so that the mean is 0
    expected = 0.0
    for path in itertools.product((0, 1), repeat=8):
        terms = [values[one] for one in path]
        probability = math.prod(odds[one] for one in path)
        expected += probability * math.exp(bounded_log_evidence(sum(terms), sum(one * one for one in terms), 1.0))
    assert 0.5 < expected <= 1.0


def test_limits() -> None:
    limit = bounded_limit(50.0, 4.0, 0.02)
    assert bounded_log_evidence(limit, 50.0, 4.0) == pytest.approx(math.log(50.0))
    # An integral over normal bets: at the limit, the mixture is 1 / alpha
    bets = np.linspace(-8.0, 8.0, 200_001) / math.sqrt(3.0)
    density = math.sqrt(3.0 / (2.0 * math.pi)) * np.exp(-3.0 * bets**2 / 2.0)
    mixture = density * np.exp(bets * normal_limit(20.0, 3.0, 0.04) - bets**2 * 20.0 / 2.0)
    assert float(mixture.sum() * (bets[1] - bets[0])) == pytest.approx(25.0)


@pytest.mark.promise(161)
def test_the_intervals_hold_at_all_times() -> None:
    # 60 runs with click rates that jump, so that one group may have more of its clicks before: with an error rate of
    # 5 %, more than 9 misses have a probability of 0.0013
    rng, misses, share = np.random.default_rng(4), 0, 0.2
    means = np.where(np.arange(1_000) < 500, 0.1, 0.5)
    for _ in range(60):
        sums, true_lift, missed = LiftSums(), 0.0, False
        for step, mean in enumerate(means.tolist()):
            learned = 0.2 * sums.policy_total / (sums.policy_total + 20.0)  # the policy improves with its rewards
            in_holdout = bool(rng.random() < share)
            reward = float(rng.random() < (mean if in_holdout else mean + learned))
            sums = add_reward(sums, share, True, reward, in_holdout)
            true_lift += learned
            if step % 100 == 99 and sums.holdout_count:
                lift = estimate_lift(sums, share, True).absolute
                missed |= not lift.low <= true_lift / (step + 1) <= lift.high
        misses += missed
        assert estimate_lift(sums, share, True).absolute.high < 0.6
    assert misses <= 9


def test_a_lift_is_found_absolute_and_relative() -> None:
    rng = np.random.default_rng(5)
    in_holdout = rng.random(4_000) < 0.2
    rewards = (rng.random(4_000) < np.where(in_holdout, 0.2, 0.4)).astype(float)
    lift = estimate_lift(sums_after(rewards, in_holdout, 0.2), 0.2, True)
    assert lift.absolute.low > 0.05
    assert lift.policy == rewards[~in_holdout].mean()
    assert lift.holdout.low < 0.2 < lift.holdout.high
    assert lift.relative.value == lift.absolute.value / lift.holdout.value
    assert lift.relative.low == lift.absolute.low / lift.holdout.high
    assert lift.relative.high == lift.absolute.high / lift.holdout.low


def test_unbounded_rewards_have_an_interval_when_both_groups_have_enough() -> None:
    rng = np.random.default_rng(6)
    in_holdout = rng.random(3_000) < 0.5
    rewards = rng.normal(np.where(in_holdout, 1_000.0, 1_001.0), 2.0)
    early = in_holdout.cumsum().searchsorted(WARM_UP + FIRST_REPORT - 1)
    assert math.isnan(
        estimate_lift(sums_after(rewards[:early], in_holdout[:early], 0.5, False), 0.5, False).absolute.low
    )
    lift = estimate_lift(sums_after(rewards, in_holdout, 0.5, False), 0.5, False)
    assert 0.7 < lift.absolute.low < 1.0 < lift.absolute.high < 1.3
    # One reward that makes up most of the sum: the effective number of rewards is too small again
    rewards[-1] = 1e9
    assert math.isnan(estimate_lift(sums_after(rewards, in_holdout, 0.5, False), 0.5, False).absolute.low)


def test_no_interval_without_rewards_of_both_groups() -> None:
    assert math.isnan(estimate_lift(LiftSums(), 0.1, True).policy)
    assert math.isnan(estimate_lift(sums_after(np.ones(5), np.zeros(5, dtype=bool), 0.1), 0.1, True).absolute.low)
    # Without a positive mean of the holdout there is no relative lift
    lift = estimate_lift(sums_after(np.zeros(50), np.arange(50) % 2 == 0, 0.5), 0.5, True)
    assert lift.absolute.value == 0.0
    assert math.isnan(lift.relative.value)
