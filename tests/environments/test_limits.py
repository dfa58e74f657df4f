"""The parameters of environments, reward laws and delays may be at their limits, but not beyond."""

from collections.abc import Callable
from typing import Any

import pytest

import dynabandit as db
from tools.limits import NOT_NEGATIVE, POSITIVE, POSITIVE_UNIT, UNIT, Values, numbers, wholes

ROWS: dict[str, Any] = {"contexts": [[1.0], [2.0], [3.0], [4.0]], "means": [[0.1, 0.2]] * 4}
Case = tuple[str, dict[str, Any], str, tuple[Values, Values]]  # name, other parameters, parameter, valid and not
ENVIRONMENTS: list[Case] = [
    ("case-3", {}, "arms", ((2, 3), (1, 0))),
    ("reflected-walk", {}, "variance", NOT_NEGATIVE),
    ("ar-1", {}, "persistence", UNIT),
    ("ar-1", {}, "spread", numbers(0.0, 1e300)),
    ("burst", {}, "first", wholes(1)),
    ("burst", {}, "length", wholes(0)),
    ("burst", {}, "rate", UNIT),
    ("needle", {"high": 1.0}, "low", UNIT),
    ("needle", {"low": 0.0}, "high", UNIT),
    ("needle", {}, "period", wholes(1)),
    ("rotting", {"high": 1.0}, "low", UNIT),
    ("rotting", {"low": 0.0}, "high", UNIT),
    ("rotting", {"slowest": 1e300}, "fastest", numbers(1.0)),
    ("rotting", {"fastest": 1.0}, "slowest", numbers(1.0)),
    ("seasonal", {}, "period", numbers(1.0)),
    ("seasonal", {"amplitude": 0.0}, "middle", UNIT),
    ("seasonal", {}, "amplitude", numbers(0.0, 0.5)),
    ("seasonal", {"middle": 0.25}, "amplitude", numbers(0.0, 0.25)),
    ("seasonal", {"middle": 0.75}, "amplitude", numbers(0.0, 0.25)),
    ("random-breakpoints", {}, "rate", UNIT),
    ("random-breakpoints", {"high": 1.0}, "low", UNIT),
    ("random-breakpoints", {"low": 0.25}, "high", numbers(0.25, 1.0)),
    *((name, {}, "segment", wholes(1, (2**32 - 1) // units)) for name, units in (("pb-1", 5), ("pb-2", 5))),
    ("recorded", {"rates": [[0.1, 0.2]]}, "period", wholes(1)),
    ("lin-abrupt", {}, "dimension", wholes(1, 256)),
    ("lin-abrupt", {}, "segment", wholes(1)),
    ("lin-slow", {}, "dimension", wholes(2, 256)),
    ("lin-slow", {}, "turning", wholes(1)),
    ("lin-drift", {}, "dimension", wholes(2, 256)),
    ("lin-drift", {}, "period", wholes(1)),
    ("lin-drift", {}, "scale", numbers(0.0, 100.0, opened="low")),
    ("lin-drift", {}, "travel", numbers(0.0, 100.0)),
    ("recorded-contexts", ROWS, "rotation", wholes(1)),
    ("recorded-contexts", ROWS, "window", wholes(1, 4)),
    ("recorded-contexts", ROWS | {"window": 3}, "stride", numbers(0.0, 4.0)),
    ("prompts", {}, "price", UNIT),
]
REWARD_LAWS: list[Case] = [
    ("bounded", {}, "concentration", POSITIVE),
    ("normal", {"high": 1e98}, "low", ((-1e98, 0.0), (-1.1e98, -1e99))),
    ("normal", {"low": -1e98}, "high", ((0.0, 1e98), (1.1e98, 1e99))),
    ("normal", {}, "deviation", ((0.0, 1e98), (-5e-324, -0.5, 1.1e98))),
    ("counts", {}, "scale", numbers(0.0, 1000.0, opened="low")),
    ("revenue", {}, "conversion", POSITIVE_UNIT),
    ("revenue", {}, "median", ((1e-50, 1e50), (0.0, -0.5, 0.9e-50, 1.1e50))),
    ("revenue", {}, "log_deviation", numbers(0.0, 5.0)),
]
DELAYS: list[Case] = [
    ("fixed", {}, "steps", wholes(0)),
    ("fixed", {"steps": 1}, "lost", UNIT),
    ("fixed", {"steps": 1}, "window", wholes(0)),
    ("geometric", {}, "mean", numbers(0.0, 1e9)),
    ("uniform", {"high": 2**32 - 1}, "low", wholes(0)),
    ("uniform", {"low": 0}, "high", wholes(0)),
    ("batch", {}, "every", wholes(1)),
]


def check(make: Callable[..., Any], case: Case) -> None:
    name, others, parameter, (inside, outside) = case
    for value in inside:
        assert getattr(make(name, **others, **{parameter: value}), parameter) == value
    for value in outside:
        with pytest.raises(ValueError, match=f"{parameter} must be"):
            make(name, **others, **{parameter: value})


@pytest.mark.parametrize("case", ENVIRONMENTS, ids=lambda case: f"{case[0]} {case[2]}")
def test_a_parameter_of_an_environment(case: Case) -> None:
    check(db.environment, case)


@pytest.mark.parametrize("case", REWARD_LAWS, ids=lambda case: f"{case[0]} {case[2]}")
def test_a_parameter_of_a_reward_law(case: Case) -> None:
    check(db.reward_law, case)


@pytest.mark.parametrize("case", DELAYS, ids=lambda case: f"{case[0]} {case[2]}")
def test_a_parameter_of_a_delay(case: Case) -> None:
    check(db.delay, case)
