"""Small simulations that run on the CPU and on Numba's simulated GPU.

    NUMBA_ENABLE_CUDASIM=1 NUMBA_DISABLE_JIT=1 python tests/tools/cudasim.py tests/tools/gpu_cases.py

runs all of them on both and prints what differs. A simulated GPU does not compile its kernels, so nothing is compiled.
"""

import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dynabandit as db
from dynabandit.catalogue import example
from dynabandit.choosing import draw_tree
from dynabandit.simulation.cuda import devices, launch
from dynabandit.simulation.cuda.group_shapes import LANES, GroupShape, group_shape

sys.path.insert(0, str(Path(__file__).parents[1]))  # as a script
from tools.ready import EACH_SHAPE, READY

__all__ = ["CASES", "Case", "differences", "run_case"]

PARTS = ("arms", "rewards", "regret", "correct")


class Case(NamedTuple):
    """Policies in one environment."""

    environment: str
    parameters: dict[str, Any]
    policies: tuple[str, ...]
    horizon: int
    replications: int = 1
    burn_in: int = 1  # at most
    ready: bool = False  # with the parameters of tests/tools/ready.py, with which policies restart soon
    delay: db.Delay | None = None
    block: int = 4  # steps
    gpus: int = 1
    many_arms: int = draw_tree.MANY_ARMS  # with more arms, draws are made from a tree
    width: int = 0  # of a lane group; 0: as for so few replications


RESTARTING = (  # all arms, or one arm
    "glr-kl-ucb-diminishing", "cusum-ucb", "m-kl-ucb", "r-bocpd-ucb", "master-ucb", "ad-switch",
)  # fmt: skip
CHANGE = {"starts": [1, 5], "means": [[0.0, 1.0], [1.0, 0.0]]}
RECORD = {"rates": [[0.0, 1.0, 0.5], [1.0, 0.0, 0.25]], "period": 3}
RECORDED_CONTEXTS = {
    "contexts": [[1.0, 0.5], [1.0, 2.5], [1.0, -1.0]], "means": [[0.1, 0.2, 0.5], [0.3, 0.4, 0.0], [0.5, 0.6, 1.0]],
    "rotation": 4, "window": 2, "stride": 0.12,
}  # fmt: skip
LATE = ("ucb", "aff-d-greedy", "aff-kl-ucb", "d-kl-ucb")
CASES = {
    # With few arms several replications share a warp; with many each lane has several arms
    "every shape of a policy, 16 replications per warp": Case("case-2", {"arms": 2}, EACH_SHAPE, 4, replications=2),
    "draws and exploration, 8 replications per warp": Case(
        "case-1", {"arms": 3}, ("ts", "eps-greedy"), 9, replications=9
    ),
    "pruned draws, 2 replications per warp": Case("case-3", {"arms": 11}, ("ots", "aff-ts"), 9, burn_in=0),
    "pruned draws in two groups, 2 arms per lane": Case("needle", {"arms": 40}, ("ts", "eps-greedy"), 4, burn_in=0),
    "narrow groups, 5 arms per lane, 8 replications per warp": Case(
        "case-3", {"arms": 19}, ("ots", "ucb", "aff-ucb2"), 5, replications=3, burn_in=0, width=4, block=3
    ),
    "scratch in global memory": Case("case-3", {"arms": 300}, ("ts", "eps-greedy"), 2, burn_in=0),
    "draws from a tree": Case("case-1", {"arms": 9}, ("aff-ots", "mix-ts"), 21, replications=2, many_arms=8),
    "draws from a tree, late rewards": Case(
        "case-3", {"arms": 3}, ("ts",), 9, delay=db.delay("recorded", delays=[0, 1, 4]), many_arms=2
    ),
    "three GPUs, one of them with one replication": Case(
        "case-3", {"arms": 3}, ("ts", "aff-ucb2", "oracle-restart"), 5, replications=5, gpus=3
    ),
    "more GPUs than replications": Case("case-3", {"arms": 3}, ("ts",), 5, replications=2, gpus=3),
    "restarts": Case("piecewise", CHANGE, (*RESTARTING, "oracle-restart"), 14, ready=True),
    "delayed rewards": Case(
        "case-3", {"arms": 3}, LATE, 12, replications=2, delay=db.delay("geometric", mean=[1, 2, 3], lost=0.1)
    ),
    "delayed rewards with a window": Case(
        "case-3", {"arms": 3}, ("ts",), 12, delay=db.delay("recorded", delays=[0, 1, 4], window=3)
    ),
    "features, late rewards": Case(
        "lin-abrupt",
        {"arms": 3, "dimension": 3, "segment": 5},
        ("lin-ucb", "uniform"),
        12,
        replications=2,
        delay=db.delay("recorded", delays=[0, 1, 4], window=3),
    ),
    "features": Case("lin-abrupt", {"arms": 40, "segment": 3}, ("lin-ucb",), 5),
    "features that turn slowly": Case("lin-slow", {"arms": 3, "turning": 4}, ("uniform",), 6),
    **{
        f"drifting models: {change}": Case(
            "lin-drift", {"arms": 3, "dimension": 3, "change": change, "period": 3}, ("uniform",), 8
        )
        for change in ("jump", "breakpoints", "turn", "walk")
    },
    "one drifting model": Case(
        "logistic-drift", {"models": "shared", "change": "redraw", "period": 2}, ("uniform",), 5
    ),
    "moving features": Case("moving-contexts", {"period": 3}, ("uniform",), 5),
    "recorded features": Case("recorded-contexts", RECORDED_CONTEXTS, ("uniform",), 9),
    "rates recorded per period": Case("recorded", RECORD, ("ts",), 6),
    **{
        f"environment {name}": Case(name, example(kind), ("uniform",), 2 if name == "path" else 3, block=2)
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
    taking_turns = threading.Lock()  # Numba simulates one GPU at a time; a GPU of the list is activated by a lock
    devices.all_devices = lambda: [taking_turns] * case.gpus
    draw_tree.MANY_ARMS = case.many_arms
    launch.group_shape = lambda arms, *given: (  # type: ignore[attr-defined]
        GroupShape(case.width, -(-arms // case.width), LANES) if case.width else group_shape(arms, *given)
    )
    done = db.compare(
        policies, db.environment(case.environment, **case.parameters), horizon=case.horizon,
        replications=case.replications, seed=3, keep=("arms", "rewards"), times=5, first_replication=4,
        backend=backend, block=case.block, delay=case.delay, progress=lambda *steps: progress.append(steps),
    )  # fmt: skip
    return {f"{name} {part}": getattr(done[name], part) for name in policies for part in PARTS}, progress


def differences(name: str) -> list[str]:
    """Return what a case does otherwise on a GPU."""
    case = CASES[name]
    (expected, _), (found, progress) = (run_case(case, backend) for backend in ("cpu", "cuda"))
    assert found.keys() == expected.keys()
    different = [f"{name}: {key}" for key, array in expected.items() if not np.array_equal(found[key], array)]
    if progress[-1] != (case.replications * case.horizon,) * 2:
        different.append(f"{name}: progress ends with {progress[-1]}")
    if name == "restarts":  # the best arm after the change is played
        missed = [policy for policy in case.policies if (found[f"{policy} arms"][0, -8:] == 0).mean() < 0.5]
        different += [f"{name}: {policy} does not restart" for policy in missed]
    return different


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for name in CASES for line in differences(name))
