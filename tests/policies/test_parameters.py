"""Parameters are kept as plain numbers, and a label tells them apart."""

from typing import Any, get_args

import numpy as np
import pytest

import dynabandit as db
from dynabandit.policies import POLICIES


@pytest.mark.parametrize(
    ("name", "parameters", "label"),
    [
        ("eps-greedy", {"epsilon": 0.2}, "eps-greedy(epsilon=0.2)"),
        ("eps-greedy", {"epsilon": 1}, "eps-greedy(epsilon=1)"),
        ("eps-greedy", {"epsilon": 0.10000001}, "eps-greedy(epsilon=0.10000001)"),
        ("eps-greedy", {"epsilon": 1e-7}, "eps-greedy(epsilon=1e-07)"),
        ("aff-ts", {"step_size": 0.0010}, "aff-ts"),
        ("aff-ts", {"step_size": 0.01, "floor": 0.001}, "aff-ts(step_size=0.01, floor=0.001)"),
        ("d-ucb", {"discount": 0.99}, "d-ucb(discount=0.99)"),
        ("dts", {"memory": 5}, "dts(memory=5)"),
        ("dts", {"memory": 5.0}, "dts(memory=5)"),
        ("dts", {"memory": 10_000_001}, "dts(memory=10000001)"),
        ("ts", {"prior": [1, 0.5]}, "ts(prior=(1, 0.5))"),
        ("sw-ts", {"changes": 1}, "sw-ts(changes=1)"),
        ("exp3-s", {"horizon": 1000, "changes": 4}, "exp3-s(changes=4, horizon=1000)"),
        ("rexp3", {"variation": 2.0}, "rexp3(variation=2)"),
        ("changepoint-ts", {"rate": None}, "changepoint-ts(rate=None)"),
    ],
)
def test_a_label_holds_every_digit_and_no_more(name: str, parameters: dict[str, Any], label: str) -> None:
    assert db.policy(name, **parameters).label == label


def test_policies_that_differ_in_the_last_digit_have_labels_of_their_own() -> None:
    close = [db.policy("eps-greedy", epsilon=epsilon) for epsilon in (0.3, 0.1 + 0.2)]
    assert len(db.compare(close, "case-1", horizon=10)) == 2


def kinds(field: Any) -> tuple[Any, ...]:
    """Return the types that a parameter may have."""
    return get_args(field.type) or (field.type,)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("make", [np.float32, np.array, lambda value: value], ids=["float32", "array", "plain"])
def test_parameters_are_kept_as_plain_numbers(name: str, make: Any) -> None:
    known = POLICIES[name].__dataclass_fields__
    wholes = [key for key, field in known.items() if int in kinds(field)]
    floats = [key for key, field in known.items() if float in kinds(field) and key != "prior"]
    given: dict[str, Any] = {key: make(0.25) for key in floats} | {key: np.int32(4) for key in wholes}
    if "prior" in known:
        given["prior"] = [make(0.25), 1]
    kept = db.policy(name, **given).parameters
    for key, value in kept.items():
        if key == "prior":
            assert value == (0.25, 1.0)
            assert [type(part) for part in value] == [float, float]
        elif key in floats or key in wholes:
            assert value == (4 if key in wholes else 0.25)
            assert type(value) is (int if key in wholes else float)
        else:
            assert type(value) is str


@pytest.mark.parametrize("name", ["case-1", "case-3", "reflected-walk"])
def test_environments_keep_plain_numbers_too(name: str) -> None:
    assert type(db.environment(name, arms=np.int16(4)).arms) is int
    walk = db.environment("reflected-walk", variance=np.array(0.25))
    assert type(walk.parameters["variance"]) is float
