"""The means of every environment, bit by bit as recorded."""

import json

import pytest

from golden.cases import HERE, context_hash, path_hash

PATHS = json.loads((HERE / "paths.json").read_text())
CONTEXTS = json.loads((HERE / "contexts.json").read_text())


@pytest.mark.parametrize("case", PATHS)
def test_an_environment_has_the_recorded_path(case: str) -> None:
    name, arms = case.split("/")
    assert path_hash(name, int(arms)) == PATHS[case]


@pytest.mark.parametrize("name", CONTEXTS)
def test_an_environment_has_the_recorded_features_and_means(name: str) -> None:
    assert context_hash(name) == CONTEXTS[name]
