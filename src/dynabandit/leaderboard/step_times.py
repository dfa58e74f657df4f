"""Times a step of each policy."""

import time
from collections.abc import Sequence

import numpy as np

from dynabandit.environments import environment as make_environment
from dynabandit.simulation import compare

TRIES = 3


def time_steps(policies: Sequence[str], arms: int = 10, horizon: int = 100_000) -> dict[str, float]:
    """Return the microseconds per step of each policy on one core: the fastest of three runs of compiled code.

    The means are constant, so that the environment takes hardly any of the time.
    """
    environment = make_environment("fixed", means=np.linspace(0.3, 0.6, arms).tolist())
    microseconds = {}
    for name in policies:
        compare([name], environment, horizon=10 * arms, threads=1)
        seconds = []
        for _ in range(TRIES):
            began = time.perf_counter()
            compare([name], environment, horizon=horizon, threads=1)
            seconds.append(time.perf_counter() - began)
        microseconds[name] = 1e6 * min(seconds) / horizon
    return microseconds
