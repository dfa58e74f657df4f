"""The logarithm of the distribution function of a Beta law, against SciPy."""

import math

import numpy as np
import pytest
from scipy import special

from dynabandit.core.beta_cells import log_distribution, write_log_distribution, write_points

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
    for t in (np.linspace(60.0, -60.0, 31), np.linspace(3e-4, -3e-4, 31), np.linspace(490.0, 10.0, 31)):
        grid, work, logs = np.zeros(4 * 31), np.zeros(4 * 31), np.zeros(31)
        write_points(t, grid)
        write_log_distribution(a, b, grid, work, logs)
        each = np.array([log_distribution(a, b, one) for one in t])
        assert (logs <= 0.0).all()  # not NaN
        assert (each <= 0.0).all()
        assert (logs[1:] <= logs[:-1]).all()


def test_probabilities_that_no_simulation_sees_are_0() -> None:
    t = np.linspace(9.0, -6.0, 31)
    grid, work, logs = np.zeros(4 * 31), np.zeros(4 * 31), np.zeros(31)
    write_points(t, grid)
    write_log_distribution(1000.0, 1000.0, grid, work, logs)
    assert logs[0] == 0.0
    assert logs[-1] == -math.inf
    assert ((logs < 0.0) & np.isfinite(logs)).any()
