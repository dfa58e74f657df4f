"""The parts of the quadrature of `core/probability_of_largest.py`, against their formulas and SciPy."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from dynabandit.core import probability_of_largest
from dynabandit.core.probability_of_largest import (
    BETA,
    GAMMA,
    STUDENT,
    Work,
    add_panel,
    atom_of,
    beta_slope,
    curvature,
    density_of,
    drop,
    gauss_legendre,
    integrate_panel,
    lower_end,
    multiply,
    panel_width,
    probabilities_of_largest,
    share_rest,
    stirling_rest,
)

INF = math.inf
RULE = gauss_legendre()
BETAS = [(2.0, 3.0), (0.3, 0.7), (1e-3, 40.0), (500.0, 0.2), (1e5, 2e5)]
GAMMAS = [(1e-9, 1.0), (0.002, 1.0), (0.05, 1.0), (1.0, 3.0), (7.5, 0.5), (2e4, 10.0)]
STUDENTS = [(0.5, 2.0, 1.0), (-1.0, 0.1, 3.5), (0.0, 1.0, 200.0), (2.0, 3.0, 1e7), (2.0, 3.0, 1.001e7), (1.0, 0.5, INF)]
LAWS = [(BETA, (*one, INF)) for one in BETAS] + [(GAMMA, (*one, one[0] / one[1])) for one in GAMMAS]
LAWS += [(STUDENT, one) for one in STUDENTS]


@pytest.mark.parametrize("count", [2, 5, 16])
def test_a_rule_integrates_polynomials_over_a_panel_and_from_its_upper_end_to_each_node(count: int) -> None:
    rule = gauss_legendre() if count == 16 else gauss_legendre(count)
    assert rule.nodes.shape == rule.weights.shape == (count,)
    assert (np.diff(rule.nodes) > 0.0).all()
    for power in range(2 * count):
        assert rule.weights @ rule.nodes**power == pytest.approx(1.0 / (power + 1.0), rel=1e-13)
    for power in range(count):
        expected = rule.nodes ** (power + 1) / (power + 1.0)
        assert rule.cumulative @ rule.nodes**power == pytest.approx(expected, abs=1e-14)


def log_density(family: int, law: tuple[float, float, float], t: float) -> float:
    """Return the logarithm of the density of log-odds, of a logarithm or of a value."""
    a, b, freedom = law
    if family == BETA:
        return a * t - (a + b) * float(np.logaddexp(0.0, t)) - float(special.betaln(a, b))
    if family == GAMMA:
        return a * (t + math.log(b)) - b * math.exp(t) - math.lgamma(a)
    return float(stats.norm.logpdf(t, a, b) if freedom > 1e7 else stats.t.logpdf(t, freedom, a, b))


@pytest.mark.parametrize(("family", "law"), LAWS, ids=str)
def test_a_density_has_its_mode_its_peak_and_its_end(family: int, law: tuple[float, float, float]) -> None:
    mode, peak, top = density_of(family, np.array(law))
    a, b, freedom = law
    assert mode == pytest.approx(a if family == STUDENT else math.log(a / b), rel=1e-14)
    size = a + b if family != STUDENT else 1.0
    assert peak == pytest.approx(log_density(family, law, mode), rel=1e-9, abs=1e-15 * size + 1e-9)
    for d in (-45.0, -3.0, -1.0, -0.999, -1e-3, 0.0, 1e-3, 0.999, 1.0, 3.0, 6.2, 45.0):
        expected = log_density(family, law, mode + d) - log_density(family, law, mode)
        assert drop(family, np.array(law), d) == pytest.approx(expected, rel=1e-7, abs=1e-9 + 1e-14 * size)
    if family != STUDENT:
        assert drop(family, np.array(law), top - mode) == pytest.approx(-22.0, abs=0.02)
    elif freedom > 1e7:
        assert top == a + 6.5 * b
    else:
        assert top == pytest.approx(a + b * math.sqrt(freedom * (math.exp(41.4 / freedom) - 1.0)))


def test_a_gamma_density_is_0_where_its_logarithm_overflows() -> None:
    law = np.array([2.0, 1.0, 2.0])
    assert drop(GAMMA, law, math.nextafter(700.0, 0.0)) == pytest.approx(2.0 * (700.0 - math.expm1(700.0)), rel=1e-9)
    assert [drop(GAMMA, law, d) for d in (700.0, 700.5, 1e9)] == [-INF] * 3


def test_the_rest_of_stirlings_formula() -> None:
    for x in (1e-9, 0.3, 0.999, 1.0, 1.5, 2.0, 40.0):
        stirling = (x - 0.5) * math.log(x) - x + 0.5 * math.log(2.0 * math.pi)
        assert stirling_rest(x) == pytest.approx(math.lgamma(x) - stirling, rel=1e-9)


@pytest.mark.parametrize(("a", "b"), BETAS)
def test_the_slope_of_a_beta_density(a: float, b: float) -> None:
    for d in (1e-3, 0.5, 2.0, 30.0):
        assert beta_slope(a, b, d) == pytest.approx((a + b) * special.expit(math.log(a / b) + d) - a, rel=1e-9)


@pytest.mark.parametrize("place", [-50.0, -3.0, 0.0, 0.5, 4.0])
def test_the_curvature_is_the_second_derivative(place: float) -> None:
    assert curvature(BETA, place) == pytest.approx(special.expit(place) * special.expit(-place), rel=1e-12)
    assert curvature(GAMMA, place) == math.exp(place)


def width_of_normal(family: int, size: float, place: float, width: float) -> float:
    """Return `width` standard deviations of the normal law with the curvature below a place, at most 3."""
    found = min(3.0, width / math.sqrt(size * curvature(family, place)))
    return min(found, width / math.sqrt(size * curvature(family, place - found / 2.0)))


@pytest.mark.parametrize("width", [4.0, 1.5])
def test_panels_are_as_wide_as_the_density_allows(width: float) -> None:
    for t in (-39.9, -40.0, -7.0, -0.3, 0.0, 1.2, 8.0, 39.0, 41.0):
        for a, b in BETAS:
            found = panel_width(BETA, np.array([a, b, INF]), math.log(a / b), t, width)
            assert found == pytest.approx(width_of_normal(BETA, a + b, t, width), rel=1e-12)
            below = panel_width(BETA, np.array([a, b, INF]), math.log(a / b), -40.1, width)
            assert below == pytest.approx(8.0 / a)
    for distance in (-40.0, -39.9, -7.0, 0.0, 3.0, 41.5, 100.0):
        found = panel_width(GAMMA, np.array([7.5, 2.0, 3.75]), 0.7, 0.7 + distance, width)
        assert found == pytest.approx(width_of_normal(GAMMA, 7.5, distance, width), rel=1e-12)
    assert panel_width(GAMMA, np.array([7.5, 2.0, 3.75]), 0.7, 0.7 - 40.1, width) == pytest.approx(8.0 / 7.5)
    for t, b, expected in [
        (50.0, 0.1, 10.0),
        (50.0, 2.0, 4.0),
        (50.0, 40.0, 1.0),
        (500.0, 0.1, 80.0),
        (41.1, 0.1, 1.1),
    ]:
        assert panel_width(BETA, np.array([3.0, b, INF]), 0.0, t, width) == pytest.approx(expected)
    for t, freedom, expected in [
        (1.0, 2e7, 0.5 * width),
        (1.0, INF, 0.5 * width),
        (1.0, 100.0, 0.5 * width),
        (4.0, 100.0, 0.5 * width * math.sqrt(1.36)),
        (4.0, 4.0, 0.5 * math.sqrt(10.0) * min(width, 1.2)),
        (-2.0, 1.0, 0.5 * math.sqrt(37.0) * 0.6),
    ]:
        assert panel_width(STUDENT, np.array([1.0, 0.5, freedom]), 1.0, t, width) == pytest.approx(expected)


def test_the_value_below_which_there_are_no_draws() -> None:
    beta, gamma, student, fixed = (np.array(law) for law in [(2, 8.0, INF), (6, 3, 2.5), (7, 1.0, 4), (7, 0.0, 4)])
    assert [atom_of(BETA, beta, False), atom_of(BETA, beta, True)] == [-INF, 0.25]
    assert [atom_of(GAMMA, gamma, False), atom_of(GAMMA, gamma, True)] == [-INF, 2.5]
    assert [atom_of(STUDENT, student, False), atom_of(STUDENT, student, True)] == [-INF, 7.0]
    assert [atom_of(STUDENT, fixed, False), atom_of(STUDENT, fixed, True)] == [7.0, 7.0]


def test_a_panel_ends_where_a_density_that_is_too_narrow_for_it_begins() -> None:
    laws = np.array([[0.0, 1.0, INF], [0.0, 0.1, INF], [0.0, 0.01, INF]])
    wide, narrow, point = (0.0, 0.0, 6.5), (0.0, 0.0, 0.65), (0.0, -INF, 0.0)

    def end(t: float, *densities: tuple[float, float, float]) -> float:
        return lower_end(STUDENT, laws[: len(densities)], np.array(densities), t, 4.0)

    assert end(6.5, wide, narrow) == 2.5
    assert end(2.5, wide, narrow) == 0.65  # where the narrow one begins
    assert end(0.65, wide, narrow) == pytest.approx(0.25)
    assert end(8.0, wide) == 4.0
    assert end(0.65, wide, narrow, point) == pytest.approx(0.25)  # a law without variance has no density
    assert end(0.5, point) == -INF


def test_a_panel_adds_its_part_of_each_integral() -> None:
    """Of two uniform-like densities on one panel, with values above it already."""
    laws, densities = np.array([[0.0, 1.0, INF], [0.3, 2.0, INF], [9.0, 0.0, 1.0]]), np.zeros((3, 3))
    for arm in range(2):
        densities[arm] = density_of(STUDENT, laws[arm])
    densities[2] = 9.0, -INF, 9.0
    high, low = 1.5, 0.25
    above = stats.norm.sf(high, laws[:, 0], np.maximum(laws[:, 1], 1e-300))
    above[2] = 0.0
    work = Work(np.zeros((3, 16)), np.ones((3, 16)), above.copy())
    integrate_panel(STUDENT, laws, densities, (high, low), RULE, work)
    t = high - (high - low) * RULE.nodes
    for arm in range(2):
        center, scale, _ = laws[arm]
        assert work.values[arm] == pytest.approx(stats.norm.pdf(t, center, scale), rel=1e-12)
        assert work.below[arm] == pytest.approx(stats.norm.cdf(t, center, scale), rel=1e-10)
        assert work.above[arm] == pytest.approx(stats.norm.sf(low, center, scale), rel=1e-10)
    assert (work.values[2].any(), work.below[2].all(), work.above[2]) == (False, True, 0.0)
    probabilities = np.array([0.125, 0.25, 0.5])
    integrals = [
        (high - low) * RULE.weights @ (work.values[arm] * work.below[1 - arm] * work.below[2]) for arm in range(2)
    ]
    add_panel(work, RULE.weights, high - low, probabilities)
    assert probabilities == pytest.approx([0.125 + integrals[0], 0.25 + integrals[1], 0.5], rel=1e-12)


def test_a_density_that_ends_above_a_panel_or_at_its_lower_end_is_not_computed() -> None:
    laws, densities = np.array([[0.0, 1.0, INF]] * 2), np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0001]])
    work = Work(np.zeros((2, 16)), np.ones((2, 16)), np.zeros(2))
    integrate_panel(STUDENT, laws, densities, (1.5, 1.0), RULE, work)
    assert [row.any() for row in work.values] == [False, True]


def test_rounding_makes_no_distribution_function_negative() -> None:
    laws = np.array([[0.0, 1.0, INF]])
    work = Work(np.zeros((1, 16)), np.ones((1, 16)), np.ones(1))  # the whole law is above the panel already
    integrate_panel(STUDENT, laws, np.array([density_of(STUDENT, laws[0])]), (0.5, 0.0), RULE, work)
    assert (work.below == 0.0).all()


def test_the_product_that_is_compiled_is_that_of_the_interpreted_function() -> None:
    matrix, vector = np.arange(6.0).reshape(3, 2) - 1.0, np.array([2.0, -0.5])
    products = np.full((2, 3), math.nan)
    multiply(matrix, vector, products[0])
    multiply.compiled_as(matrix, vector, products[1])(matrix, vector, products[1])  # type: ignore[attr-defined]
    assert products.tolist() == [[-2.0, 1.0, 4.0]] * 2


@pytest.mark.parametrize(("error", "valid"), [(9e-7, True), (-9e-7, True), (1.1e-6, False), (-1.1e-6, False)])
def test_what_is_left_is_shared_by_ties_and_a_sum_that_is_not_1_is_no_result(error: float, valid: bool) -> None:
    laws = np.array([[5.0, 0.0, INF], [5.0, 0.0, INF], [1.0, 1.0, INF]])
    probabilities = np.array([0.0, 0.1, 0.5 + error])
    share_rest(STUDENT, laws, False, 5.0, 0.4, probabilities)
    if valid:
        assert probabilities == pytest.approx(np.array([0.2, 0.3, 0.5 + error]) / (1.0 + error), rel=1e-12)
    else:
        assert np.isnan(probabilities).all()


def found(family: int, laws: Any, optimistic: bool = False) -> list[float]:
    probabilities = np.full(len(laws), 7.0)
    probabilities_of_largest(family, np.array(laws, dtype=float), optimistic, RULE, probabilities)
    return list(probabilities.tolist())


def test_panels_go_down_until_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """They begin at the largest end, are adjacent, and end at an atom or where all draws are above."""
    panels: list[tuple[float, float]] = []
    widths: set[float] = set()
    rests: list[float] = []

    def integrate(*arguments: Any) -> None:
        panels.append(arguments[3])
        integrate_panel(*arguments)

    def end(*arguments: Any) -> float:
        widths.add(arguments[4])
        return lower_end(*arguments)

    def share(*arguments: Any) -> None:
        rests.append(arguments[4])
        share_rest(*arguments)

    monkeypatch.setattr(probability_of_largest, "integrate_panel", integrate)
    monkeypatch.setattr(probability_of_largest, "lower_end", end)
    monkeypatch.setattr(probability_of_largest, "share_rest", share)
    for family, laws, optimistic, first, last in [
        (STUDENT, [(0.0, 1.0, INF), (2.0, 0.5, INF)], False, 6.5, None),
        (STUDENT, [(0.0, 1.0, INF), (2.0, 0.5, INF)], True, 6.5, 2.0),
        (STUDENT, [(0.0, 1.0, INF), (2.0, 0.0, INF), (1.0, 0.0, INF)], False, 6.5, 2.0),
        (BETA, [(2.0, 8.0, INF), (3.0, 9.0, INF)], True, None, math.log(3.0 / 9.0)),
        (GAMMA, [(4.0, 2.0, 2.0), (3.0, 1.0, 3.0)], True, None, math.log(3.0)),
        (GAMMA, [(1e-3, 1.0, 1e-3), (2e-3, 1.0, 2e-3)], False, None, -745.0),
    ]:
        panels.clear()
        probabilities = found(family, laws, optimistic)
        assert sum(probabilities) == pytest.approx(1.0, abs=1e-12)
        assert widths == {4.0 / math.sqrt(1.0 + math.log(len(laws)))}
        widths.clear()
        tops = [density_of(family, np.array(law)).top for law in laws if law[1] > 0.0]
        assert panels[0][0] == (max(tops) if first is None else first)
        assert all(low == high for (_, low), (high, _) in itertools.pairwise(panels))
        if last is None:
            assert rests[-1] < 1e-10
            # the panel before was needed
            before = math.prod(stats.norm.cdf(panels[-1][0], center, scale) for center, scale, _ in laws)
            assert before >= 1e-10
        else:
            assert panels[-1][1] == pytest.approx(last, rel=1e-15)
        assert len(panels) < 100


@pytest.mark.parametrize(("a", "b"), [(0.003, 0.004), (1e-3, 2e-3), (1e-3, 1e-3), (0.02, 0.01)])
def test_gamma_draws_with_tiny_shapes_tie_if_both_are_rounded_to_0(a: float, b: float) -> None:
    """Of two draws with the same rate, the share of one in their sum has a Beta law."""
    both_0 = math.exp(-745.0 * (a + b))
    expected = stats.beta.sf(0.5, a, b) - both_0 * a / (a + b) + both_0 / 2.0
    assert found(GAMMA, [(a, 1.0, a), (b, 1.0, b)])[0] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("laws", [[(1.0, INF, 1), (1.0, 1.0, 1)], [(1.0, 1.0, 1), (math.nan, 1.0, 1)]])
def test_a_law_that_is_not_finite_has_no_result(laws: Any) -> None:
    assert np.isnan(found(BETA, laws)).all()


def test_the_constants_on_which_results_depend() -> None:
    constants = probability_of_largest
    assert (constants.NODES, constants.NEGLIGIBLE, constants.NEGLIGIBLE_DROP, constants.WIDTH) == (
        16,
        1e-10,
        -22.0,
        4.0,
    )
    assert (constants.NORMAL_FREEDOM, constants.MOST_PANELS, constants.LARGEST_ERROR) == (1e7, 100_000, 1e-6)
    assert len(set(range(3)) & {BETA, GAMMA, STUDENT}) == 3
