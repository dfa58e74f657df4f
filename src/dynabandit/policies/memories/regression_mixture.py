"""A mixture of linear regressions with memories of several lengths, whose weights are learned.

`dynabandit.policies.presets.linear.MixLinUCB` has the equations.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.context import Context
from dynabandit.policies.base import PolicyState, Reward, Step, row_of
from dynabandit.policies.belief import Belief
from dynabandit.policies.memories import linear_model
from dynabandit.policies.memories.mixture import LEAST
from dynabandit.policies.memories.models import ModelKernels, ModelMemory
from dynabandit.policies.part import Setting
from dynabandit.validation import LARGEST_FACTOR, LEAST_FACTOR, NORMAL, check_field, number

# The length of a memory is the number of rewards that it holds: 10, 32, 102, 326, 1043, 3333, and all
RATES = (*(0.1 * 0.003 ** (i / 5.0) for i in range(6)), 0.0)  # the share that a memory forgets with a reward
MEMORIES = len(RATES)
SHARED_RATE = 0.001  # the share that the sums over all rewards forget with a reward
# In `shared`: the weights of the memories and their latest log densities; the discounted sums over all rewards: of
# rewards, of their squares, of squared errors, of ones
WEIGHT, LOG_DENSITY = 0, MEMORIES
TOTAL, SQUARES, ERRORS, COUNT = range(2 * MEMORIES, 2 * MEMORIES + 4)
SHARED_SIZE = 2 * MEMORIES + 4
LEAST_NOISE, LEAST_LOG_DENSITY = 1e-300, -1e300  # so that no quotient is 0 / 0, and no difference inf - inf
SMALLEST_SQUARE = 1e-200  # of a feature vector; a smaller one counts as zero


class Params(NamedTuple):
    prior: float
    share: float
    sharpness: float
    idle: float  # divided by the number of arms: how much an idle step counts, in rewards


class Surroundings(NamedTuple):
    """What the memories of a model share when they predict a reward."""

    idle: float  # the idle time of the model, in rewards
    precision: float  # of the prior of the prediction
    prior_mean: float  # of the prediction
    noise: float  # the variance of a reward


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    """Start with equal weights."""
    if state.shared[COUNT] == 0.0:  # not when an arm is added later
        for i in range(MEMORIES):
            state.shared[WEIGHT + i] = 1.0 / MEMORIES


@kernel
def surroundings(state: PolicyState, models: np.ndarray, x: np.ndarray, number: int, params: Params) -> Surroundings:
    """Return what the memories of a model share at a step."""
    shared = state.shared
    idle = max(number - 1.0 - models[linear_model.CLOCK], 0.0) * params.idle
    square = linear_model.square(x)
    precision = params.prior / square if square > SMALLEST_SQUARE else 0.0
    prior_mean = shared[TOTAL] / (shared[COUNT] + 1.0) if state.models.shape[0] > 1 else 0.0
    return Surroundings(idle, precision, prior_mean, noise(shared))


@kernel
def noise(shared: np.ndarray) -> float:
    """Return the variance of a reward: the mean squared error, at first the mean square of the rewards."""
    size = 1.0 + shared[COUNT]
    first_guess = shared[SQUARES] / shared[COUNT] if shared[SQUARES] > 0.0 else 0.25
    return max((shared[ERRORS] + first_guess / size) / size, LEAST_NOISE)


@kernel
def predicted(mean: float, variance: float, rate: float, given: Surroundings) -> tuple[float, float]:
    """Return the prediction of a memory after the idle time, with its prior, and the variance in units of the noise."""
    mean, variance = linear_model.faded(mean, variance, 1.0 / (1.0 + given.idle * rate), given.precision)
    return mean + given.prior_mean * variance * given.precision, variance


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    """Learn a reward with all memories of a model, and change their weights."""
    models, shared, x = state.models[row_of(state.models, arm)], state.shared, reward.features
    size, given = models.size // MEMORIES, surroundings(state, models, x, reward.decided_at, params)
    average = average_variance = 0.0
    largest = -math.inf
    for i in range(MEMORIES):
        kept = (1.0 - RATES[i]) / (1.0 + given.idle * RATES[i])
        mean, variance = linear_model.update(
            models[i * size : (i + 1) * size], x, reward.value, 1.0, kept, params.prior
        )
        mean, variance = predicted(mean, variance, RATES[i], given)
        average += shared[WEIGHT + i] * mean
        average_variance += shared[WEIGHT + i] * variance
        error, spread = reward.value - mean, 1.0 + variance
        log_density = -0.5 * (error * error / (given.noise * spread) + math.log(spread))
        shared[LOG_DENSITY + i] = max(log_density, LEAST_LOG_DENSITY)
        largest = max(largest, shared[LOG_DENSITY + i])
    total = 0.0
    for i in range(MEMORIES):
        shared[WEIGHT + i] *= math.exp(shared[LOG_DENSITY + i] - largest)
        total += shared[WEIGHT + i]
    for i in range(MEMORIES):
        shared[WEIGHT + i] = (1.0 - params.share) * shared[WEIGHT + i] / total + params.share / MEMORIES
    error = reward.value - average
    shared[TOTAL] = (1.0 - SHARED_RATE) * shared[TOTAL] + reward.value
    shared[SQUARES] = (1.0 - SHARED_RATE) * shared[SQUARES] + reward.value * reward.value
    shared[ERRORS] = (1.0 - SHARED_RATE) * shared[ERRORS] + error * error / (1.0 + average_variance)
    shared[COUNT] = (1.0 - SHARED_RATE) * shared[COUNT] + 1.0
    models[linear_model.CLOCK] = max(models[linear_model.CLOCK], reward.decided_at)


@kernel
def predict(state: PolicyState, arm: int, step: Step, params: Params) -> tuple[float, float]:
    """Return the mean of the mixture of predictions, and its variance divided by the sharpness."""
    models, shared, x = state.models[row_of(state.models, arm)], state.shared, step.features[row_of(step.features, arm)]
    size, given = models.size // MEMORIES, surroundings(state, models, x, step.number, params)
    average = square = reference = 0.0
    for i in range(MEMORIES - 1, -1, -1):
        model = models[i * size : (i + 1) * size]
        variance = linear_model.quadratic(model, linear_model.inverse_at(x.size), x)
        mean = linear_model.dot(model, linear_model.theta_at(x.size), x)
        mean, variance = predicted(mean, variance, RATES[i], given)
        if i == MEMORIES - 1:
            reference = mean  # means are measured from that of the last memory: a difference of squares loses digits
        average += shared[WEIGHT + i] * (mean - reference)
        square += shared[WEIGHT + i] * ((mean - reference) * (mean - reference) + given.noise * variance)
    return reference + average, max(square - average * average, 0.0) / params.sharpness


@dataclass(frozen=True, kw_only=True)
class RegressionMixture(ModelMemory):
    """Predict the rewards of an arm by linear regressions with memories of several lengths, and learn how much weight
    each of them deserves. Use it if you do not know how fast the effect of the features changes, or whether it does.

    Every arm has its own models if the context is the same for all arms; if each arm has features of its own, all arms
    share their models.

    Parameters
    ----------
    prior
        The precision of the prior of every coefficient, in [1e-12, 1e12], in rewards: the ridge penalty.
    share
        The share of the weights that is spread evenly after each reward, in [0, 1].
    sharpness
        The factor by which the variance of the score is smaller than that of the prediction, positive.
    idle
        How much the memories of an idle arm forget, at least 0: in K steps as much as with this number of rewards.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.RegressionMixture(idle=0).parameters["idle"]
    0.0

    References
    ----------
    Our own. Weights that are multiplied by likelihoods and mixed: Herbster & Warmuth (1998), Tracking the best expert.
    Machine Learning 32.
    """

    name = "regression-mixture"
    rewards = NORMAL
    kernels = ModelKernels(
        slots=("unused",), start=start, learn=learn, predict=predict, shared=SHARED_SIZE, params=Params
    )

    prior: float = 1.0
    share: float = 0.0005
    sharpness: float = 2.0
    idle: float = 1.0

    def __post_init__(self) -> None:
        check_field(self, "prior", number, LEAST_FACTOR, LARGEST_FACTOR)
        check_field(self, "share", number, 0.0, 1.0)
        check_field(self, "sharpness", number, LEAST, 1e6)
        check_field(self, "idle", number, 0.0, 1e6)

    def params(self, setting: Setting) -> Any:
        return Params(self.prior, self.share, self.sharpness, self.idle / max(setting.arms, 1))

    def models_shape(self, arms: int, context: Context, family: str | None) -> tuple[int, int]:
        return 1 if context.per_arm else arms, MEMORIES * linear_model.size(context.dimension)

    def initial_models(self, arms: int, context: Context, family: str | None) -> np.ndarray:
        rows, _ = self.models_shape(arms, context, family)
        return np.tile(np.tile(linear_model.initial(context.dimension, self.prior), MEMORIES), (rows, 1))

    def belief(self, column: np.ndarray, shared: np.ndarray, setting: Setting) -> Belief:
        """Return the mean forgetting factor; all else depends on the context."""
        forgetting = 1.0 - float(np.dot(shared[WEIGHT : WEIGHT + MEMORIES], RATES))
        return Belief(math.nan, math.nan, forgetting, math.nan)
