"""What the oracles for rewards in any unit share: the spread of all rewards, and adaptive forgetting without units.

A mean without a variance of its own (fewer than two rewards, or all equal) takes the variance of the rewards of all
arms, and an arm without rewards takes their mean too. Nothing here has an absolute size: all rewards times a constant
give the same decisions.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from oracles import paper

History = Sequence[tuple[int, float]]
ROUNDING = 1e-20  # a variance up to this share of the squared mean is rounding error


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def variance(values: Sequence[float]) -> float:
    """The usual estimate with n - 1; 0 with fewer than two values."""
    center = mean(values)
    return math.fsum((value - center) ** 2 for value in values) / (len(values) - 1) if len(values) > 1 else 0.0


def is_variance(value: float, center: float) -> bool:
    return value > ROUNDING * center**2


class Estimate(NamedTuple):
    """What a policy uses of one arm."""

    mean: float
    variance: float
    size: float  # w^2 / k, at least 1
    forgetting: float


def forgettings(ys: Sequence[float], step_size: float, floor: float) -> tuple[float, ...]:
    """lambda_1, ..., lambda_t of (6), where the step size is eta / s^2_t, and no step without a variance."""
    found: tuple[float, ...] = ()
    for t in range(1, len(ys) + 1):
        seen = ys[:t]
        previous = found[-1] if found else 1.0
        spread, center = paper.variance_of(seen, found), paper.mean_of(seen, found)
        step = step_size / spread if is_variance(spread, center) else 0.0
        stepped = previous - step * paper.gradient(seen, found, "squared-error")
        found += (min(max(stepped, floor), 1.0),)
    return found


def estimate(ys: Sequence[float], everything: Sequence[float], step_size: float, floor: float) -> Estimate:
    """The adaptive estimate of one arm with the rewards `ys`, where all arms have had `everything`."""
    if not ys:
        return Estimate(mean(everything), variance(everything), 1.0, 1.0)
    found = forgettings(ys, step_size, floor)
    factors = paper.weights(found, len(ys))
    center, spread = paper.mean_of(ys, found), paper.variance_of(ys, found)
    size = math.fsum(factors) ** 2 / math.fsum(factor**2 for factor in factors)
    return Estimate(center, spread if is_variance(spread, center) else variance(everything), size, found[-1])


def idle_factor(forgetting: float, history: History, arm: int, arms: int) -> float:
    """lambda^(idle / |A|) of (16) and (17)."""
    return float(forgetting ** (paper.idle_of(history, arm) / arms))


def values(history: History) -> list[float]:
    return [reward for _, reward in history]
