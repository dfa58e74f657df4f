"""Results and a report that are made once for all tests of the paper."""

import json
from pathlib import Path

import pytest

from dynabandit.paper import large_run
from dynabandit.paper.report import publish
from dynabandit.results import Results
from tools.fakes import fake_paper, only


@pytest.fixture(scope="session")
def results() -> Results:
    return fake_paper().results()


@pytest.fixture(scope="session")
def published(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on a part of the paper, with every kind of figure; tests/golden publishes the whole paper.

    The large run that it shows is this part, too.
    """
    folder = tmp_path_factory.mktemp("paper")
    part = only(results, "small-changes", "case-1-arms-2", "case-2-arms-2", "memory")
    part = Results(part.runs, part.metadata, results.paths[:2], results.coverage)
    large = tmp_path_factory.mktemp("large") / "large_run.json"
    large.write_text(json.dumps(large_run.summarise(part)), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_run, "FILE", large)
        assert publish(part, folder) == folder / "report.html"
    return folder
