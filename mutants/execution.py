"""Runs the tests that reach a mutant, in a process of its own."""

import importlib.machinery
import importlib.util
import resource
import signal
import sys
from collections.abc import Sequence
from types import CodeType
from typing import Any

import pytest
from generation import Mutant
from hypothesis import Phase, settings
from processes import send
from suite import OPTIONS, SOURCE, discard_output

__all__ = ["INVALID", "outcome_of", "run_tests"]

INVALID = 77
MEMORY = 8 << 30
IMPORT_SECONDS = 60.0
TEST_SECONDS, TEST_FACTOR = 5.0, 10.0  # a test may take 5 s and ten times as long as with the original code
BUSY = 10.0  # limits are in CPU time; a process that waits, or runs on a busy machine, may take so many times as long


class MutantLoader(importlib.machinery.SourceFileLoader):
    """Loads the mutant of a file."""

    code: CodeType

    def get_code(self, fullname: str) -> CodeType:
        return self.code


class MutantFinder:
    """Finds the mutant when its module is imported."""

    def __init__(self, mutant: Mutant) -> None:
        path = str(SOURCE / mutant.module)
        parts = ["dynabandit", *mutant.module.removesuffix(".py").split("/")]
        self.name = ".".join(parts).removesuffix(".__init__")
        self.loader = MutantLoader(self.name, path)
        self.loader.code = compile(mutant.source, path, "exec", dont_inherit=True)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.loader.path, loader=self.loader)


class SelectedTests:
    """A plugin of pytest: runs the given tests in their order, each with a time limit; Hypothesis does not shrink."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds

    def pytest_collection(self) -> None:
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", parent=settings.default, phases=phases)
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        positions = {test: position for position, test in enumerate(self.seconds)}
        items[:] = sorted((one for one in items if one.nodeid in positions), key=lambda one: positions[one.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        limit_time(TEST_SECONDS + TEST_FACTOR * self.seconds[nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            send(report.nodeid)


def limit_time(seconds: float) -> None:
    """Let a signal end this process after so many seconds of CPU time from now."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, BUSY * seconds)


def run_tests(mutant: Mutant, seconds: dict[str, float]) -> int:
    """Run tests, given with their usual seconds, on a mutant; return the exit status of pytest, or `INVALID`."""
    discard_output()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    try:
        finder = MutantFinder(mutant)
    except SyntaxError:
        return INVALID
    sys.meta_path.insert(0, finder)
    limit_time(IMPORT_SECONDS)
    importlib.import_module("dynabandit")
    files = list(dict.fromkeys(test.partition("::")[0] for test in seconds))
    return int(pytest.main([*OPTIONS, "-x", *files], plugins=[SelectedTests(seconds)]))


def outcome_of(status: int, tests: Sequence[str]) -> str:
    """Return what the exit status means: "killed", "timeout", "survived", "unreached" or "invalid"."""
    if not tests:
        return "unreached"
    if status == INVALID:
        return "invalid"
    if status in (-signal.SIGPROF, -signal.SIGALRM):
        return "timeout"
    return "survived" if status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) else "killed"
