"""Each error names the argument, the value and what would be valid."""

import difflib
import math
import re
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

import dynabandit as db
from dynabandit import extras, validation
from dynabandit.policies import CONTEXTUAL_POLICIES, POLICIES
from dynabandit.results.results import CRITERIA

UNIT = "a number in [0, 1]"
COUNT = "a whole number of at least"
POSITIVE = "a number in (0, inf)"

KNOWN_POLICIES = ("auto", *POLICIES, *CONTEXTUAL_POLICIES)
KNOWN_ENVIRONMENTS = (*db.environments.ENVIRONMENTS, *db.environments.CONTEXTUAL_ENVIRONMENTS)
ADAPTIVE = [name for name in POLICIES if name.startswith("aff")]
BOUNDED = [name for name in ADAPTIVE if POLICIES[name].rewards.high == 1.0]

# policy, parameter, value, what would be valid
PARAMETERS: list[tuple[str, str, Any, str]] = [
    ("eps-greedy", "epsilon", -0.1, UNIT),
    ("eps-greedy", "epsilon", 1.1, UNIT),
    ("eps-greedy", "epsilon", math.nan, UNIT),
    ("eps-greedy", "epsilon", math.inf, UNIT),
    ("eps-greedy", "epsilon", "0.1", UNIT),
    ("eps-greedy", "epsilon", None, UNIT),
    ("eps-greedy", "epsilon", True, UNIT),
    ("eps-greedy", "epsilon", 1j, UNIT),
    ("d-ucb", "discount", 0.0, "a number in (0, 1]"),
    ("d-ucb", "discount", 1.1, "a number in (0, 1]"),
    ("d-ucb", "discount", math.nan, "a number in (0, 1]"),
    ("sw-ucb", "window", 0, COUNT),
    ("sw-ucb", "window", 10.0, COUNT),
    ("dts", "memory", 0.0, POSITIVE),
    ("dts", "memory", -1, POSITIVE),
    ("dts", "memory", math.inf, POSITIVE),
    ("aff-d-greedy", "threshold", -0.1, UNIT),
    ("aff-d-greedy", "threshold", 1.1, UNIT),
    ("aff-ucb1", "variance_floor", -0.1, UNIT),
    *((name, "burn_in", -1, COUNT) for name in POLICIES),
    *((name, "burn_in", 1.0, COUNT) for name in POLICIES),
    *((name, "burn_in", True, COUNT) for name in POLICIES),
    *((name, "step_size", -0.1, UNIT) for name in ADAPTIVE),
    *((name, "step_size", "scaled", f"{UNIT} or 'variance-scaled'") for name in BOUNDED),
    *((name, "floor", 1.5, UNIT) for name in ADAPTIVE),
    *((name, "memory", 0, POSITIVE) for name in ("aff-dts1", "aff-dts2")),
]


