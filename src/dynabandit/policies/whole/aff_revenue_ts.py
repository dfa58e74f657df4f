"""AFF-Revenue-TS: Thompson sampling for rewards that are mostly 0 and otherwise heavy-tailed amounts."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.core.draws import beta
from dynabandit.core.special_functions import LARGEST_EXPONENT
from dynabandit.core.streams import SCORE, SECOND, normal_pair, words
from dynabandit.policies.base import Policy, PolicyFunctions, PolicyState, Reward, Step, idle_steps
from dynabandit.policies.belief import Belief
from dynabandit.policies.memories import adaptive, pooled_moments, unit_free
from dynabandit.policies.memories.adaptive import FORGETTING, M, W, load
from dynabandit.policies.memories.base import exponential
from dynabandit.policies.memories.unit_free import MEAN, OWN_VARIANCE, SIZE, UnitFree, UnitFreeParams
from dynabandit.policies.part import Setting
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.validation import REVENUE, check_field, number, set_fields

ROWS = (*unit_free.SLOTS, "log_forgetting")  # of an estimator
LOG_FORGETTING = ROWS.index("log_forgetting")
SLOTS = tuple(f"{part}_{slot}" for part in ("amount", "conversion") for slot in ROWS)
CONVERSION = len(ROWS)  # the first row of the estimator of the conversion
# In `shared`, after count, mean and variance of the logarithms of all arms: the first amount, and all rewards
REFERENCE, REWARDS = pooled_moments.SIZE, pooled_moments.SIZE + 1


class Params(NamedTuple):
    estimator: UnitFreeParams
    prior_weight: float


@kernel
def conversion_of_all(shared: np.ndarray) -> float:
    """Return the share of positive rewards of all arms, 1/2 before the first reward and never 0 or 1."""
    return (shared[pooled_moments.COUNT] + 1.0) / (shared[REWARDS] + 2.0)


@kernel
def kept(memory: np.ndarray, state: PolicyState, arm: int, step: Step) -> float:
    """Return the share of its weight that an idle arm keeps, of the estimator in these rows."""
    return exponential(memory[LOG_FORGETTING, arm], idle_steps(state, arm, step), step.arms, 0.0)


@inlined_kernel
def observe(memory: np.ndarray, arm: int, value: float, estimator: UnitFreeParams) -> None:
    """Update the estimator in these rows with a value."""
    unit_free.observe(memory, arm, value, estimator)
    memory[LOG_FORGETTING, arm] = adaptive.log_forgetting(load(memory, arm))


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    state.memory[:, arm] = 0.0
    state.memory[FORGETTING, arm] = 1.0
    state.memory[CONVERSION + FORGETTING, arm] = 1.0


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    amounts, conversions, shared = state.memory, state.memory[CONVERSION:], state.shared
    factor = kept(conversions, state, arm, step)
    usual = conversion_of_all(shared)
    a = params.prior_weight * usual + factor * conversions[M, arm]
    b = params.prior_weight * (1.0 - usual) + factor * (conversions[W, arm] - conversions[M, arm])
    b += assumed_zeros(state, arm, conversions[W, arm])
    conversion = beta(a, b, step.random, SCORE, step.number, arm)
    variance = unit_free.variance(state, arm)
    noise, _ = normal_pair(words(step.random, SECOND, step.number, arm, 0))
    error = math.sqrt(variance / max(amounts[SIZE, arm] * kept(amounts, state, arm, step), 1.0))
    # The mean of a log-normal amount
    mean = pooled_moments.mean_of(shared, amounts[MEAN, arm], amounts[SIZE, arm])
    exponent = mean + noise * error + 0.5 * variance
    return conversion * math.exp(min(exponent, LARGEST_EXPONENT))


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    memory, shared, value = state.memory, state.shared, reward.value
    shared[REWARDS] += 1.0
    observe(memory[CONVERSION:], arm, 1.0 if value > 0.0 else 0.0, params.estimator)
    if value > 0.0:
        if shared[REFERENCE] == 0.0:
            shared[REFERENCE] = value
        logarithm = math.log(value / shared[REFERENCE])  # in units of an amount, so that a change of unit cancels
        observe(memory, arm, logarithm, params.estimator)
        pooled_moments.add(shared, logarithm)


@dataclass(frozen=True, kw_only=True)
class AffRevenueTS(Policy):
    r"""Thompson sampling for revenue per visitor, mostly 0 and sometimes very large, that forgets old rewards faster
    when an arm seems to change. The recommended policy for revenue is mix-revenue-ts.

    The score is a conversion probability times the mean of log-normal amounts, both adaptive. All rewards times a
    constant give the same choices.

    Parameters
    ----------
    step_size
        The step size of both forgetting factors, in [0, 1]; it is divided by the estimated variance, so it has no unit.
    floor
        The minimum of both forgetting factors, in [0, 1].
    prior_weight
        The weight of the prior of a conversion probability, a positive number of rewards; it is not discounted. The
        mean of the prior is the conversion of all arms so far.

    Notes
    -----
    The score of an arm, where p is drawn from the posterior of `AffTS` on whether a reward is positive, and mu from
    that of `AffNormalTS` on the logarithms of positive rewards, whose adaptive variance is s^2:

    .. math:: p \, e^{\mu + s^2 / 2}, \quad p \sim \mathrm{Beta}\left( c \bar{p} + \tilde{m}, \; c (1 - \bar{p}) +
        \tilde{w} - \tilde{m} \right), \quad \mu \sim N\left( \frac{m'}{w'}, \; \frac{s^2}{n'} \right)

    The prior has the weight c and the conversion of all arms: most conversions are small, and a prior such as
    Beta(1, 1) would make every idle arm look much better than it is.

    Amounts are measured in units of the first amount of any arm. Until the amounts of an arm differ, the variance of
    the logarithms of all arms takes the place of s^2; an arm without amounts takes their mean too.

    Pending plays of an arm without any reward count as rewards of 0.

    Cost per step: O(K).

    References
    ----------
    The estimator of Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 2, with the step
    size eta_4 of section 4.3.1; the combination is our own.
    """

    name = "aff-revenue-ts"
    rewards = REVENUE
    slots = SLOTS
    functions = PolicyFunctions(start=start, score=score, learn=learn, params=Params)

    burn_in: int = 1
    step_size: float = 0.0001
    floor: float = 0.0
    prior_weight: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, **self._memory().parameters)
        check_field(self, "prior_weight", number, 0.0, math.inf, open_low=True)

    def _memory(self) -> UnitFree:
        return UnitFree(step_size=self.step_size, floor=self.floor)

    def params(self, arms: int) -> Params:
        return Params(self._memory().params(Setting(arms)), self.prior_weight)

    def shared_size(self) -> int:
        return REWARDS + 1

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        conversions = column[CONVERSION:]
        reference, forgetting = float(shared[REFERENCE]), float(conversions[FORGETTING])
        usual = float(conversion_of_all(shared))
        a = self.prior_weight * usual + float(conversions[M])
        b = self.prior_weight * (1.0 - usual) + float(conversions[W] - conversions[M])
        if reference == 0.0:
            return Belief(0.0 if conversions[W] > 0.0 else math.nan, 0.0, forgetting, a + b)
        center = float(pooled_moments.mean_of(shared, column[MEAN], column[SIZE]))
        variance = float(pooled_moments.variance_of(shared, column[OWN_VARIANCE]))
        error = variance / max(float(column[SIZE]), 1.0)
        mean = a / (a + b) * reference * math.exp(min(center + 0.5 * (variance + error), LARGEST_EXPONENT))
        second = a / (a + b) * reference**2 * math.exp(min(2.0 * center + 2.0 * variance, LARGEST_EXPONENT))
        return Belief(mean, max(second - mean * mean, 0.0), forgetting, a + b)
