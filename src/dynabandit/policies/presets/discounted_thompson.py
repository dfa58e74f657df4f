"""D-TS: Thompson sampling on discounted counts; all arms are discounted with each reward."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.beta_posterior import Prior, checked_prior
from dynabandit.policies.horizons.tuning_rules import DiscountTuned
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.validation import set_fields

# The decay that is common to all arms is stored as one scale, as in D-UCB: true count = count * scale
SUCCESSES, FAILURES = range(2)
SCALE = 0
SMALLEST_SCALE = 1e-100


class Params(NamedTuple):
    prior: Prior
    discount: float


@kernel
def start(state: PolicyState, arm: int, params: Any) -> None:
    if state.shared[SCALE] == 0.0:
        state.shared[SCALE] = 1.0
    state.memory[:, arm] = 0.0


@kernel
def common(state: PolicyState, number: int, params: Any) -> float:
    return state.shared[SCALE]


@kernel
def posterior(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float]:
    successes, failures = state.memory[SUCCESSES, arm], state.memory[FAILURES, arm]
    zeros = assumed_zeros(state, arm, successes + failures)
    return params.prior.a + successes * step.common, params.prior.b + failures * step.common + zeros


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Any) -> None:
    decay(state.memory, state.shared, params.discount)
    state.memory[SUCCESSES, arm] += reward.value / state.shared[SCALE]
    state.memory[FAILURES, arm] += (1.0 - reward.value) / state.shared[SCALE]


@kernel
def decay(memory: np.ndarray, shared: np.ndarray, discount: float) -> None:
    """Discount the counts of all arms; when the scale gets small, they are multiplied by it and it is set to 1."""
    shared[SCALE] *= discount
    if shared[SCALE] < SMALLEST_SCALE:
        for other in range(memory.shape[1]):
            memory[SUCCESSES, other] *= shared[SCALE]
            memory[FAILURES, other] *= shared[SCALE]
        shared[SCALE] = 1.0


@dataclass(frozen=True, kw_only=True)
class DiscountedTS(DiscountTuned):
    r"""Discounted Thompson sampling, which gives older rewards less weight, at a constant rate. Use it if you know how
    fast the means change.

    All arms are discounted, whether they are played or not. The posterior of an idle arm approaches its prior, so the
    arm is tried again. The discount is applied with each reward of any arm, as in `DUCB`. A reward between 0 and 1
    counts as a fraction of a success, where the paper draws a Bernoulli reward.

    Parameters
    ----------
    discount
        The discount factor per reward of any arm, in (0, 1]. The paper does not state it; the default is the rule of
        D-UCB, 1 - sqrt(Y / T) / 4 for T steps and Y changes.
    changes
        Y, the expected number of changes of the best arm. By default a simulation counts them on its path, which is not
        possible in practice; `changes=1` does not use the path.
    horizon
        T, the expected number of steps, or ``"doubling"``; a simulation uses its own horizon.
    prior
        The Beta prior of each arm, a pair of numbers in [1e-12, 1e12]; it is not discounted.
    burn_in
        The number of plays of each arm before the policy decides; by default 0, so that the prior is used from the
        first step.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("d-ts", changes=1, horizon=10_000).params(arms=2)
    Params(prior=Prior(a=1.0, b=1.0), discount=0.9975)

    Notes
    -----
    The score is a draw from Beta(a + S, b + F); each reward y discounts the counts of all arms:

    .. math:: S \leftarrow \gamma S + y \, 1[\text{played}], \quad F \leftarrow \gamma F + (1 - y) \, 1[\text{played}]

    Pending plays of an arm without any reward count as failures.

    Cost per step: O(K); with many arms, only arms that can have the largest draw are drawn.

    References
    ----------
    Raj & Kalyani (2017), Taming non-stationary bandits: a Bayesian approach. arXiv 1707.09727.
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name = "d-ts"
    slots = ("successes", "failures")
    functions = PolicyFunctions(start=start, learn=learn, posterior=posterior, common=common, params=Params)
    needs_double = True

    burn_in: int = 0
    prior: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, prior=checked_prior(self.prior))

    def params(self, arms: int) -> Params:
        return Params(Prior(*self.prior), self._discount())

    def forgetting(self, column: np.ndarray) -> float:
        return self._discount()


@dataclass(frozen=True, kw_only=True)
class DiscountedOTS(DiscountedTS):
    r"""Discounted Thompson sampling that explores slightly less: no draw is below the estimated mean of its arm. Use it
    if you know how fast the means change.

    A draw of `DiscountedTS` below the posterior mean is replaced by the posterior mean.

    Parameters
    ----------
    discount
        The discount factor per reward of any arm, in (0, 1]. The paper does not state it; the default is the rule of
        D-UCB, 1 - sqrt(Y / T) / 4 for T steps and Y changes.
    changes
        Y, the expected number of changes of the best arm. By default a simulation counts them on its path, which is not
        possible in practice; `changes=1` does not use the path.
    horizon
        T, the expected number of steps, or ``"doubling"``; a simulation uses its own horizon.
    prior
        The Beta prior of each arm, a pair of numbers in [1e-12, 1e12]; it is not discounted.
    burn_in
        The number of plays of each arm before the policy decides; by default 0, so that the prior is used from the
        first step.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("d-ots", changes=1, horizon=10_000).params(arms=2)
    Params(prior=Prior(a=1.0, b=1.0), discount=0.9975)

    Notes
    -----
    With the discounted counts S and F of D-TS, the score is

    .. math:: \max\left( \theta, \; \frac{a + S}{a + b + S + F} \right), \quad \theta \sim \mathrm{Beta}(a + S, \; b +
        F)

    Pending plays of an arm without any reward count as failures.

    Cost per step: O(K); with many arms, only arms that can have the largest draw are drawn.

    References
    ----------
    Raj & Kalyani (2017), Taming non-stationary bandits: a Bayesian approach. arXiv 1707.09727; there dOTS.
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name = "d-ots"
    functions = DiscountedTS.functions._replace(optimistic=True)
