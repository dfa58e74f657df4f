"""Mutation testing of core, choosing, estimators, policies and environments: does a test notice every small change?

Each mutant (generation.py) meets the tests that reach it (coverage_map.py), the fastest first, in a forked process
(execution.py), until one fails. Everything is interpreted. The order of mutants is drawn from `--seed`, so that a run
that was interrupted, or one with `--sample`, is a random sample of all. Results are kept in the folder `--out`, and a
later run continues there: a mutant is run again if its file changed, or if it survived and tests changed.

survivors.toml lists the survivors that are accepted, each with a reason. The run fails if fewer than 95 % of the
mutants are killed, if a survivor is not listed, or if fewer than 95 % of all branches are taken.

Cosmic Ray generates the mutants. Its own runner would start a new process with all tests for each of them, which takes
days in place of hours.

    python mutants/run.py --jobs 2
    python mutants/run.py --only core/argmax.py
    python mutants/run.py --update          # then replace each reason "REVIEW" in survivors.toml
"""

import argparse
import json
import math
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from suite import MUTATED, ROOT, SOURCE, prepare

prepare()

from branch_coverage import AT_LEAST as BRANCHES_AT_LEAST  # noqa: E402
from coverage_map import CoverageMap, count_branches, measure  # noqa: E402
from execution import outcome_of, run_tests  # noqa: E402
from generation import Mutant, mutants_of, unchanged  # noqa: E402
from processes import fork, run_all  # noqa: E402
from survivors import REVIEW, read_reasons, reason_for, update  # noqa: E402

Result = dict[str, Any]

KILLED_AT_LEAST = 0.95
CONTROL = "core/philox.py"
KILLED, ALIVE = ("killed", "timeout"), ("survived", "unreached")


def all_mutants(only: str, seed: int) -> list[Mutant]:
    """Return the mutants of all modules whose path contains `only`, shuffled."""
    names = {file: file.relative_to(SOURCE).as_posix() for file in sorted(SOURCE.rglob("*.py"))}
    found = [
        mutant
        for file, name in names.items()
        if name.startswith(MUTATED) and only in name
        for mutant in mutants_of(file, name)
    ]
    random.Random(seed).shuffle(found)
    return found


def select_tests(coverage_map: CoverageMap, mutant: Mutant, limit: float) -> dict[str, float]:
    """Return the tests for a mutant with their seconds: as many as take `limit` seconds, at least one."""
    chosen: dict[str, float] = {}
    total = 0.0
    for test in coverage_map.tests_of(mutant.module, mutant.lines):
        total += coverage_map.seconds[test]
        if chosen and total > limit:
            break
        chosen[test] = coverage_map.seconds[test]
    return chosen


def check_control(coverage_map: CoverageMap, jobs: int) -> None:
    """Run all tests on an unchanged file that is loaded like a mutant, and exclude test files that fail."""
    control = unchanged(SOURCE / CONTROL, CONTROL)
    files: dict[str, dict[str, float]] = {}
    for test, seconds in coverage_map.seconds.items():
        files.setdefault(test.partition("::")[0], {})[test] = seconds
    for file, status, text in run_all(files, lambda file: fork(run_tests, control, files[file]), jobs):
        if status != 0:
            print(f"{file} IS EXCLUDED, it fails on the original code: exit status {status}, {text or 'no test'}")
            coverage_map.exclude(files[file])
    coverage_map.controlled = True


def valid_results(path: Path, mutants: list[Mutant], digest: str) -> dict[str, Result]:
    """Return earlier results that still hold: killed mutants of unchanged files, survivors if no test changed."""
    if not path.exists():
        return {}
    originals = {mutant.key: mutant.original for mutant in mutants}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    same = [row for row in rows if row["original"] == originals.get(row["key"])]
    return {row["key"]: row for row in same if row["outcome"] not in ALIVE or row["digest"] == digest}


def run(mutants: list[Mutant], coverage_map: CoverageMap, path: Path, options: argparse.Namespace) -> None:
    """Run mutants until all are done or the time is over; append each result to `path`."""
    started = time.monotonic()
    tests = {mutant.key: select_tests(coverage_map, mutant, options.patience) for mutant in mutants}
    counts: Counter[str] = Counter()
    with path.open("a") as file:
        for mutant, status, killer in run_mutants(mutants, tests, options.jobs, started + options.seconds):
            outcome = outcome_of(status, list(tests[mutant.key]))
            counts[outcome] += 1
            file.write(json.dumps(make_result(mutant, outcome, killer, coverage_map.digest)) + "\n")
            file.flush()
            if counts.total() % 50 == 0:
                print(f"{time.monotonic() - started:6.0f} s {dict(counts)}", flush=True)
    if counts.total() < len(mutants):
        print(f"The time is over: {len(mutants) - counts.total()} mutants are left")


