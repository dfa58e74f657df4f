"""The Kullback-Leibler upper bound against an independent bisection."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dynabandit.core.bernoulli_kl import kl, negentropy, upper_bound
from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.precision import single

MEANS = [0.0, 1e-9, 1e-4, 0.03, 0.25, 0.5, 0.6931, 0.8, 0.97, 1.0 - 1e-4, 1.0 - 1e-9]
LEVELS = [*np.geomspace(1e-6, 60.0, 200).tolist(), 0.1, 0.5]


def divergence(p: float, q: float) -> float:
    """kl(p, q) for q >= p, in a form that is accurate for q close to p."""
    x = q - p
    low = -p * math.log1p(x / p) if p > 0 else 0.0
    return low - (1 - p) * math.log1p(-x / (1 - p))


def bisected(p: float, level: float) -> float:
    low, high = p, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if middle >= 1.0 or divergence(p, middle) > level:
            high = middle
        else:
            low = middle
    return low


@pytest.mark.parametrize("p", MEANS)
def test_the_bound_agrees_with_bisection(p: float) -> None:
    for level in LEVELS:
        assert upper_bound(p, negentropy(p), level) == pytest.approx(bisected(p, level), abs=1e-12)


@settings(max_examples=300, derandomize=True)
@given(p=st.floats(0.0, 1.0), level=st.floats(0.0, 1e300))
def test_the_bound_is_between_the_mean_and_one(p: float, level: float) -> None:
    assert p <= upper_bound(p, negentropy(p), level) <= 1.0


@pytest.mark.parametrize("p", [*MEANS, 1.0])
def test_the_bound_at_a_level_of_zero_is_the_mean_and_at_infinity_one(p: float) -> None:
    assert upper_bound(p, negentropy(p), 0.0) == p
    assert upper_bound(p, negentropy(p), 1e-300) == pytest.approx(p, abs=1e-15)
    assert upper_bound(p, negentropy(p), math.inf) == 1.0


def test_the_bound_of_a_mean_of_zero_is_its_closed_form() -> None:
    for level in LEVELS:
        assert upper_bound(0.0, 0.0, level) == pytest.approx(-math.expm1(-level), rel=1e-9)


def test_the_bound_is_the_same_compiled_and_interpreted_to_the_last_bit() -> None:
    @kernel
    def fill(means: np.ndarray, levels: np.ndarray, out: np.ndarray) -> None:
        for i in range(means.size):
            for j in range(levels.size):
                out[i, j] = upper_bound(means[i], negentropy(means[i]), levels[j])

    out = np.zeros((2, len(MEANS), len(LEVELS)))
    fill(np.array(MEANS), np.array(LEVELS), out[0])
    compiled(fill)(np.array(MEANS), np.array(LEVELS), out[1])
    assert (out[0] == out[1]).all()


def test_the_bound_in_single_precision_is_off_by_few_roundings() -> None:
    for p in MEANS[2:-2]:
        for level in LEVELS:
            found = single(upper_bound)(np.float32(p), single(negentropy)(np.float32(p)), np.float32(level))
            assert type(found) is np.float32
            assert float(found) == pytest.approx(bisected(p, level), abs=1e-4 if level < 1e-4 else 2e-6)


def test_the_divergence_is_zero_for_equal_laws_and_else_positive() -> None:
    for p in MEANS:
        assert kl(p, p) == 0.0
        assert kl(p, 0.4321) > 0.0
    assert kl(0.0, 0.5) == pytest.approx(math.log(2.0))
    assert kl(1.0, 0.5) == pytest.approx(math.log(2.0))


@pytest.mark.parametrize("p", [0.03, 0.25, 0.5, 0.8])
@pytest.mark.parametrize("level", [9e-13, 1e-14, 1e-18, 1e-21])
def test_the_bound_at_a_tiny_level_is_not_dominated_by_rounding(p: float, level: float) -> None:
    assert upper_bound(p, negentropy(p), level) - p == pytest.approx(bisected(p, level) - p, rel=0.01, abs=1e-15)
