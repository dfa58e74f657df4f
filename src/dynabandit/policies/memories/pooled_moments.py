"""Mean and variance of the rewards of all arms, as memories for rewards in any unit keep them in `shared`.

They stand in for what an arm does not have: a variance of its own before its rewards differ, and a mean before its
first reward. So these memories need no constant in the unit of the rewards.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyState, Step
from dynabandit.policies.beta_posterior import Prior
from dynabandit.policies.pending_plays import pending_plays

COUNT, MEAN, SQUARES = range(3)  # SQUARES: the sum of the squared deviations from the mean
SIZE = 3
ROUNDING = 1e-20  # the same for rewards in any unit, as a share of the squared mean
ROUNDING_IN_SINGLE = 1e-11


@kernel
def is_variance(variance: float, mean: float) -> bool:
    """Whether a variance is more than the rounding error of rewards with this mean, in any unit."""
    return variance > ROUNDING * mean * mean


@kernel
def is_variance_in_single(variance: float, mean: float) -> bool:
    """The same for the rounding error of a float32."""
    return variance > ROUNDING_IN_SINGLE * mean * mean


is_variance.in_single = is_variance_in_single  # type: ignore[attr-defined]


@kernel
def add(shared: np.ndarray, value: float) -> None:
    """Add a reward (Welford, 1962)."""
    shared[COUNT] += 1.0
    deviation = value - shared[MEAN]
    shared[MEAN] += deviation / shared[COUNT]
    shared[SQUARES] += deviation * (value - shared[MEAN])


@kernel
def variance(shared: np.ndarray) -> float:
    """Return the variance of the rewards of all arms; 0 before the second one."""
    return shared[SQUARES] / (shared[COUNT] - 1.0) if shared[COUNT] > 1.0 else 0.0


@kernel
def mean_of(shared: np.ndarray, own: float, size: float) -> float:
    """Return the mean of an arm with rewards of this size, or of all rewards if it has none."""
    return own if size > 0.0 else shared[MEAN]


@kernel
def variance_of(shared: np.ndarray, own: float) -> float:
    """Return the variance of an arm, or of all rewards if it is 0."""
    return own if own > 0.0 else variance(shared)


def laws(mean_row: int, size_row: int, variance: Callable[..., float]) -> tuple[tuple[str, Callable[..., Any]], ...]:
    """Return the laws "normal" and "moments" of a memory that stores means and sizes in these rows.

    The size of an idle arm is never less than one reward.
    """

    @kernel
    def normal(state: PolicyState, arm: int, step: Step, kept: float, prior: Prior, params: Any) -> tuple[float, float]:
        mean, size = state.memory[mean_row, arm], state.memory[size_row, arm]
        return mean_of(state.shared, mean, size), math.sqrt(variance(state, arm) / max(size * kept, 1.0))

    @kernel
    def moments(
        state: PolicyState, arm: int, step: Step, kept: float, prior: Prior, params: Any
    ) -> tuple[float, float, float]:
        mean, size = state.memory[mean_row, arm], state.memory[size_row, arm]
        left = max(size * kept, 1.0) + pending_plays(state, arm)
        return mean_of(state.shared, mean, size), variance(state, arm), left

    return ("normal", normal), ("moments", moments)
