"""FEWA with dyadic windows, literally: Seznec, Locatelli, Carpentier, Lazaric & Valko (2019).

Start with all arms and the window h = 1. Keep the arms whose mean over h rewards is at least the largest one minus
2 c(h, delta_t), c(h, delta) = sqrt(2 sigma^2 log(1 / delta) / h), delta_t = t^(-alpha). Go on with the next window
until some arm that is left has too few rewards for it; play such an arm, the one with the fewest rewards.
"""

import math

from oracles.raw_ucb import History, rewards_of, window_means


def candidates(history: History, arms: int, t: int, alpha: float, sigma: float) -> set[int]:
    """The arms that may be played at step t."""
    means = [window_means(rewards_of(history, arm)) for arm in range(arms)]
    plays = [len(rewards_of(history, arm)) for arm in range(arms)]
    left = set(range(arms))
    h = 1
    while all(h in means[arm] for arm in left):
        c = math.sqrt(2.0 * sigma**2 * math.log(t**alpha) / h)
        largest = max(means[arm][h] for arm in left)
        left = {arm for arm in left if means[arm][h] >= largest - 2.0 * c}
        h *= 2
    fewest = min(plays[arm] for arm in left)
    return {arm for arm in left if plays[arm] == fewest}
