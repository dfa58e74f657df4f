"""Mutation testing of kernels, estimators and policies: is every small change of them noticed by some test?

Each mutant (making.py) meets the tests that reach it (reach.py), quick ones first, in a forked process (trial.py),
until one fails. All runs without compiled code. Mutants are taken in an order drawn from `--seed`, so that those of a
run that was cut short, or of `--sample`, are a random sample of all. What was done is kept in the folder `--out`, and a
later run goes on from there.

Survivors that cannot be told from the original, or are not worth a test, are listed with a reason in survivors.toml.
The run fails where fewer than 90 % are killed, where a survivor is not listed, and where fewer than 95 % of all
branches are taken.

    python mutants/run.py --jobs 2
    python mutants/run.py --only core/argmax.py
"""

import argparse
import json
import math
import random
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from suite import ROOT, prepare

prepare()

from branches import AT_LEAST as BRANCHES_AT_LEAST  # noqa: E402
from children import finished, fork  # noqa: E402
from making import Mutant, mutants_of, unchanged  # noqa: E402
from reach import PACKAGES, Reach, branches, measure  # noqa: E402
from trial import outcome, trial  # noqa: E402

KILLED_AT_LEAST = 0.90
CONTROL = "core/philox.py"
KILLED, ALIVE = ("killed", "timeout"), ("survived", "unreached")


def all_mutants(only: str, seed: int) -> list[Mutant]:
    """Return the mutants of all modules whose path contains `only`, shuffled."""
    package = ROOT / "src" / "dynabandit"
    files = sorted(file for part in PACKAGES for file in (package / part).glob("*.py"))
    names = {file: file.relative_to(package).as_posix() for file in files}
    found = [mutant for file in files if only in names[file] for mutant in mutants_of(file, names[file])]
    random.Random(seed).shuffle(found)
    return found


def chosen_tests(reach: Reach, mutant: Mutant, patience: float) -> dict[str, float]:
    """Return the tests for a mutant with their seconds, as many as fit into `patience` seconds, at least one."""
    chosen: dict[str, float] = {}
    total = 0.0
    for test in reach.tests_of(mutant.module, mutant.lines):
        total += reach.seconds[test]
        if chosen and total > patience:
            break
        chosen[test] = reach.seconds[test]
    return chosen


def control(reach: Reach, jobs: int) -> None:
    """Put the right code in place as a mutant is, and leave out the tests of files that it does not survive."""
    right = unchanged(ROOT / "src" / "dynabandit" / CONTROL, CONTROL)
    files: dict[str, dict[str, float]] = {}
    for test, seconds in reach.seconds.items():
        files.setdefault(test.partition("::")[0], {})[test] = seconds
    for file, status, said in finished(files, lambda file: fork(trial, right, files[file]), jobs):
        if status != 0:
            print(f"{file} IS LEFT OUT, it fails on the right code: exit status {status}, {said or 'no test'}")
            reach.leave_out(files[file])
    reach.controlled = True


def done_before(path: Path, mutants: list[Mutant], digest: str) -> dict[str, dict[str, Any]]:
    """Return the results that still hold: who was killed stays so, but new tests may kill a survivor."""
    if not path.exists():
        return {}
    originals = {mutant.key: mutant.original for mutant in mutants}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    same = [row for row in rows if row["original"] == originals.get(row["key"])]
    return {row["key"]: row for row in same if row["outcome"] not in ALIVE or row["digest"] == digest}


def run(mutants: list[Mutant], reach: Reach, path: Path, asked: argparse.Namespace, until: float) -> None:
    """Try mutants until all are done or time is over, and write each result down at once."""
    started = time.monotonic()
    tests = {mutant.key: chosen_tests(reach, mutant, asked.patience) for mutant in mutants}
    counts: Counter[str] = Counter()
    with path.open("a") as kept:
        for mutant, status, said in tried(mutants, tests, asked.jobs, until):
            found = outcome(status, list(tests[mutant.key]))
            counts[found] += 1
            kept.write(json.dumps(row_of(mutant, found, said, reach.digest)) + "\n")
            kept.flush()
            if counts.total() % 50 == 0:
                print(f"{time.monotonic() - started:6.0f} s {dict(counts)}", flush=True)
    if counts.total() < len(mutants):
        print(f"Time is over: {len(mutants) - counts.total()} mutants are left")


