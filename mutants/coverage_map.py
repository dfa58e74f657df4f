"""Which tests reach which lines, from one run of all tests on the original sources with coverage.py.

Only tests that reach a mutant can kill it. Tests that fail on the original sources are not used.
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
from processes import fork, run_all
from suite import MUTATED, OPTIONS, ROOT, SOURCE, TESTS, discard_output

__all__ = ["CoverageMap", "count_branches", "measure"]

FAST = 0.02  # seconds
OWN = 0.1


@dataclass
class CoverageMap:
    """The seconds that each test takes, the tests that reach each line of each module, and the lines reached before."""

    digest: str
    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    at_import: dict[str, list[int]] = field(default_factory=dict)
    controlled: bool = False

    def tests_of(self, module: str, lines: Iterable[int]) -> list[str]:
        """Return the tests that reach one of these lines, the fastest first.

        Those of the file that is named after the module count as ten times as fast: code that nearly all tests reach is
        tried for a limited time.

        Without lines, these are the tests that reach any line of the module, and then all others of its package: a
        number that is read when the module is imported, such as a default, may be noticed without any of its lines.
        The same holds for a line of a function that is called when a module is imported, such as one that makes
        kernels. Fast tests come first, also those that do not reach the module.
        """
        known, own = self.lines.get(module, {}), f"/test_{Path(module).stem}"

        def cost(test: str) -> float:
            return self.seconds[test] * (OWN if own in test else 1.0)

        lines = list(lines)
        reached = {test for line in lines for test in known.get(line, ())}
        if lines and not set(lines) & set(self.at_import.get(module, ())):
            return sorted(reached, key=lambda test: (cost(test), test))
        of_module = {test for tests in known.values() for test in tests}
        package = f"tests/{module.partition('/')[0]}/"
        others = {test for test in self.seconds if test.startswith(package)}
        ranks = {test: (test not in reached, test not in of_module) for test in reached | of_module | others}
        return sorted(ranks, key=lambda test: (cost(test) > FAST, ranks[test], cost(test), test))

    def exclude(self, tests: Iterable[str]) -> None:
        """Remove these tests."""
        gone = set(tests)
        self.seconds = {test: seconds for test, seconds in self.seconds.items() if test not in gone}
        for known in self.lines.values():
            for line, reached in known.items():
                known[line] = [test for test in reached if test not in gone]

    def save(self, path: Path) -> None:
        numbers = {test: number for number, test in enumerate(self.seconds)}
        lines = {
            module: {line: [numbers[test] for test in tests] for line, tests in known.items()}
            for module, known in self.lines.items()
        }
        kept = {"digest": self.digest, "controlled": self.controlled, "seconds": self.seconds, "lines": lines}
        kept["at_import"] = self.at_import
        path.write_text(json.dumps(kept))

    @classmethod
    def load(cls, path: Path) -> "CoverageMap":
        kept = json.loads(path.read_text())
        names = list(kept["seconds"])
        lines = {
            module: {int(line): [names[number] for number in tests] for line, tests in known.items()}
            for module, known in kept["lines"].items()
        }
        return cls(kept["digest"], kept["seconds"], lines, kept["at_import"], kept["controlled"])


def measure(folder: Path, jobs: int) -> CoverageMap:
    """Return the map of these sources and tests; from `folder` if they were measured before."""
    digest = digest_of_sources()
    path = folder / "reach.json"
    if path.exists():
        known = CoverageMap.load(path)
        if known.digest == digest:
            return known
    measured = folder / f"reach-{digest}"
    measured.mkdir(parents=True, exist_ok=True)
    files = [file for name in TESTS for file in files_of(ROOT / name) if is_test(file)]
    files = sorted((file for file in files if not (measured / f"{flat(file)}.json").exists()), reverse=True)
    started = time.monotonic()
    results = run_all(files, lambda file: fork(measure_file, file, measured), jobs)
    for number, (file, status, _) in enumerate(results, start=1):
        print(f"{number} of {len(files)} measured: {file.relative_to(ROOT)}, exit {status}", flush=True)
    coverage_map = gather(measured, digest)
    coverage_map.save(path)
    print(f"{len(coverage_map.seconds)} tests measured in {time.monotonic() - started:.0f} s", flush=True)
    return coverage_map


def files_of(path: Path) -> Iterable[Path]:
    return [path] if path.is_file() else path.rglob("*.py")


def is_test(file: Path) -> bool:
    return file.name.startswith("test_") or ROOT / "src" in file.parents


def flat(file: Path) -> str:
    return str(file.relative_to(ROOT)).replace("/", "-")


def digest_of_sources() -> str:
    digest = hashlib.sha256()
    for file in sorted(file for name in ("src", "tests") for file in (ROOT / name).rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


class Recorder:
    """A plugin of pytest: tells coverage.py which test runs, and records the seconds of tests that pass."""

    def __init__(self, measurement: coverage.Coverage) -> None:
        self.measurement = measurement
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.measurement.switch_context(nodeid)

    def pytest_runtest_logfinish(self) -> None:
        self.measurement.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.seconds[report.nodeid] = round(report.duration, 3)


def measure_file(file: Path, folder: Path) -> int:
    """Run the tests of one file; for a process of its own."""
    discard_output()
    name = flat(file)
    measurement = coverage.Coverage(
        data_file=str(folder / f"{name}.coverage"),
        branch=True,
        config_file=False,
        include=[str(SOURCE / f"{start}*") for start in MUTATED],
    )
    plugin = Recorder(measurement)
    measurement.start()
    try:
        status = int(pytest.main([*OPTIONS, str(file)], plugins=[plugin]))
    finally:
        measurement.stop()
        measurement.save()
        (folder / f"{name}.json").write_text(json.dumps(plugin.seconds))
    return status


def gather(folder: Path, digest: str) -> CoverageMap:
    """Combine the measurements of all files."""
    coverage_map = CoverageMap(digest)
    for path in sorted(folder.glob("*.json")):
        coverage_map.seconds |= json.loads(path.read_text())
    for path in sorted(folder.glob("*.coverage")):
        data = coverage.CoverageData(str(path))
        data.read()
        for file in data.measured_files():
            module = Path(file).relative_to(SOURCE).as_posix()
            known = coverage_map.lines.setdefault(module, {})
            at_import = set(coverage_map.at_import.get(module, ()))
            for line, tests in data.contexts_by_lineno(file).items():
                if "" in tests:  # before the first test of the file
                    at_import.add(line)
                known.setdefault(line, []).extend(test for test in tests if test in coverage_map.seconds)
            coverage_map.at_import[module] = sorted(at_import)
    return coverage_map


def count_branches(folder: Path, digest: str) -> tuple[int, int]:
    """Return how many branches the tests take, and how many there are."""
    whole = coverage.Coverage(data_file=str(folder / "all"), branch=True, config_file=False)
    whole.combine([str(path) for path in folder.glob(f"reach-{digest}/*.coverage")], keep=True)
    report = folder / "branches.json"
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        whole.json_report(outfile=str(report))
    totals: dict[str, Any] = json.loads(report.read_text())["totals"]
    return totals["covered_branches"], totals["num_branches"]
