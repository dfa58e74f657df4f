import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.estimators import AdaptiveForgetting, Estimator, FixedForgetting, SampleMean, SlidingWindow

ESTIMATORS: dict[str, Callable[[], Estimator]] = {
    "sample mean": SampleMean,
    "fixed forgetting": lambda: FixedForgetting(0.9),
    "fixed forgetting of all": lambda: FixedForgetting(0.0),
    "sliding window": lambda: SlidingWindow(7),
    "sliding window of one": lambda: SlidingWindow(1),
    "adaptive forgetting": AdaptiveForgetting,
    "adaptive forgetting, variance-scaled": lambda: AdaptiveForgetting(step_size="variance-scaled"),
    "adaptive forgetting, Bernoulli loss": lambda: AdaptiveForgetting(loss="bernoulli"),
    "adaptive forgetting, large steps": lambda: AdaptiveForgetting(step_size=1.0),
    "adaptive forgetting with a floor": lambda: AdaptiveForgetting(step_size=1.0, floor=0.6),
}
each_estimator = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())


@each_estimator
def test_every_estimator_keeps_the_contract(make: Callable[[], Estimator]) -> None:
    db.checks.check_estimator(make)


def test_only_a_sliding_window_has_a_window() -> None:
    windows = {name: make().update(1.0).window for name, make in ESTIMATORS.items()}
    assert {name: window for name, window in windows.items() if window != 0} == {
        "sliding window": 7,
        "sliding window of one": 1,
    }


@each_estimator
@pytest.mark.parametrize(
    ("reward", "error"),
    [
        (math.nan, ValueError),
        (-0.1, ValueError),
        (1.1, ValueError),
        (math.inf, ValueError),
        ("1", TypeError),
        (None, TypeError),
        ([1.0], TypeError),
        (np.array([0.2, 0.4]), TypeError),
        (np.str_("1"), TypeError),
        pytest.param(10**400, ValueError, id="huge"),
    ],
)
def test_a_reward_outside_its_range_is_refused_and_changes_nothing(
    make: Callable[[], Estimator], reward: object, error: type[Exception]
) -> None:
    estimate, twin = make(), make()
    for good in (0, 1, 1, 0, 1):
        estimate.update(good)
        twin.update(good)
    with pytest.raises(error, match=r"reward must be a number in \[0, 1\], got "):
        estimate.update(reward)  # type: ignore[arg-type]
    assert estimate.belief == twin.belief
    assert estimate.update(1).belief == twin.update(1).belief


@each_estimator
def test_it_says_what_it_holds(make: Callable[[], Estimator]) -> None:
    estimate = make()
    assert repr(estimate) == f"{type(estimate).__name__}(nothing observed, weight 0)"
    assert repr(estimate.update(1)) == f"{type(estimate).__name__}(mean 1, weight 1)"


@each_estimator
@pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
def test_yes_and_no_are_rewards_as_they_are_for_a_bandit(make: Callable[[], Estimator], value: bool) -> None:
    assert make().update(value).belief == make().update(float(value)).belief


@each_estimator
def test_numbers_of_numpy_are_rewards_too(make: Callable[[], Estimator]) -> None:
    numbers: list[tuple[Any, float]] = [(np.float32(0.5), 0.5), (np.int64(1), 1.0)]
    for given, same in numbers:
        assert make().update(given).belief == make().update(same).belief
