"""Mean and variance of all rewards of an arm, for rewards in any unit."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyState, Reward, Step
from dynabandit.policies.beta_posterior import Prior
from dynabandit.policies.memories import pooled_moments
from dynabandit.policies.memories.base import Estimate, Memory, MemoryKernels, equally_weighted
from dynabandit.policies.memories.pooled_moments import is_variance
from dynabandit.policies.part import Setting
from dynabandit.validation import NORMAL

SLOTS = ("plays", "mean", "squares")
PLAYS, MEAN, SQUARES = range(3)  # SQUARES: the sum of the squared deviations from the mean


@kernel
def start(state: PolicyState, arm: int, params: Any) -> None:
    """Write nothing: all numbers are 0."""


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Any) -> Estimate:
    """Add a reward to the arm (Welford, 1962) and to all rewards."""
    memory, value = state.memory, reward.value
    memory[PLAYS, arm] += 1.0
    deviation = value - memory[MEAN, arm]
    memory[MEAN, arm] += deviation / memory[PLAYS, arm]
    memory[SQUARES, arm] += deviation * (value - memory[MEAN, arm])
    pooled_moments.add(state.shared, value)
    return estimate(state, arm)


@kernel
def variance(state: PolicyState, arm: int) -> float:
    """Return the variance of the rewards of an arm, or of all rewards if those of the arm have none."""
    plays, squares = state.memory[PLAYS, arm], state.memory[SQUARES, arm]
    if plays > 1.0 and is_variance(squares, state.memory[MEAN, arm]):
        return squares / (plays - 1.0)
    return pooled_moments.variance(state.shared)


@kernel
def estimate(state: PolicyState, arm: int) -> Estimate:
    """Return the mean and the number of rewards."""
    return equally_weighted(state.memory[MEAN, arm], state.memory[PLAYS, arm])


@kernel
def student(
    state: PolicyState, arm: int, step: Step, kept: float, prior: Prior, params: Any
) -> tuple[float, float, float]:
    """Return the posterior of the mean of normal rewards: center, scale and degrees of freedom.

    Before an arm has three different rewards it is a normal law, with the variance of all rewards.
    """
    plays, mean, squares = state.memory[PLAYS, arm], state.memory[MEAN, arm], state.memory[SQUARES, arm]
    freedom = plays - 2.0
    if freedom > 0.0 and is_variance(squares, mean):
        return mean, math.sqrt(squares / (plays * freedom)), freedom
    common = pooled_moments.variance(state.shared)
    if plays > 0.0:
        return mean, math.sqrt(common / plays), math.inf
    return state.shared[pooled_moments.MEAN], math.sqrt(common), math.inf


@dataclass(frozen=True, kw_only=True)
class SampleMoments(Memory):
    """Remember the mean and the variance of all rewards of an arm, in any unit: for constant means.

    Before the rewards of an arm differ, their variance is that of the rewards of all arms.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.SampleMoments().rewards.check(-12.5)
    -12.5

    References
    ----------
    Welford (1962), Note on a method for calculating corrected sums of squares and products. Technometrics 4.
    """

    name = "sample-moments"
    first_plays = 2  # so that a variance can be estimated
    rewards = NORMAL
    kernels = MemoryKernels(
        slots=SLOTS,
        start=start,
        learn=learn,
        estimate=estimate,
        laws=(*pooled_moments.laws(MEAN, PLAYS, variance), ("student", student)),
        while_idle=None,  # an arm without rewards changes with those of others
    )

    def shared_size(self, setting: Setting, family: str | None) -> int:
        return pooled_moments.SIZE

    def variance(self, column: np.ndarray, mean: float) -> float:
        plays, squares = float(column[PLAYS]), float(column[SQUARES])
        return squares / (plays - 1.0) if plays > 1.0 else 0.0
