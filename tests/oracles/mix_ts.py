"""MIX-TS, literally: every memory is a list of rewards with the weights that they still have.

Transcribed from the docstring of `MixTS`. Everything is computed again from all rewards in the order of their arrival,
each a (step of its decision, arm, reward).
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

Rewards = Sequence[tuple[int, int, float]]
CAPACITIES = (*(4 * 375 ** (i / 6) for i in range(7)), math.inf)


class Arm(NamedTuple):
    """What an arm believes after its latest reward."""

    mean: float
    size: float  # as much uncertainty as so many rewards
    rate: float  # of forgetting


def mean_of_all(rewards: Rewards) -> float:
    """The mean of the latest rewards of all arms; the newest reward has weight 1."""
    discounts = [0.999**age for age in range(len(rewards))]
    return (1 + sum(d * y for d, (_, _, y) in zip(discounts, reversed(rewards), strict=True))) / (2 + sum(discounts))


def predicted(memory: list[tuple[float, float]], prior_mean: float, strength: float) -> tuple[float, float]:
    """The mean that a memory predicts and the number of rewards that it counts for; a memory has (reward, weight)s."""
    total, count = sum(y * weight for y, weight in memory), sum(weight for _, weight in memory)
    return (total + strength * prior_mean) / (count + strength), count + strength


def scaled(memory: list[tuple[float, float]], factor: float) -> list[tuple[float, float]]:
    return [(y, weight * factor) for y, weight in memory]


def normalised(weights: list[float]) -> list[float]:
    return [weight / sum(weights) for weight in weights]


def learnt(rewards: Rewards, arms: int, policy: Any) -> dict[int, Arm]:
    """What each arm with rewards believes."""
    memories: list[list[list[tuple[float, float]]]] = [[[] for _ in CAPACITIES] for _ in range(arms)]
    weights = [[1 / 8] * 8 for _ in range(arms)]
    shared = [1 / 8] * 8
    decided: dict[int, int] = {}  # the latest decision of each arm whose reward has arrived
    beliefs = {}
    for number, (step, arm, y) in enumerate(rewards):
        idle = max(step - decided.get(arm, step) - 1, 0)
        decided[arm] = max(step, decided.get(arm, step))
        own = [
            scaled(memory, 1 / (1 + policy.idle * idle / (arms * capacity)))
            for memory, capacity in zip(memories[arm], CAPACITIES, strict=True)
        ]
        before = mean_of_all(rewards[:number])
        q = [predicted(memory, before, policy.strength)[0] for memory in own]
        likelihoods = [y * q_i + (1 - y) * (1 - q_i) for q_i in q]
        shared = normalised([v * p for v, p in zip(shared, likelihoods, strict=True)])
        shared = [(1 - policy.shared_share) * v + policy.shared_share / 8 for v in shared]
        own_weights = normalised([w * p for w, p in zip(weights[arm], likelihoods, strict=True)])
        weights[arm] = [(1 - policy.share) * w + policy.share * v for w, v in zip(own_weights, shared, strict=True)]
        memories[arm] = [
            scaled([*memory, (y, 1.0)], min(1, capacity / (sum(weight for _, weight in memory) + 1)))
            for memory, capacity in zip(own, CAPACITIES, strict=True)
        ]
        beliefs[arm] = mixture(memories[arm], weights[arm], mean_of_all(rewards[: number + 1]), policy.strength)
    return beliefs


def mixture(memories: list[list[tuple[float, float]]], weights: list[float], prior_mean: float, strength: float) -> Arm:
    """Mean, size and rate of the mixture of the memories' posteriors."""
    laws = [predicted(memory, prior_mean, strength) for memory in memories]
    mean = sum(w * q for w, (q, _) in zip(weights, laws, strict=True))
    square = sum(w * (q**2 + q * (1 - q) / size) for w, (q, size) in zip(weights, laws, strict=True))
    rate = sum(w / capacity for w, capacity in zip(weights, CAPACITIES, strict=True))
    return Arm(mean, mean * (1 - mean) / (square - mean**2), rate)


def posterior(
    beliefs: dict[int, Arm], rewards: Rewards, arm: int, step: int, played: Any, policy: Any
) -> tuple[float, float]:
    """The two shapes of the Beta law of an arm at a step; `played` has the step of the last decision for each arm."""
    arms = len(played)
    if arm not in beliefs:
        mean, x = mean_of_all(rewards), policy.sharpness * policy.strength
    else:
        mean, size, rate = beliefs[arm]
        idle = max(step - played[arm] - 1, 0)
        size = max(1, size / (1 + policy.idle * rate * idle / arms))
        x = policy.sharpness * size * (1 + policy.surplus * arms * size * (1 / step + rate))
    return x * mean, x * (1 - mean)
