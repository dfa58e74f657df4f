"""A report made once for all tests that look at it."""

from pathlib import Path

import pytest

from dynabandit.paper.publish import publish
from dynabandit.results import Results
from fakes import holding, only


@pytest.fixture(scope="session")
def results() -> Results:
    return holding().results()


@pytest.fixture(scope="session")
def published(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paper")
    assert publish(results, folder) == folder / "report.html"
    return folder


@pytest.fixture(scope="session")
def part_published(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("part")
    publish(only(results, "memory", "case-1-arms-2"), folder)
    return folder
