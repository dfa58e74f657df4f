"""AFF-Revenue-TS: Thompson sampling for rewards that are mostly 0 and otherwise heavy-tailed amounts."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.draws import beta
from dynabandit.core.streams import SCORE, SECOND, normal_pair, words
from dynabandit.estimators.adaptive_forgetting import UnitFreeParams
from dynabandit.estimators.base import Belief
from dynabandit.policies import aff_shared, aff_unit_free, all_rewards
from dynabandit.policies.aff_unit_free import FORGETTING, LOG_FORGETTING, SIZE, M, UnitFreePolicy, W
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.beta_posterior import Prior, checked_prior
from dynabandit.validation import REVENUE, set_fields

SLOTS = tuple(f"{part}_{slot}" for part in ("amount", "conversion") for slot in aff_unit_free.SLOTS)
CONVERSION = len(aff_unit_free.SLOTS)  # the first row of the estimator of the conversion
REFERENCE = all_rewards.SIZE  # in `shared`, after mean and variance of the logarithms: the first amount of any arm


class Params(NamedTuple):
    estimator: UnitFreeParams
    prior: Prior


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    state.memory[:, arm] = 0.0
    state.memory[FORGETTING, arm] = 1.0
    state.memory[CONVERSION + FORGETTING, arm] = 1.0


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    amounts, conversions, shared = state.memory, state.memory[CONVERSION:], state.shared
    factor = aff_shared.idle_discount(conversions[LOG_FORGETTING, arm], state, arm, step)
    a = params.prior.a + factor * conversions[M, arm]
    b = params.prior.b + factor * (conversions[W, arm] - conversions[M, arm])
    conversion = beta(a, b, step.random, SCORE, step.number, arm)
    variance = aff_unit_free.variance(amounts, shared, arm)
    noise, _ = normal_pair(words(step.random, SECOND, step.number, arm, 0))
    error = math.sqrt(variance / aff_unit_free.idle_size(amounts, state, arm, step))
    # The mean of a log-normal amount
    return conversion * math.exp(aff_unit_free.mean(amounts, shared, arm) + noise * error + 0.5 * variance)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    memory, shared, value = state.memory, state.shared, reward.value
    aff_unit_free.observe(memory[CONVERSION:], arm, 1.0 if value > 0.0 else 0.0, params.estimator)
    if value > 0.0:
        if shared[REFERENCE] == 0.0:
            shared[REFERENCE] = value
        logarithm = math.log(value / shared[REFERENCE])  # in units of an amount, so that a change of unit cancels
        aff_unit_free.observe(memory, arm, logarithm, params.estimator)
        all_rewards.add(shared, logarithm)


@dataclass(frozen=True, kw_only=True)
class AffRevenueTS(UnitFreePolicy):
    r"""Thompson sampling for revenue: a conversion probability times the mean of log-normal amounts, both adaptive.

    For rewards that are mostly 0 and otherwise amounts of which a few are very large, such as revenue per visitor. All
    rewards times a constant give the same choices.

    Parameters
    ----------
    step_size
        The step size of both forgetting factors, in [0, 1]; it is divided by the estimated variance, so it has no unit.
    floor
        The minimum of both forgetting factors, in [0, 1].
    prior
        The Beta prior of each conversion probability, a pair of positive numbers; it is not discounted.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> bandit = db.Bandit("aff-revenue-ts", arms=["red", "green"], seed=7)
    >>> for reward in (0, 0, 35.5, 0, 12):
    ...     bandit.reward(bandit.choose(), reward)
    >>> round(bandit.arms["green"].mean, 1), round(bandit.arms["red"].mean, 1)
    (12.8, 17.4)

    Notes
    -----
    The score of an arm, where p is drawn from the posterior of `AffTS` on whether a reward is positive, and mu from
    that of `AffNormalTS` on the logarithms of positive rewards, whose adaptive variance is s^2:

    .. math:: p \, e^{\mu + s^2 / 2}, \quad p \sim \mathrm{Beta}\left( a + \tilde{m}, \; b + \tilde{w} - \tilde{m}
        \right), \quad \mu \sim N\left( \frac{m'}{w'}, \; \frac{s^2}{n'} \right)

    Amounts are measured in units of the first amount of any arm. Until the amounts of an arm differ, the variance of
    the logarithms of all arms takes the place of s^2; an arm without amounts takes their mean too.

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
    prior: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, prior=checked_prior(self.prior))

    def params(self, arms: int) -> Params:
        return Params(self._estimator(), Prior(*self.prior))

    def shared_size(self) -> int:
        return all_rewards.SIZE + 1

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        amounts, conversions = column[:, None], column[CONVERSION:]
        reference, forgetting = float(shared[REFERENCE]), float(conversions[FORGETTING])
        a, b = self.prior[0] + float(conversions[M]), self.prior[1] + float(conversions[W] - conversions[M])
        if reference == 0.0:
            return Belief(0.0 if conversions[W] > 0.0 else math.nan, 0.0, forgetting, a + b)
        center = float(aff_unit_free.mean(amounts, shared, 0))
        variance = float(aff_unit_free.variance(amounts, shared, 0))
        error = variance / max(float(column[SIZE]), 1.0)
        mean = a / (a + b) * reference * math.exp(center + 0.5 * (variance + error))
        second = a / (a + b) * reference**2 * math.exp(2.0 * center + 2.0 * variance)
        return Belief(mean, max(second - mean**2, 0.0), forgetting, a + b)
