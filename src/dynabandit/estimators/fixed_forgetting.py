"""Fixed forgetting: the weight of a reward decreases by a constant factor with each newer reward."""

import math
from typing import NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.estimators.base import Belief, Estimator, EstimatorFunctions
from dynabandit.validation import number

NO_SPREAD = 1e-12  # up to this, v_t is rounding error and one observation has all the weight


class DiscountedSums(NamedTuple):
    """Discounted sums: of rewards, of squared rewards, of weights, of squared weights."""

    m: float
    squares: float
    w: float
    k: float


START = DiscountedSums(m=0.0, squares=0.0, w=0.0, k=0.0)


@kernel
def observe(state: DiscountedSums, reward: float, forgetting: float) -> DiscountedSums:
    """Add one reward; equations (4), (5) and (12) with a constant lambda."""
    return DiscountedSums(
        forgetting * state.m + reward,
        forgetting * state.squares + reward * reward,
        forgetting * state.w + 1.0,
        forgetting * forgetting * state.k + 1.0,
    )


@kernel
def mean(state: DiscountedSums) -> float:
    """Return the discounted mean of the rewards, of which there is at least one; equation (3)."""
    return state.m / state.w


def belief(state: DiscountedSums, forgetting: float) -> Belief:
    """Return the mean and variance of the discounted sums; equations (3) and (10)."""
    if state.w <= 0.0:
        return Belief(math.nan, 0.0, forgetting, 0.0)
    average = mean(state)
    v = state.w - state.k / state.w
    variance = max(0.0, state.squares - average * state.m) / v if v > NO_SPREAD else 0.0
    return Belief(average, variance, forgetting, state.w**2 / state.k)


class FixedForgetting(Estimator):
    """Mean and variance with weights that decrease geometrically with the age of a reward.

    Use it if the rate of change is known.

    Parameters
    ----------
    forgetting
        The factor per reward, in [0, 1]; 1 gives the sample mean, 0 the latest reward.

    Examples
    --------
    >>> from dynabandit.estimators import FixedForgetting
    >>> estimate = FixedForgetting(0.9)
    >>> for reward in (0, 0, 1, 1):
    ...     _ = estimate.update(reward)
    >>> round(estimate.mean, 4)
    0.5525

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 2.
    """

    functions = EstimatorFunctions(observe, mean)

    def __init__(self, forgetting: float) -> None:
        self.params = (number("forgetting", forgetting, 0.0, 1.0),)
        self.state = START

    @property
    def belief(self) -> Belief:
        return belief(self.state, *self.params)

    @property
    def weight(self) -> float:
        return float(self.state.w)
