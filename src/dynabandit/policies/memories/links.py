"""Links of regressions: how the mean of a reward depends on eta = theta' x, and how much a reward weighs.

A link is a function of eta and of the reward that returns the mean p, its derivative p', the weight v of the reward in
the precision matrix, and the derivative v', all with respect to eta.
"""

import math

from dynabandit.core.compilation import kernel

LARGEST_LOG_MEAN = 50.0
CLOSE = 1e-4  # if log(reward) and log(mean) differ by less, the arithmetic mean replaces the logarithmic mean: 0 / 0

Four = tuple[float, float, float, float]


@kernel
def identity(eta: float, value: float) -> Four:
    """Rewards with the mean eta and a constant variance: least squares."""
    return eta, 1.0, 1.0, 0.0


@kernel
def logistic(eta: float, value: float) -> Four:
    """Rewards in [0, 1] with the mean 1 / (1 + exp(-eta)); p' is the weight."""
    small = math.exp(-abs(eta))
    share = 1.0 / (1.0 + small)
    p = share if eta >= 0.0 else small * share
    v = small * share * share
    return p, v, v, v * (1.0 - 2.0 * p)


@kernel
def log(eta: float, value: float) -> Four:
    """Counts with the mean exp(eta).

    The weight is the mean p, or, for a count above it, the logarithmic mean of p and the count: the Newton step of a
    large count would otherwise move eta far beyond the logarithm of the count.
    """
    p = math.exp(min(eta, LARGEST_LOG_MEAN))
    if value <= p:
        return p, p, p, p
    gap = math.log(value) - eta
    if gap < CLOSE:
        return p, p, 0.5 * (p + value), 0.5 * p
    v = (value - p) / gap
    return p, p, v, (v - p) / gap
