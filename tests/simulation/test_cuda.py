"""Simulations on a GPU make the same choices as on the CPU, step for step.

The tests need no GPU: Numba's CUDA simulator runs the kernels interpreted, one lane after the other, so
the cases in tests/tools/gpu_cases.py are small. ``benchmarks/gpu.py --check`` compares every policy on a real GPU.
"""

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest

import dynabandit as db
from dynabandit.choosing.argmax_tree import new_trees
from dynabandit.choosing.choose_arm import Workspace, new_workspace
from dynabandit.core.compilation import compiled
from dynabandit.core.precision import single
from dynabandit.core.streams import stream
from dynabandit.environments.delays import NO_DELAY
from dynabandit.simulation.backends import in_single
from dynabandit.simulation.cuda import launch
from dynabandit.simulation.request import initial_states
from dynabandit.simulation.stepper import Block, Paths, Replications, empty_record, make_play
from tools import gpu_cases
from tools.cudasim import cudasim


def test_cuda_kernels_make_the_choices_of_the_processor() -> None:
    """One test for all cases, which the simulated GPU runs in one process."""
    done = cudasim(gpu_cases.__file__, NUMBA_DISABLE_JIT="1", PYTHONWARNINGS="error")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def broken(message: str) -> Callable[..., Any]:
    def fail(*_: object) -> Any:
        raise RuntimeError(message)

    return fail


@pytest.mark.parametrize(
    ("driver", "message"),
    [
        ({"current_context": broken("no driver\n ")}, r"needs an NVIDIA GPU and its driver, .* works \(no driver\): "),
        ({"current_context": lambda: None}, r"needs NVVM of the CUDA toolkit, .*: pip install 'dynabandit\[cuda\]'$"),
        (None, r"needs the CUDA toolkit, but cannot load it \(no libcudart\.so\): pip install 'dynabandit\[cuda\]'$"),
    ],
    ids=["no driver", "no NVVM", "no runtime"],
)
def test_without_a_gpu_or_the_toolkit_the_message_says_what_is_missing(
    driver: dict[str, Any] | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """numba-cuda itself cannot be imported where its libraries are missing."""
    monkeypatch.delattr(numba, "cuda", raising=False)
    if driver is None:
        monkeypatch.delitem(sys.modules, "numba.cuda", raising=False)
        monkeypatch.setattr(numba, "__getattr__", broken("no libcudart.so"), raising=False)
    else:
        monkeypatch.setattr(numba, "cuda", SimpleNamespace(is_available=lambda: False, **driver), raising=False)
    with pytest.raises(RuntimeError, match=f"backend 'cuda' {message}"):
        db.simulate("ucb", "case-1", horizon=10, backend="cuda")


def test_auto_takes_the_processor_where_the_work_is_small() -> None:
    chosen = [
        np.asarray(db.simulate("ucb", "case-1", horizon=10, seed=1, backend=backend, keep="arms").arms)
        for backend in ("auto", "cpu")
    ]
    assert np.array_equal(chosen[0], chosen[1])


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


@pytest.mark.parametrize("name", ["ucb", "aff-ots"])
def test_single_precision_agrees_in_law_and_without_beta_draws_nearly_number_for_number(name: str) -> None:
    """Fixed seeds; the mean of the differences is within 4.5 standard errors of 0, which chance breaks once in 10^5."""
    policy, world, arms, horizon, replications = db.policy(name), db.environment("case-1", arms=12), 12, 1000, 40
    states = initial_states(policy, arms, np.zeros(replications, dtype=np.int64), horizon)
    narrow = Replications(*(part.astype(np.float32) if part.dtype == float else part for part in states))
    paths = [world.path(horizon, seed=1, replication=r) for r in range(replications)]
    means = np.stack(paths).astype(np.float32)
    record = empty_record(np.array([horizon]), replications, kept_steps=0)
    trees = new_trees(policy.functions, replications, arms)
    wide = new_workspace(policy.functions, arms, horizon)._replace(tree=trees)
    space = Workspace(*(part.astype(np.float32) for part in wide))
    block = Block(1, horizon, policy.burn_in, 0, False)
    play = compiled(single(make_play(policy.functions, pruned=False)))  # in single precision a GPU draws every arm
    play(
        narrow,
        record,
        Paths(means, means.max(axis=2), np.zeros(1), np.zeros((1, arms)), np.zeros((1, 1, 1, 1))),
        block,
        space,
        NO_DELAY,
        stream(1),
    )
    exact = db.simulate(policy, world, horizon=horizon, replications=replications, seed=1).total_regret
    # The same streams: most replications make the same choices, and the rest differ by chance, not in the mean.
    # Beta draws take fewer words of a stream in single precision, and so are others.
    difference = record.total - exact
    assert policy.functions.posterior is not None or (abs(difference) < 0.01).mean() > 0.3
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
