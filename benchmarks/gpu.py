"""Check that the simulator makes the same choices on a GPU as on the CPU, and measure its speed.

python benchmarks/gpu.py [--check [--late] [--environments case-1 ...]] [--time] [--policies ucb ...]
"""

import argparse
import time

import dynabandit as db

TIMED = ["best-arm", "aff-ucb2", "ucb", "ts", "aff-ots"]
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


def measure(arms: int, horizon: int, replications: int, policies: list[str], precision: str) -> None:
    """Print the seconds of a simulation, including its sample paths, excluding compilation."""
    environment = db.environment("case-3", arms=arms)
    for name in policies:
        began = time.perf_counter()
        db.simulate(
            name, environment, horizon=min(horizon, 20 * arms), replications=4, backend="cuda", precision=precision
        )
        compilation = time.perf_counter() - began
        best = float("inf")
        for _ in range(2):
            began = time.perf_counter()
            sim = db.simulate(
                name,
                environment,
                horizon=horizon,
                replications=replications,
                seed=1,
                backend="cuda",
                precision=precision,
            )
            best = min(best, time.perf_counter() - began)
        rate = arms * horizon * replications / best / 1e9
        print(
            f"time {precision} {name:18s} K={arms} T={horizon} R={replications}: {best:.3f} s, "
            f"{rate:.1f} G arm-steps/s, compiled in {compilation:.1f} s, mean regret {sim.total_regret.mean():.1f}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--late", action="store_true", help="check with delayed rewards")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--policies", nargs="*", default=[])
    parser.add_argument("--environments", nargs="*", default=list(ENVIRONMENTS), choices=list(ENVIRONMENTS))
    given = parser.parse_args()
    if given.time:
        for precision in ("single", "double"):
            measure(100, 10_000, 10_000, given.policies or TIMED, precision)
    if given.check:
        check(given.environments, given.policies or list(db.policies.POLICIES), "late " if given.late else "")
