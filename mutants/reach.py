"""Which tests reach which lines: every test is run once on the sources as they are, watched by coverage.py.

A mutant can only be killed by a test that reaches it, so no other is run. A test that fails here kills nothing.
"""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import coverage
import pytest
from children import finished, fork
from suite import OPTIONS, ROOT, TESTS, quiet

__all__ = ["PACKAGES", "Reach", "branches", "measure"]

PACKAGES = ("kernels", "estimators", "policies")
WATCHED = (*PACKAGES, "environments")  # whose branches are counted


@dataclass
class Reach:
    """The seconds that each test takes, and the tests that reach each line of each module."""

    digest: str
    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    controlled: bool = False

    def tests_of(self, module: str, lines: Iterable[int]) -> list[str]:
        """Return the tests that reach one of these lines, or, without lines, any of the module; quick ones first."""
        known = self.lines.get(module, {})
        reached = {test for line in (lines or known) for test in known.get(line, ())}
        return sorted(reached, key=lambda test: (self.seconds[test], test))

    def leave_out(self, tests: Iterable[str]) -> None:
        """Forget these tests."""
        gone = set(tests)
        self.seconds = {test: seconds for test, seconds in self.seconds.items() if test not in gone}
        for known in self.lines.values():
            for line, reached in known.items():
                known[line] = [test for test in reached if test not in gone]

    def save(self, path: Path) -> None:
        order = {test: place for place, test in enumerate(self.seconds)}
        lines = {
            module: {line: [order[test] for test in tests] for line, tests in known.items()}
            for module, known in self.lines.items()
        }
        kept = {"digest": self.digest, "controlled": self.controlled, "seconds": self.seconds, "lines": lines}
        path.write_text(json.dumps(kept))

    @classmethod
    def load(cls, path: Path) -> "Reach":
        kept = json.loads(path.read_text())
        names = list(kept["seconds"])
        lines = {
            module: {int(line): [names[place] for place in tests] for line, tests in known.items()}
            for module, known in kept["lines"].items()
        }
        return cls(kept["digest"], kept["seconds"], lines, kept["controlled"])


def measure(folder: Path, jobs: int) -> Reach:
    """Return what tests reach, from the folder where these very sources and tests were measured before."""
    digest = digest_of_sources()
    path = folder / "reach.json"
    if path.exists():
        reach = Reach.load(path)
        if reach.digest == digest:
            return reach
    measured = folder / f"reach-{digest}"
    measured.mkdir(parents=True, exist_ok=True)
    files = [file for place in TESTS for file in files_of(ROOT / place) if is_test(file)]
    files = sorted((file for file in files if not (measured / f"{flat(file)}.json").exists()), reverse=True)
    started = time.monotonic()
    for place, (file, status, _) in enumerate(finished(files, lambda file: fork(watch, file, measured), jobs), start=1):
        print(f"{place} of {len(files)} measured: {file.relative_to(ROOT)}, exit {status}", flush=True)
    reach = gathered(measured, digest)
    reach.save(path)
    print(f"{len(reach.seconds)} tests measured in {time.monotonic() - started:.0f} s", flush=True)
    return reach


def files_of(place: Path) -> Iterable[Path]:
    return [place] if place.is_file() else place.rglob("*.py")


def is_test(file: Path) -> bool:
    return file.name.startswith("test_") or ROOT / "src" in file.parents


def flat(file: Path) -> str:
    return str(file.relative_to(ROOT)).replace("/", "-")


def digest_of_sources() -> str:
    digest = hashlib.sha256()
    for file in sorted(file for place in ("src", "tests") for file in (ROOT / place).rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


class Watch:
    """Tells coverage.py which test runs, and keeps the seconds of those that pass."""

    def __init__(self, watched: coverage.Coverage) -> None:
        self.watched = watched
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.watched.switch_context(nodeid)

    def pytest_runtest_logfinish(self) -> None:
        self.watched.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.seconds[report.nodeid] = round(report.duration, 3)


def watch(file: Path, folder: Path) -> int:
    """Run the tests of one file, in a process of its own."""
    quiet()
    name = flat(file)
    watched = coverage.Coverage(
        data_file=str(folder / f"{name}.coverage"),
        branch=True,
        config_file=False,
        include=[str(ROOT / "src" / "dynabandit" / package / "*") for package in WATCHED],
    )
    plugin = Watch(watched)
    watched.start()
    try:
        status = int(pytest.main([*OPTIONS, str(file)], plugins=[plugin]))
    finally:
        watched.stop()
        watched.save()
        (folder / f"{name}.json").write_text(json.dumps(plugin.seconds))
    return status


def gathered(folder: Path, digest: str) -> Reach:
    """Put together what was measured for all files."""
    reach = Reach(digest)
    for path in sorted(folder.glob("*.json")):
        reach.seconds |= json.loads(path.read_text())
    for path in sorted(folder.glob("*.coverage")):
        data = coverage.CoverageData(str(path))
        data.read()
        for file in data.measured_files():
            module = Path(file).relative_to(ROOT / "src" / "dynabandit").as_posix()
            known = reach.lines.setdefault(module, {})
            for line, tests in data.contexts_by_lineno(file).items():
                known.setdefault(line, []).extend(test for test in tests if test in reach.seconds)
    return reach


def branches(folder: Path, digest: str) -> tuple[int, int]:
    """Return how many branches of the core the tests took, and how many there are."""
    whole = coverage.Coverage(data_file=str(folder / "all"), branch=True, config_file=False)
    whole.combine([str(path) for path in folder.glob(f"reach-{digest}/*.coverage")], keep=True)
    report = folder / "branches.json"
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        whole.json_report(outfile=str(report))
    totals: dict[str, Any] = json.loads(report.read_text())["totals"]
    return totals["covered_branches"], totals["num_branches"]
