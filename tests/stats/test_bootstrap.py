"""Ratios agree with SciPy's bootstrap, or with what can be computed by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from dynabandit.stats import bootstrap, intervals
from dynabandit.stats.bootstrap import RESAMPLES, SEED

RNG = np.random.default_rng(7)
FIRST = RNG.gamma(4.0, 25.0, 60)
SECOND = 0.8 * FIRST + RNG.normal(40.0, 10.0, 60)


@pytest.mark.parametrize("paired", [True, False])
def test_ratios_are_those_of_scipys_bootstrap(paired: bool) -> None:
    def statistic(one: np.ndarray, two: np.ndarray, axis: int) -> np.ndarray:
        return one.mean(axis=axis) / two.mean(axis=axis)

    expected = stats.bootstrap(
        (FIRST, SECOND), statistic, paired=paired, n_resamples=RESAMPLES, method="percentile", vectorized=True,
        rng=np.random.default_rng(SEED),
    ).confidence_interval  # fmt: skip
    value, low, high = bootstrap.ratio(FIRST, SECOND, paired=paired)
    assert value == pytest.approx(FIRST.mean() / SECOND.mean())
    assert (low, high) == pytest.approx(tuple(expected), rel=0.02)


def test_pairing_narrows_a_ratio_of_samples_that_go_together() -> None:
    paired, unpaired = bootstrap.ratio(FIRST, SECOND), bootstrap.ratio(FIRST, SECOND, paired=False)
    assert paired.high - paired.low < 0.6 * (unpaired.high - unpaired.low)


def test_a_ratio_covers_the_truth_nearly_always() -> None:
    # 100 samples of 50 with true ratio 0.5: 95 % intervals miss 15 or more with probability 1e-4
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(100):
        below = rng.gamma(4.0, 50.0, 50)
        above = 0.5 * below * rng.gamma(25.0, 1.0 / 25.0, 50)
        _, low, high = bootstrap.ratio(above, below)
        missed += not low <= 0.5 <= high
    assert missed < 15


def test_the_spread_ratio_compares_standard_deviations() -> None:
    value, low, high = bootstrap.spread_ratio(3.0 * FIRST + 10.0, FIRST)
    assert value == pytest.approx(3.0)
    assert (low, high) == pytest.approx((3.0, 3.0))


def test_sensitivity_is_the_worst_setting_over_the_best() -> None:
    value, low, high = bootstrap.sensitivity([FIRST, 2.0 * FIRST, 1.5 * FIRST])
    assert (value, low, high) == pytest.approx((2.0, 2.0, 2.0))
    assert bootstrap.sensitivity([FIRST, FIRST]) == (1.0, 1.0, 1.0)


def test_the_interval_of_a_sensitivity_holds_its_value() -> None:
    rng = np.random.default_rng(1)
    same = [rng.normal(100.0, 10.0, 40) for _ in range(4)]
    value, low, high = bootstrap.sensitivity(same)
    assert low <= value <= high


def test_relative_sensitivity_compares_with_the_most_sensitive_of_the_others() -> None:
    others = [[FIRST, 1.1 * FIRST], [FIRST, 2.0 * FIRST], [FIRST, FIRST]]
    value, low, high = bootstrap.relative_sensitivity([FIRST, 3.0 * FIRST], others)
    assert (value, low, high) == pytest.approx((1.5, 1.5, 1.5))


def test_the_rank_correlation_is_spearmans() -> None:
    means = np.array([10.0, 20.0, 30.0, 40.0, 50.0])
    others = np.array([20.0, 10.0, 30.0, 50.0, 40.0])
    noise = RNG.normal(0.0, 3.0, (5, 40))
    noise -= noise.mean(axis=1, keepdims=True)
    agreement = bootstrap.rank_correlation(list(means[:, None] + noise), list(others[:, None] + noise))
    assert agreement.value == pytest.approx(stats.spearmanr(means, others).statistic)
    assert agreement.low <= agreement.value <= agreement.high


def test_where_all_replications_agree_the_interval_is_a_point() -> None:
    assert intervals.mean(np.full(5, 2.0)) == (2.0, 2.0, 2.0)
    assert intervals.difference(np.arange(4.0) + 1.0, np.arange(4.0)) == (1.0, 1.0, 1.0)
    assert bootstrap.ratio(np.full(5, 2.0), np.full(5, 4.0)) == (0.5, 0.5, 0.5)


def test_two_policies_without_regret_are_equal() -> None:
    assert bootstrap.ratio(np.zeros(5), np.zeros(5)) == (1.0, 1.0, 1.0)
    assert bootstrap.ratio(np.ones(5), np.zeros(5)).value == math.inf


def test_one_replication_has_no_interval() -> None:
    for estimate in (intervals.mean(np.ones(1)), bootstrap.ratio(np.ones(1), np.ones(1))):
        assert estimate.value == 1.0
        assert math.isnan(estimate.low)
        assert math.isnan(estimate.high)


def test_the_same_data_always_get_the_same_interval() -> None:
    assert bootstrap.ratio(FIRST, SECOND) == bootstrap.ratio(FIRST, SECOND)
