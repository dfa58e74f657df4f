"""Results and a report that are made once for all tests of the paper."""

from pathlib import Path

import pytest

from dynabandit.paper.publish import publish
from dynabandit.results import Results
from fakes import fake_paper, only


@pytest.fixture(scope="session")
def results() -> Results:
    return fake_paper().results()


@pytest.fixture(scope="session")
def published(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on a part of the paper, with every kind of figure; tests/golden publishes the whole paper."""
    folder = tmp_path_factory.mktemp("paper")
    part = only(results, "small-changes", "case-1-arms-2", "case-2-arms-2", "memory")
    assert publish(Results(part.runs, part.metadata, results.paths[:2], results.coverage), folder) == (
        folder / "report.html"
    )
    return folder
