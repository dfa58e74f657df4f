"""The sample mean: all rewards have the same weight."""

import math
from typing import NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.core.records import column_reader, column_writer
from dynabandit.estimators.base import Belief, Estimator, EstimatorFunctions


class Sums(NamedTuple):
    """Sums over the rewards so far."""

    total: float
    squares: float
    plays: float


SIZE = len(Sums._fields)
START = Sums(total=0.0, squares=0.0, plays=0.0)
load = column_reader(Sums)
store = column_writer(Sums)


@kernel
def observe(sums: Sums, reward: float) -> Sums:
    """Add one reward."""
    return Sums(sums.total + reward, sums.squares + reward * reward, sums.plays + 1.0)


@kernel
def mean(sums: Sums) -> float:
    """Return the mean of the rewards, of which there is at least one."""
    return sums.total / sums.plays


def belief(sums: Sums) -> Belief:
    """Return the mean and variance of the rewards."""
    plays = sums.plays
    if plays <= 0.0:
        return Belief(math.nan, 0.0, 1.0, 0.0)
    average = mean(sums)
    variance = max(0.0, sums.squares - average * sums.total) / (plays - 1.0) if plays > 1.0 else 0.0
    return Belief(average, variance, 1.0, plays)


class SampleMean(Estimator):
    """Mean and variance of all rewards so far with equal weights.

    Use it for constant means. It reacts slowly to changes: after n rewards, a new reward changes the mean by 1/n of its
    deviation.

    Examples
    --------
    >>> from dynabandit.estimators import SampleMean
    >>> estimate = SampleMean()
    >>> for reward in (1, 0, 0, 1):
    ...     _ = estimate.update(reward)
    >>> estimate.mean, estimate.effective_size
    (0.5, 4.0)

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 2.
    """

    functions = EstimatorFunctions(observe, mean)

    def __init__(self) -> None:
        self.state = START

    @property
    def belief(self) -> Belief:
        return belief(self.state)

    @property
    def weight(self) -> float:
        return float(self.state.plays)
