import numpy as np
import pytest
from scipy import stats

import dynabandit as db
from dynabandit.environments import Case1, Case2, ExponentialClock
from tools.laws import assert_law, assert_share, assert_uncorrelated, size


def clock(rate: float, low: float = 0.0, high: float = 1.0, arms: int = 10) -> ExponentialClock:
    return ExponentialClock(rates=[rate], low=[low], high=[high], arms=arms)


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.3, 4.0])
def test_a_step_has_a_change_with_probability_one_minus_exp_of_the_rate(rate: float) -> None:
    path = clock(rate).path(horizon=size(20_000), seed=1)
    changes = np.diff(path, axis=0) != 0.0
    assert_share(changes.sum(), changes.size, -np.expm1(-rate))


def test_the_time_between_changes_forgets_its_past() -> None:
    path = clock(0.05).path(horizon=size(50_000), seed=2)
    waits = [np.diff(np.flatnonzero(np.diff(mean))) for mean in path.T]
    sample = np.concatenate(waits).astype(float)
    assert_law(sample, lambda wait: -np.expm1(-0.05 * np.maximum(np.floor(wait), 0.0)))
    left = np.concatenate([wait[:-1] for wait in waits])
    right = np.concatenate([wait[1:] for wait in waits])
    assert_uncorrelated(left, right)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.3, 1.0), (0.0, 0.7)])
def test_a_new_mean_is_uniform_between_its_bounds(low: float, high: float) -> None:
    path = clock(0.2, low, high).path(horizon=size(20_000), seed=3)
    means = np.unique(path)  # a mean stands until the next change; count it once
    assert_law(means, stats.uniform(low, high - low).cdf)


def test_the_first_mean_is_uniform_too() -> None:
    firsts = [clock(0.001).path(horizon=1, seed=4, replication=n)[0] for n in range(size(500))]
    assert_law(np.concatenate(firsts), stats.uniform.cdf)


def test_a_new_mean_does_not_depend_on_the_old_one_nor_on_other_arms() -> None:
    path = clock(50.0, arms=2).path(horizon=size(50_000), seed=5)  # exp(-50): a change at every step
    assert_uncorrelated(path[1:, 0], path[:-1, 0])
    assert_uncorrelated(path[:, 0], path[:, 1])


@pytest.mark.parametrize("rate", [0.0, 5e-324, 1e-300, 1e-20, 1e-18])
def test_a_clock_that_hardly_ever_rings_does_not_ring(rate: float) -> None:
    path = clock(rate).path(horizon=1000, seed=6)
    assert (path == path[0]).all()


def test_a_clock_that_always_rings_changes_every_step() -> None:
    assert (np.diff(clock(1e300).path(horizon=1000, seed=7), axis=0) != 0.0).all()


def test_equal_bounds_hold_the_mean() -> None:
    assert (clock(0.5, low=0.4, high=0.4).path(horizon=100, seed=8) == 0.4).all()


@pytest.mark.parametrize("arms", [2, 3, 50, 101])
@pytest.mark.parametrize(
    ("case", "odd", "even"),
    [(Case1, (0.001, 0.0, 1.0), (0.010, 0.0, 1.0)), (Case2, (0.001, 0.3, 1.0), (0.010, 0.0, 0.7))],
)
def test_odd_arms_take_the_first_parameters_and_even_arms_the_second(
    case: type[Case1], odd: tuple[float, ...], even: tuple[float, ...], arms: int
) -> None:
    numbers = np.array(case(arms=arms).params())
    assert numbers.shape == (3, arms)
    for arm in range(1, arms + 1):  # the paper counts arms from 1
        assert tuple(numbers[:, arm - 1]) == (odd if arm % 2 else even)


@pytest.mark.parametrize("name", ["case-1", "case-2"])
def test_odd_arms_of_both_cases_change_rarely_and_even_arms_often(name: str) -> None:
    changes = np.diff(db.environment(name, arms=20).path(horizon=size(20_000), seed=9), axis=0) != 0.0
    odd, even = changes[:, 0::2], changes[:, 1::2]
    assert_share(odd.sum(), odd.size, -np.expm1(-0.001))
    assert_share(even.sum(), even.size, -np.expm1(-0.010))


def test_arms_of_case_2_stay_between_their_bounds() -> None:
    path = db.environment("case-2", arms=20).path(horizon=size(20_000), seed=10)
    odd, even = path[:, 0::2], path[:, 1::2]
    assert odd.min() >= 0.3
    assert odd.max() <= 1.0
    assert even.min() >= 0.0
    assert even.max() <= 0.7
    assert_law(np.unique(even), stats.uniform(0.0, 0.7).cdf)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        (
            {"rates": 0.1},
            ValueError,
            "rates must be a sequence of numbers, at least one, which arms take in turn, got 0.1",
        ),
        (
            {"rates": []},
            ValueError,
            r"rates must be a sequence of numbers, at least one, which arms take in turn, got \[\]",
        ),
        (
            {"rates": "01"},
            ValueError,
            "rates must be a sequence of numbers, at least one, which arms take in turn, got '01'",
        ),
        ({"rates": [0.1, -0.1]}, ValueError, r"rates\[1\] must be a number in \[0, inf\), got -0.1"),
        ({"rates": [0.1, np.inf]}, ValueError, r"rates\[1\] must be a number in \[0, inf\), got inf"),
        ({"rates": [0.1, None]}, TypeError, r"rates\[1\] must be a number in \[0, inf\), got None"),
        ({"low": [0.0, -0.1]}, ValueError, r"low\[1\] must be a number in \[0, 1\], got -0.1"),
        ({"high": [1.1, 1.0]}, ValueError, r"high\[0\] must be a number in \[0, 1\], got 1.1"),
        ({"low": [0.0]}, ValueError, "rates, low and high must be equally long, got 2, 1 and 2 numbers"),
        (
            {"low": [0.0, 0.9], "high": [1.0, 0.8]},
            ValueError,
            r"low\[1\] must not be above high\[1\], got 0.9 and",
        ),
        ({"arms": 1}, ValueError, "arms must be a whole number of at least 2, got 1"),
        ({"arms": 0}, ValueError, "arms must be a whole number of at least 2, got 0"),
        (
            {"rates": [0.1] * 3, "low": [0.0] * 3, "high": [1.0] * 3, "arms": 2},
            ValueError,
            "arms must be at least 3, one for each of rates, got 2",
        ),
        ({"arms": 2.0}, TypeError, "arms must be a whole number of at least 2, got 2.0"),
        (
            {"rates": [0.1], "low": [0.0], "high": [1.0]},
            ValueError,
            "arms must be a whole number of at least 2, got 1",
        ),
    ],
)
def test_parameters_that_make_no_clock_are_refused(
    parameters: dict[str, object], error: type[Exception], message: str
) -> None:
    good = {"rates": [0.1, 0.2], "low": [0.0, 0.0], "high": [1.0, 1.0]}
    with pytest.raises(error, match=message):
        db.environment("exponential-clock", **{**good, **parameters})


def test_the_cases_of_the_paper_need_a_number_of_arms() -> None:
    with pytest.raises(TypeError, match="arms must be a whole number of at least 2, got None"):
        db.environment("case-1", arms=None)


def test_more_arms_than_parameters_take_them_in_turn() -> None:
    numbers = ExponentialClock(rates=[0.1, 0.2, 0.3], low=[0, 0.1, 0.2], high=[1, 1, 1], arms=5).params()
    assert numbers[0].tolist() == [0.1, 0.2, 0.3, 0.1, 0.2]
    assert numbers[1].tolist() == [0.0, 0.1, 0.2, 0.0, 0.1]
