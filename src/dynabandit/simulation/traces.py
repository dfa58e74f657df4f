"""Traces: the beliefs of a policy along one replication of a simulation."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import compiled_once
from dynabandit.core.context import Context
from dynabandit.core.streams import stream
from dynabandit.environments import Environment
from dynabandit.policies import Policy
from dynabandit.policies.base import Reward, new_state
from dynabandit.policies.belief import Belief
from dynabandit.results import Simulation
from dynabandit.simulation.api import recorded_times
from dynabandit.simulation.compiled import compiled_learn_many
from dynabandit.simulation.in_flight import Learned, learned_rewards
from dynabandit.simulation.stepper import add_changes
from dynabandit.validation import integer

FIELDS = len(Belief._fields)


class Trace(NamedTuple):
    """The arms of one replication, after some of its steps; all but `times` are arrays (times, arms)."""

    times: np.ndarray
    truth: np.ndarray
    """The true means at that step."""
    mean: np.ndarray
    """The policy's estimates of them, as `Policy.belief` defines them; without rewards the prior mean or NaN.

    A policy that decides by features has no estimate of an arm without them: `mean`, `variance` and `effective_size`
    are NaN."""
    variance: np.ndarray
    forgetting: np.ndarray
    effective_size: np.ndarray
    plays: np.ndarray
    """How often each arm was played since the previous time."""


def trace(run: Simulation, replication: int = 0, times: int | Sequence[int] | np.ndarray = 200) -> Trace:
    """Return the beliefs of the policy along one replication of a simulation.

    The policy learns the rewards of the chosen arms again, so the beliefs are those that the choices were made with.

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
    >>> beliefs = trace(run, times=4)
    >>> beliefs.times.tolist(), beliefs.forgetting.shape
    ([1000, 2000, 3000, 4000], (4, 3))
    """
    if run.arms is None or run.rewards is None:
        raise ValueError('run must be a simulation with keep=("arms", "rewards"), got one without')
    replication = integer("replication", replication, 0, run.replications - 1)
    marks = recorded_times(times, run.horizon)
    path = run.environment.path(run.horizon, run.seed, run.first_replication + replication)
    policy = run.policy.tuned(_changes(path) if run.policy.needs_tuning else 0, run.horizon)
    truth = run.environment.rewards.expected(_means(run.environment, path, run.arms[replication]))
    learned = _learned(run, replication)
    beliefs = _replay(policy, learned, _features(run, replication, learned), run.environment.context, marks, truth)
    plays = np.zeros((len(marks), path.shape[1]), dtype=np.int64)
    np.add.at(plays, (np.searchsorted(marks, np.arange(1, run.horizon + 1)), run.arms[replication]), 1)
    mean, variance, forgetting, effective_size = np.moveaxis(beliefs, -1, 0)
    return Trace(marks, truth[marks - 1], mean, variance, forgetting, effective_size, plays)


def _means(environment: Environment, path: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """Return the means at each step, which may depend on the plays before it."""
    law, params = environment.reward_functions, environment.params()
    if not law.observes_plays:
        return path
    means, plays = path.copy(), np.zeros(environment.arms, dtype=np.int64)
    for step, played in enumerate(arms):
        for arm in range(environment.arms):
            means[step, arm] = law.mean(path[step, arm], int(plays[arm]), arm, params)
        plays[played] += 1
    return means


def _changes(path: np.ndarray) -> int:
    """Count how often the best arm changes."""
    changes = np.zeros(1, dtype=np.int64)
    compiled_once(add_changes)(path[None], path.max(axis=1)[None], len(path), np.full(1, -1), changes)
    return int(changes[0])


def _learned(run: Simulation, replication: int) -> Learned:
    """Return the rewards of a replication as the policy learned them."""
    assert run.arms is not None
    assert run.rewards is not None
    arms, rewards = run.arms[replication], run.rewards[replication]
    if run.delay is None:
        numbers = np.arange(1, len(arms) + 1)
        return Learned(arms, rewards.astype(float), numbers, numbers)
    random = stream(run.seed, run.first_replication + replication)
    return learned_rewards(run.delay, arms, rewards, run.environment.arms, random)


def _features(run: Simulation, replication: int, learned: Learned) -> np.ndarray:
    """Return the features of the chosen arms at the decisions of these rewards; nothing without a context."""
    if run.environment.context is None:
        return np.zeros((len(learned.arms), 0))
    features = run.environment.features(run.horizon, run.seed, run.first_replication + replication)
    return features[learned.decided_at - 1, learned.arms if run.environment.context.per_arm else 0]


def _arriving(learned: Learned, after: int, upto: int) -> slice:
    """Return which rewards arrived after one step and up to another."""
    return slice(*np.searchsorted(learned.arrived_at, [after, upto], side="right"))


def _replay(
    policy: Policy,
    learned: Learned,
    features: np.ndarray,
    context: Context | None,
    marks: np.ndarray,
    truth: np.ndarray,
) -> np.ndarray:
    """Return the beliefs at the marks, an array (marks, arms, fields of a belief)."""
    count, params = truth.shape[1], policy.params(truth.shape[1])
    state = new_state(policy, count, params, context)
    learn, learn_many = policy.functions.learn, compiled_learn_many(policy.functions)
    beliefs = np.empty((len(marks), count, FIELDS))
    first = 0
    for place, mark in enumerate(marks.tolist()):
        if policy.informed:  # an oracle policy can change its state when the means are revealed
            for step in range(first + 1, mark + 1):
                for arm in range(count):
                    policy.functions.reveal(state, arm, truth[step - 1, arm])
                arriving = _arriving(learned, step - 1, step)
                for arm, *reward in zip(*(column[arriving] for column in learned), strict=True):
                    learn(state, int(arm), Reward(*reward), params)
        else:
            arriving = _arriving(learned, first, mark)
            learn_many(state, *(column[arriving] for column in learned), features[arriving], params)
        first = mark
        for arm in range(count):
            beliefs[place, arm] = policy.belief(state.memory[:, arm], state.shared)
    return beliefs
