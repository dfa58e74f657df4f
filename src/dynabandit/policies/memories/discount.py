"""Discounted sums: with each reward of any arm, the weights of all earlier rewards decrease by a constant factor.

The decay that is common to all arms is stored as one scale: true weight = stored weight * scale. Only the rewarded arm
changes its numbers. When the scale gets small, all arms are multiplied by it and it is set back to 1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyState, Reward, Step
from dynabandit.policies.belief import Belief
from dynabandit.policies.beta_posterior import Prior
from dynabandit.policies.horizons.formulas import discount_for
from dynabandit.policies.memories.base import Estimate, Memory, MemoryKernels, equally_weighted
from dynabandit.policies.part import Setting
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.validation import NORMAL, check_field, number

SLOTS = ("total", "squares", "count", "mean")
TOTAL, SQUARES, COUNT, MEAN = range(4)  # the mean stays when the count of an arm that waits for long underflows
SCALE, SUM = range(2)  # shared: the scale, and the sum of all weights
SMALLEST_SCALE = 1e-100
SUCCESSES, FAILURES = range(2)  # the slots of the form that Thompson sampling uses


class Params(NamedTuple):
    discount: float


@kernel
def start(state: PolicyState, arm: int, params: Any) -> None:
    """Start with the scale 1; an arm has no mean."""
    start_counts(state, arm, params)
    state.memory[MEAN, arm] = math.inf


def make_fade(rows: int, sums_weights: bool) -> Callable[..., float]:
    """Return `fade` for memories of which so many rows are discounted, and perhaps the sum of all weights."""

    @kernel
    def fade(state: PolicyState, params: Params) -> float:
        memory, shared = state.memory, state.shared
        shared[SCALE] *= params.discount
        if sums_weights:
            shared[SUM] = params.discount * shared[SUM] + 1.0
        scale = shared[SCALE]
        if scale >= SMALLEST_SCALE:
            return 1.0
        for row in range(rows):
            for arm in range(memory.shape[1]):
                memory[row, arm] *= scale
        shared[SCALE] = 1.0
        return scale

    return fade


fade, fade_counts = make_fade(3, sums_weights=True), make_fade(2, sums_weights=False)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> Estimate:
    """Add a reward with the weight 1."""
    memory, scale, value = state.memory, state.shared[SCALE], reward.value
    total, count = memory[TOTAL, arm] + value / scale, memory[COUNT, arm] + 1.0 / scale
    mean = total / count
    memory[TOTAL, arm] = total
    memory[SQUARES, arm] += value * value / scale
    memory[COUNT, arm] = count
    memory[MEAN, arm] = mean
    return Estimate(mean, count, count, count, 0.0)


@kernel
def estimate(state: PolicyState, arm: int) -> Estimate:
    """Return the discounted mean, and N over the scale: the paper of D-UCB counts weights as rewards."""
    return equally_weighted(state.memory[MEAN, arm], state.memory[COUNT, arm])


@kernel
def all_weights(state: PolicyState, number: int, params: Params) -> float:
    """Return n_t, the sum of the weights of all arms, at least 1."""
    return max(state.shared[SUM], 1.0)


@kernel
def scale(state: PolicyState) -> float:
    """Return the scale."""
    return state.shared[SCALE]


@kernel
def start_counts(state: PolicyState, arm: int, params: Any) -> None:
    """Start with the scale 1; the counts of an arm are 0."""
    if state.shared[SCALE] == 0.0:
        state.shared[SCALE] = 1.0


@kernel
def learn_counts(state: PolicyState, arm: int, reward: Reward, params: Params) -> Estimate:
    """Add a reward as a share of a success and of a failure."""
    state.memory[SUCCESSES, arm] += reward.value / state.shared[SCALE]
    state.memory[FAILURES, arm] += (1.0 - reward.value) / state.shared[SCALE]
    return estimate_from_counts(state, arm)


@kernel
def estimate_from_counts(state: PolicyState, arm: int) -> Estimate:
    """Return the share of successes, and the stored weight."""
    size = state.memory[SUCCESSES, arm] + state.memory[FAILURES, arm]
    return equally_weighted(state.memory[SUCCESSES, arm] / size if size > 0.0 else math.inf, size)


@kernel
def scale_of_counts(state: PolicyState, number: int, params: Any) -> float:
    """Return the scale, as the posterior reads it."""
    return state.shared[SCALE]


@kernel
def beta(state: PolicyState, arm: int, step: Step, kept: float, prior: Prior, params: Params) -> tuple[float, float]:
    """Return the Beta posterior of the discounted counts; the prior is not discounted."""
    successes, failures = state.memory[SUCCESSES, arm], state.memory[FAILURES, arm]
    zeros = assumed_zeros(state, arm, successes + failures)
    return prior.a + successes * step.common, prior.b + failures * step.common + zeros


@dataclass(frozen=True, kw_only=True)
class Discount(Memory):
    """Give older rewards less weight, at a constant rate. Use it if you know how fast the means change.

    All arms are discounted, whether they are played or not, with each reward of any arm; a decision whose reward has
    not arrived yet discounts nothing.

    Parameters
    ----------
    discount
        The discount factor per reward of any arm, in (0, 1]; by default 1 - sqrt(changes / horizon) / 4, the rule of
        D-UCB.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.Discount(discount=0.99).parameters
    {'discount': 0.99}

    References
    ----------
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name = "discount"
    rewards = NORMAL
    needs_double = True
    follows_horizon = True
    kernels = MemoryKernels(
        slots=SLOTS,
        start=start,
        learn=learn,
        estimate=estimate,
        laws=(),
        keeps_mean=True,
        clock=all_weights,
        unit=scale,
        fade=fade,
        params=Params,
        while_idle=None,
    )
    kernels_of_counts = MemoryKernels(
        slots=("successes", "failures"),
        start=start_counts,
        learn=learn_counts,
        estimate=estimate_from_counts,
        laws=(("beta", beta),),
        unit=scale,
        fade=fade_counts,
        common=scale_of_counts,
        params=Params,
        while_idle=None,
    )

    discount: float | None = None

    def __post_init__(self) -> None:
        check_field(self, "discount", number, 0.0, 1.0, open_low=True, optional=True)

    @classmethod
    def kernels_for(cls, family: str | None) -> MemoryKernels:
        return cls.kernels if family is None else cls.kernels_of_counts

    @property
    def needs_changes(self) -> bool:
        return self.discount is None

    def _discount(self, setting: Setting) -> float:
        return discount_for(setting.changes, setting.horizon) if self.discount is None else self.discount

    def params(self, setting: Setting) -> Params:
        return Params(self._discount(setting))

    def shared_size(self, setting: Setting, family: str | None) -> int:
        return 2 if family is None else 1

    def forgetting(self, column: np.ndarray, setting: Setting) -> float:
        return self._discount(setting)

    def belief(self, column: np.ndarray, shared: np.ndarray, setting: Setting) -> Belief:
        """Return an arm's belief; its effective size is the discounted count, the N of the paper's bonus."""
        _, squares, count, mean = column[: len(SLOTS)].tolist()
        if math.isinf(mean):
            return Belief(math.nan, 0.0, self._discount(setting), 0.0)
        variance = max(0.0, squares / count - mean * mean) if count > 0.0 else 0.0
        return Belief(mean, variance, self._discount(setting), count * float(shared[SCALE]))
