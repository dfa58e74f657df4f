"""What the MIX policies share: every arm keeps several memories of different lengths and learns their weights.

Each memory of an arm holds the sum and the number of its rewards and forgets with its own rate. The weight of a memory
grows with the probability that it gave to the rewards that followed. All arms together learn weights too, and the
weights of every arm move towards these, so that an arm with little data learns from the others how fast means change.
`dynabandit.policies.presets.mix_thompson.MixTS` has the equations.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.estimators.base import Belief
from dynabandit.policies.base import Policy, PolicyState, Reward, Step, idle_steps
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.validation import check_field, number

# The capacity of a memory is the number of rewards that it holds: 4, 11, 29, 77, 208, 559, 1500, and all
CAPACITIES = tuple(4.0 * (1500.0 / 4.0) ** (i / 6.0) for i in range(7))
RATES = (*(1.0 / capacity for capacity in CAPACITIES), 0.0)  # the share that a full memory forgets with a reward
MEMORIES = len(RATES)
LEAST = 1e-9  # of strength and sharpness: 1 - mean stays above rounding errors, however many equal rewards there were
CANCELLED = 1e-9  # a difference that is below this share of its terms is computed in another way
MEAN_OF_ALL_RATE = 0.001  # the share that the mean of all rewards forgets with a reward

PARTS = tuple(f"{part}_{i}" for part in ("total", "count", "weight") for i in range(MEMORIES))
SLOTS = (*PARTS, "mean", "size", "rate", "last_step")
TOTAL, COUNT, WEIGHT = 0, MEMORIES, 2 * MEMORIES
MEAN, SIZE, RATE, LAST_STEP = range(3 * MEMORIES, 3 * MEMORIES + 4)
# In `shared`: the discounted sum and number of all rewards, and the weights that all arms learn together
ALL_TOTAL, ALL_COUNT, ALL_WEIGHT = 0, 1, 2
SHARED_SIZE = ALL_WEIGHT + MEMORIES


class Params(NamedTuple):
    strength: float
    share: float
    shared_share: float
    sharpness: float
    surplus: float
    idle: float  # divided by the number of arms: how much an idle step counts, in rewards


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    state.memory[:, arm] = 0.0
    for i in range(MEMORIES):
        state.memory[WEIGHT + i, arm] = 1.0 / MEMORIES
        if state.shared[ALL_COUNT] == 0.0:  # not when an arm is added later: the weights of all arms stay
            state.shared[ALL_WEIGHT + i] = 1.0 / MEMORIES


@kernel
def mean_of_all(state: PolicyState, number: int, params: Params) -> float:
    """Return the mean of the latest rewards of all arms, which is the prior mean of every arm; at first 1/2."""
    return (state.shared[ALL_TOTAL] + 1.0) / (state.shared[ALL_COUNT] + 2.0)


@kernel
def no_noise(state: PolicyState, arm: int) -> float:
    """For laws of rewards whose variance is a function of the mean."""
    return 0.0


def make_learn(
    likelihood: Callable[..., float],
    variance: Callable[..., float],
    mean_of_all: Callable[..., float] = mean_of_all,
    noise: Callable[..., float] = no_noise,
) -> Callable[..., None]:
    """Return `learn` for a law of rewards.

    Parameters
    ----------
    likelihood
        likelihood(value, mean, size, noise): the probability of a reward given an estimate of its mean from `size`
        rewards, up to a factor that does not depend on the estimate; never 0.
    variance
        variance(mean, noise): the variance of a reward, positive.
    mean_of_all
        mean_of_all(state, number, params): the prior mean of every arm.
    noise
        noise(state, arm): what the law needs to know besides the mean.
    """

    @kernel
    def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
        memory, shared, value = state.memory, state.shared, reward.value
        prior_mean, level = mean_of_all(state, 0, params), noise(state, arm)
        idle = max(reward.decided_at - memory[LAST_STEP, arm] - 1.0, 0.0) * params.idle
        weights = all_weights = 0.0
        for i in range(MEMORIES):
            kept = 1.0 / (1.0 + idle * RATES[i])
            total, count = memory[TOTAL + i, arm] * kept, memory[COUNT + i, arm] * kept
            size = count + params.strength
            chance = likelihood(value, (total + params.strength * prior_mean) / size, size, level)
            memory[WEIGHT + i, arm] *= chance
            shared[ALL_WEIGHT + i] *= chance
            weights += memory[WEIGHT + i, arm]
            all_weights += shared[ALL_WEIGHT + i]
            shrink = 1.0 / max((count + 1.0) * RATES[i], 1.0)
            memory[TOTAL + i, arm] = (total + value) * shrink
            memory[COUNT + i, arm] = (count + 1.0) * shrink
        shared[ALL_TOTAL] = (1.0 - MEAN_OF_ALL_RATE) * shared[ALL_TOTAL] + value
        shared[ALL_COUNT] = (1.0 - MEAN_OF_ALL_RATE) * shared[ALL_COUNT] + 1.0
        memory[LAST_STEP, arm] = max(memory[LAST_STEP, arm], reward.decided_at)
        for i in range(MEMORIES):
            of_all = (1.0 - params.shared_share) * shared[ALL_WEIGHT + i] / all_weights + params.shared_share / MEMORIES
            shared[ALL_WEIGHT + i] = of_all
            memory[WEIGHT + i, arm] = (1.0 - params.share) * memory[WEIGHT + i, arm] / weights + params.share * of_all
        summarise(state, arm, params)

    @kernel
    def summarise(state: PolicyState, arm: int, params: Params) -> None:
        """Write the mean of the mixture, the number of rewards that are as uncertain, and the rate of forgetting."""
        memory, prior_mean, level = state.memory, mean_of_all(state, 0, params), noise(state, arm)
        # Means are measured from that of the last memory: a difference of squares would lose digits
        last = MEMORIES - 1
        reference = (memory[TOTAL + last, arm] + params.strength * prior_mean) / (
            memory[COUNT + last, arm] + params.strength
        )
        distance = square = rate = 0.0
        for i in range(MEMORIES):
            weight, size = memory[WEIGHT + i, arm], memory[COUNT + i, arm] + params.strength
            mean = (memory[TOTAL + i, arm] + params.strength * prior_mean) / size
            distance += weight * (mean - reference)
            square += weight * ((mean - reference) * (mean - reference) + variance(mean, level) / size)
            rate += weight * RATES[i]
        memory[MEAN, arm] = reference + distance
        spread = square - distance * distance
        if spread < CANCELLED * square:
            spread = 0.0
            for i in range(MEMORIES):
                size = memory[COUNT + i, arm] + params.strength
                mean = (memory[TOTAL + i, arm] + params.strength * prior_mean) / size
                difference = mean - memory[MEAN, arm]
                spread += memory[WEIGHT + i, arm] * (difference * difference + variance(mean, level) / size)
        # Without any spread, which has underflowed, all rewards count
        longest = memory[COUNT + last, arm] + params.strength
        memory[SIZE, arm] = variance(memory[MEAN, arm], level) / spread if spread > 0.0 else longest
        memory[RATE, arm] = rate

    return learn


@kernel
def estimate(state: PolicyState, arm: int, step: Step, params: Params) -> tuple[float, float]:
    """Return the mean of an arm, and the number of rewards whose uncertainty the draw of its score has."""
    mean, size, rate = state.memory[MEAN, arm], state.memory[SIZE, arm], state.memory[RATE, arm]
    if state.memory[COUNT + MEMORIES - 1, arm] == 0.0:  # no reward yet
        return step.common, params.sharpness * params.strength
    size = max(size / (1.0 + params.idle * rate * idle_steps(state, arm, step)), 1.0)
    surplus = size * step.arms * (1.0 / step.number + rate)
    return mean, params.sharpness * size * (1.0 + params.surplus * surplus)


@kernel
def estimate_with_zeros(
    state: PolicyState, arm: int, step: Step, params: Params, prior_mean: float
) -> tuple[float, float]:
    """Return the same for rewards of at least 0: pending plays of an arm without any reward count as zeros.

    `prior_mean` is the mean without them.
    """
    zeros = assumed_zeros(state, arm, state.memory[COUNT + MEMORIES - 1, arm])
    if zeros == 0.0:
        return estimate(state, arm, step, params)
    size = params.strength + zeros
    return prior_mean * params.strength / size, params.sharpness * size


@dataclass(frozen=True, kw_only=True)
class MixPolicy(Policy):
    """A policy whose slots are `SLOTS`."""

    strength: float = 2.0
    share: float = 0.005
    shared_share: float = 0.0001
    sharpness: float = 2.0
    surplus: float = 0.1
    idle: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "strength", number, LEAST, 1e6)
        check_field(self, "share", number, 0.0, 1.0)
        check_field(self, "shared_share", number, 0.0, 1.0)
        check_field(self, "sharpness", number, LEAST, 1e6)
        check_field(self, "surplus", number, 0.0, 1e6)
        check_field(self, "idle", number, 0.0, 1e6)

    def params(self, arms: int) -> Params:
        return Params(
            self.strength, self.share, self.shared_share, self.sharpness, self.surplus, self.idle / max(arms, 1)
        )

    def shared_size(self) -> int:
        return SHARED_SIZE

    def forgetting(self, column: np.ndarray) -> float:
        return 1.0 - float(column[RATE])  # which is 0 before the first reward

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        """Return an arm's mean, averaged over its memories, and the number of rewards with the same uncertainty."""
        mean, size = self.mean_and_size(column, shared, mean_of_all)
        return Belief(mean, mean * (1.0 - mean), self.forgetting(column), size)

    def mean_and_size(
        self, column: np.ndarray, shared: np.ndarray, mean_of_all: Callable[..., float]
    ) -> tuple[float, float]:
        """Return the mean of an arm and the number of rewards behind it; those of the prior before the first reward."""
        if column[COUNT + MEMORIES - 1] > 0.0:
            return float(column[MEAN]), float(column[SIZE])
        state = PolicyState(column[:, np.newaxis], shared, np.zeros(1))
        return float(mean_of_all(state, 1, self.params(1))), self.strength
