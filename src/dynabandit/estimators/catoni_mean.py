"""Catoni's mean: a mean of the latest rewards that a few very large ones hardly move."""

import math
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.estimators.adaptive_forgetting import is_variance
from dynabandit.estimators.base import Belief, Estimator
from dynabandit.validation import NORMAL, integer, number

NEWTON_STEPS = 12  # more than enough, because the median of the means of blocks is near the root
BLOCKS = 5  # of which the variance is the median, so that extreme rewards in two of them do not count


class Moments(NamedTuple):
    """The mean and the variance of some rewards."""

    mean: float
    variance: float


@kernel
def block_moments(rewards: np.ndarray, first: int, spacing: int) -> Moments:
    """Return mean and variance of each `spacing`-th reward from `first` on; the variance of one reward is 0."""
    count = 0.0
    mean = 0.0
    squares = 0.0
    for i in range(first, rewards.size, spacing):
        count += 1.0
        deviation = rewards[i] - mean
        mean += deviation / count
        squares += deviation * (rewards[i] - mean)
    return Moments(mean, squares / (count - 1.0) if count > 1.0 else 0.0)


@kernel
def median_of_five(a: float, b: float, c: float, d: float, e: float) -> float:
    """Return the number with at most two smaller and at most two larger ones.

    Examples
    --------
    >>> median_of_five(9.0, 1.0, 4.0, 4.0, 7.0)
    4.0
    """
    five = (a, b, c, d, e)
    for one in five:
        below = 0
        above = 0
        for other in five:
            if other < one:
                below += 1
            elif other > one:
                above += 1
        if below <= 2 and above <= 2:
            return one
    return a


@kernel
def robust_moments(rewards: np.ndarray) -> Moments:
    """Return the medians of the means and of the variances of five blocks; with few rewards, the sample moments."""
    sample = block_moments(rewards, 0, 1)
    if rewards.size < 2 * BLOCKS:
        return sample
    a, b = block_moments(rewards, 0, BLOCKS), block_moments(rewards, 1, BLOCKS)
    c, d = block_moments(rewards, 2, BLOCKS), block_moments(rewards, 3, BLOCKS)
    e = block_moments(rewards, 4, BLOCKS)
    variance = median_of_five(a.variance, b.variance, c.variance, d.variance, e.variance)
    if not is_variance(variance, sample.mean):
        return sample
    return Moments(median_of_five(a.mean, b.mean, c.mean, d.mean, e.mean), variance)


@kernel
def catoni_mean(rewards: np.ndarray, moments: Moments, level: float) -> float:
    """Return the root theta of sum psi(alpha (x - theta)), by Newton's method from `moments.mean`.

    psi(x) = sign(x) log(1 + |x| + x^2 / 2) grows slowly beyond about 1, and alpha = sqrt(2 level / (n variance)).
    """
    if not is_variance(moments.variance, moments.mean):
        return moments.mean
    alpha = math.sqrt(2.0 * level / (rewards.size * moments.variance))
    theta = moments.mean
    for _ in range(NEWTON_STEPS):
        value = 0.0
        slope = 0.0
        for i in range(rewards.size):
            x = alpha * (rewards[i] - theta)
            size = abs(x)
            inside = 1.0 + size + 0.5 * size * size
            value += math.copysign(math.log(inside), x)
            slope += (1.0 + size) / inside
        theta += min(max(value / slope, -1.0), 1.0) / alpha  # far from the root, the slope is too small
    return theta


def check_confidence(confidence: float) -> float:
    """Return a confidence in (0, 1) as a float; with 1, alpha would be 0."""
    return number("confidence", confidence, 0.0, 1.0, open_low=True, open_high=True)


class CatoniMean(Estimator):
    r"""A robust mean of the latest rewards, for heavy tails.

    One extreme reward can spoil a sample mean; here its influence grows only with the logarithm of its size. Rewards
    may be any numbers.

    Parameters
    ----------
    window
        How many of the latest rewards count.
    confidence
        The probability with which the error may be large, in (0, 1): a small one makes the mean more robust.

    Examples
    --------
    >>> from dynabandit.estimators import CatoniMean
    >>> estimate = CatoniMean(window=100)
    >>> for reward in [1, 2, 3, 2, 1, 3, 2, 2] * 6 + [1000]:
    ...     _ = estimate.update(reward)
    >>> round(estimate.mean, 1), round((96 + 1000) / 49, 1)
    (2.6, 22.4)

    Notes
    -----
    The root theta of an equation with the n rewards in the window. The variance v is the median of the variances of
    five blocks of them, so that extreme rewards do not inflate it; with less than ten rewards, the sample variance:

    .. math:: \sum_i \psi\left( \alpha (x_i - \theta) \right) = 0, \quad \psi(x) = \mathrm{sign}(x) \log\left( 1 + |x| +
        \frac{x^2}{2} \right), \quad \alpha = \sqrt{\frac{- 2 \log(\mathrm{confidence})}{n v}}

    References
    ----------
    Catoni (2012), Challenging the empirical mean and empirical variance: a deviation study. Annales de l'IHP 48.
    """

    rewards = NORMAL

    def __init__(self, window: int = 100, confidence: float = 0.05) -> None:
        self.window = integer("window", window, 1)
        self.confidence = check_confidence(confidence)
        self.state: tuple[float, ...] = ()

    def _observe(self, reward: float) -> tuple[float, ...]:
        return (*self.state, reward)[-self.window :]

    @property
    def belief(self) -> Belief:
        if not self.state:
            return Belief(math.nan, 0.0, 1.0, 0.0)
        rewards = np.array(self.state)
        moments = robust_moments(rewards)
        mean = catoni_mean(rewards, moments, -math.log(self.confidence))
        return Belief(float(mean), float(moments.variance), 1.0, float(len(rewards)))

    @property
    def weight(self) -> float:
        return float(len(self.state))
