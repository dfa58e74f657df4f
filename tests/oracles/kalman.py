"""Kalman filters of 0/1 rewards, literally: one transition per step, one update per reward.

The model is that of Granmo & Berg (2010) with the AR(1) transition of Liu, Van Roy & Xu (2023). Predictive sampling is
transcribed from its definition: the future rewards are a long vector whose joint normal law with the next mean is
written down and conditioned on, without any closed form.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

History = Sequence[tuple[int, float]]
FUTURE = 400  # steps: what comes later says almost nothing about the next mean with the parameters of the tests


class Model(NamedTuple):
    center: float  # mean and variance before any reward
    variance: float
    persistence: float
    drift: float  # the standard deviation of the change per step


def model(prior: tuple[float, float], persistence: float, drift: float) -> Model:
    """The normal prior with the moments of a Beta prior."""
    a, b = prior
    return Model(a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1)), persistence, drift)


def noise(mean: float) -> float:
    """The variance of a 0/1 reward; the mean is kept away from 0 and 1."""
    p = min(max(mean, 0.01), 0.99)
    return p * (1 - p)


def predicted(history: History, arm: int, given: Model) -> tuple[float, float, float]:
    """Mean and variance of an arm's mean reward at step len(history) + 1, and the log-probability of its rewards."""
    mean, variance, fit = given.center, given.variance, 0.0
    for played, reward in [*history, (-1, 0.0)]:
        mean = given.center + given.persistence * (mean - given.center)
        variance = min(given.persistence**2 * variance + given.drift**2, given.variance)
        if played == arm:
            p = min(max(mean, 0.01), 0.99)
            fit += math.log(reward * p + (1 - reward) * (1 - p))
            gain = variance / (variance + noise(mean))
            mean, variance = mean + gain * (reward - mean), (1 - gain) * variance
    return mean, variance, fit


def weights(history: History, arms: int, models: Sequence[Model]) -> list[float]:
    """The posterior probability of each model, equally likely at first, from the rewards of all arms."""
    fits = [sum(predicted(history, arm, one)[2] for arm in range(arms)) for one in models]
    likelihoods = [math.exp(fit - max(fits)) for fit in fits]
    return [likelihood / sum(likelihoods) for likelihood in likelihoods]


def predictive_variance(mean: float, variance: float, given: Model) -> float:
    """The variance of E[next mean | rewards of all later steps], for an arm that is observed at every later step."""
    persistence, change = given.persistence, given.drift**2
    # theta_0 is the next mean, theta_k = persistence theta_(k - 1) + w_k up to a constant; rewards r_k = theta_k + v_k
    own = [variance]
    for _ in range(FUTURE):
        own.append(persistence**2 * own[-1] + change)
    later = range(1, FUTURE + 1)
    with_next = np.array([persistence**k * variance for k in later])
    covariance = np.array([[persistence ** abs(j - k) * own[min(j, k)] for j in later] for k in later])
    covariance += noise(mean) * np.eye(FUTURE)
    return float(with_next @ np.linalg.solve(covariance, with_next))
