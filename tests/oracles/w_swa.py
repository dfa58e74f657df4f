"""wSWA, literally: Levine, Crammer & Mannor (2017), algorithms 1 (SWA) and 2 (wSWA).

SWA for T steps plays each arm M times and then the arm with the largest mean of its latest M rewards,
    M = ceil(alpha 4^(2/3) sigma^(2/3) K^(-2/3) T^(2/3) ln^(1/3)(sqrt(2) T)).
wSWA runs SWA for T = 2, 4, 8, ... steps, each time from scratch.
"""

import math

from oracles.raw_ucb import History, rewards_of


def window(arms: int, steps: int, alpha: float, sigma: float) -> int:
    """M of SWA."""
    third = 1.0 / 3.0
    return math.ceil(
        alpha
        * 4.0 ** (2 * third)
        * sigma ** (2 * third)
        * arms ** (-2 * third)
        * steps ** (2 * third)
        * math.log(math.sqrt(2.0) * steps) ** third
    )


def run_of(t: int) -> tuple[int, int]:
    """How many steps came before the run of SWA that step t belongs to, and how many steps that run has."""
    before, steps = 0, 2
    while t > before + steps:
        before += steps
        steps *= 2
    return before, steps


def candidates(history: History, arms: int, alpha: float, sigma: float, capacity: int) -> set[int]:
    """The arms that may be played at the next step."""
    before, steps = run_of(len(history) + 1)
    length = min(window(arms, steps, alpha, sigma), capacity)
    rewards = [rewards_of(history[before:], arm) for arm in range(arms)]
    fewest = min(len(own) for own in rewards)
    if fewest < length:
        return {arm for arm in range(arms) if len(rewards[arm]) == fewest}
    means = [math.fsum(own[-length:]) / length for own in rewards]
    return {arm for arm in range(arms) if max(means) - means[arm] < 1e-9}
