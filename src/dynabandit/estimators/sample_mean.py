"""The sample mean: every reward counts the same, for ever."""

import math
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.estimators.base import Belief, Estimator

__all__ = ["SIZE", "START", "SampleMean", "State", "belief", "load", "observe", "store"]


class State(NamedTuple):
    """Sums over the rewards so far."""

    total: float
    squares: float
    plays: float


SIZE = len(State._fields)
START = State(total=0.0, squares=0.0, plays=0.0)


@kernel
def load(memory: np.ndarray, arm: int) -> State:
    """Read the state of one arm from the first rows of a policy's memory."""
    return State(memory[0, arm], memory[1, arm], memory[2, arm])


@kernel
def store(memory: np.ndarray, arm: int, state: State) -> None:
    """Write what `load` reads."""
    for slot in range(SIZE):
        memory[slot, arm] = state[slot]


@kernel
def observe(state: State, reward: float) -> State:
    """Take in one reward."""
    return State(state.total + reward, state.squares + reward * reward, state.plays + 1.0)


def belief(state: State) -> Belief:
    """Read mean and variance off the sums."""
    plays = state.plays
    if plays <= 0.0:
        return Belief(math.nan, 0.0, 1.0, 0.0)
    mean = state.total / plays
    variance = max(0.0, state.squares - mean * state.total) / (plays - 1.0) if plays > 1.0 else 0.0
    return Belief(mean, variance, 1.0, plays)


class SampleMean(Estimator):
    """Mean and variance of all rewards so far, each with the same weight.

    Right for an arm that never changes, and slow to follow one that does: after n rewards a new one moves
    the estimate by 1/n.

    Examples
    --------
    >>> from dynabandit.estimators import SampleMean
    >>> estimate = SampleMean()
    >>> for reward in (1, 0, 0, 1):
    ...     _ = estimate.update(reward)
    >>> estimate.mean, estimate.effective_size
    (0.5, 4.0)

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 2.
    """

    def __init__(self) -> None:
        self.state = START

    def _observe(self, reward: float) -> State:
        return observe(self.state, reward)

    @property
    def belief(self) -> Belief:
        return belief(self.state)

    @property
    def weight(self) -> float:
        return float(self.state.plays)
