"""The probability of each draw that it is the largest, compared with slow quadrature and with closed forms.

The oracle integrates SciPy's densities and distribution functions with ten times the nodes, on panels that end at many
quantiles of every law. All errors must be below 1e-8; the documentation promises 1e-6.
"""

import math
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy import special, stats

from dynabandit.core import probability_of_largest
from dynabandit.core.compilation import compiled
from dynabandit.core.probability_of_largest import (
    BETA,
    GAMMA,
    STUDENT,
    gauss_legendre,
    integrate_panel,
    probabilities_of_largest,
)

TOLERANCE = 1e-8
RULE = gauss_legendre()
COMPILED = compiled(probabilities_of_largest, creates_arrays=True)


def found(family: int, laws: Any, *, optimistic: bool = False, function: Callable[..., None] = COMPILED) -> np.ndarray:
    laws = np.asarray(laws, dtype=float)
    laws = np.column_stack([laws, np.full((len(laws), 3 - laws.shape[1]), math.inf)])
    probabilities = np.zeros(len(laws))
    function(family, np.ascontiguousarray(laws), optimistic, RULE, probabilities)
    return probabilities


def log_density(family: int, law: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the log density of log-odds, of a logarithm or of a value."""
    if family == BETA:
        a, b = law[:2]
        return np.asarray(a * t - (a + b) * np.logaddexp(0.0, t) - special.betaln(a, b))
    if family == GAMMA:
        shape, rate = law[:2]
        return np.asarray(shape * (t + math.log(rate)) - rate * np.exp(t) - special.gammaln(shape))
    center, scale, freedom = law
    z = (t - center) / scale
    return np.asarray((stats.norm.logpdf(z) if math.isinf(freedom) else stats.t.logpdf(z, freedom)) - math.log(scale))


def below(family: int, law: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the distribution function."""
    if family == BETA:
        a, b = law[:2]
        inner = np.clip(t, -36.0, 36.0)  # beyond, the density is exponential
        tail = np.exp(log_density(family, law, t))
        lower, upper = special.betainc(a, b, special.expit(inner)), special.betaincc(b, a, special.expit(-inner))
        middle = np.where(t < 0.0, lower, upper)
        return np.where(t < -36.0, tail / a, np.where(t > 36.0, 1.0 - tail / b, middle))
    if family == GAMMA:
        return np.asarray(special.gammainc(law[0], law[1] * np.exp(t)))
    center, scale, freedom = law
    z = (t - center) / scale
    return np.asarray(special.ndtr(z) if math.isinf(freedom) else special.stdtr(freedom, z))


def spread(family: int, law: np.ndarray) -> tuple[float, float, float, float]:
    """Return the mode, the standard deviation there, and the scales of the lower and the upper tail."""
    if family == STUDENT:
        tail = law[1] * {1.0: 1e9, 2.0: 1e5, 5.0: 1e3}.get(law[2], 20.0)
        return law[0], law[1], tail, tail
    a, b = law[:2]
    if family == GAMMA:
        return math.log(a / b), 1.0 / math.sqrt(a), 50.0 / a, 50.0 / max(a, 1.0)
    return math.log(a / b), math.sqrt(1.0 / a + 1.0 / b), 50.0 / a, 50.0 / b


def oracle(family: int, laws: np.ndarray, *, optimistic: bool = False) -> np.ndarray:
    spreads = [spread(family, law) for law in laws]
    ends = [
        mode + part
        for mode, deviation, lower, upper in spreads
        for part in (*np.linspace(-9, 9, 91) * deviation, *-np.geomspace(1e-9, 1, 150) * lower,
                     *np.geomspace(1e-9, 1, 150) * upper)
    ]  # fmt: skip
    low = max(mode - max(lower, 12.0 * deviation) for mode, deviation, lower, _ in spreads)
    high = max(mode + max(upper, 12.0 * deviation) for mode, deviation, _, upper in spreads)
    if optimistic:
        low = max(mode for mode, *_ in spreads)
    if family == BETA:
        ends += list(np.linspace(-45.0, 45.0, 91))
    inner = [end for end in np.unique(ends) if low < end < high]
    ends = [low, *inner[:: max(1, len(inner) // (120 if len(laws) > 50 else 400))], high]
    nodes, weights = np.polynomial.legendre.leggauss(20)
    middle, half = 0.5 * (np.array(ends[1:]) + ends[:-1]), 0.5 * np.diff(ends)
    t, w = (middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()
    densities = np.exp([log_density(family, law, t) for law in laws])
    functions = np.array([below(family, law, t) for law in laws])
    result = np.array([w @ (f * np.prod(np.delete(functions, i, 0), 0)) for i, f in enumerate(densities)])
    if optimistic:
        largest = np.array([mode for mode, *_ in spreads]) == low
        result += largest / largest.sum() * np.prod([below(family, law, np.array([low]))[0] for law in laws])
    return result


def beta_cases() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    cases = [rng.uniform(0.5, 50.0, (arms, 2)) for arms in (2, 3, 7)]
    cases += [10.0 ** rng.uniform(low, high, (4, 2)) for low, high in ((-3, 6), (-3, 0), (0, 6)) for _ in range(4)]
    size, gap = 10.0 ** rng.uniform(1, 6, (6, 5)), rng.normal(0.0, 0.3, (6, 5))
    mean = 0.3 + gap / np.sqrt(size)
    cases += [np.column_stack(pair) for pair in zip(size * mean, size * (1.0 - mean), strict=True)]
    cases += [np.tile([[a, b]], (3, 1)) for a, b in ((2.0, 2.0), (1e-3, 1e-3), (1e6, 1e6), (1e-3, 1e4), (3e5, 0.5))]
    cases += [np.array([[1e6, 1e6], [1e-3, 1e-3], [2.0, 2.0]]), np.array([[1e6, 1.0], [1.0, 1e6]])]
    return cases


@pytest.mark.parametrize("optimistic", [False, True])
@pytest.mark.parametrize("laws", beta_cases(), ids=str)
def test_beta_draws(laws: np.ndarray, optimistic: bool) -> None:
    """Flat, sharp, U-shaped and mixed posteriors."""
    probabilities = found(BETA, laws, optimistic=optimistic)
    assert probabilities == pytest.approx(oracle(BETA, laws, optimistic=optimistic), abs=TOLERANCE)
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("optimistic", [False, True])
def test_gamma_and_student_draws(optimistic: bool) -> None:
    rng = np.random.default_rng(2)
    for _ in range(10):
        shape, mean = 10.0 ** rng.uniform(-1, 4, 4), rng.uniform(0.5, 2.0, 4)
        laws = np.column_stack([shape, shape / mean, mean])
        assert found(GAMMA, laws, optimistic=optimistic) == pytest.approx(
            oracle(GAMMA, laws, optimistic=optimistic), abs=TOLERANCE
        )
        freedom = rng.choice([1.0, 2.0, 5.0, 50.0, math.inf], 4)
        laws = np.column_stack([rng.normal(size=4), 10.0 ** rng.uniform(-3, 1, 4), freedom])
        assert found(STUDENT, laws, optimistic=optimistic) == pytest.approx(
            oracle(STUDENT, laws, optimistic=optimistic), abs=TOLERANCE
        )


def test_a_hundred_arms() -> None:
    """Equal ones share the probability, also if they are optimistic; others are as in the oracle."""
    rng = np.random.default_rng(3)
    for law in ((20.0, 30.0), (1e6, 1e6), (1e-3, 1e-3), (1e-12, 1e-12)):
        for optimistic in (False, True):
            probabilities = found(BETA, np.tile([law], (100, 1)), optimistic=optimistic)
            assert probabilities == pytest.approx(np.full(100, 0.01), abs=TOLERANCE)
    for laws in (rng.uniform(1.0, 50.0, (100, 2)), 10.0 ** rng.uniform(-1, 4, (100, 2))):
        assert found(BETA, laws) == pytest.approx(oracle(BETA, laws), abs=TOLERANCE)


@pytest.mark.parametrize("scale", [1e-3, 1e-6, 1e-11])
def test_tiny_shapes(scale: float) -> None:
    """The log-odds of such a draw are exponential on both sides: the result is known up to the order of the shapes."""
    rng = np.random.default_rng(4)
    (a, b), (c, d) = laws = scale * rng.uniform(0.5, 2.0, (2, 2))
    p, q = a / (a + b), c / (c + d)
    expected = p * (1.0 - q) + p * q * d / (b + d) + (1.0 - p) * (1.0 - q) * a / (a + c)
    assert found(BETA, laws)[0] == pytest.approx(expected, abs=max(20.0 * scale, TOLERANCE))


@pytest.mark.parametrize("law", [(1e-12, 1e12), (1e-12, 2e5), (3e-8, 1e9), (1e-4, 1e12), (0.09, 1e12), (0.2, 1e12)])
def test_few_panels_suffice_for_a_tiny_and_a_huge_shape(law: tuple[float, float]) -> None:
    """Seconds of computing for a hundred arms would keep a service from answering others."""
    with mock.patch.object(probability_of_largest, "integrate_panel", wraps=integrate_panel) as panels:
        probabilities = found(BETA, [law] * 3, function=probabilities_of_largest)
    assert panels.call_count < 100
    assert probabilities == pytest.approx(np.full(3, 1.0 / 3.0), abs=1e-6)
    # Below its top, the logarithm of such a draw is nearly exponential
    share = found(BETA, [law, (2.0 * law[0], law[1])])[0]
    assert share == pytest.approx(1.0 / 3.0, abs=max(TOLERANCE, law[0]))


@pytest.mark.parametrize("scale", [1e-4, 1e-7, 1e-8, 1e-9])
def test_few_panels_suffice_if_a_law_is_as_narrow_as_doubles_are_apart(scale: float) -> None:
    """Its integral is not exactly 1 then, so that a little probability seems to be left below it."""
    laws = [(35.6 + 1e-3 / 3.0, scale, math.inf), (-5.7, 8.4, math.inf), (0.6, 0.5, math.inf)]
    with mock.patch.object(probability_of_largest, "integrate_panel", wraps=integrate_panel) as panels:
        probabilities = found(STUDENT, laws, function=probabilities_of_largest)
    assert panels.call_count < 100
    above = stats.norm.sf(laws[0][0], -5.7, 8.4)
    assert probabilities == pytest.approx([1.0 - above, above, 0.0], abs=1e-6)


@pytest.mark.parametrize("shape", [1e11, 1e13, 9e15])
def test_few_panels_suffice_for_a_gamma_law_as_narrow_as_doubles_are_apart(shape: float) -> None:
    """A single reward of 9e15 made every later decision take 65 milliseconds."""
    with (
        mock.patch.object(probability_of_largest, "integrate_panel", wraps=integrate_panel) as panels,
        mock.patch.object(probability_of_largest, "MOST_PANELS", 200),
    ):
        probabilities = found(GAMMA, [(shape, 1.0, 0.0), (2.0, 1.0, 0.0)], function=probabilities_of_largest)
    assert panels.call_count < 100
    assert probabilities == pytest.approx([1.0, 0.0], abs=1e-6)
    for z in (0.0, 0.5, -2.0):
        laws = [(shape + z * math.sqrt(2.0 * shape), 1.0, 0.0), (shape, 1.0, 0.0)]
        assert found(GAMMA, laws)[0] == pytest.approx(stats.norm.cdf(z), abs=1e-5)


@pytest.mark.parametrize("large", [1e8, 1e10, 1e12])
@pytest.mark.parametrize("small", [0.05, 0.2, 1.0, 30.0])
def test_a_small_and_a_huge_shape_are_nearly_a_gamma_law(small: float, large: float) -> None:
    """The logarithms of such densities are small differences of huge numbers."""
    laws = [(small, large), (1.5 * small, 1.2 * large), (1.1 * small, large)]
    as_gamma = found(GAMMA, [(a, b, a / b) for a, b in laws])
    error = 10.0 * (small + 1.0) / large + TOLERANCE
    assert found(BETA, laws) == pytest.approx(as_gamma, abs=error)
    mirrored = [(b, a) for a, b in laws]
    smallest = found(BETA, mirrored[:2])  # of two draws, the larger one is the one whose mirror image is smaller
    assert smallest == pytest.approx(found(BETA, laws[:2])[::-1], abs=error)


@pytest.mark.parametrize("size", [1e6, 1e9, 1e12, 1e15])
def test_large_counts(size: float) -> None:
    """With so many rewards, log-odds are nearly normal: the skewness is of the order of 1 / sqrt(size)."""
    for z in (0.0, 0.5, -2.0):
        gap = z * math.sqrt(2.0 * 0.25 / size)
        laws = np.array([[0.5 + gap, 0.5 - gap], [0.5, 0.5]]) * size
        assert found(BETA, laws)[0] == pytest.approx(stats.norm.cdf(z), abs=2.0 / size + TOLERANCE)


def test_atoms_and_ties() -> None:
    """Optimistic draws and draws without variance may tie: equal arms share the probability of the tie."""
    assert found(STUDENT, [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]).tolist() == [0.5, 0.5, 0.0]
    above = stats.norm.sf(1.0)
    assert found(STUDENT, [[1.0, 0.0], [0.0, 1.0]]) == pytest.approx([1.0 - above, above], abs=TOLERANCE)
    # Below their means with probability 1/4, a tie; above with 1/4, and then the wider one is usually larger
    expected = 0.25 * 0.5 + 0.25 + 0.25 * 2.0 * math.atan(2.0) / math.pi
    assert found(STUDENT, [[0.0, 1.0], [0.0, 2.0]], optimistic=True)[1] == pytest.approx(expected, abs=TOLERANCE)
    assert np.isnan(found(BETA, [[1.0, 1.0], [math.nan, 1.0]])).all()


def test_interpreted() -> None:
    """The kernel is the same without compilation."""
    laws = [[2.0, 3.0], [3.0, 3.0], [1e-3, 1e3]]
    assert found(BETA, laws, function=probabilities_of_largest) == pytest.approx(found(BETA, laws), abs=1e-13)
