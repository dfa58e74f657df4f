"""The sample mean: all rewards of an arm have the same weight."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.core.records import column_reader, column_writer
from dynabandit.policies.base import PolicyState, Step
from dynabandit.policies.beta_posterior import Prior
from dynabandit.policies.memories.base import Memory, per_arm
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.validation import NORMAL


class Sums(NamedTuple):
    """Sums over the rewards so far."""

    total: float
    squares: float
    plays: float


SLOTS = Sums._fields
TOTAL, PLAYS = SLOTS.index("total"), SLOTS.index("plays")
START = Sums(total=0.0, squares=0.0, plays=0.0)
load = column_reader(Sums)
store = column_writer(Sums)


@kernel
def observe(sums: Sums, reward: float, params: Any) -> Sums:
    """Add one reward."""
    return Sums(sums.total + reward, sums.squares + reward * reward, sums.plays + 1.0)


@inlined_kernel
def observe_arm(state: PolicyState, arm: int, reward: float) -> Sums:
    """Add a reward to the sums of an arm and return them."""
    sums = observe(load(state.memory, arm), reward, 0.0)
    store(state.memory, arm, sums)
    return sums


@kernel
def mean(sums: Sums) -> float:
    """Return the mean of the rewards, of which there is at least one."""
    return sums.total / sums.plays


@kernel
def size(sums: Sums) -> float:
    """Return the number of rewards."""
    return sums.plays


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
    kernels = per_arm(START, observe, mean, size)._replace(laws=(("beta", beta),), counts_rewards=True)

    def variance(self, column: np.ndarray, mean: float) -> float:
        total, squares, plays = column[: len(SLOTS)].tolist()
        return max(0.0, squares - mean * total) / (plays - 1.0) if plays > 1.0 else 0.0
