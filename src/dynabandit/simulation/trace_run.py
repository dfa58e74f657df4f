"""What a policy believed on the way: the rewards of a simulation, learnt once more."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynabandit.errors import integer
from dynabandit.estimators.base import Belief
from dynabandit.policies import Policy, compiled
from dynabandit.simulation.api import Simulation, recorded_times
from dynabandit.simulation.stepper import State, count_switches
from dynabandit.simulation.work import initial_state

__all__ = ["Trace", "trace"]

FIELDS = len(Belief._fields)


class Trace(NamedTuple):
    """The arms of one replication, after some of its steps; all but `times` are arrays (times, arms)."""

    times: np.ndarray
    truth: np.ndarray
    """The true means at that step."""
    mean: np.ndarray
    """What the policy takes them for; NaN for an arm without rewards."""
    variance: np.ndarray
    forgetting: np.ndarray
    effective_size: np.ndarray
    plays: np.ndarray
    """How often each arm was played between the time before and this one."""


def trace(run: Simulation, replication: int = 0, times: int | Sequence[int] | np.ndarray = 200) -> Trace:
    """Return what the policy believed along one replication of a simulation.

    The chosen arms and their rewards go through the policy's own `learn` once more, so the beliefs are those that
    the choices were made with.

    Parameters
    ----------
    run
        A simulation with ``keep=("arms", "rewards")``.
    replication
        Which one, counted from the first of this simulation.
    times
        After which steps, as for `compare`.

    Examples
    --------
    >>> import dynabandit as db
    >>> run = db.simulate("aff-ots", "small-changes", horizon=4000, seed=1, keep=("arms", "rewards"))
    >>> on_the_way = trace(run, times=4)
    >>> on_the_way.times.tolist(), on_the_way.forgetting.shape
    ([1000, 2000, 3000, 4000], (4, 3))
    """
    if run.arms is None or run.rewards is None:
        raise ValueError('run must be a simulation with keep=("arms", "rewards"), got one without')
    replication = integer("replication", replication, 0, run.replications - 1)
    marks = recorded_times(times, run.horizon)
    path = run.environment.path(run.horizon, run.seed, run.first_replication + replication)
    policy = run.policy.tuned(_switches(path) if run.policy.needs_tuning else 0, run.horizon)
    arms, rewards = run.arms[replication], run.rewards[replication]
    beliefs = _replay(policy, arms, rewards, marks, path)
    plays = np.zeros((len(marks), path.shape[1]), dtype=np.int64)
    np.add.at(plays, (np.searchsorted(marks, np.arange(1, run.horizon + 1)), arms), 1)
    mean, variance, forgetting, effective_size = np.moveaxis(beliefs, -1, 0)
    return Trace(marks, path[marks - 1], mean, variance, forgetting, effective_size, plays)


def _switches(path: np.ndarray) -> int:
    """Count how often the best arm changes."""
    switches = np.zeros(1, dtype=np.int64)
    count_switches()(path[None], path.max(axis=1)[None], len(path), np.full(1, -1), switches)
    return int(switches[0])


def _replay(policy: Policy, arms: np.ndarray, rewards: np.ndarray, marks: np.ndarray, path: np.ndarray) -> np.ndarray:
    """Return the beliefs at the marks, an array (marks, arms, fields of a belief)."""
    count = path.shape[1]
    state = State(*(part[0] for part in initial_state(policy, count, np.zeros(1, dtype=np.int64), len(arms))))
    learn = compiled.learn(policy.kernels)
    beliefs = np.empty((len(marks), count, FIELDS))
    first = 0
    for row, mark in enumerate(marks.tolist()):
        for step in range(first, mark):
            if policy.informed:  # a yardstick may act on the truth, such as forget what is no longer true
                for arm in range(count):
                    policy.kernels.reveal(state.memory, arm, path[step, arm])
            learn(state.memory, state.shared, int(arms[step]), float(rewards[step]), state.parameters)
        first = mark
        for arm in range(count):
            beliefs[row, arm] = policy.belief(state.memory[:, arm], state.shared)
    return beliefs
