"""Which backend runs a simulation, and whether it can; checked before anything runs."""

import importlib.util
import os
from collections.abc import Iterable, Mapping

from dynabandit.environments import Environment
from dynabandit.policies import Policy
from dynabandit.validation import unknown

BACKENDS = ("cpu", "cuda", "auto")
PRECISIONS = ("double", "single", "mixed")
LARGEST_ARMS = 2**31 - 1  # the lanes of a warp compare arms as 32-bit integers
LARGEST_SINGLE = 1 << 24  # steps are also counted in floating-point numbers
LARGE = 10**9  # arm-steps from which a GPU is faster, its start included


def cores() -> int:
    """Return how many CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class BackendError(RuntimeError):
    """The machine does not have the backend; the message says what is missing."""


def check_names(backend: str, precision: str) -> None:
    """Raise an error if a backend or a precision is unknown, or they cannot be combined."""
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS)
    if precision != "double" and backend != "cuda":
        raise ValueError(f"precision {precision!r} needs backend='cuda', got backend={backend!r}")


def check_backend(
    backend: str, precision: str, environment: Environment, policies: Mapping[str, Policy], horizon: int
) -> None:
    """Raise an error if a backend cannot run this simulation on any machine.

    Examples
    --------
    >>> import dynabandit as db
    >>> check_backend("cuda", "single", db.environment("case-1"), {"ucb": db.policy("ucb")}, horizon=100)
    """
    check_names(backend, precision)
    for label, policy in policies.items():
        if backend == "cuda" and policy.functions.in_python:
            raise ValueError(f"policy {label!r} is in plain Python, which needs backend='cpu' or 'auto', got 'cuda'")
    if environment.arms > LARGEST_ARMS:
        raise ValueError(f"arms must be at most {LARGEST_ARMS}, got {environment.arms}")
    if precision == "double":
        return
    if horizon > LARGEST_SINGLE:
        raise ValueError(f"precision {precision!r} needs a horizon of at most {LARGEST_SINGLE}, got {horizon}")
    for label, policy in policies.items():
        if policy.needs_double and precision == "single":
            raise ValueError(
                f"policy {label!r} needs precision='double', or 'mixed' for it alone: "
                "its numbers do not fit single precision"
            )


def in_single(policy: Policy, precision: str) -> bool:
    """Whether a policy runs in single precision."""
    return precision == "single" or (precision == "mixed" and not policy.needs_double)


def needs_cpu(policies: Iterable[Policy]) -> bool:
    """Whether one of the policies is in plain Python, so that ``"auto"`` means the CPU."""
    return any(policy.functions.in_python for policy in policies)


def is_large(arm_steps: int) -> bool:
    """Whether the backend ``"auto"`` would use a GPU for so many arm-steps."""
    return arm_steps >= LARGE


def takes_gpu(backend: str, arm_steps: int) -> bool:
    """Whether to run on this machine's GPU; raises an error if one was requested and there is none."""
    if backend == "cpu":
        return False
    if backend == "auto" and (not is_large(arm_steps) or importlib.util.find_spec("numba_cuda") is None):
        return False
    from dynabandit.simulation.cuda import launch

    missing = launch.missing()
    if missing and backend == "cuda":
        raise BackendError(f"backend 'cuda' {missing}")
    return not missing
