"""MIX-LIN-TS: linear models of several memories, averaged with learned weights; the recommended contextual policy."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.context import Context
from dynabandit.core.streams import SCORE, normal_pair, words
from dynabandit.estimators import linear_model
from dynabandit.estimators.base import Belief
from dynabandit.policies.base import Policy, PolicyFunctions, PolicyState, Reward, Step, features_of
from dynabandit.policies.linear_policy import model_of
from dynabandit.validation import NORMAL, number, set_fields

# The length of a memory is the number of rewards after which their weight has fallen to 1/e: 33, 84, 211, 531, 1333, ...
LENGTHS = tuple((100.0 / 3.0) * 100.0 ** (i / 5.0) for i in range(6))
RATES = (*(1.0 / length for length in LENGTHS), 0.0)
MEMORIES = len(RATES)
# In `shared`: the weights of the memories; the discounted sums of rewards, of squared errors, and their number
WEIGHT, TOTAL, SQUARES, COUNT = 0, MEMORIES, MEMORIES + 1, MEMORIES + 2
SHARED_SIZE = MEMORIES + 3
SHARED_RATE = 0.001


class Params(NamedTuple):
    prior: float
    share: float
    sharpness: float
    idle: float
    common: bool
    centred: bool


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    if state.shared[COUNT] == 0.0:
        for i in range(MEMORIES):
            state.shared[WEIGHT + i] = 1.0 / MEMORIES


@kernel
def noise(state: PolicyState) -> float:
    return (state.shared[SQUARES] + 0.25) / (state.shared[COUNT] + 1.0)


@kernel
def prior_mean(state: PolicyState, params: Params) -> float:
    return state.shared[TOTAL] / (state.shared[COUNT] + 1.0) if params.centred else 0.0


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    models, shared, x, value = model_of(state, arm), state.shared, reward.features, reward.value
    d = x.size
    size, variance, centre = models.size // MEMORIES, noise(state), prior_mean(state, params)
    idle = max(reward.decided_at - models[linear_model.CLOCK] - 1.0, 0.0) * params.idle
    precision = params.prior / linear_model.square(x)
    total = mean_of_all = variance_of_all = 0.0
    for i in range(MEMORIES):
        kept = 1.0 / (1.0 + idle * RATES[i])
        model = models[i * size : (i + 1) * size]
        mean, part = linear_model.update(model, x, value, 1.0, kept * (1.0 - RATES[i]), params.prior)
        mean, part = linear_model.faded(mean, part, kept, precision)
        mean += centre * part * precision
        error = value - mean
        scale = variance * (1.0 + part)
        weight = shared[WEIGHT + i]
        mean_of_all += weight * mean
        variance_of_all += weight * part
        weight *= math.exp(-0.5 * error * error / scale) / math.sqrt(1.0 + part) + 1e-300
        shared[WEIGHT + i] = weight
        total += weight
    for i in range(MEMORIES):
        shared[WEIGHT + i] = (1.0 - params.share) * shared[WEIGHT + i] / total + params.share / MEMORIES
    error = value - mean_of_all
    shared[TOTAL] = (1.0 - SHARED_RATE) * shared[TOTAL] + value
    shared[SQUARES] = (1.0 - SHARED_RATE) * shared[SQUARES] + error * error / (1.0 + variance_of_all)
    shared[COUNT] = (1.0 - SHARED_RATE) * shared[COUNT] + 1.0
    models[linear_model.CLOCK] = max(models[linear_model.CLOCK], reward.decided_at)


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    models, shared, x = model_of(state, arm), state.shared, features_of(step, arm)
    size, variance, centre = models.size // MEMORIES, noise(state), prior_mean(state, params)
    idle = max(step.number - models[linear_model.CLOCK] - 1.0, 0.0) * params.idle
    precision = params.prior / linear_model.square(x)
    average = square = 0.0
    for i in range(MEMORIES):
        model = models[i * size : (i + 1) * size]
        part = linear_model.quadratic(model, linear_model.inverse_at(x.size), x)
        mean = linear_model.dot(model, linear_model.theta_at(x.size), x)
        mean, part = linear_model.faded(mean, part, 1.0 / (1.0 + idle * RATES[i]), precision)
        mean += centre * part * precision
        weight = shared[WEIGHT + i]
        average += weight * mean
        square += weight * (mean * mean + variance * part)
    deviation = math.sqrt(max(square - average * average, 0.0) / params.sharpness)
    normal, _ = normal_pair(words(step.random, SCORE, step.number, 0 if params.common else arm, 0))
    return average + deviation * max(normal, 0.0)


@dataclass(frozen=True, kw_only=True)
class MixLinTS(Policy):
    """Thompson sampling with linear models of several memories, whose weights are learned.

    Parameters
    ----------
    prior
        TODO.
    """

    name = "mix-lin-ts"
    slots = ("unused",)
    rewards = NORMAL
    functions = PolicyFunctions(start=start, learn=learn, score=score, params=Params, contextual=True)

    prior: float = 1.0
    share: float = 0.001
    sharpness: float = 1.0
    idle: float = 1.0
    common: bool = False
    centred: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, prior=number("prior", self.prior, 0.0, 1e12, open_low=True))

    def params(self, arms: int) -> Params:
        return Params(self.prior, self.share, self.sharpness, self.idle / max(arms, 1), self.common, self.centred)

    def shared_size(self) -> int:
        return SHARED_SIZE

    def initial_models(self, arms: int, context: Context) -> np.ndarray:
        rows = 1 if context.per_arm else arms
        return np.tile(np.tile(linear_model.initial(context.dimension, self.prior), MEMORIES), (rows, 1))

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        return Belief(np.nan, np.nan, np.nan, np.nan)
