"""AFF-Normal-TS and AFF-Normal-UCB, literally: the law N(m/w, s^2 k/w^2), and its upper bound.

While an arm is idle its effective size w^2/k is multiplied by lambda^(idle/|A|), but is never below one reward.
"""

import math

from oracles.unit_free import History, estimate, idle_factor, values


def law(history: History, arm: int, arms: int, step_size: float, floor: float) -> tuple[float, float]:
    """Mean and variance of the posterior."""
    own = [reward for played, reward in history if played == arm]
    found = estimate(own, values(history), step_size, floor)
    size = max(found.size * idle_factor(found.forgetting, history, arm, arms), 1.0)
    return found.mean, found.variance / size


def upper_bound(history: History, arm: int, arms: int, step_size: float, floor: float, confidence: float) -> float:
    """The bound that a normal mean exceeds with probability at most `confidence`: exp(-x^2 / (2 variance))."""
    mean, variance = law(history, arm, arms, step_size, floor)
    return mean + math.sqrt(2 * variance * -math.log(confidence))
