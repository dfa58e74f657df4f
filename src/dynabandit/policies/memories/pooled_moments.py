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


def laws(
    mean: Callable[..., float], variance: Callable[..., float], size: Callable[..., float]
) -> tuple[tuple[str, Callable[..., Any]], ...]:
    """Return the laws "normal" and "moments" of a memory, whose numbers are also those of an arm without rewards.

    The size of an idle arm is never less than one reward.
    """

    @kernel
    def normal(state: PolicyState, arm: int, step: Step, kept: float, prior: Prior, params: Any) -> tuple[float, float]:
        return mean(state, arm), math.sqrt(variance(state, arm) / max(size(state, arm) * kept, 1.0))

    @kernel
    def moments(
        state: PolicyState, arm: int, step: Step, kept: float, prior: Prior, params: Any
    ) -> tuple[float, float, float]:
        left = max(size(state, arm) * kept, 1.0) + pending_plays(state, arm)
        return mean(state, arm), variance(state, arm), left

    return ("normal", normal), ("moments", moments)
