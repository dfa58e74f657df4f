"""The GPU's simulator makes the processor's choices, step for step.

There is no GPU where these tests run: Numba's CUDA simulator runs the same kernels, a Python thread for each lane, so
sizes are small. ``benchmarks/gpu.py --check`` compares every policy on a real GPU.
"""

import numpy as np
import pytest
from numba import cuda

import dynabandit as db
from cudasim import cudasim
from dynabandit.core.compilation import compiled
from dynabandit.core.precision import single
from dynabandit.core.streams import stream
from dynabandit.policies.argmax_tree import new_trees
from dynabandit.policies.choose_arm import SCRATCH_ROWS
from dynabandit.simulation.backends import in_single
from dynabandit.simulation.cuda import launch
from dynabandit.simulation.stepper import Record, State, make_episodes
from dynabandit.simulation.work import initial_state

SCRIPT = """
import sys
import dynabandit as db

names, world, arms = sys.argv[1].split(","), sys.argv[2], int(sys.argv[3])
environment = db.environment(world, arms=arms)
policies = {}
for name in names:
    policy = db.policy(name)
    policies[name] = type(policy)(**{**policy.parameters, "burn_in": min(policy.burn_in, 1)})
count = 2 if world == "case-2" else 1
common = dict(horizon=arms + 12, replications=count, seed=3, keep=("arms", "rewards"), times=5, first_replication=4)
here = db.compare(policies, environment, **common)
seen = []
there = db.compare(policies, environment, backend="cuda", block=7, progress=lambda *steps: seen.append(steps), **common)
for name in names:
    for part in ("arms", "rewards", "regret", "correct"):
        assert (getattr(here[name], part) == getattr(there[name], part)).all(), (name, part)
assert seen[-1][0] == seen[-1][1] == count * common["horizon"]
print("agree", len(names))
"""
POLICIES = list(db.policies.POLICIES)
RESTARTING = ("glr-kl-ucb", "glr-kl-ucb-diminishing", "cusum-ucb", "m-ucb")  # in tests/policies/test_restarts.py


@pytest.mark.parametrize(
    ("names", "world", "arms"),
    [
        (POLICIES[:6], "case-1", 3),
        (POLICIES[6:12], "case-4", 3),
        (POLICIES[12:18], "case-2", 3),
        ([name for name in POLICIES[18:] if name not in RESTARTING], "case-1", 3),
        (["ots", "aff-ts", "sw-ucb"], "case-3", 11),
        (["d-ts", "changepoint-ts"], "rotting", 5),
        (["f-dsw-ts", "ucb"], "seasonal", 3),
        (["sw-ts", "exp3-s"], "burst", 5),
        (["rexp3"], "needle", 40),
        (["d-ts"], "pb-2", 3),
    ],
)
def test_cuda_kernels_make_the_choices_of_the_processor(names: list[str], world: str, arms: int) -> None:
    done = cudasim("-W", "error", "-c", SCRIPT, ",".join(names), world, str(arms))
    assert done.stdout.strip() == f"agree {len(names)}", done.stderr


def test_without_a_gpu_the_message_says_what_is_missing() -> None:
    with pytest.raises(RuntimeError, match="backend 'cuda' needs an NVIDIA GPU and its driver"):
        db.simulate("ucb", "case-1", horizon=10, backend="cuda")


def test_a_gpu_without_the_toolkit_is_not_taken_for_a_missing_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "is_available", lambda: False)
    monkeypatch.setattr(cuda, "current_context", lambda: None)
    with pytest.raises(RuntimeError, match=r"needs NVVM of the CUDA toolkit, .*: pip install 'dynabandit\[cuda\]'$"):
        db.simulate("ucb", "case-1", horizon=10, backend="cuda")


def test_auto_takes_the_processor_where_the_work_is_small() -> None:
    chosen = db.simulate("ucb", "case-1", horizon=10, seed=1, backend="auto", keep="arms").arms
    assert (chosen == db.simulate("ucb", "case-1", horizon=10, seed=1, keep="arms").arms).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"backend": "gpu"}, "unknown backend 'gpu'"),
        ({"precision": "half"}, "unknown precision 'half'"),
        ({"precision": "single"}, "precision 'single' needs backend='cuda', got backend='cpu'"),
        ({"precision": "mixed"}, "precision 'mixed' needs backend='cuda', got backend='cpu'"),
        ({"precision": "single", "backend": "cuda"}, "policy 'd-ucb' needs precision='double'"),
        (
            {"precision": "single", "backend": "cuda", "horizon": 2**24 + 1},
            "precision 'single' needs a horizon of at most 16777216",
        ),
    ],
)
def test_wrong_backends_and_precisions_are_refused_before_any_work(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        db.simulate("d-ucb", "case-1", **{"horizon": 10, **wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["ucb", "ts", "aff-ots", "aff-ucb2-growing", "aff-dts2", "kl-ucb", "glr-kl-ucb"])
def test_single_precision_agrees_in_law_and_without_beta_draws_nearly_number_for_number(name: str) -> None:
    """Fixed seeds; the mean of the differences is within 4.5 standard errors of 0, which chance breaks once in 10^5."""
    policy, world, arms, horizon, replications = db.policy(name), db.environment("case-1", arms=12), 12, 1000, 40
    state = initial_state(policy, arms, np.zeros(replications, dtype=np.int64), horizon)
    narrow = State(*(part.astype(np.float32) if part.dtype == float else part for part in state))
    paths = [world.path(horizon, seed=1, replication=r) for r in range(replications)]
    means = np.stack(paths).astype(np.float32)
    record = Record(
        np.array([horizon]),
        np.zeros(replications),
        np.zeros((replications, 1)),
        np.zeros((replications, 1), dtype=np.uint8),
        np.zeros((replications, 0), dtype=np.int32),
        np.zeros((replications, 0), dtype=np.uint8),
    )
    table = policy.kernels.table(arms, horizon).astype(np.float32)
    scratch = np.zeros((SCRATCH_ROWS, arms), dtype=np.float32)
    trees = new_trees(policy.kernels, replications, arms).astype(np.float32)
    compiled(single(make_episodes(policy.kernels)))(
        narrow, record, table, scratch, trees, means, means.max(axis=2), 1, horizon, policy.burn_in, 0, stream(1)
    )
    exact = db.simulate(policy, world, horizon=horizon, replications=replications, seed=1).total_regret
    # The same streams: most replications make the same choices, and the rest differ by chance, not in the mean.
    # Beta draws take fewer words of a stream in single precision, and so are others.
    difference = record.total - exact
    assert policy.kernels.posterior is not None or (abs(difference) < 0.01).mean() > 0.3
    assert abs(difference.mean()) < 4.5 * max(difference.std(), 1e-3) / replications**0.5


def test_mixed_precision_is_double_for_policies_that_need_it_alone() -> None:
    assert not in_single(db.policy("d-ucb"), "mixed")
    assert in_single(db.policy("ucb"), "mixed")
    assert not in_single(db.policy("ucb"), "double")
    assert in_single(db.policy("ucb"), "single")


def test_progress_of_both_precisions_rises_to_the_whole() -> None:
    seen: list[int] = []
    first, second = (launch._within(lambda done, total: seen.append(done), begun, 0.5) for begun in (0.0, 0.5))
    for part in (first, second):
        part(50, 100)
        part(100, 100)
    assert seen == [25, 50, 75, 100]
