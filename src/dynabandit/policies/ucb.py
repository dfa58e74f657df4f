"""UCB: the sample mean plus what is not yet known."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import Stream
from dynabandit.estimators import sample_mean
from dynabandit.policies import averaging
from dynabandit.policies.base import Kernels, Now

__all__ = ["MEAN", "SLOTS", "UCB", "WIDTH", "observe", "score", "start"]

SLOTS = (*averaging.SLOTS, "mean", "width")
MEAN = SLOTS.index("mean")
WIDTH = SLOTS.index("width")  # 1 / sqrt(N), so that a step needs no root and no division per arm


@kernel
def start(memory: np.ndarray, shared: np.ndarray, arm: int, parameters: np.ndarray) -> None:
    averaging.start(memory, shared, arm, parameters)
    memory[MEAN, arm] = math.inf


@kernel
def context(shared: np.ndarray, step: int, parameters: np.ndarray) -> float:
    return math.sqrt(2.0 * math.log(float(max(step - 1, 1))))


@kernel
def score(
    memory: np.ndarray,
    arm: int,
    idle: int,
    now: Now,
    parameters: np.ndarray,
    table: np.ndarray,
    source: Stream,
) -> float:
    # mean + sqrt(2 log t / N), section 3.2
    return memory[MEAN, arm] + now.context * memory[WIDTH, arm]


@kernel
def learn(memory: np.ndarray, shared: np.ndarray, arm: int, reward: float, parameters: np.ndarray) -> None:
    observe(memory, arm, reward)


@kernel
def observe(memory: np.ndarray, arm: int, reward: float) -> sample_mean.State:
    """Take in a reward and return the arm's new sums."""
    state = averaging.observe(memory, arm, reward)
    memory[MEAN, arm] = state.total / state.plays
    memory[WIDTH, arm] = 1.0 / math.sqrt(state.plays)
    return state


@dataclass(frozen=True, kw_only=True)
class UCB(averaging.Averaging):
    r"""Play the arm with the largest upper confidence bound, mean + sqrt(2 log t / N).

    Parameters
    ----------
    burn_in
        How often each arm is played at first.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.simulate(db.policy("ucb"), db.environment("fixed", means=[0.2, 0.8]), horizon=100, seed=1)
    Simulation(ucb on fixed, 2 arms, 100 steps, 1 replication: mean total regret 6)

    Notes
    -----
    The score of an arm with N plays and the sample mean x, at step t:

    .. math:: \bar{x} + \sqrt{\frac{2 \log t}{N}}

    Cost of a step: O(K).

    References
    ----------
    Auer, Cesa-Bianchi & Fischer (2002), Finite-time analysis of the multiarmed bandit problem.
    """

    name: ClassVar[str] = "ucb"
    slots: ClassVar[tuple[str, ...]] = SLOTS
    kernels: ClassVar[Kernels] = Kernels(start=start, score=score, learn=learn, context=context)

    burn_in: int = 1
