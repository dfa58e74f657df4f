"""What the policies built on the sample mean share: their first slots and their belief."""

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.estimators import sample_mean
from dynabandit.estimators.base import Belief
from dynabandit.policies.base import Policy

__all__ = ["SLOTS", "Averaging", "learn", "observe", "start"]

SLOTS = sample_mean.State._fields


@kernel
def start(memory: np.ndarray, shared: np.ndarray, arm: int, parameters: np.ndarray) -> None:
    """Write the state of an arm without rewards."""
    memory[:, arm] = 0.0


@kernel
def observe(memory: np.ndarray, arm: int, reward: float) -> sample_mean.State:
    """Take in a reward and return the arm's new sums."""
    state = sample_mean.observe(sample_mean.load(memory, arm), reward)
    sample_mean.store(memory, arm, state)
    return state


@kernel
def learn(memory: np.ndarray, shared: np.ndarray, arm: int, reward: float, parameters: np.ndarray) -> None:
    """Take in a reward, where the sums are all there is to know."""
    observe(memory, arm, reward)


class Averaging(Policy):
    """A policy whose first slots are those of the sample mean."""

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        return sample_mean.belief(sample_mean.State(*column[: sample_mean.SIZE].tolist()))
