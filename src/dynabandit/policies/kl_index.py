"""What the policies share that bound a sample mean by its Kullback-Leibler divergence."""

import math

import numpy as np

from dynabandit.core.bernoulli_kl import negentropy, upper_bound
from dynabandit.core.compilation import kernel
from dynabandit.policies import averaging

__all__ = ["INVERSE", "MEAN", "SLOTS", "bound", "index", "observe", "start"]

SLOTS = (*averaging.SLOTS, "mean", "negentropy", "inverse")
MEAN = SLOTS.index("mean")
NEGENTROPY = SLOTS.index("negentropy")
INVERSE = SLOTS.index("inverse")  # 1 / N
UNSEEN = 2.0  # a mean above this is infinity; fast arithmetic on a GPU need not know that infinity equals itself


@kernel
def start(memory: np.ndarray, shared: np.ndarray, arm: int, parameters: np.ndarray) -> None:
    """Write the state of an arm without rewards, which comes first."""
    memory[:, arm] = 0.0
    memory[MEAN, arm] = math.inf


@kernel
def observe(memory: np.ndarray, arm: int, reward: float) -> None:
    """Take in a reward, and write what the index needs."""
    state = averaging.observe(memory, arm, reward)
    mean = min(state.total / state.plays, 1.0)
    memory[MEAN, arm] = mean
    memory[NEGENTROPY, arm] = negentropy(mean)
    memory[INVERSE, arm] = 1.0 / state.plays


@kernel
def index(memory: np.ndarray, arm: int, level: float) -> float:
    """Return the largest q with N kl(mean, q) <= level; infinity for an arm without rewards."""
    return bound(memory[MEAN, arm], memory[NEGENTROPY, arm], level * memory[INVERSE, arm])


@kernel
def bound(mean: float, negentropy: float, level: float) -> float:
    """Return the largest q with kl(mean, q) <= level; infinity for an arm without rewards."""
    return mean if mean > UNSEEN else upper_bound(mean, negentropy, level)
