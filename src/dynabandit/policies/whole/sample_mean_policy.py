"""What algorithms based on the sample mean share: their first slots and their belief."""

from typing import Any

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import Policy, PolicyState, Reward
from dynabandit.policies.belief import Belief
from dynabandit.policies.memories.sample_mean import SLOTS, SampleMean, observe_arm as observe
from dynabandit.policies.part import Setting

__all__ = ["SLOTS", "SampleMeanPolicy", "learn", "observe", "start"]


@kernel
def start(state: PolicyState, arm: int, params: Any) -> None:
    """Write the state of an arm without rewards."""
    state.memory[:, arm] = 0.0


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Any) -> None:
    """Update the sums, for policies that need nothing else."""
    observe(state, arm, reward.value)


class SampleMeanPolicy(Policy):
    """A policy whose first slots are the sums of the sample mean."""

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        return SampleMean().belief(column, shared, Setting(1))
