"""Times a step of each policy, and estimates the time of a whole run from such times."""

import json
import time
from collections.abc import Iterable
from importlib.resources import files

import numpy as np

from dynabandit.environments import Environment, environment as make_environment
from dynabandit.policies import Policy, policy as make_policy
from dynabandit.simulation import compare

TRIES = 3
MEASURED = "step_times.json"  # microseconds per step with 10 and with 100 arms, measured once for all policies
MEASURED_ARMS = (10, 100)
REFERENCE = "uniform"  # compiled and timed on this machine to compare it with the one that measured the table
GPU_ARM_STEPS = 4.7e9  # arms x steps per second on an H200 in single precision, over all policies and 14 processes
PYTHON_SECONDS = 30e-6  # per step of a policy in plain Python, of which one thread runs at a time


def time_steps(
    policies: Iterable[Policy], environment: Environment | None = None, horizon: int = 100_000
) -> dict[str, float]:
    """Return the microseconds per step of each policy on one core: the fastest of three runs of compiled code.

    By default there are ten arms with constant means, so that the environment takes hardly any of the time.
    """
    if environment is None:
        environment = make_environment("fixed", means=np.linspace(0.3, 0.6, 10).tolist())
    microseconds = {}
    for policy in policies:
        compare([policy], environment, horizon=10 * environment.arms, threads=1)
        seconds = []
        for _ in range(TRIES):
            began = time.perf_counter()
            compare([policy], environment, horizon=horizon, threads=1)
            seconds.append(time.perf_counter() - began)
        microseconds[policy.name] = 1e6 * min(seconds) / horizon
    return microseconds


def estimate_seconds(jobs: Iterable[tuple[str, int, float]], cores: int) -> float:
    """Return about how many seconds some simulations take on this machine, without compilation.

    Parameters
    ----------
    jobs
        For each simulation the name of the policy, the number of arms, and the steps of all replications.
    cores
        The number of threads.
    """
    table = measured_times()
    typical = sorted(table.values())[len(table) // 2]  # for policies that are newer than the table
    total = 0.0
    for policy, arms, steps in jobs:
        few, many = table.get(policy, typical)
        slope = (many - few) / (MEASURED_ARMS[1] - MEASURED_ARMS[0])
        total += steps * max(few + slope * (arms - MEASURED_ARMS[0]), 0.5 * few) * 1e-6
    return total * _slower() / cores


def measured_times() -> dict[str, tuple[float, float]]:
    """Return the microseconds per step with `MEASURED_ARMS`, as measured once."""
    text = files(__package__).joinpath(MEASURED).read_text(encoding="utf-8")
    return {name: (few, many) for name, (few, many) in json.loads(text).items()}


def _slower() -> float:
    """Return how many times slower this machine is than the one that measured the table."""
    microseconds = time_steps([make_policy(REFERENCE)], horizon=200_000)[REFERENCE]
    return microseconds / measured_times()[REFERENCE][0]
