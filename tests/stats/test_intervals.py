"""Estimates agree with SciPy, or with what can be worked out by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from dynabandit.stats import intervals
from dynabandit.stats.intervals import Estimate

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


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (7, 100), (10, 10), (40, 10_000)])
def test_shares_have_the_binomial_intervals_of_scipy(successes: int, trials: int) -> None:
    test = stats.binomtest(successes, trials)
    assert intervals.wilson(successes / trials, trials) == pytest.approx(tuple(test.proportion_ci(method="wilson")))
    value, low, high = intervals.clopper_pearson(successes, trials)
    assert value == successes / trials
    assert (low, high) == pytest.approx(tuple(test.proportion_ci(method="exact")))


def test_agresti_and_coull_add_two_successes_and_two_failures() -> None:
    low, high = intervals.agresti_coull(np.array([0.0, 0.3]), np.array([0.0, 100.0]))
    assert (low[0], high[0]) == pytest.approx(stats.norm.interval(0.95, 0.5, math.sqrt(0.25 / 4)))
    middle = 32 / 104
    ends = stats.norm.interval(0.95, middle, math.sqrt(middle * (1 - middle) / 104))
    assert (low[1], high[1]) == pytest.approx(ends)
    low, high = intervals.agresti_coull(np.array([0.0, 1.0]), np.array([10.0, 10.0]))
    assert (low[0], high[1]) == (0.0, 1.0)


def test_the_interval_of_a_total_adds_the_variance_of_the_estimate_to_that_of_the_rewards() -> None:
    counts = np.array([0.0, 100.0, 10.0])
    low, middle, high = intervals.binomial_total(np.array([0.0, 40.0, 9.5]), np.array([0.0, 25.0, 1.0]), counts)
    assert middle.tolist() == [0.0, 40.0, 9.5]
    assert (low[1], high[1]) == pytest.approx(stats.norm.interval(0.95, 40.0, 7.0))
    assert (low[0], high[0], high[2]) == (0.0, 0.0, 10.0)


@pytest.mark.parametrize("comparisons", [1, 15])
def test_several_comparisons_share_the_error_rate(comparisons: int) -> None:
    quantile = intervals.t_quantile(19, comparisons)
    assert 2 * comparisons * stats.t.sf(quantile, 19) == pytest.approx(0.05)


def test_samples_of_different_length_are_not_paired() -> None:
    with pytest.raises(ValueError, match=r"equally many replications, got \[3, 4\]"):
        intervals.difference(np.ones(3), np.ones(4))


def test_a_band_is_the_interval_of_each_column() -> None:
    samples = np.stack([FIRST, SECOND], axis=1)
    mean, low, high = intervals.student_band(samples)
    for column, sample in enumerate((FIRST, SECOND)):
        assert Estimate(mean[column], low[column], high[column]) == pytest.approx(intervals.mean(sample))


def two_shares(first: int, second: int, trials: tuple[int, int]) -> tuple[Estimate, Estimate]:
    one, two = (
        Estimate(successes / size, *intervals.wilson(successes / size, size))
        for successes, size in zip((first, second), trials, strict=True)
    )
    return one, two


@pytest.mark.parametrize(
    ("first", "second", "trials", "expected"),
    [(56, 48, (70, 80), (0.0524, 0.3339)), (9, 3, (10, 10), (0.1705, 0.8090)), (5, 0, (56, 29), (-0.0381, 0.1926))],
)
def test_differences_of_shares_have_the_intervals_that_newcombe_published(
    first: int, second: int, trials: tuple[int, int], expected: tuple[float, float]
) -> None:
    one, two = two_shares(first, second, trials)
    found = intervals.difference_of_estimates(one, two)
    assert (found.low, found.high) == pytest.approx(expected, abs=5e-5)  # his table has four digits


def test_differences_of_normal_estimates_add_their_variances() -> None:
    one, two = Estimate(3.0, *intervals.normal(3.0, 0.3)), Estimate(1.0, *intervals.normal(1.0, 0.4))
    assert tuple(intervals.difference_of_estimates(one, two)) == pytest.approx((2.0, *intervals.normal(2.0, 0.5)))


def test_intervals_of_ratios_cover_the_true_ratio() -> None:
    trials, rates = (120, 90), (0.3, 0.2)
    chances = [stats.binom.pmf(np.arange(size + 1), size, rate) for size, rate in zip(trials, rates, strict=True)]
    covered = 0.0  # the exact probability: no simulation
    for first, one_chance in enumerate(chances[0]):
        for second, other_chance in enumerate(chances[1]):
            low, high = intervals.ratio_of_estimates(*two_shares(first, second, trials))[1:]
            covered += one_chance * other_chance * (low <= rates[0] / rates[1] <= high)
    assert 0.94 <= covered <= 0.96


def test_a_ratio_needs_estimates_above_zero() -> None:
    none, some = two_shares(0, 5, (20, 20))
    assert math.isnan(intervals.ratio_of_estimates(some, none).value)
    value, low, high = intervals.ratio_of_estimates(none, some)
    assert value == 0.0
    assert math.isnan(low)
    assert math.isnan(high)
