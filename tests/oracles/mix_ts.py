"""MIX-TS and its versions for other rewards, literally: every memory is a list of rewards with their present weights.

Transcribed from the docstrings of the policies. Everything is computed again from all rewards in the order of their
arrival, each a (step of its decision, arm, reward). The reward None is a play that only ends the idle time of its arm.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Rewards = Sequence[tuple[int, int, float | None]] | Sequence[tuple[int, int, float]]
Memory = list[tuple[float, float]]  # rewards with weights
CAPACITIES = (*(4 * 375 ** (i / 6) for i in range(7)), math.inf)


class Law(NamedTuple):
    """A law of rewards."""

    likelihood: Callable[[float, float, float, float], float]  # of a reward, by mean, size and noise
    variance: Callable[[float, float], float]  # by mean and noise
    pseudo_total: float  # of the mean of all rewards
    pseudo_count: float


class Arm(NamedTuple):
    """What an arm believes after its latest reward."""

    mean: float
    size: float  # as much uncertainty as so many rewards
    rate: float  # of forgetting


def negative_binomial(y: float, mean: float, size: float, noise: float) -> float:
    shape = mean * size
    combinations = math.lgamma(shape + y) - math.lgamma(shape) - math.lgamma(y + 1)
    return math.exp(combinations + shape * math.log(size / (size + 1)) - y * math.log(size + 1))


def normal_density(y: float, mean: float, size: float, noise: float) -> float:
    if noise == 0:
        return 1.0
    variance = noise * (1 + 1 / size)
    return math.exp(max(-((y - mean) ** 2) / (2 * variance), -60.0)) / math.sqrt(variance)


BERNOULLI = Law(lambda y, q, size, noise: y * q + (1 - y) * (1 - q), lambda q, noise: q * (1 - q), 1, 2)
POISSON = Law(negative_binomial, lambda q, noise: q, 0.5, 1)
NORMAL = Law(normal_density, lambda q, noise: noise or 1.0, 0, 0)


def discounted(values: Sequence[float]) -> tuple[float, float]:
    """The sum of values and their number, each discounted by 0.999 for every later one; the newest has weight 1."""
    discounts = [0.999**age for age in range(len(values))]
    return sum(d * y for d, y in zip(discounts, reversed(values), strict=True)), sum(discounts)


def mean_of_all(rewards: Rewards, law: Law = BERNOULLI) -> float:
    """The mean of the latest rewards of all arms."""
    total, count = discounted([y for _, _, y in rewards if y is not None])
    return (law.pseudo_total + total) / (law.pseudo_count + count) if law.pseudo_count + count else 0.0


def predicted(memory: Memory, prior_mean: float, strength: float) -> tuple[float, float]:
    """The mean that a memory predicts and the number of rewards that it counts for."""
    total, count = sum(y * weight for y, weight in memory), sum(weight for _, weight in memory)
    return (total + strength * prior_mean) / (count + strength), count + strength


def scaled(memory: Memory, factor: float) -> Memory:
    return [(y, weight * factor) for y, weight in memory]


def normalised(weights: list[float]) -> list[float]:
    return [weight / sum(weights) for weight in weights]


class Noise:
    """The prediction errors of each arm and of all arms, for the variance of normal rewards."""

    def __init__(self) -> None:
        self.own: dict[int, list[float]] = {}
        self.all: list[tuple[float, float]] = []  # squared error, weight

    def add(self, arm: int, y: float, belief: Arm | None, prior_mean: float) -> None:
        if belief is None:
            self.all.append(((y - prior_mean) ** 2, 0.01))
        else:
            error = (y - belief.mean) ** 2 * belief.size / (belief.size + 1)
            self.all = [(square, weight * 0.999) for square, weight in self.all] + [(error, 1.0)]
            self.own.setdefault(arm, []).append(error)

    def of(self, arm: int) -> float:
        weight = sum(w for _, w in self.all)
        usual = sum(square * w for square, w in self.all) / weight if weight else 0.0
        total, count = discounted(self.own.get(arm, []))
        return (total + 2 * usual) / (count + 2)


def learnt(rewards: Rewards, arms: int, policy: Any, law: Law = BERNOULLI) -> tuple[dict[int, Arm], Noise]:
    """What each arm with rewards believes, and the prediction errors."""
    memories: list[list[Memory]] = [[[] for _ in CAPACITIES] for _ in range(arms)]
    weights = [[1 / 8] * 8 for _ in range(arms)]
    shared = [1 / 8] * 8
    decided: dict[int, int] = {}  # the latest decision of each arm whose reward has arrived
    beliefs: dict[int, Arm] = {}
    noise = Noise()
    for number, (step, arm, y) in enumerate(rewards):
        idle = max(step - decided.get(arm, step) - 1, 0)
        decided[arm] = max(step, decided.get(arm, step))
        if y is None:
            continue
        before = mean_of_all(rewards[:number], law)
        if any(earlier is not None for _, _, earlier in rewards[:number]):
            noise.add(arm, y, beliefs.get(arm), before)
        own = [
            scaled(memory, 1 / (1 + policy.idle * idle / (arms * capacity)))
            for memory, capacity in zip(memories[arm], CAPACITIES, strict=True)
        ]
        likelihoods = [law.likelihood(y, *predicted(memory, before, policy.strength), noise.of(arm)) for memory in own]
        shared = normalised([v * p for v, p in zip(shared, likelihoods, strict=True)])
        shared = [(1 - policy.shared_share) * v + policy.shared_share / 8 for v in shared]
        own_weights = normalised([w * p for w, p in zip(weights[arm], likelihoods, strict=True)])
        weights[arm] = [(1 - policy.share) * w + policy.share * v for w, v in zip(own_weights, shared, strict=True)]
        memories[arm] = [
            scaled([*memory, (y, 1.0)], min(1, capacity / (sum(weight for _, weight in memory) + 1)))
            for memory, capacity in zip(own, CAPACITIES, strict=True)
        ]
        laws = [predicted(memory, mean_of_all(rewards[: number + 1], law), policy.strength) for memory in memories[arm]]
        beliefs[arm] = mixture(laws, weights[arm], law, noise.of(arm))
    return beliefs, noise


def mixture(laws: list[tuple[float, float]], weights: list[float], law: Law, noise: float) -> Arm:
    """Mean, size and rate of the mixture of the memories' posteriors, each with a mean and a size."""
    mean = sum(w * q for w, (q, _) in zip(weights, laws, strict=True))
    square = sum(w * (q**2 + law.variance(q, noise) / size) for w, (q, size) in zip(weights, laws, strict=True))
    rate = sum(w / capacity for w, capacity in zip(weights, CAPACITIES, strict=True))
    return Arm(mean, law.variance(mean, noise) / (square - mean**2), rate)


def estimate(
    belief: Arm | None, prior_mean: float, step: int, idle: int, arms: int, policy: Any
) -> tuple[float, float]:
    """The mean m of an arm and the number x of rewards whose uncertainty its draw has."""
    if belief is None:
        return prior_mean, policy.sharpness * policy.strength
    mean, size, rate = belief
    size = max(1, size / (1 + policy.idle * rate * idle / arms))
    return mean, policy.sharpness * size * (1 + policy.surplus * arms * size * (1 / step + rate))


def posterior(
    beliefs: dict[int, Arm], rewards: Rewards, arm: int, step: int, played: Any, policy: Any
) -> tuple[float, float]:
    """The two shapes of MIX-TS at a step; `played` has the step of the last decision for each arm."""
    idle = max(step - played[arm] - 1, 0)
    mean, x = estimate(beliefs.get(arm), mean_of_all(rewards), step, idle, len(played), policy)
    return x * mean, x * (1 - mean)
