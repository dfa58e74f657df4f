"""R-BOCPD-UCB, literally: the detector of Alami, Maillard & Feraud (2020) on the rewards of each arm.

Rewards since a restart are x_1 ... x_n. The first forecaster predicts all of them by Laplace's rule. Forecaster s, made
at reward s, predicts those after it, from these alone, and its weight begins as `rate` times the likelihood of
x_1 ... x_(s-1) under the first forecaster. The arm restarts when a forecaster outweighs the first one.
"""

import math
from collections.abc import Sequence

from oracles.upper_bounds import in_turn, kl_index


def predicted(before: Sequence[float], reward: float) -> float:
    """Laplace's rule: the probability of a reward after others; a reward in [0, 1] is a fraction of a success."""
    successes = math.fsum(before)
    return (reward * (successes + 1) + (1 - reward) * (len(before) - successes + 1)) / (len(before) + 2)


class Detector:
    """The forecasters of one arm: the logarithm of the weight of each, by the reward at which it was made."""

    def __init__(self, rate: float, particles: int) -> None:
        self.rate, self.particles = rate, particles
        self.rewards: list[float] = []
        self.first = 0.0
        self.weights: dict[int, float] = {}

    def has_changed(self, reward: float) -> bool:
        """Whether a reward is an alarm; of too many forecasters the one with the smallest weight goes."""
        before = self.first
        self.first += math.log(predicted(self.rewards, reward))
        for made in self.weights:
            self.weights[made] += math.log(predicted(self.rewards[made:], reward))
        self.rewards.append(reward)
        if len(self.weights) == self.particles:
            del self.weights[min(self.weights, key=lambda made: self.weights[made])]
        self.weights[len(self.rewards)] = math.log(self.rate) + before
        return max(self.weights.values()) > self.first


class Arms:
    """What the policy knows: the detector of each arm, the step of its restart (0 for none) and all restarts."""

    def __init__(self, arms: int, rate: float, particles: int, restart: str) -> None:
        self.rate, self.particles = rate, particles
        self.detectors = [Detector(rate, particles) for _ in range(arms)]
        self.started = [0] * arms
        self.restarts, self.steps, self.restart = 0, 0, restart

    def observe(self, arm: int, reward: float) -> None:
        self.steps += 1
        if self.detectors[arm].has_changed(reward):
            self.restarts += 1
            for other in range(len(self.detectors)) if self.restart == "global" else [arm]:
                self.detectors[other], self.started[other] = Detector(self.rate, self.particles), self.steps

    def scores(self, index: str) -> list[float]:
        """The index of each arm from its rewards and the steps since its restart."""
        found = []
        for detector, start in zip(self.detectors, self.started, strict=True):
            rewards, level = detector.rewards, math.log(max(self.steps - start, 1))
            mean = math.fsum(rewards) / len(rewards) if rewards else math.inf
            if not rewards:
                found.append(math.inf)
            elif index == "ucb":
                found.append(mean + math.sqrt(2 * level / len(rewards)))
            else:
                found.append(kl_index(mean, len(rewards), level))
        return found

    def forced(self, scale: float, horizon: int) -> int | None:
        """The schedule of GLR-klUCB: alpha_k = scale sqrt(k K log T / T), after k - 1 restarts."""
        arms = len(self.detectors)
        alpha = scale * math.sqrt((self.restarts + 1) * arms * math.log(horizon) / horizon)
        return in_turn(self.steps + 1, arms, alpha)
