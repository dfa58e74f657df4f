"""RAW-UCB with dyadic windows, literally: Seznec, Ménard, Lazaric & Valko (2020).

The index of an arm is the smallest of the upper confidence bounds of all its windows h,
    mean of the h latest rewards + c(h, delta_t), c(h, delta) = sqrt(2 sigma^2 log(2 / delta) / h),
    delta_t = 2 t^-alpha.
The efficient version has windows of 1, 2, 4, ... rewards only. A window of 2^j rewards moves on whenever 2^(j-1) new
ones have come, so it ends at the latest multiple of 2^(j-1).
"""

import math
from collections.abc import Sequence

History = Sequence[tuple[int, float]]


def rewards_of(history: History, arm: int) -> list[float]:
    return [reward for played, reward in history if played == arm]


def window_means(rewards: Sequence[float]) -> dict[int, float]:
    """The mean of each dyadic window that is full, by its length."""
    means, n, window = {}, len(rewards), 1
    while window <= n:
        pace = max(window // 2, 1)
        end = n // pace * pace
        means[window] = math.fsum(rewards[end - window : end]) / window
        window *= 2
    return means


def index(history: History, arm: int, t: int, alpha: float, sigma: float) -> float:
    """The score of an arm before step t."""
    means = window_means(rewards_of(history, arm))
    if not means:
        return math.inf
    delta = 2.0 / t**alpha
    return min(mean + math.sqrt(2.0 * sigma**2 * math.log(2.0 / delta) / h) for h, mean in means.items())
