"""What all tests share: generated cases that are the same on every run, and none that races a clock."""

import gc
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tools.browser import browser, open_page, pytest_runtest_makereport, pytest_runtest_setup

__all__ = ["browser", "open_page", "pytest_runtest_makereport", "pytest_runtest_setup"]

FAILED = Path(__file__).parents[1] / "out" / "failed"

# Tests try the compiled code; tests/core/test_interpreted_first.py tries the switch to it
os.environ.setdefault("DYNABANDIT_INTERPRETED_FIRST", "0")

settings.register_profile(
    "fixed",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fixed")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are imported, which takes half of the time, and later not in what they share."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write what a failed test reports as soon as it has failed: a run that is stopped later prints nothing of it."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        FAILED.mkdir(parents=True, exist_ok=True)
        with (FAILED / "failures.txt").open("a", encoding="utf-8") as file:
            file.write(f"=== {report.nodeid} ({report.when})\n{report.longreprtext}\n\n")


@pytest.fixture
def scale() -> int:
    """How much larger a sample may be where code is compiled."""
    return 1 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 20
