"""Estimates agree with SciPy, or with what can be worked out by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from dynabandit.stats import intervals
from dynabandit.stats.intervals import RESAMPLES, SEED, Estimate

RNG = np.random.default_rng(7)
FIRST = RNG.gamma(4.0, 25.0, 60)
SECOND = 0.8 * FIRST + RNG.normal(40.0, 10.0, 60)


def test_the_mean_has_students_interval() -> None:
    value, low, high = intervals.mean(FIRST)
    expected = stats.ttest_1samp(FIRST, 0.0).confidence_interval(0.95)
    assert value == pytest.approx(FIRST.mean())
    assert (low, high) == pytest.approx(tuple(expected))


def test_differences_are_paired() -> None:
    value, low, high = intervals.difference(FIRST, SECOND)
    expected = stats.ttest_rel(FIRST, SECOND).confidence_interval(0.95)
    assert value == pytest.approx((FIRST - SECOND).mean())
    assert (low, high) == pytest.approx(tuple(expected))
    unpaired = stats.ttest_ind(FIRST, SECOND).confidence_interval(0.95)
    assert high - low < 0.5 * (unpaired.high - unpaired.low)


@pytest.mark.parametrize("paired", [True, False])
def test_ratios_are_those_of_scipys_bootstrap(paired: bool) -> None:
    def statistic(one: np.ndarray, two: np.ndarray, axis: int) -> np.ndarray:
        return one.mean(axis=axis) / two.mean(axis=axis)

    expected = stats.bootstrap(
        (FIRST, SECOND), statistic, paired=paired, n_resamples=RESAMPLES, method="percentile", vectorized=True,
        rng=np.random.default_rng(SEED),
    ).confidence_interval  # fmt: skip
    value, low, high = intervals.ratio(FIRST, SECOND, paired=paired)
    assert value == pytest.approx(FIRST.mean() / SECOND.mean())
    assert (low, high) == pytest.approx(tuple(expected), rel=0.02)


def test_pairing_narrows_a_ratio_of_samples_that_go_together() -> None:
    paired, unpaired = intervals.ratio(FIRST, SECOND), intervals.ratio(FIRST, SECOND, paired=False)
    assert paired.high - paired.low < 0.6 * (unpaired.high - unpaired.low)


def test_a_ratio_covers_the_truth_nearly_always() -> None:
    # 200 samples of 50 with true ratio 0.5: 95 % intervals miss 22 or more with probability 1e-4
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(200):
        below = rng.gamma(4.0, 50.0, 50)
        above = 0.5 * below * rng.gamma(25.0, 1.0 / 25.0, 50)
        _, low, high = intervals.ratio(above, below)
        missed += not low <= 0.5 <= high
    assert missed < 22


def test_the_spread_ratio_compares_standard_deviations() -> None:
    value, low, high = intervals.spread_ratio(3.0 * FIRST + 10.0, FIRST)
    assert value == pytest.approx(3.0)
    assert (low, high) == pytest.approx((3.0, 3.0))


def test_the_share_has_binomial_intervals() -> None:
    test = stats.binomtest(7, 100)
    assert intervals.share(7, 100)[1:] == pytest.approx(tuple(test.proportion_ci(0.95, method="wilson")))
    exact = intervals.share(7, 100, method="exact")
    assert exact[1:] == pytest.approx(tuple(test.proportion_ci(0.95, method="exact")))


def test_sensitivity_is_the_worst_setting_over_the_best() -> None:
    value, low, high = intervals.sensitivity([FIRST, 2.0 * FIRST, 1.5 * FIRST])
    assert (value, low, high) == pytest.approx((2.0, 2.0, 2.0))
    assert intervals.sensitivity([FIRST, FIRST]) == (1.0, 1.0, 1.0)


def test_the_interval_of_a_sensitivity_holds_its_value() -> None:
    rng = np.random.default_rng(1)
    same = [rng.normal(100.0, 10.0, 40) for _ in range(4)]
    value, low, high = intervals.sensitivity(same)
    assert low <= value <= high


def test_relative_sensitivity_compares_with_the_most_sensitive_of_the_others() -> None:
    others = [[FIRST, 1.1 * FIRST], [FIRST, 2.0 * FIRST], [FIRST, FIRST]]
    value, low, high = intervals.relative_sensitivity([FIRST, 3.0 * FIRST], others)
    assert (value, low, high) == pytest.approx((1.5, 1.5, 1.5))


def test_the_agreement_of_orders_is_spearmans() -> None:
    means = np.array([10.0, 20.0, 30.0, 40.0, 50.0])
    others = np.array([20.0, 10.0, 30.0, 50.0, 40.0])
    noise = RNG.normal(0.0, 3.0, (5, 40))
    noise -= noise.mean(axis=1, keepdims=True)
    agreement = intervals.order_agreement(list(means[:, None] + noise), list(others[:, None] + noise))
    assert agreement.value == pytest.approx(stats.spearmanr(means, others).statistic)
    assert agreement.low <= agreement.value <= agreement.high


def test_where_all_replications_agree_the_interval_is_a_point() -> None:
    assert intervals.mean(np.full(5, 2.0)) == (2.0, 2.0, 2.0)
    assert intervals.difference(np.arange(4.0) + 1.0, np.arange(4.0)) == (1.0, 1.0, 1.0)
    assert intervals.ratio(np.full(5, 2.0), np.full(5, 4.0)) == (0.5, 0.5, 0.5)


def test_two_policies_without_regret_are_equal() -> None:
    assert intervals.ratio(np.zeros(5), np.zeros(5)) == (1.0, 1.0, 1.0)
    assert intervals.ratio(np.ones(5), np.zeros(5)).value == math.inf


def test_one_replication_has_no_interval() -> None:
    for estimate in (intervals.mean(np.ones(1)), intervals.ratio(np.ones(1), np.ones(1))):
        assert estimate.value == 1.0
        assert math.isnan(estimate.low)
        assert math.isnan(estimate.high)


def test_samples_of_different_length_are_not_paired() -> None:
    with pytest.raises(ValueError, match=r"equally many replications, got \[3, 4\]"):
        intervals.difference(np.ones(3), np.ones(4))


def test_a_band_is_the_interval_of_each_column() -> None:
    samples = np.stack([FIRST, SECOND], axis=1)
    mean, low, high = intervals.band(samples)
    for column, sample in enumerate((FIRST, SECOND)):
        assert Estimate(mean[column], low[column], high[column]) == pytest.approx(intervals.mean(sample))


def test_the_same_data_always_get_the_same_interval() -> None:
    assert intervals.ratio(FIRST, SECOND) == intervals.ratio(FIRST, SECOND)
