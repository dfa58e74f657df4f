"""Small simulations that run on the CPU and on Numba's simulated GPU.

    NUMBA_ENABLE_CUDASIM=1 python tests/gpu_cases.py results.npz

runs all of them on the simulated GPU and saves the results.
"""

import sys
from typing import Any, NamedTuple

import numpy as np

import dynabandit as db
from dynabandit.catalogue import example
from ready import READY

__all__ = ["CASES", "PARTS", "Case", "run_case"]

PARTS = ("arms", "rewards", "regret", "correct")


class Case(NamedTuple):
    """Policies, by default all, in one environment."""

    environment: str
    parameters: dict[str, Any]
    policies: tuple[str, ...]
    horizon: int
    replications: int = 1
    burn_in: int = 1  # at most
    ready: bool = False  # with the parameters of tests/ready.py, with which policies restart soon
    delay: db.Delay | None = None


RESTARTING = (
    "glr-kl-ucb", "glr-kl-ucb-diminishing", "cusum-ucb", "cusum-kl-ucb", "m-ucb", "m-kl-ucb", "r-bocpd-ucb",
    "master-ucb", "ad-switch",
)  # fmt: skip
CHANGE = {"starts": [1, 11], "means": [[0.0, 1.0], [1.0, 0.0]]}
RECORD = {"rates": [[0.0, 1.0, 0.5], [1.0, 0.0, 0.25]], "period": 3}
POLICIES = tuple(name for name in db.policies.POLICIES if name not in RESTARTING)
LATE = ("ucb", "aff-d-greedy", "aff-kl-ucb", "d-kl-ucb")
CASES = {
    # With few arms several replications share a warp; with many each lane has several arms
    "every policy, 16 replications per warp": Case("case-2", {"arms": 2}, POLICIES, 4, replications=2),
    "draws and exploration, 8 replications per warp": Case(
        "case-1", {"arms": 3}, ("ts", "eps-greedy"), 9, replications=9
    ),
    "pruned draws, 2 replications per warp": Case("case-3", {"arms": 11}, ("ots", "aff-ts"), 9, burn_in=0),
    "pruned draws in two groups, 2 arms per lane": Case("needle", {"arms": 40}, ("ts", "eps-greedy"), 4, burn_in=0),
    "scratch in global memory": Case("case-3", {"arms": 300}, ("ts", "eps-greedy"), 2, burn_in=0),
    "restarts": Case("piecewise", CHANGE, (*RESTARTING, "oracle-restart"), 24, ready=True),
    "delayed rewards": Case(
        "case-3", {"arms": 3}, LATE, 12, replications=2, delay=db.delay("geometric", mean=[1, 2, 3], lost=0.1)
    ),
    "delayed rewards with a window": Case(
        "case-3", {"arms": 3}, ("ts",), 12, delay=db.delay("recorded", delays=[0, 1, 4], window=3)
    ),
    "rates recorded per period": Case("recorded", RECORD, ("ts",), 6),
    **{
        f"environment {name}": Case(name, example(kind), ("uniform",), 2 if name == "path" else 5)
        for name, kind in db.environments.ENVIRONMENTS.items()
        if name not in ("case-1", "case-2", "case-3", "needle", "piecewise", "recorded")
    },
}


def run_case(case: Case, backend: str) -> tuple[dict[str, np.ndarray], list[tuple[int, int]]]:
    """Return what the policies of a case did, keyed by policy and part, and the calls of `progress`."""
    policies = {}
    for name in case.policies:
        policy = db.policy(name, **(READY.get(name, {}) if case.ready else {}))
        policies[name] = type(policy)(**{**policy.parameters, "burn_in": min(policy.burn_in, case.burn_in)})
    progress: list[tuple[int, int]] = []
    done = db.compare(
        policies, db.environment(case.environment, **case.parameters), horizon=case.horizon,
        replications=case.replications, seed=3, keep=("arms", "rewards"), times=5, first_replication=4,
        backend=backend, block=4, delay=case.delay, progress=lambda *steps: progress.append(steps),
    )  # fmt: skip
    return {f"{name} {part}": getattr(done[name], part) for name in policies for part in PARTS}, progress


if __name__ == "__main__":
    results: dict[str, np.ndarray] = {}
    for name, case in CASES.items():
        found, progress = run_case(case, "cuda")
        results |= {f"{name}: {key}": array for key, array in found.items()}
        assert progress[-1] == (case.replications * case.horizon,) * 2, progress
    np.savez(sys.argv[1], **results)  # type: ignore[arg-type]
