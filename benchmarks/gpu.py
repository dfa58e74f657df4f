"""Check that the simulator makes the same choices on a GPU as on the CPU, and measure its speed.

python benchmarks/gpu.py --check [--late] [--environments case-1 ...] [--policies ucb ...]
python benchmarks/gpu.py --time --json FILE    measure on a machine with a GPU
python benchmarks/gpu.py --write FILE          write docs/performance.md and docs/measured/gpu.json from that file
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import dynabandit as db
from report import table, write

TIMED = ["aff-ucb2", "ucb", "ts", "aff-ots"]
SIZES = {  # arms, steps and replications, and the policies that are timed
    (100, 10_000, 10_000): TIMED,
    (1000, 10_000, 100): ["aff-ots"],
    (10_000, 20_000, 100): ["aff-ots"],  # the first 10,000 steps are the burn-in
}
PRECISIONS = ("single", "double")
ENVIRONMENTS = {
    "case-1": {"arms": 5},
    "case-2": {"arms": 40},
    "case-3": {"arms": 100},
    "case-4": {"arms": 2},
    "small-changes": {},
    "fixed": {"means": [0.1, 0.5, 0.4]},
    "pb-1": {},
    "seasonal": {"arms": 12},
    "rotting": {"arms": 12},
    "burst": {"arms": 12, "first": 500},
    "needle": {"arms": 200, "period": 1000},
}


LATE = {"": None, "late ": db.delay("geometric", mean=30, lost=0.05)}


def check(environments: list[str], policies: list[str], late: str, horizon: int = 3000, replications: int = 8) -> None:
    """Compare the choices of each policy on both backends, step by step."""
    for name in environments:
        environment = db.environment(name, **ENVIRONMENTS[name])
        runs = {
            backend: db.compare(
                policies,
                environment,
                horizon=horizon,
                replications=replications,
                seed=7,
                keep=("arms",),
                backend=backend,
                delay=LATE[late],
            )
            for backend in ("cpu", "cuda")
        }
        for policy in policies:
            here, there = runs["cpu"][policy], runs["cuda"][policy]
            assert here.arms is not None
            assert there.arms is not None
            apart = (here.arms != there.arms).any(axis=1).sum()
            off = abs(here.total_regret - there.total_regret).max()
            print(
                f"check {late}{name:14s} {policy:18s} different replications: "
                f"{apart} of {replications}, regret {off:.1e}",
                flush=True,
            )


def measure(policies: list[str]) -> dict[str, Any]:
    """Return the seconds of simulations, including the sample paths, excluding compilation."""
    from numba import cuda

    name = cuda.get_current_device().name
    times = [
        {"policy": policy, "arms": size[0], "horizon": size[1], "replications": size[2], "precision": precision}
        for precision in PRECISIONS
        for size, timed in SIZES.items()
        for policy in policies or timed
    ]
    for one in times:
        environment = db.environment("case-3", arms=one["arms"])
        common = {"replications": one["replications"], "backend": "cuda", "precision": one["precision"], "seed": 1}
        taken = []
        for horizon in (one["arms"] + 1, one["horizon"], one["horizon"]):  # the first compiles
            began = time.perf_counter()
            sim = db.simulate(one["policy"], environment, horizon=min(horizon, one["horizon"]), **common)
            taken.append(time.perf_counter() - began)
        one |= {"seconds": min(taken[1:]), "compilation": taken[0], "regret": float(sim.total_regret.mean())}
        print(one, flush=True)
    return {"gpu": name.decode() if isinstance(name, bytes) else str(name), "times": times}


def text_of(numbers: dict[str, Any]) -> str:
    """Return what `measure` returned as a table for docs/performance.md."""
    rows: dict[tuple[str, ...], dict[str, float]] = {}
    for one in numbers["times"]:
        key = (f"`{one['policy']}`", *(f"{one[name]:,}" for name in ("arms", "horizon", "replications")))
        rows.setdefault(key, {})[one["precision"]] = one["seconds"]
    cells = [
        [*key, *(f"{taken[one]:.3g} s" if one in taken else "" for one in PRECISIONS)] for key, taken in rows.items()
    ]
    head = ["policy", "arms", "steps", "replications", "single precision", "double precision"]
    return f"{numbers['gpu']}:\n\n{table(head, cells)}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--late", action="store_true", help="check with delayed rewards")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--json", type=Path, help="the file for the times")
    parser.add_argument("--write", type=Path, help="a file with times: write it to the documentation")
    parser.add_argument("--policies", nargs="*", default=[])
    parser.add_argument("--environments", nargs="*", default=list(ENVIRONMENTS), choices=list(ENVIRONMENTS))
    given = parser.parse_args()
    if given.time:
        measured = measure(given.policies)
        if given.json:
            given.json.write_text(json.dumps(measured))
    if given.write:
        stored = json.loads(given.write.read_text())
        write("gpu", stored, text_of(stored))
    if given.check:
        check(given.environments, given.policies or list(db.policies.POLICIES), "late " if given.late else "")
