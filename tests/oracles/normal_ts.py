"""Thompson sampling for normal rewards with unknown mean and variance, literally.

With a uniform prior of the mean and the standard deviation (alpha = -1/2 in Honda & Takemura 2014), the posterior of
the mean after n rewards, whose squared deviations from their mean have the sum S, is a Student law with nu = n - 2
degrees of freedom, centred at the sample mean, with scale sqrt(S / (n nu)).
"""

import math

from oracles.unit_free import History, is_variance, mean, values, variance


def posterior(history: History, arm: int) -> tuple[float, float, float]:
    """Centre, scale and degrees of freedom; infinitely many where the law is normal."""
    own = [reward for played, reward in history if played == arm]
    everything = values(history)
    if not own:
        return mean(everything), math.sqrt(variance(everything)), math.inf
    n, center, spread = len(own), mean(own), variance(own)
    if n < 3 or not is_variance(spread, center):
        return center, math.sqrt(variance(everything) / n), math.inf
    squares = math.fsum((reward - center) ** 2 for reward in own)
    return center, math.sqrt(squares / (n * (n - 2))), float(n - 2)