def tried(
    mutants: list[Mutant], tests: dict[str, dict[str, float]], jobs: int, until: float
) -> Iterator[tuple[Mutant, int, str]]:
    """Yield each mutant with what its process gave back; one that no test reaches needs none."""
    for mutant in mutants:
        if not tests[mutant.key]:
            yield mutant, 0, ""
    reached = [mutant for mutant in mutants if tests[mutant.key]]
    yield from finished(reached, lambda mutant: fork(trial, mutant, tests[mutant.key]), jobs, until)


def row_of(mutant: Mutant, found: str, said: str, digest: str) -> dict[str, Any]:
    """Return a result as it is kept."""
    names = ("key", "module", "function", "line", "operator", "before", "after", "original")
    return {name: getattr(mutant, name) for name in names} | {"outcome": found, "killer": said, "digest": digest}


def listed_reason(key: str, listed: dict[str, str]) -> str | None:
    """Return why a survivor is let be: it is listed itself, or its function is."""
    return listed.get(key) or listed.get(key.partition(": ")[0])


def report(results: list[dict[str, Any]], population: int, taken: int, there: int) -> bool:
    """Print what became of the mutants; return whether that is good enough."""
    entries = tomllib.loads((Path(__file__).parent / "survivors.toml").read_text())["survivors"]
    listed = {key: entry["reason"] for entry in entries for key in entry["mutants"]}
    valid = [row for row in results if row["outcome"] != "invalid"]
    killed = [row for row in valid if row["outcome"] in KILLED]
    print(f"\n{'module':40} {'mutants':>8} {'killed':>8}")
    for module in sorted({row["module"] for row in valid}):
        own = [row["outcome"] in KILLED for row in valid if row["module"] == module]
        print(f"{module:40} {len(own):8} {sum(own) / len(own):8.1%}")
    share = len(killed) / max(len(valid), 1)
    low, high = interval(len(killed), len(valid))
    whole = "all" if len(results) == population else f"a random sample of {population} ({low:.1%} to {high:.1%} of all)"
    print(f"\n{len(killed)} of {len(valid)} mutants killed: {share:.1%}; these are {whole}")
    unlisted = [row for row in valid if row["outcome"] in ALIVE and listed_reason(row["key"], listed) is None]
    print(f"{len(valid) - len(killed)} survivors, of which {len(unlisted)} are not listed")
    for row in sorted(unlisted, key=lambda row: (row["module"], row["line"])):
        print(f"  {row['outcome']:9} line {row['line']:3}  {row['key']}")
    for key in sorted(set(listed) & {row["key"] for row in killed}):
        print(f"  listed, but killed: {key}")
    print(f"{taken} of {there} branches taken: {taken / there:.1%}")
    return share >= KILLED_AT_LEAST and not unlisted and taken / there >= BRANCHES_AT_LEAST


def interval(successes: int, trials: int) -> tuple[float, float]:
    """Return Wilson's interval, which holds the share of all with 95 % confidence."""
    if trials == 0:
        return 0.0, 1.0
    z, p = 1.96, successes / trials
    middle = p + z * z / (2 * trials)
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    return (middle - half) / (1 + z * z / trials), (middle + half) / (1 + z * z / trials)


def main() -> int:
    """Read the command line, run, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so many")
    parser.add_argument("--sample", type=int, help="how many mutants at most; by default all")
    parser.add_argument("--seed", type=int, default=1, help="decides the order of mutants")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds of tests for one mutant at most")
    parser.add_argument("--only", default="", help="a part of the paths of modules")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "mutants", help="the folder for results")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no child is left behind
    until = time.monotonic() + asked.seconds
    asked.out.mkdir(parents=True, exist_ok=True)
    reach = measure(asked.out, asked.jobs)
    if not reach.controlled:
        control(reach, asked.jobs)
        reach.save(asked.out / "reach.json")
    mutants = all_mutants(asked.only, asked.seed)
    print(f"{len(mutants)} mutants", flush=True)
    path = asked.out / "results.jsonl"
    done = done_before(path, mutants, reach.digest)
    wanted = mutants[: asked.sample]
    run([mutant for mutant in wanted if mutant.key not in done], reach, path, asked, until)
    done = done_before(path, mutants, reach.digest)
    results = [done[mutant.key] for mutant in wanted if mutant.key in done]
    return 0 if report(results, len(mutants), *branches(asked.out, reach.digest)) else 1


if __name__ == "__main__":
    sys.exit(main())
