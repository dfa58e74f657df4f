"""A mixture: each arm has several memories of different lengths, and learns how much weight each of them deserves.

Each memory of an arm holds the sum and the number of its rewards and forgets with its own rate. The weight of a memory
grows with the probability that it gave to the rewards that followed. All arms together learn weights too, and the
weights of every arm move towards these, so that an arm with little data learns from the others how fast means change.
`dynabandit.policies.presets.mixtures.MixTS` has the equations.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import MONOTONE, PolicyState, Reward, Step, idle_steps
from dynabandit.policies.belief import Belief
from dynabandit.policies.beta_posterior import Prior
from dynabandit.policies.memories.base import Estimate, Memory, MemoryKernels
from dynabandit.policies.part import Setting
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.validation import BOUNDED, COUNTS, NORMAL, check_field, number

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
# The prior mean of an arm that has pending plays but no reward: that of all rewards changes with every reward, but the
# posterior of an arm that was played may not, so that it can be kept in a draw tree
MEAN_WITH_ZEROS = 0.5
LARGE_COUNT = 30.0  # above, the law of a count is nearly normal
LEAST_EXPONENT = -60.0  # of a likelihood, so that a reward that no memory expects does not make all weights 0

# If rewards may be any numbers, each arm also has the discounted sum of its squared prediction errors, and their number
NORMAL_SLOTS = (*SLOTS, "errors", "error_count")
ERRORS, ERROR_COUNT = NORMAL_SLOTS.index("errors"), NORMAL_SLOTS.index("error_count")
# In `shared`: the first reward, from which all others are measured, and the prediction errors of all arms
FIRST, ALL_ERRORS, ALL_ERROR_COUNT = range(SHARED_SIZE, SHARED_SIZE + 3)
NORMAL_SHARED_SIZE = SHARED_SIZE + 3
KEPT = 0.999  # of earlier errors, with each new one
PRIOR_ERRORS = 2.0  # how many errors of an arm those of all arms count as
WEIGHT_OF_FIRST = 0.01  # of the error of an arm's first reward, which includes the difference between the arms' means


class Params(NamedTuple):
    strength: float
    share: float
    shared_share: float
    sharpness: float
    surplus: float
    idle: float  # divided by the number of arms: how much an idle step counts, in rewards


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    """Start with equal weights."""
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


@kernel
def estimate(state: PolicyState, arm: int) -> Estimate:
    """Return the mean of the mixture, the number of rewards that are as uncertain, and the rate of forgetting."""
    mean, size, rate = state.memory[MEAN, arm], state.memory[SIZE, arm], state.memory[RATE, arm]
    return Estimate(mean if size > 0.0 else math.inf, size, size, size, rate)


def make_learn(
    likelihood: Callable[..., float],
    variance: Callable[..., float],
    mean_of_all: Callable[..., float] = mean_of_all,
    noise: Callable[..., float] = no_noise,
) -> Callable[..., Estimate]:
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
    def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> Estimate:
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
        return estimate(state, arm)

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
def kept(rate: float, idle: int, arms: int, params: Params) -> float:
    """Return the share of its size that an idle arm keeps."""
    return 1.0 / (1.0 + params.idle * rate * idle)


@kernel
def mean_and_size(state: PolicyState, arm: int, step: Step, params: Params) -> tuple[float, float]:
    """Return the mean of an arm, and the number of rewards whose uncertainty the draw of its score has."""
    mean, size, rate = state.memory[MEAN, arm], state.memory[SIZE, arm], state.memory[RATE, arm]
    if state.memory[COUNT + MEMORIES - 1, arm] == 0.0:  # no reward yet
        return step.common, params.sharpness * params.strength
    size = max(size / (1.0 + params.idle * rate * idle_steps(state, arm, step)), 1.0)
    surplus = size * step.arms * (1.0 / step.number + rate)
    return mean, params.sharpness * size * (1.0 + params.surplus * surplus)


@kernel
def mean_and_size_with_zeros(
    state: PolicyState, arm: int, step: Step, params: Params, prior_mean: float
) -> tuple[float, float]:
    """Return the same for rewards of at least 0: pending plays of an arm without any reward count as zeros.

    `prior_mean` is the mean without them.
    """
    zeros = assumed_zeros(state, arm, state.memory[COUNT + MEMORIES - 1, arm])
    if zeros == 0.0:
        return mean_and_size(state, arm, step, params)
    size = params.strength + zeros
    return prior_mean * params.strength / size, params.sharpness * size


@kernel
def bernoulli_likelihood(value: float, mean: float, size: float, noise: float) -> float:
    """Return the probability of a reward of 0 or 1, and a number between the two for other rewards in [0, 1]."""
    return value * mean + (1.0 - value) * (1.0 - mean)


@kernel
def bernoulli_variance(mean: float, noise: float) -> float:
    """Return the variance of a Bernoulli reward."""
    return mean * (1.0 - mean)


@kernel
def beta(state: PolicyState, arm: int, step: Step, kept: float, prior: Prior, params: Params) -> tuple[float, float]:
    """Return the Beta law with the mean and the size of the mixture, which has a prior of its own."""
    mean, size = mean_and_size_with_zeros(state, arm, step, params, MEAN_WITH_ZEROS)
    return size * mean, size * (1.0 - mean)


@kernel
def mean_of_counts(state: PolicyState, number: int, params: Params) -> float:
    """Return the mean of the latest counts of all arms, which is never 0."""
    return (state.shared[ALL_TOTAL] + 0.5) / (state.shared[ALL_COUNT] + 1.0)


@kernel
def poisson_likelihood(value: float, mean: float, size: float, noise: float) -> float:
    """Return the negative binomial probability of a count, divided by the Poisson probability at the mean `value`."""
    if value > LARGE_COUNT:
        return normal_likelihood(value, mean, size, mean) * math.sqrt(value / mean)
    shape = mean * size
    exponent = value - shape * math.log1p(1.0 / size)
    if value > 0.0:
        exponent += value * math.log(mean * size / ((size + 1.0) * value))
    for k in range(int(value)):
        exponent += math.log1p(k / shape)
    return math.exp(max(exponent, LEAST_EXPONENT))


@kernel
def poisson_variance(mean: float, noise: float) -> float:
    """Return the variance of a Poisson count."""
    return mean


@kernel
def gamma(
    state: PolicyState, arm: int, step: Step, kept: float, prior: Prior, params: Params
) -> tuple[float, float, float]:
    """Return the gamma law with the mean and the size of the mixture, which has a prior of its own."""
    mean, size = mean_and_size_with_zeros(state, arm, step, params, step.common)
    return size * mean, size, mean


@kernel
def mean_of_numbers(state: PolicyState, number: int, params: Params) -> float:
    """Return the mean of the latest rewards of all arms, measured from the first one."""
    return state.shared[ALL_TOTAL] / max(state.shared[ALL_COUNT], 1.0)


@kernel
def normal_noise(state: PolicyState, arm: int) -> float:
    """Return the variance of the rewards of an arm around their mean; 0 if all rewards are equal."""
    memory, shared = state.memory, state.shared
    of_all = shared[ALL_ERRORS] / shared[ALL_ERROR_COUNT] if shared[ALL_ERROR_COUNT] > 0.0 else 0.0
    return (memory[ERRORS, arm] + PRIOR_ERRORS * of_all) / (memory[ERROR_COUNT, arm] + PRIOR_ERRORS)


@kernel
def normal_likelihood(value: float, mean: float, size: float, noise: float) -> float:
    """Return the normal density of a reward, times sqrt(2 pi noise)."""
    if noise == 0.0:
        return 1.0
    spread = 1.0 + 1.0 / size
    return math.exp(max(-0.5 * (value - mean) * (value - mean) / (noise * spread), LEAST_EXPONENT)) / math.sqrt(spread)


@kernel
def normal_variance(mean: float, noise: float) -> float:
    """Return the variance of the noise; without noise all means are equal, and only sizes count."""
    return noise if noise > 0.0 else 1.0


learn_mixture = make_learn(normal_likelihood, normal_variance, mean_of_numbers, normal_noise)


@kernel
def estimate_of_differences(state: PolicyState, arm: int) -> Estimate:
    """Return the same with a mean that is not measured from the first reward."""
    own = estimate(state, arm)
    return Estimate(state.shared[FIRST] + own.mean, own.size, own.w, own.k, own.fading)


@kernel
def learn_difference(state: PolicyState, arm: int, reward: Reward, params: Params) -> Estimate:
    """Learn a reward that is measured from the first one."""
    memory, shared = state.memory, state.shared
    if memory[COUNT + MEMORIES - 1, arm] > 0.0:
        size = memory[SIZE, arm]
        error = (reward.value - memory[MEAN, arm]) * (reward.value - memory[MEAN, arm]) * size / (size + 1.0)
        memory[ERRORS, arm] = KEPT * memory[ERRORS, arm] + error
        memory[ERROR_COUNT, arm] = KEPT * memory[ERROR_COUNT, arm] + 1.0
        shared[ALL_ERRORS] = KEPT * shared[ALL_ERRORS] + error
        shared[ALL_ERROR_COUNT] = KEPT * shared[ALL_ERROR_COUNT] + 1.0
    elif shared[ALL_COUNT] > 0.0:
        difference = reward.value - mean_of_numbers(state, 0, params)
        shared[ALL_ERRORS] += WEIGHT_OF_FIRST * difference * difference
        shared[ALL_ERROR_COUNT] += WEIGHT_OF_FIRST
    learn_mixture(state, arm, reward, params)
    return estimate_of_differences(state, arm)


@kernel
def learn_number(state: PolicyState, arm: int, reward: Reward, params: Params) -> Estimate:
    """Learn a reward that may be any number."""
    if state.shared[ALL_COUNT] == 0.0:
        state.shared[FIRST] = reward.value
    value = reward.value - state.shared[FIRST]
    return learn_difference(state, arm, Reward(value, reward.decided_at, reward.arrived_at, reward.features), params)


@kernel
def normal(state: PolicyState, arm: int, step: Step, kept: float, prior: Prior, params: Params) -> tuple[float, float]:
    """Return the normal law with the mean of the mixture, measured from the first reward, and its deviation."""
    mean, size = mean_and_size(state, arm, step, params)
    return mean, math.sqrt(normal_noise(state, arm) / size)


@dataclass(frozen=True, kw_only=True)
class Mixture(Memory):
    """Remember over several lengths of time, and learn how much weight each of them deserves. Use it if you do not
    know how fast the means change, or whether they do.

    Rewards are in [0, 1]. The prior of an arm is part of the memory: rules that draw do not add one of their own.

    Cost per step: 8 memories of the arm that was played.

    Parameters
    ----------
    strength
        The number of rewards that the prior of each arm counts as, in [1e-9, 1e6]. Its mean is that of the latest
        rewards of all arms.
    share
        The share of its weights that an arm takes over from all arms after each of its rewards, in [0, 1].
    shared_share
        The share of the weights of all arms that is spread evenly after each reward, in [0, 1].
    sharpness
        The factor by which the draws are narrower than the posterior, as if there were so many times the rewards.
    surplus
        How much narrower the draws of an arm become with its share of the remembered rewards of all arms, at least 0.
    idle
        How much the memories of an idle arm forget, at least 0: in K steps as much as with this number of rewards.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.Mixture(idle=0).parameters["idle"]
    0.0

    References
    ----------
    Our own. Weights that are multiplied by likelihoods and mixed: Herbster & Warmuth (1998), Tracking the best expert.
    Machine Learning 32.
    """

    name = "mixture"
    rewards = BOUNDED
    has_prior = True
    kernels: ClassVar[MemoryKernels] = MemoryKernels(
        slots=SLOTS,
        start=start,
        learn=make_learn(bernoulli_likelihood, bernoulli_variance),
        estimate=estimate,
        laws=(("beta", beta),),
        fading=True,
        kept=kept,
        common=mean_of_all,
        params=Params,
        while_idle=MONOTONE,
    )

    strength: float = 2.0
    share: float = 0.005
    shared_share: float = 0.0001
    sharpness: float = 2.0
    surplus: float = 0.1
    idle: float = 0.2

    def __post_init__(self) -> None:
        check_field(self, "strength", number, LEAST, 1e6)
        check_field(self, "share", number, 0.0, 1.0)
        check_field(self, "shared_share", number, 0.0, 1.0)
        check_field(self, "sharpness", number, LEAST, 1e6)
        check_field(self, "surplus", number, 0.0, 1e6)
        check_field(self, "idle", number, 0.0, 1e6)

    @classmethod
    def kernels_for(cls, family: str | None) -> MemoryKernels:
        return cls.kernels if family is None else cls.kernels._replace(fading=False)  # laws read the rate themselves

    def params(self, setting: Setting) -> Params:
        idle = self.idle / max(setting.arms, 1)
        return Params(self.strength, self.share, self.shared_share, self.sharpness, self.surplus, idle)

    def shared_size(self, setting: Setting, family: str | None) -> int:
        return SHARED_SIZE

    def forgetting(self, column: np.ndarray, setting: Setting) -> float:
        return 1.0 - float(column[RATE])  # which is 0 before the first reward

    def belief(self, column: np.ndarray, shared: np.ndarray, setting: Setting) -> Belief:
        """Return an arm's mean, averaged over its memories, and the number of rewards with the same uncertainty.

        Before the first reward of the arm, these are those of the prior.
        """
        mean, size = float(column[MEAN]), float(column[SIZE])
        if column[COUNT + MEMORIES - 1] == 0.0:
            state = PolicyState(column[:, np.newaxis], shared, np.zeros(1))
            mean, size = float(self.kernels.common(state, 1, self.params(setting))), self.strength
        return Belief(mean, self.variance(column, mean), self.forgetting(column, setting), size)


@dataclass(frozen=True, kw_only=True)
class PoissonMixture(Mixture):
    """A `Mixture` for counts: 0, 1, 2, ...

    Cost per step: 8 memories of the arm that was played, each with up to 30 logarithms.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.PoissonMixture(sharpness=1).parameters["strength"]
    0.5

    References
    ----------
    Our own, see `Mixture`.
    """

    name = "poisson-mixture"
    rewards = COUNTS
    kernels = Mixture.kernels._replace(
        learn=make_learn(poisson_likelihood, poisson_variance, mean_of_counts),
        laws=(("gamma", gamma),),
        common=mean_of_counts,
        while_idle=None,  # an arm with pending plays and no reward has the prior mean of all arms
    )

    strength: float = 0.5

    def variance(self, column: np.ndarray, mean: float) -> float:
        return mean


@dataclass(frozen=True, kw_only=True)
class NormalMixture(Mixture):
    """A `Mixture` for rewards in any unit, whose variance is learned too.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.NormalMixture().rewards.name
    'normal'

    References
    ----------
    Our own, see `Mixture`.
    """

    name = "normal-mixture"
    rewards = NORMAL
    kernels = Mixture.kernels._replace(
        slots=NORMAL_SLOTS,
        learn=learn_number,
        estimate=estimate_of_differences,
        laws=(("normal", normal),),
        common=mean_of_numbers,
        while_idle=None,  # the variance of an arm is partly that of all arms
    )

    strength: float = 0.5

    def shared_size(self, setting: Setting, family: str | None) -> int:
        return NORMAL_SHARED_SIZE

    def belief(self, column: np.ndarray, shared: np.ndarray, setting: Setting) -> Belief:
        """Return an arm's mean, the variance of its rewards around it, and the number of rewards behind it."""
        if column[COUNT + MEMORIES - 1] == 0.0:
            return Belief(math.nan, 0.0, 1.0, 0.0)
        state = PolicyState(column[:, np.newaxis], shared, np.zeros(1))
        mean, size = float(shared[FIRST] + column[MEAN]), float(column[SIZE])
        return Belief(mean, float(normal_noise(state, 0)), self.forgetting(column, setting), size)
