"""A link holds all that a run depends on, and is read strictly."""

import difflib
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, strategies as st

from dynabandit.playground import SpecError, read
from dynabandit.playground.drawn_means import COLUMNS, LEVELS, DrawnMeans, decode, encode
from dynabandit.policies.memories.regression import RegressionMemory

STRAIGHT = "P" * COLUMNS


def fields(query: str) -> dict[str, str]:
    with pytest.raises(SpecError) as caught:
        read(query)
    return {one.field: one.problem for one in caught.value.problems}


@pytest.mark.parametrize(
    "query",
    [
        "v=1&policies=ucb",
        "v=1&environment=case-4&arms=100&policies=aff-ots:prior=[1,3],step_size=variance-scaled;sw-ucb&seed=9007199254740991",
        f"v=1&environment=drawn&arms=2&drawn={STRAIGHT}.{STRAIGHT}&policies=dts:memory=50&horizon=60",
    ],
)
def test_a_trial_comes_back_from_its_link(query: str) -> None:
    trial = read(query)
    assert read(trial.query) == trial
    assert read(trial.query).query == trial.query


def test_a_link_names_only_what_differs_from_the_defaults() -> None:
    trial = read("v=1&policies=aff-ots:step_size=0.001,floor=0.5")
    assert "policies=aff-ots:floor=0.5&" in trial.query


@pytest.mark.parametrize(
    ("query", "field", "problem"),
    [
        ("policies=ucb", "v", "v must be 1"),
        ("v=2&policies=ucb", "v", "got '2'"),
        ("v=1&policies=ucb&colour=red", "colour", "unknown key 'colour'"),
        ("v=1&policies=ucb&seed=1&seed=2", "v", "given once, got 'seed' 2 times"),
        ("v=1&policies=ucb&environment=case-9", "environment", "one of small-changes"),
        ("v=1&policies=ucb&horizon=1e3", "horizon", "whole number from 10 to 100000, got '1e3'"),
        ("v=1&policies=ucb&horizon=-5", "horizon", "whole number"),
        ("v=1&policies=ucb&arms=4", "arms", "arms must be 3, got 4"),
        ("v=1&policies=ucb&environment=case-1&arms=101", "arms", "from 2 to 100"),
        ("v=1&policies=ucb&replications=0", "replications", "from 1 to 1000"),
        ("v=1&policies=ucb&seed=9007199254740992", "seed", "from 0"),
        ("v=1", "policies", "1 to 6 policies, got 0"),
        ("v=1&policies=" + ";".join(["ucb"] * 7), "policies", "got 7"),
        ("v=1&policies=ubc", "policies.0", "Did you mean 'ucb'"),
        ("v=1&policies=ucb;ucb", "policies.1", "got ucb twice"),
        ("v=1&policies=ucb;aff-ots:step_size=2", "policies.1.step_size", "step_size must be a number in [0, 1]"),
        ("v=1&policies=aff-ots:stepsize=1", "policies.0.stepsize", "Did you mean 'step_size'"),
        ("v=1&policies=aff-ots:prior=3", "policies.0.prior", "prior"),
        ("v=1&policies=aff-ots:step_size", "policies.0", "parameter=value"),
        ("v=1&policies=aff-ucb1:burn_in=50&horizon=100", "horizon", "at least 150"),
        ("v=1&policies=dts:memory=1%0Ax=2", "policies", "on one line"),
        ("v=1&policies=dts:memory=" + "9" * 400, "policies.0", "at most 400 characters"),
        ("v=1&policies=ucb&drawn=PP", "drawn", "goes with environment=drawn"),
        ("v=1&policies=ucb&environment=drawn&arms=2&drawn=PP.PP", "drawn", "60 columns"),
        (f"v=1&policies=ucb&environment=drawn&arms=2&drawn={STRAIGHT}", "drawn", "2 to 8 arms"),
        (f"v=1&policies=ucb&environment=drawn&arms=2&drawn={STRAIGHT}.{'p' * 60}", "drawn", "got 'p' in arm 2"),
        (f"v=1&policies=ucb&environment=drawn&arms=3&drawn={STRAIGHT}.{STRAIGHT}", "arms", "as many as are drawn"),
        (f"v=1&policies=ucb&environment=drawn&arms=2&drawn={STRAIGHT}.{STRAIGHT}&horizon=59", "horizon", "from 60"),
        ("v=1&environment=case-1&policies=ts;lin-ucb", "policies.1", "lin-ucb decides by features and needs"),
    ],
)  # fmt: skip
def test_wrong_input_is_named_by_its_field(query: str, field: str, problem: str) -> None:
    assert problem in fields(query)[field]


