"""The logarithm of the distribution function of a Beta law, against SciPy."""

import math

import numpy as np
import pytest
from scipy import optimize, special

from dynabandit.core.beta_cells import (
    fraction,
    log_complement,
    log_distribution,
    write_fractions,
    write_log_distribution,
    write_points,
)

SHAPES = [(1.0, 1.0), (2.0, 2.0), (0.3, 0.7), (1e-3, 5.0), (3.0, 900.0), (450.0, 550.0), (2e4, 3e4), (1e-12, 1e-12)]


def expected(a: float, b: float, t: np.ndarray) -> np.ndarray:
    below = np.log(special.betainc(a, b, special.expit(t)))
    above = special.betainc(b, a, special.expit(-t))
    # SciPy's `above` has few digits if both the point and the first shape are small
    return np.where((above < 0.5) & (t > -4.0), np.log1p(-np.minimum(above, 0.5)), below)


def points(a: float, b: float) -> np.ndarray:
    spread = math.sqrt(1.0 / a + 1.0 / b)
    return np.clip(math.log(a / b) + np.linspace(7.0, -5.0, 31) * min(spread, 20.0), -300.0, 300.0)


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_both_tails_keep_their_digits(a: float, b: float) -> None:
    t = points(a, b)
    found = [log_distribution(a, b, one) for one in t]
    assert found == pytest.approx(expected(a, b, t), rel=1e-8, abs=1e-300)
    assert np.all(np.diff(found) <= 0.0)
    assert log_distribution(a, b, math.inf) == 0.0
    assert log_distribution(a, b, -math.inf) == -math.inf


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_a_grid_has_the_numbers_of_its_points_except_negligible_ones(a: float, b: float) -> None:
    t = points(a, b)
    grid, work, logs = np.zeros(4 * 31), np.zeros(4 * 31), np.zeros(31)
    write_points(t, grid)
    write_log_distribution(a, b, grid, work, logs)
    each = np.array([log_distribution(a, b, one) for one in t])
    kept = np.isfinite(logs) & (logs != 0.0)
    assert logs[kept] == pytest.approx(each[kept], rel=1e-9)
    assert (np.abs(each[logs == 0.0]) < 1e-30).all()
    assert (each[np.isneginf(logs)] < -80.0).all()
    assert kept.sum() > 15


@pytest.mark.parametrize("b_and_a", [False, True], ids=["", "exchanged"])
@pytest.mark.parametrize(("a", "b"), [(3e3, 1e-12), (1e4, 1e-12), (1e6, 1e-9), (3e7, 1e-8), (1e-12, 3.0), (1e9, 1e9)])
def test_extreme_shapes_have_logarithms_that_fall(a: float, b: float, b_and_a: bool) -> None:
    a, b = (b, a) if b_and_a else (a, b)
    for ends in ((60.0, -60.0), (3e-4, -3e-4), (490.0, 10.0), (-8.0, -18.0), (-9.0, -19.0)):
        t = np.linspace(*ends, 31)
        grid, work, logs = np.zeros(4 * 31), np.zeros(4 * 31), np.zeros(31)
        write_points(t, grid)
        write_log_distribution(a, b, grid, work, logs)
        each = np.array([log_distribution(a, b, one) for one in t])
        assert (logs <= 0.0).all()  # not NaN
        assert (each <= 0.0).all()
        assert (logs[1:] <= logs[:-1]).all()


@pytest.mark.parametrize(("a", "b"), [(1000.0, 1000.0), (60.0, 9.0), (9.0, 60.0), (0.3, 4.0), (4.0, 0.3)])
def test_a_tail_counts_as_0_exactly_where_the_density_is_below_exp_of_minus_90(a: float, b: float) -> None:
    """The points are close together around both places, and around the point where 1 - F replaces F."""

    def log_front(t: float) -> float:
        log_x, log_y = -np.logaddexp(0.0, -t), -np.logaddexp(0.0, t)
        return float(a * log_x + b * log_y - special.betaln(a, b))

    switch = (a + 1.0) / (a + b + 2.0)
    mode = math.log(a / b)
    places = [optimize.brentq(lambda t: log_front(t) + 90.0, mode, mode + side) for side in (400.0, -400.0)]
    near = [*np.linspace(0.3, 0.02, 5), *-np.linspace(0.02, 0.3, 5)]
    around = [places[0] + np.array(near) / b, special.logit(switch) + np.array(near), places[1] + np.array(near) / a]
    t = np.sort(np.concatenate([*around, [places[0] + 3.0]]))[::-1]
    grid, work, logs = np.zeros(4 * 31), np.zeros(4 * 31), np.zeros(31)
    write_points(t, grid)
    write_log_distribution(a, b, grid, work, logs)
    for one, log_f in zip(t, logs, strict=True):
        if log_front(one) >= -90.0:
            assert log_f == pytest.approx(log_distribution(a, b, one), rel=1e-9, abs=1e-300)
            assert math.isfinite(log_f)
        else:
            assert log_f == (0.0 if one > mode else -math.inf)
    assert 0.0 in logs
    assert -math.inf in logs


def test_probabilities_that_no_simulation_sees_are_0() -> None:
    t = np.linspace(9.0, -6.0, 31)
    grid, work, logs = np.zeros(4 * 31), np.zeros(4 * 31), np.zeros(31)
    write_points(t, grid)
    write_log_distribution(1000.0, 1000.0, grid, work, logs)
    assert logs[0] == 0.0
    assert logs[-1] == -math.inf
    assert ((logs < 0.0) & np.isfinite(logs)).any()


def test_the_complement_of_a_probability_that_is_rounded_to_1_is_that_of_the_largest_number_below_1() -> None:
    for p in (math.nextafter(1.0, 0.0), 1.0, 1.0 + 1e-9):
        assert log_complement(p) == pytest.approx(-53.0 * math.log(2.0))


@pytest.mark.parametrize("x", [[0.4, 1e-9, 1e-9], [0.4, 0.4, 1e-9], [1e-9, 1e-9, 0.4], [1e-9, 0.4, 0.4]])
def test_all_fractions_of_a_sequence_are_exact_once_that_of_its_largest_point_is(x: list[float]) -> None:
    work = np.zeros(4 * len(x))
    write_fractions(np.array(x), 2e4, 3e4, work)
    assert work[: len(x)] == pytest.approx([fraction(one, 2e4, 3e4) for one in x], rel=1e-13)
