"""Bias and mean squared error of estimators, literally: all rewards are kept, and every estimate is a plain mean."""

import math
from collections.abc import Callable, Sequence

from dynabandit.core.streams import REWARD, stream, uniform

Estimate = Callable[[Sequence[float]], float]  # all rewards so far -> an estimate of the current mean


def bernoulli_rewards(path: Sequence[float], seed: int, replication: int, arm: int) -> list[float]:
    """The rewards of one replication: 1 if the uniform number of the step is below its mean."""
    random = stream(seed, replication)
    return [float(uniform(random, REWARD, t, arm) < mean) for t, mean in enumerate(path, start=1)]


def errors(estimate: Estimate, path: Sequence[float], rewards: Sequence[float]) -> list[float]:
    """The estimate after the reward of step t, minus the mean of step t."""
    return [estimate(rewards[:t]) - path[t - 1] for t in range(1, len(path) + 1)]


def bias(of_replications: Sequence[Sequence[float]], t: int) -> tuple[float, float]:
    """The mean error after step t, and its standard error."""
    return mean_and_standard_error([one[t - 1] for one in of_replications])


def mean_squared_error(of_replications: Sequence[Sequence[float]], t: int) -> tuple[float, float]:
    """The mean squared error after step t, and its standard error."""
    return mean_and_standard_error([one[t - 1] ** 2 for one in of_replications])


def mean_and_standard_error(numbers: Sequence[float]) -> tuple[float, float]:
    n = len(numbers)
    mean = math.fsum(numbers) / n
    variance = math.fsum((one - mean) ** 2 for one in numbers) / (n - 1)
    return mean, math.sqrt(variance / n)