def test_nesting_however_deep_is_a_problem_and_not_a_crash() -> None:
    for depth in (50, 190, 380):
        assert any(field.startswith("policies.0") for field in fields("v=1&policies=dts:prior=" + "[" * depth))


def test_however_many_fields_are_wrong_few_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    nearest = difflib.get_close_matches

    def counted(*arguments: Any, **options: Any) -> list[str]:
        looked.append(arguments[0])
        return nearest(*arguments, **options)

    monkeypatch.setattr(difflib, "get_close_matches", counted)
    assert "at most 32 fields, got 4000" in fields("&".join(f"x{place}=" for place in range(4000)))["v"]
    assert len(looked) == 0
    assert len(fields("v=1&policies=ucb&" + "&".join(f"x{place}=" for place in range(30)))) == 4
    assert len(looked) == 4
    wrong = ",".join(f"x{place}=1" for place in range(60))
    assert len(fields(f"v=1&policies=aff-ots:{wrong};ots:{wrong}")) == 8
    assert len(looked) == 12


def test_a_window_longer_than_the_run_takes_no_more_memory_than_the_run() -> None:
    assert read("v=1&policies=sw-ucb:window=4000000000").query


def test_the_models_of_policies_are_counted_and_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made = mock.Mock()
    monkeypatch.setattr(RegressionMemory, "initial_models", made)
    case = "v=1&environment=logistic-drift&arms=100&horizon=100000&replications=1"
    assert "numbers with 100 arms" in fields(f"{case}&policies=sw-lin-ucb:window=50000")["policies.0"]
    assert read(f"{case}&policies=sw-lin-ucb:window=500")
    assert not made.called


def test_policies_that_would_keep_more_than_fits_are_refused_before_anything_is_run() -> None:
    case = "v=1&environment=case-1&arms=100"
    for policy in ("f-dsw-ts:window=4000000", "m-ucb:window=100000", "changepoint-ts:particles=1000000"):
        assert "numbers with 100 arms" in fields(f"{case}&policies=ucb;{policy}")["policies.1"]
    windows = [f"f-dsw-ts:window={40_000 + place}" for place in range(3)]
    assert read(f"{case}&policies={';'.join(windows[:2])}")
    assert list(fields(f"{case}&policies={';'.join(windows)}")) == ["policies.2"]


def test_all_problems_are_told_at_once() -> None:
    assert set(fields("v=1&horizon=x&seed=x&policies=ubc;aff-ots:floor=7")) == {
        "horizon", "seed", "policies.0", "policies.1.floor",
    }  # fmt: skip


def test_a_run_that_is_too_large_says_how_many_replications_would_do() -> None:
    problem = fields("v=1&environment=case-1&arms=100&policies=ucb&horizon=100000&replications=1000")["replications"]
    assert "at most 30 " in problem
    assert read("v=1&environment=case-1&arms=100&policies=ucb&horizon=100000&replications=30").replications == 30


@given(st.text(max_size=300))
def test_any_text_is_a_trial_or_is_refused_with_problems(text: str) -> None:
    problems = None
    try:
        read(text)
    except SpecError as error:
        problems = error.problems
    assert problems is None or len(problems) > 0


@given(st.lists(st.tuples(*[st.integers(0, LEVELS)] * COLUMNS), min_size=2, max_size=8).map(tuple))
def test_a_drawing_comes_back_from_its_text(drawing: DrawnMeans) -> None:
    assert decode(encode(drawing)) == drawing


def test_a_drawing_is_stretched_over_the_horizon() -> None:
    rising = "".join("0123456789"[column // 6] for column in range(60))
    trial = read(f"v=1&policies=ucb&environment=drawn&arms=2&drawn={rising}.{STRAIGHT}&horizon=1200")
    path = trial.environment.path(horizon=1200, seed=1)
    assert path[:, 1].tolist() == [0.5] * 1200
    assert path[::120, 0].tolist() == [level / 50 for level in range(10)]
    assert path[119, 0] == 0.0
