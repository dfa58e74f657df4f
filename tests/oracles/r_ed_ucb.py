"""R-ed-UCB, literally: Metelli, Trovò, Pirola & Restelli (2022), rested rising bandits.

With the N rewards R_1, ..., R_N of an arm and h = floor(epsilon N), an arm with h = 0 scores infinity, others
    1/h sum_{l = N - h + 1}^{N} (R_l + (t - l) (R_l - R_{l - h}) / h)
    + sigma (t - N + h - 1) sqrt(10 log(1 / delta_t) / h^3),
delta_t = t^(-alpha): the recent mean, extended to step t along the recent slope, and a bonus.
"""

import math

from oracles.raw_ucb import History, rewards_of


def index(history: History, arm: int, t: int, alpha: float, sigma: float, epsilon: float, window: int) -> float:
    """The score of an arm before step t; h is at most `window`."""
    rewards = rewards_of(history, arm)
    n = len(rewards)
    h = min(math.floor(epsilon * n), window)
    if h == 0:
        return math.inf
    terms = [rewards[k - 1] + (t - k) * (rewards[k - 1] - rewards[k - h - 1]) / h for k in range(n - h + 1, n + 1)]
    bonus = sigma * (t - n + h - 1) * math.sqrt(10.0 * math.log(t**alpha) / h**3)
    return math.fsum(terms) / h + bonus
