"""MIX-LinUCB, literally: every memory keeps its precision matrix, which NumPy inverts whenever it is needed.

Transcribed from the docstrings of the policy and of `memories.linear_model`. What they leave open is decided here:
the step after a decision has no idle time; a model without rewards is idle from the first step on; a late reward whose
decision is older than the latest one known had no idle time; the mean and the variance of the prediction are 0 if all
features are 0.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dynabandit.core.context import Context
from oracles.prior_turns import turns

RATES = (*(0.1 * 0.003 ** (i / 5) for i in range(6)), 0.0)


class Memory:
    """A ridge regression that forgets; the coordinates take turns to get their prior weight back."""

    def __init__(self, dimension: int, prior: float) -> None:
        self.prior = prior
        self.precision = prior * np.eye(dimension)
        self.prior_left = np.full(dimension, prior)
        self.b = np.zeros(dimension)
        self.turn = 0

    @property
    def theta(self) -> np.ndarray:
        return np.linalg.inv(self.precision) @ self.b

    def variance(self, x: np.ndarray) -> float:
        return float(x @ np.linalg.inv(self.precision) @ x)

    def learn(self, x: np.ndarray, reward: float, kept: float) -> None:
        self.precision = kept * self.precision + np.outer(x, x)
        self.b = kept * self.b + reward * x
        self.prior_left = kept * self.prior_left
        for _ in range(turns(len(x), kept) if kept < 1 else 0):
            self.precision[self.turn, self.turn] += self.prior - self.prior_left[self.turn]
            self.prior_left[self.turn] = self.prior
            self.turn = (self.turn + 1) % len(x)


class Model:
    """The memories of one arm, or of all arms."""

    def __init__(self, dimension: int, prior: float) -> None:
        self.memories = [Memory(dimension, prior) for _ in RATES]
        self.decided = 0  # the latest decision whose reward is known

    def idle(self, step: int) -> int:
        return max(step - self.decided - 1, 0)


class MixLinUCB:
    """The scores before a step, and what a reward changes."""

    def __init__(self, policy: Any, arms: int, context: Context) -> None:
        self.policy, self.arms, self.per_arm = policy, arms, context.per_arm
        self.models = [Model(context.dimension, policy.prior) for _ in range(1 if context.per_arm else arms)]
        self.weights = np.full(7, 1 / 7)
        self.rewards: list[float] = []
        self.errors: list[float] = []  # e^2 / (1 + q)

    def model(self, arm: int) -> Model:
        return self.models[0 if self.per_arm else arm]

    def mean_of_all(self) -> float:
        return 0.0 if self.per_arm else discounted(self.rewards) / (1 + discounted([1.0] * len(self.rewards)))

    def noise(self) -> float:
        n = discounted([1.0] * len(self.errors))
        guess = discounted([y**2 for y in self.rewards]) / n if any(self.rewards) else 0.25
        return (discounted(self.errors) + guess / (1 + n)) / (1 + n)

    def kept(self, model: Model, step: int) -> np.ndarray:
        """The share k of its data that each memory keeps during the idle steps."""
        return np.array([1 / (1 + self.policy.idle * rate * model.idle(step) / self.arms) for rate in RATES])

    def predictions(self, arm: int, x: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray]:
        """The means m and the variances q of all memories, q in units of the noise."""
        model, alpha = self.model(arm), self.policy.prior
        if not x.any():
            return np.zeros(7), np.zeros(7)
        prior_mean = self.mean_of_all()
        means, variances = [], []
        for memory, k in zip(model.memories, self.kept(model, step), strict=True):
            own = memory.variance(x)
            q = 1 / (k / own + (1 - k) * alpha / (x @ x))
            means.append(x @ memory.theta * k * q / own + prior_mean * alpha * q / (x @ x))
            variances.append(q)
        return np.array(means), np.array(variances)

    def score(self, arm: int, x: np.ndarray, step: int, z: float) -> float:
        """z is the normal number of the step."""
        means, variances = self.predictions(arm, x, step)
        mean = self.weights @ means
        variance = self.weights @ (means**2 + self.noise() * variances) - mean**2
        return float(mean + max(z, 0.0) * math.sqrt(max(variance, 0.0) / self.policy.sharpness))

    def learn(self, arm: int, x: np.ndarray, reward: float, decided: int) -> None:
        model, share = self.model(arm), self.policy.share
        means, variances = self.predictions(arm, x, decided)
        kept = self.kept(model, decided)
        error, variance = reward - self.weights @ means, self.weights @ variances
        logs = -((reward - means) ** 2) / (2 * self.noise() * (1 + variances)) - np.log(1 + variances) / 2
        densities = np.exp(logs - logs.max())  # the largest is 1, so that their sum is not 0
        self.weights = (1 - share) * self.weights * densities / (self.weights @ densities) + share / 7
        for memory, k, rate in zip(model.memories, kept, RATES, strict=True):
            memory.learn(x, reward, k * (1 - rate))
        model.decided = max(model.decided, decided)
        self.rewards.append(reward)
        self.errors.append(error**2 / (1 + variance))


def discounted(values: Sequence[float]) -> float:
    """The sum of values, each discounted by 0.999 for every later one."""
    ages = np.arange(len(values))[::-1]
    return float(0.999**ages @ np.array(values, dtype=float))
