"""Measure the peak memory of large simulations, each in a process of its own.

python benchmarks/memory.py            print the numbers; takes some minutes
python benchmarks/memory.py --quick    the same with a hundredth of the steps or replications
python benchmarks/memory.py --write    also write docs/performance.md and docs/measured/memory.json
"""

import argparse
import json
import resource
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np

import dynabandit as db
from report import machine, table, write


class Case(NamedTuple):
    """A simulation whose memory is measured; `steps` are those after the burn-in."""

    policy: str
    arms: int
    replications: int
    steps: int
    limit: int  # in MB


CASES = (
    Case("ucb", 10, 1000, 1_000_000, 500),
    Case("aff-ots", 10, 1000, 1_000_000, 500),
    Case("ts", 1_000_000, 100, 1000, 4000),
    Case("aff-ots", 1_000_000, 100, 1000, 4000),
    Case("aff-ucb2", 1_000_000, 100, 1000, 4000),
)


def peak_of(case: Case) -> float:
    """Run a simulation in this process and return its peak memory in MB, that of Python and Numba included."""
    means = np.random.default_rng(7).permutation(np.linspace(0.1, 0.9, case.arms))
    world, policy = db.environment("fixed", means=means), db.policy(case.policy)
    horizon = case.steps + policy.burn_in * case.arms
    db.simulate(policy, world, horizon=horizon, replications=case.replications, seed=1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def measure(cases: list[Case]) -> dict[str, Any]:
    """Return the peak memory of each case, from a process of its own."""
    found = []
    for case in cases:
        shown = subprocess.run(
            [sys.executable, __file__, "--case", json.dumps(case)], check=True, capture_output=True, text=True
        )
        found.append({**case._asdict(), "megabytes": float(shown.stdout)})
        print(found[-1], file=sys.stderr)
    return {"machine": machine(), "cases": found}


def text_of(numbers: dict[str, Any]) -> str:
    rows = [
        [
            f"`{one['policy']}`",
            *(f"{one[key]:,}" for key in ("arms", "replications", "steps")),
            f"{one['megabytes']:,.0f} MB",
            f"{one['limit']:,} MB",
        ]
        for one in numbers["cases"]
    ]
    head = ["policy", "arms", "replications", "steps after the burn-in", "peak memory", "limit"]
    cores = numbers["machine"]["cores"]
    return f"`benchmarks/memory.py`: peak memory of the process, {cores} threads:\n\n{table(head, rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="update the page and the numbers in docs")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the steps, or four replications")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        print(peak_of(Case(*json.loads(given.case))))
        return
    cases = list(CASES)
    if given.quick:
        cases = [
            one._replace(replications=4, steps=10) if one.arms > 10 else one._replace(steps=one.steps // 100)
            for one in cases
        ]
    numbers = measure(cases)
    print(text_of(numbers))
    if given.write:
        write("memory", numbers, text_of(numbers))


if __name__ == "__main__":
    main()
