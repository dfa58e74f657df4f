"""What the backends of the simulator share."""

import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dynabandit.core.streams import Stream
from dynabandit.environments import Environment
from dynabandit.policies import Policy
from dynabandit.simulation.stepper import State, start

__all__ = ["Progress", "Work", "cores", "distinct_states", "initial_state"]

Progress = Callable[[int, int], None]


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Work(NamedTuple):
    """What is to be simulated, whatever the backend."""

    environment: Environment
    policies: dict[str, Policy]
    horizon: int
    source: Stream
    times: np.ndarray
    progress: Progress

    @property
    def needs_switches(self) -> bool:
        """Whether a policy wants to know how often the best arm changes."""
        return any(policy.needs_tuning for policy in self.policies.values())


def initial_state(policy: Policy, arms: int, switches: np.ndarray, horizon: int) -> State:
    """Return the state before the first step, of a replication for each number of switches."""
    rows, index = distinct_states(policy, arms, switches, horizon)
    return State(*(part[index] for part in rows))


def distinct_states(policy: Policy, arms: int, switches: np.ndarray, horizon: int) -> tuple[State, np.ndarray]:
    """Return the states before the first step that differ, and for each replication which of them is its own."""
    counts, index = np.unique(switches if policy.needs_tuning else np.zeros_like(switches), return_inverse=True)
    tuned = [policy.tuned(int(count), horizon) for count in counts]
    rows = State(
        memory=np.zeros((len(tuned), max(one.memory_size() for one in tuned), arms)),
        shared=np.zeros((len(tuned), max(one.shared_size() for one in tuned))),
        last=np.zeros((len(tuned), arms), dtype=np.int64),
        parameters=np.stack([one.numbers(arms) for one in tuned]),
    )
    start(policy.kernels, rows)
    return rows, index
