"""MIX-LIN-UCB: linear models of several memories, averaged with learned weights; the recommended contextual policy."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.context import Context
from dynabandit.estimators import linear_model
from dynabandit.estimators.base import Belief
from dynabandit.policies.base import Policy, PolicyFunctions, PolicyState, Reward, Step, row_of
from dynabandit.policies.memories.mixture import LEAST
from dynabandit.policies.rules.score_laws import common_normal_scores
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
    if state.shared[COUNT] == 0.0:  # not when an arm is added later
        for i in range(MEMORIES):
            state.shared[WEIGHT + i] = 1.0 / MEMORIES


@kernel
def surroundings(state: PolicyState, models: np.ndarray, x: np.ndarray, number: int, params: Params) -> Surroundings:
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
def mean_and_deviation(state: PolicyState, arm: int, step: Step, params: Params) -> tuple[float, float]:
    """Return the mean of the mixture of predictions, and its standard deviation divided by the sharpness."""
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
    return reference + average, math.sqrt(max(square - average * average, 0.0) / params.sharpness)


@dataclass(frozen=True, kw_only=True)
class MixLinUCB(Policy):
    r"""The recommended policy for decisions with features: linear regressions with memories of several lengths, whose
    weights are learned. It needs no tuning, whether the effect of the features changes fast, slowly or never.

    The score is a randomised confidence bound. This is ``"auto"`` together with features. It needs no horizon, no
    number of changes, no discount and no scale of the rewards. Every arm has its own models if the context is the same
    for all arms; if each arm has features of its own, all arms share their models.

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
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> environment = db.environment("lin-abrupt", arms=5)
    >>> runs = db.compare(["lin-ucb", "mix-lin-ucb"], environment, horizon=3000, replications=2, seed=1)
    >>> bool(runs["mix-lin-ucb"].total_regret.mean() < 0.5 * runs["lin-ucb"].total_regret.mean())
    True

    Notes
    -----
    Memory i = 0, ..., 5 forgets the share :math:`\rho_i = 0.1 \cdot 0.003^{i / 5}` of its data with each reward, so
    that it holds about 10, 32, 102, 326, 1043 and 3333 of them; memory 6 forgets nothing, :math:`\rho_6 = 0`. It is a
    ridge regression with coefficients :math:`\theta_i` and inverse precision matrix :math:`P_i`, whose prior,
    :math:`\alpha I` with the parameter `prior`, does not fade (`estimators.linear_model`). All memories of a model have
    the same data: the rewards of one arm, or of all arms.

    For features x, after d idle steps, which are those between the latest decision whose reward the model knows and
    this one, its prediction is

    .. math::

        k_i = \frac{1}{1 + \kappa \rho_i d / K}, \quad
        \frac{1}{q_i} = \frac{k_i}{x' P_i x} + \frac{(1 - k_i) \alpha}{x' x}, \quad
        m_i = x' \theta_i \, \frac{k_i q_i}{x' P_i x} + \mu \frac{\alpha q_i}{x' x}

    with :math:`\kappa` the parameter `idle`. The prior mean :math:`\mu` of the prediction is 0 if all arms share their
    models, and else the mean of the rewards of all arms. This mean and the noise :math:`\sigma^2` are computed from
    discounted sums over all rewards y, of which :math:`y_0` is the newest, with the errors
    :math:`e = y - \sum_i w_i m_i` and variances :math:`q = \sum_i w_i q_i` of their predictions, with the weights
    before the reward:

    .. math::

        n = \sum_j 0.999^j, \quad \mu = \frac{1}{1 + n} \sum_j 0.999^j y_j, \quad
        \sigma^2 = \frac{1}{1 + n} \left( \sum_j 0.999^j \frac{e_j^2}{1 + q_j} + \frac{g}{1 + n} \right)

    The first guess g of the noise is the mean square :math:`\sum_j 0.999^j y_j^2 / n` of the rewards, or 1/4 as long as
    all of them are 0.

    When a reward y arrives, the weights of the memories, which all arms share and which are equal at first, are
    multiplied by the density of y and mixed with the share :math:`\beta`; d is the idle time at the decision:

    .. math:: w_i \leftarrow (1 - \beta) \frac{w_i f_i}{\sum_j w_j f_j} + \frac{\beta}{7}, \quad
        f_i = \frac{1}{\sqrt{1 + q_i}} \exp\left( - \frac{(y - m_i)^2}{2 \sigma^2 (1 + q_i)} \right)

    and each memory learns y after its data were discounted by :math:`k_i (1 - \rho_i)`. The sums over all rewards are
    updated last. With the sharpness s, the score of an arm is

    .. math:: m + \max(z, 0) \sqrt{v / s}, \quad m = \sum_i w_i m_i, \quad
        v = \sum_i w_i \left( m_i^2 + \sigma^2 q_i \right) - m^2

    where z is one standard normal number per step, the same for all arms: arms whose predictions come from the same
    model are then explored together. A feature vector of zeros has the prediction 0 with certainty.

    Cost per step: O(K d^2).

    References
    ----------
    Our own. Weights that are multiplied by likelihoods and mixed: Herbster & Warmuth (1998), Tracking the best expert.
    Machine Learning 32. One random number for the confidence bounds of all arms: Vaswani, Mehrabian, Durand & Kveton
    (2020), Old dog learns new tricks: randomized UCB for bandit problems. AISTATS.
    """

    name = "mix-lin-ucb"
    slots = ("unused",)
    needs_double = True
    rewards = NORMAL
    functions = PolicyFunctions(
        start=start, learn=learn, params=Params, contextual=True, **common_normal_scores(mean_and_deviation)
    )

    prior: float = 1.0
    share: float = 0.0005
    sharpness: float = 2.0
    idle: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "prior", number, LEAST_FACTOR, LARGEST_FACTOR)
        check_field(self, "share", number, 0.0, 1.0)
        check_field(self, "sharpness", number, LEAST, 1e6)
        check_field(self, "idle", number, 0.0, 1e6)

    def params(self, arms: int) -> Params:
        return Params(self.prior, self.share, self.sharpness, self.idle / max(arms, 1))

    def shared_size(self) -> int:
        return SHARED_SIZE

    def models_shape(self, arms: int, context: Context) -> tuple[int, int]:
        return 1 if context.per_arm else arms, MEMORIES * linear_model.size(context.dimension)

    def initial_models(self, arms: int, context: Context) -> np.ndarray:
        rows, _ = self.models_shape(arms, context)
        return np.tile(np.tile(linear_model.initial(context.dimension, self.prior), MEMORIES), (rows, 1))

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        forgetting = 1.0 - float(np.dot(shared[WEIGHT : WEIGHT + MEMORIES], RATES))
        return Belief(np.nan, np.nan, forgetting, np.nan)
