"""Robust UCB with Catoni's mean, literally: Bubeck, Cesa-Bianchi & Lugosi (2013), for a finite variance (epsilon = 1).

Catoni's mean is the root theta of sum psi(alpha (x_i - theta)), psi(x) = sign(x) log(1 + |x| + x^2 / 2). We take the
latest rewards of an arm only. In place of a known bound v of the variance we take the median of the variances of five
blocks, where the i-th reward is in block i mod 5; with less than ten rewards, the sample variance. alpha is
sqrt(2 log(1/delta) / (n v)) with a fixed delta, and the bonus sqrt(c v log(t^2) / n) with t = steps so far.
"""

import math
from collections.abc import Sequence

from oracles.unit_free import History, is_variance, mean, values, variance


def psi(x: float) -> float:
    return math.copysign(math.log1p(abs(x) + x * x / 2), x)


def robust_variance(rewards: Sequence[float]) -> float:
    if len(rewards) >= 10:
        median = sorted(variance(rewards[block::5]) for block in range(5))[2]
        if is_variance(median, mean(rewards)):
            return median
    return variance(rewards)


def catoni(rewards: Sequence[float], confidence: float) -> float:
    """The root, by bisection."""
    spread = robust_variance(rewards)
    if not is_variance(spread, mean(rewards)):
        return mean(rewards)
    alpha = math.sqrt(2 * -math.log(confidence) / (len(rewards) * spread))
    low, high = min(rewards), max(rewards)
    for _ in range(200):
        middle = (low + high) / 2
        if math.fsum(psi(alpha * (reward - middle)) for reward in rewards) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def latest(rewards: Sequence[float], window: int) -> list[float]:
    """The last rewards, each at its place modulo the window, as the blocks count them."""
    count = len(rewards)
    return [rewards[i] for i in sorted(range(max(0, count - window), count), key=lambda i: i % window)]


def score(history: History, arm: int, window: int, confidence: float, c: float) -> float:
    own = latest([reward for played, reward in history if played == arm], window)
    everything = values(history)
    level = c * 2 * math.log(max(len(history), 1))
    if not own:
        return mean(everything) + math.sqrt(level * variance(everything))
    spread = robust_variance(own)
    if not is_variance(spread, mean(own)):
        spread = variance(everything)
    return catoni(own, confidence) + math.sqrt(level * spread / len(own))
