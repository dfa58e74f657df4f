"""Hashes of the code and numbers that determine the result of a simulation."""

import ast
import functools
import hashlib
from collections.abc import Iterable
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec

import numba
import numpy as np

from dynabandit.core.fingerprint import fingerprint
from dynabandit.core.records import to_row
from dynabandit.environments import Environment, EnvironmentFunctions, RewardFunctions
from dynabandit.environments.base import make_write_paths
from dynabandit.policies import Policy, PolicyFunctions
from dynabandit.simulation.cpu import run_task
from dynabandit.simulation.stepper import add_changes, make_play

# What runs on a GPU besides the functions that `code_version` covers; comments in these files are ignored
ON_DEVICE = (
    ("dynabandit.simulation.cuda", "kernels.py"),
    ("dynabandit.simulation.cuda", "launch.py"),
    ("dynabandit.simulation.cuda", "philox_words.py"),
    ("dynabandit.simulation.cuda", "not_inlined.py"),
    ("dynabandit.core", "precision.py"),
    ("dynabandit.choosing", "choose_arm.py"),  # a CPU stores a static index in a tree instead
    ("dynabandit.core", "tie_breaking.py"),
)


def code_version(policy: Policy, environment: Environment, horizon: int, *, delayed: bool = False) -> str:
    """Return a hash of all code and numbers that determine the result of `policy` on `environment`.

    It changes with every edit of the algorithm, the environment or the simulator that could change a result, but not
    with comments, messages, or code that a simulation does not use.

    Examples
    --------
    >>> import dynabandit as db
    >>> environment = db.environment("case-1")
    >>> code_version(db.policy("ucb"), environment, 100) == code_version(db.policy("ucb"), environment, 100)
    True
    """
    law = environment.reward_functions
    parts = [_engine_version(), path_version(environment), _policy_version(policy.functions, law, delayed)]
    return _digest([*parts, to_row(environment.rewards.params()), *_policy_numbers(policy, environment, horizon)])


def path_version(environment: Environment) -> str:
    """Return the part of `code_version` that determines the paths of an environment."""
    # What the kernels receive; some of it is not a parameter, such as the rates of Case 1
    given = [environment.state_size(), environment.context, np.array(environment.params()), environment.table()]
    return _digest([_environment_version(environment.functions), *given])


@functools.cache
def device_version() -> str:
    """Return a hash of what determines, besides `code_version`, the results of a GPU.

    It needs neither a GPU nor the package for it.

    Examples
    --------
    >>> len(device_version())
    64
    """
    sources = [(files(package) / name).read_text(encoding="utf-8") for package, name in ON_DEVICE]
    driver = version("numba-cuda") if find_spec("numba_cuda") else ""
    return _digest([*(ast.dump(ast.parse(source)) for source in sources), driver, bool(numba.config.ENABLE_CUDASIM)])


@functools.cache
def _engine_version() -> str:
    return fingerprint(run_task, add_changes)


@functools.cache
def _policy_version(functions: PolicyFunctions, law: RewardFunctions, delayed: bool) -> str:
    return fingerprint(make_play(functions, law, delayed=delayed), functions.start)


@functools.cache
def _environment_version(functions: EnvironmentFunctions) -> str:
    return fingerprint(make_write_paths(functions))


def _policy_numbers(policy: Policy, environment: Environment, horizon: int) -> list[object]:
    arms = environment.arms
    numbers: list[object] = [policy.burn_in, policy.functions.table(arms, horizon)]
    counts = [0]
    if policy.needs_tuning:
        numbers.append(fingerprint(type(policy).tuned))
        counts += [2**power for power in range(horizon.bit_length())]
    for count in counts:
        tuned = policy.tuned(count, horizon)
        numbers += [tuned.memory_size(), to_row(tuned.params(arms)), tuned.shared_size()]
    return numbers


def _digest(parts: Iterable[object]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype} {part.shape} ".encode() + part.tobytes())
        else:
            digest.update(f"{part!r} ".encode())
    return digest.hexdigest()
