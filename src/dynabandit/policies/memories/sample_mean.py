"""The sample mean: all rewards of an arm have the same weight."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.estimators import sample_mean
from dynabandit.estimators.base import Belief
from dynabandit.estimators.sample_mean import Sums
from dynabandit.policies.base import PolicyState, Reward, Step
from dynabandit.policies.beta_posterior import Prior
from dynabandit.policies.memories.base import Estimate, Memory, MemoryKernels
from dynabandit.policies.part import Setting
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.validation import NORMAL

SLOTS = Sums._fields
TOTAL, PLAYS = SLOTS.index("total"), SLOTS.index("plays")


@kernel
def start(state: PolicyState, arm: int, params: Any) -> None:
    """Write nothing: all sums are 0."""


@inlined_kernel
def observe(state: PolicyState, arm: int, value: float) -> Sums:
    """Add a reward to the sums of an arm and return them."""
    sums = sample_mean.observe(sample_mean.load(state.memory, arm), value)
    sample_mean.store(state.memory, arm, sums)
    return sums


@inlined_kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Any) -> Estimate:
    """Add a reward to the sums of an arm."""
    sums = observe(state, arm, reward.value)
    return Estimate(sums.total / sums.plays, sums.plays, sums.plays, sums.plays, 0.0)


@kernel
def estimate(state: PolicyState, arm: int) -> Estimate:
    """Return the sample mean and the number of rewards."""
    total, plays = state.memory[TOTAL, arm], state.memory[PLAYS, arm]
    return Estimate(total / plays if plays > 0.0 else math.inf, plays, plays, plays, 0.0)


@kernel
def beta(state: PolicyState, arm: int, step: Step, kept: float, prior: Prior, params: Any) -> tuple[float, float]:
    """Return the Beta posterior of equations (20) and (21)."""
    total, plays = state.memory[TOTAL, arm], state.memory[PLAYS, arm]
    return prior.a + total, prior.b + plays - total + assumed_zeros(state, arm, plays)


@dataclass(frozen=True, kw_only=True)
class SampleMean(Memory):
    """Remember all rewards of an arm with equal weights: for constant means.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.SampleMean().name
    'sample-mean'

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 2.
    """

    name = "sample-mean"
    rewards = NORMAL
    kernels = MemoryKernels(
        slots=SLOTS,
        start=start,
        learn=learn,
        estimate=estimate,
        laws=(("beta", beta),),
        shares=False,
        counts_rewards=True,
    )

    def belief(self, column: np.ndarray, shared: np.ndarray, setting: Setting) -> Belief:
        return sample_mean.belief(Sums(*column[: sample_mean.SIZE].tolist()))
