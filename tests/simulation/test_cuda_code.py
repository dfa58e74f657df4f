"""Every policy can be compiled for a GPU, in both precisions: for CUDA, Numba infers types in other ways.

This needs no GPU and no CUDA toolkit: the code of Numba is not translated into that of a GPU. `make cuda-code` compiles
all policies; `make test` does so with some that have each memory, rule and detector.
"""

import os
from types import SimpleNamespace
from typing import Any

import numba
import pytest
from numba import types

import dynabandit as db
from dynabandit.environments import reward_law
from dynabandit.policies import CONTEXTUAL_POLICIES, DETECTORS, MEMORIES, POLICIES, RULES, Policy
from dynabandit.policies.fit import misfit
from dynabandit.policies.memories.models import ModelMemory
from dynabandit.policies.preset import Preset
from tools.cudasim import need_no_toolkit

SOME = (
    "sw-ucb-sharp", "kl-ucb", "aff-ucb2", "aff-ucb2-growing", "kl-bound + bounded-by-weight + cusum", "mix-ts + glr",
    "eps-greedy + bounded + adwin", "m-kl-ucb", "ts + bounded-by-variance + glr-diminishing", "sw-ucb", "m-ucb",
    "normal-ucb + unit-free", "normal-ots + sample-moments", "mix-normal-ts", "normal-ts + unit-free",
    "student-ts + sample-moments", "gamma-ots + poisson-mixture", "gamma-ts + poisson-mixture", "aff-ts",
)  # fmt: skip
ONLY_DOUBLE = ("d-ucb", "d-kl-ucb", "d-ts")
COMBINED = ("ots + adaptive + glr", "ucb + window + adwin", "hoeffding + growing-window", "kl-bound + mixture + cusum")
EVERY = (*POLICIES, *CONTEXTUAL_POLICIES, *SOME, *COMBINED)
EVERYTHING = os.environ.get("DYNABANDIT_CUDA_CODE") == "1"


def signature(kind: Any) -> Any:
    """Return the types of the arguments of `play` in `simulation/cuda/kernels.py`, with floats of this kind."""

    def arrays(dtype: Any, *dimensions: int) -> list[Any]:
        return [types.Array(dtype, number, "C") for number in dimensions]

    long = types.int64
    state = [*arrays(kind, 3, 2), *arrays(long, 2, 2), *arrays(kind, 2, 2), *arrays(long, 2), *arrays(kind, 3, 2, 3)]
    record = [*arrays(long, 1), *arrays(kind, 1, 2), *arrays(types.uint8, 2), *arrays(types.int32, 2)]
    record += arrays(types.uint8, 2)
    inputs = arrays(kind, 1, 3, 3, 3, 2, 4, 1, 2)
    delays = [long, long, long, *arrays(kind, 1, 1, 1, 1)]
    return types.void(*state, *record, *inputs, *delays, long, long, long, long, types.boolean, long, long, long)


def compile_for_cuda(policy: Policy, *, in_single: bool) -> None:
    """Infer the types of a kernel that plays a policy, and write its code in the language of LLVM."""
    from numba import cuda

    from dynabandit.simulation.cuda import kernels
    from dynabandit.simulation.cuda.group_shapes import group_shape

    law, shape = reward_law("bernoulli").functions, group_shape(3, 100)
    play = kernels.play_kernel(policy.functions, law, shape, in_single=in_single, pruned=False, delayed=False)
    cuda.compile(play.py_func, signature(types.float32 if in_single else types.float64), cc=(9, 0), fastmath=in_single)


@pytest.fixture
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    need_no_toolkit()
    from numba.cuda import codegen, dispatcher

    monkeypatch.setattr(dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=(9, 0)))
    monkeypatch.setattr(codegen.CUDACodeLibrary, "get_asm_strs", lambda *_, **__: [b""])


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="Numba compiles nothing")
@pytest.mark.usefixtures("without_gpu")
@pytest.mark.parametrize("name", EVERY if EVERYTHING else [*SOME, *ONLY_DOUBLE])
def test_policies_compile_for_a_gpu(name: str) -> None:
    policy = db.policy(name)
    if EVERYTHING or policy.needs_double:
        compile_for_cuda(policy, in_single=False)
    if not policy.needs_double:
        compile_for_cuda(policy, in_single=True)


def test_the_policies_that_are_compiled_have_every_part() -> None:
    policies: list[Any] = [db.policy(name) for name in (*SOME, *ONLY_DOUBLE)]
    parts = {part.name for policy in policies if isinstance(policy, Preset) for part in policy.parts() if part}
    memories = [memory for memory in MEMORIES.values() if not issubclass(memory, ModelMemory)]
    rules = [rule for rule in RULES.values() if any(misfit(memory, rule) is None for memory in memories)]
    assert {part.name for part in (*memories, *rules, *DETECTORS.values())} <= parts