def run_mutants(
    mutants: list[Mutant], tests: dict[str, dict[str, float]], jobs: int, deadline: float
) -> Iterator[tuple[Mutant, int, str]]:
    """Yield each mutant with the exit status of its process and the test that killed it."""
    for mutant in mutants:
        if not tests[mutant.key]:
            yield mutant, 0, ""
    reached = [mutant for mutant in mutants if tests[mutant.key]]
    yield from run_all(reached, lambda mutant: fork(run_tests, mutant, tests[mutant.key]), jobs, deadline)


def make_result(mutant: Mutant, outcome: str, killer: str, digest: str) -> Result:
    names = ("key", "module", "function", "line", "operator", "before", "after", "original")
    return {name: getattr(mutant, name) for name in names} | {"outcome": outcome, "killer": killer, "digest": digest}


def report(results: list[Result], population: int) -> bool:
    """Print the results; return whether enough mutants are killed and all survivors are listed."""
    reasons = read_reasons()
    valid = [row for row in results if row["outcome"] != "invalid"]
    killed = [row for row in valid if row["outcome"] in KILLED]
    print(f"\n{'module':40} {'mutants':>8} {'killed':>8}")
    for module in sorted({row["module"] for row in valid}):
        own = [row["outcome"] in KILLED for row in valid if row["module"] == module]
        print(f"{module:40} {len(own):8} {sum(own) / len(own):8.1%}")
    share = len(killed) / max(len(valid), 1)
    low, high = wilson_interval(len(killed), len(valid))
    whole = "all" if len(results) == population else f"a random sample of {population} ({low:.1%} to {high:.1%} of all)"
    print(f"\n{len(killed)} of {len(valid)} mutants killed: {share:.1%}; these are {whole}")
    unlisted = [row for row in valid if row["outcome"] in ALIVE and reason_for(row["key"], reasons) in (None, REVIEW)]
    print(f"{len(valid) - len(killed)} survivors, of which {len(unlisted)} have no reason in survivors.toml")
    for row in sorted(unlisted, key=lambda row: (row["module"], row["line"])):
        print(f"  {row['outcome']:9} line {row['line']:3}  {row['key']}")
    for key in sorted(set(reasons) & {row["key"] for row in killed}):
        print(f"  listed, but killed: {key}")
    return share >= KILLED_AT_LEAST and not unlisted


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 % confidence interval; dynabandit.stats cannot be imported here, a mutant may replace it."""
    if trials == 0:
        return 0.0, 1.0
    z, p = 1.96, successes / trials
    middle = p + z * z / (2 * trials)
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    return (middle - half) / (1 + z * z / trials), (middle + half) / (1 + z * z / trials)


def update_survivors(results: list[Result], mutants: list[Mutant]) -> None:
    reasons = read_reasons()
    alive = {row["key"] for row in results if row["outcome"] in ALIVE}
    killed = {row["key"] for row in results if row["outcome"] in KILLED}
    update([key for key in alive if reason_for(key, reasons) is None], killed, {mutant.key for mutant in mutants})


def main() -> int:
    """Read the command line, run, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2, help="number of processes")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so many seconds")
    parser.add_argument("--sample", type=int, help="number of mutants; by default all")
    parser.add_argument("--seed", type=int, default=1, help="decides the order of mutants")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds of tests per mutant at most")
    parser.add_argument("--only", default="", help="only modules whose path contains this")
    parser.add_argument("--update", action="store_true", help="write survivors.toml anew from the results")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "mutants", help="folder for results")
    options = parser.parse_args()
    if options.update and options.only:
        parser.error("--update needs the mutants of all modules: leave out --only")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that forked processes are killed
    options.out.mkdir(parents=True, exist_ok=True)
    coverage_map = measure(options.out, options.jobs)
    if not coverage_map.controlled:
        check_control(coverage_map, options.jobs)
        coverage_map.save(options.out / "reach.json")
    mutants = all_mutants(options.only, options.seed)
    print(f"{len(mutants)} mutants", flush=True)
    path = options.out / "results.jsonl"
    wanted = mutants[: options.sample]
    done = valid_results(path, mutants, coverage_map.digest)
    run([mutant for mutant in wanted if mutant.key not in done], coverage_map, path, options)
    done = valid_results(path, mutants, coverage_map.digest)
    results = [done[mutant.key] for mutant in wanted if mutant.key in done]
    if options.update:
        update_survivors(results, mutants)
    passed = report(results, len(mutants))
    taken, total = count_branches(options.out, coverage_map.digest)
    print(f"{taken} of {total} branches taken: {taken / total:.1%}")
    return 0 if passed and taken / total >= BRANCHES_AT_LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