@pytest.mark.parametrize(("name", "parameter", "value", "valid"), PARAMETERS)
def test_a_parameter_out_of_range_is_refused(name: str, parameter: str, value: Any, valid: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        db.policy(name, **{parameter: value})
    message = str(caught.value)
    assert message.startswith(f"{parameter} must be {valid}")
    assert message.endswith(f", got {value!r}")


@pytest.mark.parametrize("name", [name for name, kind in POLICIES.items() if "prior" in kind.__dataclass_fields__])
@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (2.0, "prior must be a pair of positive numbers such as (2, 2), got 2.0"),
        ((1, 2, 3), "prior must be a pair of positive numbers such as (2, 2), got (1, 2, 3)"),
        ((0, 1), "each number in prior must be a number in [1e-12, 1e+12], got 0"),
        ((1, math.nan), "each number in prior must be a number in [1e-12, 1e+12], got nan"),
        ((1, "1"), "each number in prior must be a number in [1e-12, 1e+12], got '1'"),
    ],
)
def test_a_prior_must_be_a_pair_of_positive_numbers(name: str, prior: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        db.policy(name, prior=prior)
    assert str(caught.value) == message


# a call and the whole message of its error
MESSAGES: list[tuple[Callable[[], object], str]] = [
    (
        lambda: db.policy("aff-otts"),
        "unknown policy 'aff-otts'. Did you mean 'aff-ots'? Known: " + ", ".join(sorted(KNOWN_POLICIES)),
    ),
    (lambda: db.policy("zzz"), "unknown policy 'zzz'. Known: " + ", ".join(sorted(KNOWN_POLICIES))),
    (lambda: db.policy(3), "unknown policy 3. Known: " + ", ".join(sorted(KNOWN_POLICIES))),  # type: ignore[arg-type]
    (
        lambda: db.policy(["ucb"]),  # type: ignore[arg-type]
        "unknown policy ['ucb']. Did you mean 'ucb'? Known: " + ", ".join(sorted(KNOWN_POLICIES)),
    ),
    (
        lambda: db.policy("eps-greedy", epsilom=0.1),
        "policy 'eps-greedy' has no parameter 'epsilom'. Did you mean 'epsilon'? Its parameters: burn_in, epsilon",
    ),
    (lambda: db.policy("ucb", slots=()), "policy 'ucb' has no parameter 'slots'. Its parameters: burn_in"),
    (
        lambda: db.policy(db.policy("ucb"), burn_in=2),
        "parameters ['burn_in'] go with a policy's name, not with UCB(burn_in=1)",
    ),
    (
        lambda: db.policy("aff-ts", loss="bernouli"),
        "unknown loss 'bernouli'. Did you mean 'bernoulli'? Known: bernoulli, squared-error",
    ),
    (
        lambda: db.environment("case3"),
        "unknown environment 'case3'. Did you mean 'case-3'? Known: " + ", ".join(sorted(KNOWN_ENVIRONMENTS)),
    ),
    (
        lambda: db.environment({"case-3"}),  # type: ignore[arg-type]
        "unknown environment {'case-3'}. Did you mean 'case-3'? Known: " + ", ".join(sorted(KNOWN_ENVIRONMENTS)),
    ),
    (lambda: db.environment("case-1", arms=0), "arms must be a whole number of at least 2, got 0"),
    (lambda: db.environment("case-1", arms=1), "arms must be a whole number of at least 2, got 1"),
    (lambda: db.environment("case-3", arms=-2), "arms must be a whole number of at least 2, got -2"),
    (lambda: db.environment("case-4", arms="2"), "arms must be a whole number of at least 2, got '2'"),
    (lambda: db.environment("fixed", means=[0.5, 1.5]), "means[1] must be a number in [0, 1], got 1.5"),
    (
        lambda: db.environment("fixed", means=[0.5]),
        "means must hold the mean rewards of at least 2 arms, got [0.5]",
    ),
    (
        lambda: db.environment("fixed", means=[[0.5, 0.5], [0.5]]),
        "means must hold the mean rewards of at least 2 arms, got [[0.5, 0.5], [0.5]]",
    ),
    (
        lambda: db.environment("path", means=[[0.5, 0.5], [0.5, -0.5]]),
        "means[1][1] must be a number in [0, 1], got -0.5",
    ),
    (
        lambda: db.environment("path", means=[[0.5], [0.5]]),
        "means must have steps in rows and at least 2 arms in columns, got shape (2, 1)",
    ),
    (
        lambda: db.environment("exponential-clock", rates=[0.1, 0.1]),
        "environment 'exponential-clock' needs low, high: see dynabandit.environments.ExponentialClock",
    ),
    (
        lambda: db.environment("fixed", mean=[0.1, 0.2]),
        "environment 'fixed' has no parameter 'mean'. Did you mean 'means'? Its parameters: rewards, means",
    ),
    (
        lambda: db.simulate("aff-dts1", "case-1", horizon=15),
        "horizon must be at least 20, the burn-in of 'aff-dts1' (10 for each of 2 arms), got 15",
    ),
    (
        lambda: db.simulate("ucb", "case-1", horizon=0),
        "horizon must be a whole number of at least 1 and at most 4294967295, got 0",
    ),
    (
        lambda: db.simulate("ucb", db.environment("path", means=[[0.5, 0.4]] * 9), horizon=10),
        "horizon must be at most 9, where environment 'path' ends, got 10",
    ),
    (
        lambda: db.compare({1: "ts", "1": "ucb"}, "case-1"),  # type: ignore[dict-item]
        "the labels of policies must be strings, got 1",
    ),
    (lambda: db.environment("small-changes", arms=5), "arms must be 3, got 5"),
    (
        lambda: db.Bandit("sw-ucb", arms=["a", "b"], window=4 * 10**9),
        "sw-ucb(window=4000000000) would keep 8000000001 numbers, but a bandit keeps at most 100000000",
    ),
    (
        lambda: db.Bandit.from_json(db.Bandit("ucb", arms=["a", "b"]).to_json(), policy="ucb"),  # type: ignore[arg-type]
        "policy must be a policy object, and only where it is not in the registry, got 'ucb'",
    ),
    (
        lambda: db.Bandit("ucb", arms=["red", "blue"]).reward(["red"], 1),  # type: ignore[arg-type]
        "unknown arm ['red']. Did you mean 'red'? Arms: 'red', 'blue'",
    ),
    (
        lambda: db.Bandit("ucb", arms=[f"arm {number}" for number in range(100)]).reward("none", 1),
        "unknown arm 'none'. Arms: " + ", ".join(f"'arm {number}'" for number in range(20)) + " and 80 more",
    ),
    (
        lambda: db.Results([]).select(polici="ucb"),
        "a run has no parameter 'polici'. Did you mean 'policy'? Its parameters: " + ", ".join(CRITERIA),
    ),
    (
        lambda: db.Bandit("ucb", arms=["only"]),
        "arms must be a list with at least 2 different names, got ['only']",
    ),
]


@pytest.mark.parametrize(("act", "message"), MESSAGES, ids=[message[:60] for _, message in MESSAGES])
def test_an_error_names_the_argument_the_value_and_what_is_valid(act: Callable[[], object], message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        act()
    assert str(caught.value) == message


def test_only_the_beginning_of_a_long_name_is_looked_up_and_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    find = mock.Mock(return_value=[])
    monkeypatch.setattr(difflib, "get_close_matches", find)
    error = validation.unknown("policy", "x" * 10_000, ["ucb"])
    assert str(error) == f"unknown policy '{'x' * 100}...'. Known: ucb"
    assert [call.args[0] for call in find.call_args_list] == ["x" * 100]


def test_a_name_is_compared_with_few_long_names(monkeypatch: pytest.MonkeyPatch) -> None:
    find = mock.Mock(return_value=[])
    monkeypatch.setattr(difflib, "get_close_matches", find)
    for length, known, most in ((150, ["x" * 200] * 2000, 20), (10, ["x" * 10] * 2000, 2000), (0, ["x"] * 10, 10)):
        validation.suggestion("x" * length, known)
        assert len(find.call_args.args[1]) == most, "each pair takes time for each pair of characters"


def test_the_most_similar_name_is_suggested_if_there_is_one() -> None:
    known = ["ucb", "sw-ucb", "aff-ucb1"]
    assert validation.suggestion("swucb", known) == " Did you mean 'sw-ucb'?"
    assert validation.suggestion("thompson", known) == ""
    assert validation.suggestion(12, known) == ""


@pytest.mark.parametrize(
    ("low", "high", "valid"),
    [(False, False, "[0, 1]"), (True, False, "(0, 1]"), (False, True, "[0, 1)"), (True, True, "(0, 1)")],
)
def test_an_end_that_is_open_is_not_valid(low: bool, high: bool, valid: str) -> None:
    for end, is_open in ((0.0, low), (1.0, high)):
        if is_open:
            with pytest.raises(ValueError, match=re.escape(f"x must be a number in {valid}, got {end}")):
                validation.number("x", end, 0.0, 1.0, open_low=low, open_high=high)
        else:
            assert validation.number("x", end, 0.0, 1.0, open_low=low, open_high=high) == end


def test_numpy_scalars_are_accepted() -> None:
    assert validation.number("x", np.float32(0.5), 0.0, 1.0) == 0.5
    assert validation.integer("n", np.int8(3), 1) == 3
    assert type(validation.integer("n", np.int8(3), 1)) is int


def test_a_missing_extra_says_how_to_install_it() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"this needs nowhere, .* pip install 'dynabandit\[lab\]'"):
        extras.import_extra("nowhere.at_all", "lab")
    assert extras.import_extra("math", "lab") is math
    with pytest.raises(ModuleNotFoundError, match=r"this needs nowhere, .* pip install 'dynabandit\[data\]'"):
        extras.extra_folder("nowhere", "data")
    assert (extras.extra_folder("numpy", "data") / "__init__.py").exists()


def test_an_import_error_inside_of_an_extra_is_not_hidden(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "broken_extra.py").write_text("import nowhere_inside")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'nowhere_inside'"):
        extras.import_extra("broken_extra", "lab")
