"""Means that depend on the plays of an arm, and the best policy in hindsight for them.

If means do not rise with plays, and do not depend on time, the best policy for any number of steps plays the arm with
the largest current mean. If they do not fall, it plays one arm only.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.core.records import rows_reader
from dynabandit.environments.reward_laws import RewardFunctions


@functools.cache
def make_arm_mean(law: RewardFunctions) -> Callable[..., float]:
    """Return arm_mean(means, plays, arm, matrix), in the units of the path, with the environment's parameters."""
    mean, observes_plays, read_params = law.mean, law.observes_plays, rows_reader(law.mean_params)

    @inlined_kernel
    def arm_mean(means: np.ndarray, plays: np.ndarray, arm: int, matrix: np.ndarray) -> float:
        if observes_plays:
            return mean(means[arm], plays[arm], arm, read_params(matrix))
        return means[arm]

    return arm_mean


@kernel
def no_reward(means: np.ndarray, optimal: np.ndarray, number: int, matrix: np.ndarray, law_params: Any) -> float:
    """Follow no policy: the regret of restless arms is the sum of their gaps."""
    return 0.0


@kernel
def never_best(means: np.ndarray, plays: np.ndarray, optimal: np.ndarray, arm: int, matrix: np.ndarray) -> bool:
    """Compare with no policy."""
    return False


@kernel
def largest_of(numbers: np.ndarray) -> float:
    """Return the largest of some numbers; CUDA has no `max` of arrays."""
    largest = numbers[0]
    for place in range(1, numbers.size):
        largest = max(largest, numbers[place])
    return largest


@functools.cache
def make_best_policy(law: RewardFunctions) -> tuple[Callable[..., float], Callable[..., bool]]:
    """Return best_reward(means, optimal, number, matrix, law_params) and is_best(means, plays, optimal, arm, matrix).

    The first is the mean reward that the best policy adds at step `number`; `optimal` is its state: how often it has
    played each arm or, if means rise, the sum of the mean rewards of each arm if only this arm is played. The second is
    whether to play an arm is right: it has the largest current mean or, if means rise, it is the best single arm. It
    must be called after the first.
    """
    if not law.observes_plays:
        return no_reward, never_best
    mean, expected, read_params, arm_mean = law.mean, law.expected, rows_reader(law.mean_params), make_arm_mean(law)

    @kernel
    def greedy_reward(
        means: np.ndarray, optimal: np.ndarray, number: int, matrix: np.ndarray, law_params: Any
    ) -> float:
        params = read_params(matrix)
        best = 0
        largest = -1.0
        for arm in range(means.size):
            current = mean(means[arm], int(optimal[arm]), arm, params)
            if current > largest:
                best = arm
                largest = current
        optimal[best] += 1.0
        return expected(largest, law_params)

    @kernel
    def is_greedy(means: np.ndarray, plays: np.ndarray, optimal: np.ndarray, arm: int, matrix: np.ndarray) -> bool:
        chosen = arm_mean(means, plays, arm, matrix)
        largest = chosen
        for other in range(means.size):
            largest = max(largest, arm_mean(means, plays, other, matrix))
        return chosen == largest

    @kernel
    def single_arm_reward(
        means: np.ndarray, optimal: np.ndarray, number: int, matrix: np.ndarray, law_params: Any
    ) -> float:
        params = read_params(matrix)
        before = largest_of(optimal)
        for arm in range(means.size):
            optimal[arm] += expected(mean(means[arm], number - 1, arm, params), law_params)
        return largest_of(optimal) - before

    @kernel
    def is_single_arm(means: np.ndarray, plays: np.ndarray, optimal: np.ndarray, arm: int, matrix: np.ndarray) -> bool:
        return optimal[arm] == largest_of(optimal)

    return (single_arm_reward, is_single_arm) if law.rising else (greedy_reward, is_greedy)
