"""Catoni's mean: a mean of the latest rewards that a few very large ones hardly move."""

import math
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.estimators.adaptive_forgetting import is_variance
from dynabandit.estimators.base import Belief, Estimator
from dynabandit.validation import NORMAL, integer, number

NEWTON_STEPS = 12  # more than enough: the slope changes little, because psi' is between 0.3 and 1 for most rewards


class Moments(NamedTuple):
    """The sample mean and the sample variance of some rewards."""

    mean: float
    variance: float


@kernel
def moments(rewards: np.ndarray) -> Moments:
    """Return mean and variance; the variance of one reward is 0."""
    total = 0.0
    for i in range(rewards.size):
        total += rewards[i]
    mean = total / rewards.size
    squares = 0.0
    for i in range(rewards.size):
        squares += (rewards[i] - mean) * (rewards[i] - mean)
    return Moments(mean, squares / (rewards.size - 1) if rewards.size > 1 else 0.0)


@kernel
def catoni_mean(rewards: np.ndarray, sample: Moments, level: float) -> float:
    """Return the root theta of sum psi(alpha (x - theta)), by Newton's method from the sample mean.

    psi(x) = sign(x) log(1 + |x| + x^2 / 2) grows slowly beyond about 1, and alpha = sqrt(2 level / (n variance)).
    """
    if not is_variance(sample.variance, sample.mean):
        return sample.mean
    alpha = math.sqrt(2.0 * level / (rewards.size * sample.variance))
    theta = sample.mean
    for _ in range(NEWTON_STEPS):
        value = 0.0
        slope = 0.0
        for i in range(rewards.size):
            x = alpha * (rewards[i] - theta)
            size = abs(x)
            inside = 1.0 + size + 0.5 * size * size
            value += math.copysign(math.log(inside), x)
            slope += (1.0 + size) / inside
        theta += value / (alpha * slope)
    return theta


class CatoniMean(Estimator):
    r"""A robust mean of the latest rewards, for heavy tails.

    Its error is about as small for rewards with any finite variance as that of the sample mean for normal rewards,
    whereas one extreme reward can spoil a sample mean. Rewards may be any numbers.

    Parameters
    ----------
    window
        How many of the latest rewards count.
    confidence
        The probability with which the error may be large, in (0, 1): a small one makes the mean more robust.

    Examples
    --------
    >>> from dynabandit.estimators import CatoniMean
    >>> estimate = CatoniMean(window=20)
    >>> for reward in [1, 2, 3, 2, 1, 3, 2, 2, 1000]:
    ...     _ = estimate.update(reward)
    >>> round(estimate.mean), round((16 + 1000) / 9)
    (86, 113)

    Notes
    -----
    The root of an increasing function of the deviations, with the sample variance v of the n rewards in the window:

    .. math:: \sum_i \psi\left( \alpha (x_i - \theta) \right) = 0, \quad \psi(x) = \mathrm{sign}(x) \log\left( 1 + |x| +
        \frac{x^2}{2} \right), \quad \alpha = \sqrt{\frac{- 2 \log(\mathrm{confidence})}{n v}}

    References
    ----------
    Catoni (2012), Challenging the empirical mean and empirical variance: a deviation study. Annales de l'IHP 48.
    """

    rewards = NORMAL

    def __init__(self, window: int = 100, confidence: float = 0.05) -> None:
        self.window = integer("window", window, 1)
        self.confidence = number("confidence", confidence, 0.0, 1.0, open_low=True)
        self.state: tuple[float, ...] = ()

    def _observe(self, reward: float) -> tuple[float, ...]:
        return (*self.state, reward)[-self.window :]

    @property
    def belief(self) -> Belief:
        if not self.state:
            return Belief(math.nan, 0.0, 1.0, 0.0)
        rewards = np.array(self.state)
        sample = moments(rewards)
        mean = catoni_mean(rewards, sample, -math.log(self.confidence))
        return Belief(float(mean), float(sample.variance), 1.0, float(len(rewards)))

    @property
    def weight(self) -> float:
        return float(len(self.state))
