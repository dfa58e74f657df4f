import math

import numpy as np
import pytest
from scipy import stats

from dynabandit.stats.intervals import Estimate
from dynabandit.stats.ratio_estimator import RatioEstimator


def estimator(above: np.ndarray, below: np.ndarray) -> RatioEstimator:
    sums = RatioEstimator()
    for piece in np.array_split(np.arange(len(above)), 7):
        sums.add(above[piece], below[piece])
    return sums


def test_with_denominators_of_one_it_is_a_mean_with_its_normal_interval() -> None:
    sample = np.random.default_rng(1).random(500)
    found = estimator(sample, np.ones(500)).normal()
    low, high = stats.norm.interval(0.95, sample.mean(), sample.std() / math.sqrt(500))
    assert found == pytest.approx((sample.mean(), low, high))


def test_a_ratio_has_the_interval_of_the_delta_method() -> None:
    generator = np.random.default_rng(2)
    below = generator.random(400) + 0.5
    above = below * (generator.random(400) < 0.3)
    found = estimator(above, below).normal()
    value = above.sum() / below.sum()
    error = math.sqrt(((above - value * below) ** 2).sum()) / below.sum()
    assert found == pytest.approx((value, value - 1.959964 * error, value + 1.959964 * error), rel=1e-6)


@pytest.mark.parametrize(("good", "rows"), [(0, 10), (3, 10), (10, 10), (40, 10_000)])
def test_equal_weights_have_wilsons_interval(good: int, rows: int) -> None:
    rewards = (np.arange(rows) < good).astype(float)
    found = estimator(0.25 * rewards, np.full(rows, 0.25)).wilson()
    expected = stats.binomtest(good, rows).proportion_ci(method="wilson")
    assert found == pytest.approx((good / rows, expected.low, expected.high), abs=1e-12)


def test_unequal_weights_are_worth_fewer_rows() -> None:
    weights = np.array([1.0, 1.0, 8.0])
    assert estimator(weights, weights).effective_rows == pytest.approx(100.0 / 66.0)


def test_what_cannot_be_known_is_nan() -> None:
    nothing = estimator(np.zeros(5), np.zeros(5))
    assert all(math.isnan(part) for part in nothing.wilson())
    assert all(math.isnan(part) for part in nothing.normal())
    constant = estimator(np.full(5, 0.5), np.ones(5)).normal()
    assert (constant.value, math.isnan(constant.low)) == (0.5, True)
    assert str(constant) == "0.5000 (interval unknown)"
    assert str(Estimate(0.5, 0.25, 0.75)) == "0.5000 [0.2500, 0.7500]"
