"""The means and features of every environment, bit by bit as recorded, and the choices of contextual policies."""

import json

import pytest

import dynabandit as db
from golden.cases import HERE, context_hash, contextual_hash, path_hash

PATHS = json.loads((HERE / "paths.json").read_text())
CONTEXTS = json.loads((HERE / "contexts.json").read_text())
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
