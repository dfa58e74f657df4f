"""eps-Greedy: the best sample mean, and now and then any arm."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import EXPLORE, Stream, uniform
from dynabandit.errors import keep, number
from dynabandit.policies import averaging
from dynabandit.policies.base import Kernels, Now

__all__ = ["EpsGreedy"]

SLOTS = (*averaging.SLOTS, "mean")
MEAN = SLOTS.index("mean")


@kernel
def start(memory: np.ndarray, shared: np.ndarray, arm: int, parameters: np.ndarray) -> None:
    averaging.start(memory, shared, arm, parameters)
    memory[MEAN, arm] = math.inf


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
    return memory[MEAN, arm]


@kernel
def explore(memory: np.ndarray, leader: int, idle: int, now: Now, parameters: np.ndarray, source: Stream) -> bool:
    return uniform(source, EXPLORE, now.step, 0) < parameters[0]


@kernel
def learn(memory: np.ndarray, shared: np.ndarray, arm: int, reward: float, parameters: np.ndarray) -> None:
    state = averaging.observe(memory, arm, reward)
    memory[MEAN, arm] = state.total / state.plays


@dataclass(frozen=True, kw_only=True)
class EpsGreedy(averaging.Averaging):
    r"""Play the arm with the best sample mean; with probability epsilon, any arm.

    Parameters
    ----------
    epsilon
        The probability of exploring, in [0, 1].
    burn_in
        How often each arm is played at first.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("eps-greedy", epsilon=0.2).label
    'eps-greedy(epsilon=0.2)'

    Notes
    -----
    With probability epsilon any arm, else the best sample mean of the rewards so far:

    .. math:: a_t = \arg\max_a \bar{x}_t(a)

    Cost of a step: O(log K), since a mean stands still while its arm is not played.

    References
    ----------
    Watkins (1989), Learning from delayed rewards. PhD thesis, Cambridge.
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 3.1.
    """

    name: ClassVar[str] = "eps-greedy"
    slots: ClassVar[tuple[str, ...]] = SLOTS
    kernels: ClassVar[Kernels] = Kernels(start=start, score=score, learn=learn, explore=explore, still=True)

    burn_in: int = 1
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, epsilon=number("epsilon", self.epsilon, 0.0, 1.0))

    def numbers(self, arms: int) -> np.ndarray:
        return np.array([self.epsilon])
