"""One mutant against the tests that reach it, in a process of its own."""

import importlib.machinery
import importlib.util
import resource
import signal
import sys
from collections.abc import Sequence
from types import CodeType
from typing import Any

import pytest
from children import say
from hypothesis import Phase, settings
from making import Mutant
from suite import OPTIONS, ROOT, quiet

__all__ = ["INVALID", "outcome", "trial"]

INVALID = 77
MEMORY = 8 << 30
IMPORT_SECONDS = 60.0
TEST_SECONDS, TEST_FACTOR = 5.0, 10.0  # a test is stopped after 5 s and ten times what it takes on the right code


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a file's mutant."""

    code: CodeType

    def get_code(self, fullname: str) -> CodeType:
        return self.code


class Finder:
    """Finds the mutant where its module is asked for."""

    def __init__(self, mutant: Mutant) -> None:
        path = ROOT / "src" / "dynabandit" / mutant.module
        parts = ["dynabandit", *mutant.module.removesuffix(".py").split("/")]
        self.name = ".".join(parts).removesuffix(".__init__")
        self.loader = Loader(self.name, str(path))
        self.loader.code = compile(mutant.source, str(path), "exec", dont_inherit=True)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.loader.path, loader=self.loader)


class Chosen:
    """Runs the chosen tests in their order, each within its time; generated cases that fail are not made smaller."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds

    def pytest_collection(self) -> None:
        found = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", parent=settings.default, phases=found)
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        places = {test: place for place, test in enumerate(self.seconds)}
        items[:] = sorted((item for item in items if item.nodeid in places), key=lambda item: places[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        signal.setitimer(signal.ITIMER_REAL, TEST_SECONDS + TEST_FACTOR * self.seconds[nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            say(report.nodeid)


def trial(mutant: Mutant, seconds: dict[str, float]) -> int:
    """Run tests, given with the seconds that they take, on a mutant; return what pytest does, or `INVALID`."""
    quiet()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    try:
        finder = Finder(mutant)
    except SyntaxError:
        return INVALID
    sys.meta_path.insert(0, finder)
    signal.setitimer(signal.ITIMER_REAL, IMPORT_SECONDS)
    importlib.import_module("dynabandit")
    files = list(dict.fromkeys(test.partition("::")[0] for test in seconds))
    return int(pytest.main([*OPTIONS, "-x", *files], plugins=[Chosen(seconds)]))


def outcome(status: int, tests: Sequence[str]) -> str:
    """Return what became of a mutant: "killed", "timeout", "survived", "unreached" or "invalid"."""
    if not tests:
        return "unreached"
    if status == INVALID:
        return "invalid"
    if status == -signal.SIGALRM:
        return "timeout"
    return "survived" if status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) else "killed"
