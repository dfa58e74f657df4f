"""Recorded paths and features of environments, states and scores of policies, and choices of contextual policies."""

import json

import pytest

import dynabandit as db
from golden.cases import HERE, context_hash, contextual_hash, path_hash, state_cases, state_numbers

PATHS = json.loads((HERE / "paths.json").read_text())
CONTEXTS = json.loads((HERE / "contexts.json").read_text())
STATES = json.loads((HERE / "states.json").read_text())
DECISIONS = json.loads((HERE / "contextual-decisions.json").read_text())


@pytest.mark.parametrize("case", PATHS)
def test_an_environment_has_the_recorded_path(case: str) -> None:
    name, arms = case.split("/")
    assert path_hash(name, int(arms)) == PATHS[case]


@pytest.mark.parametrize("name", CONTEXTS)
def test_an_environment_has_the_recorded_features_and_means(name: str) -> None:
    assert context_hash(name) == CONTEXTS[name]


@pytest.mark.parametrize("name", db.policies.CONTEXTUAL_POLICIES)
def test_a_contextual_policy_makes_the_recorded_choices(name: str) -> None:
    assert contextual_hash(name) == DECISIONS[name]


@pytest.mark.parametrize("case", state_cases())
def test_a_policy_has_the_recorded_states_and_scores(case: str) -> None:
    name = case.partition(",")[0]
    assert state_numbers(name, **state_cases()[case]) == pytest.approx(STATES[case], rel=1e-9)
