"""AFF-TS and AFF-OTS: Thompson sampling from a posterior whose data are discounted, but not its prior."""

from dataclasses import dataclass
from typing import NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.estimators.adaptive_forgetting import AdaptiveParams
from dynabandit.policies.base import MONOTONE, PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.beta_posterior import Prior, checked_prior
from dynabandit.policies.memories import aff_shared
from dynabandit.policies.memories.aff_shared import AdaptivePolicy
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.validation import set_fields

SLOTS = (*aff_shared.SLOTS, "log_forgetting")
M = SLOTS.index("m")
W = SLOTS.index("w")
LOG_FORGETTING = SLOTS.index("log_forgetting")


class Params(NamedTuple):
    estimator: AdaptiveParams
    prior: Prior


@kernel
def posterior(state: PolicyState, arm: int, step: Step, params: Params) -> tuple[float, float]:
    """Equations (24) and (25), on the discounted m~ and w~ of (16) and (17)."""
    memory = state.memory
    factor = aff_shared.idle_discount(memory[LOG_FORGETTING, arm], state, arm, step)
    m, w = memory[M, arm], memory[W, arm]
    return params.prior.a + factor * m, params.prior.b + factor * (w - m) + assumed_zeros(state, arm, w)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    estimate = aff_shared.observe(state, arm, reward.value, params)
    state.memory[LOG_FORGETTING, arm] = aff_shared.log_forgetting(estimate)


@dataclass(frozen=True, kw_only=True)
class AffTS(AdaptivePolicy):
    r"""Thompson sampling that forgets old rewards faster when an arm seems to change, and slowly those of idle arms,
    too. It needs no tuning; AFF-OTS usually has slightly less regret.

    The draws are from Beta(a + m~, b + w~ - m~), where the data of an idle arm are discounted; see also `AffOTS`.

    Parameters
    ----------
    step_size, floor, loss
        Parameters of the adaptive estimator with the sums m, w and k, see
        `dynabandit.estimators.AdaptiveForgetting`.
    prior
        The Beta prior of each arm, a pair of numbers in [1e-12, 1e12]; it is not discounted.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-ts", prior=(1, 3)).label
    'aff-ts(prior=(1, 3))'

    Notes
    -----
    The score is a draw from a posterior whose data, but not its prior, are discounted while the arm is idle:

    .. math:: \mathrm{Beta}\left( a + \tilde{m}, \; b + \tilde{w} - \tilde{m} \right), \quad (\tilde{m}, \tilde{w}) =
        \lambda^{\mathrm{idle} / K} (m, w)

    Pending plays of an arm without any reward count as failures.

    Cost per step: O(K), O(log K) with more than 1,000 arms; see "Thompson sampling with many arms".

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, algorithm 4.
    """

    name = "aff-ts"
    slots = SLOTS
    functions = PolicyFunctions(
        start=aff_shared.start, learn=learn, posterior=posterior, idle_posterior=MONOTONE, params=Params
    )

    prior: tuple[float, float] = (2.0, 2.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, prior=checked_prior(self.prior))

    def params(self, arms: int) -> Params:
        return Params(self._estimator(), Prior(*self.prior))


@dataclass(frozen=True, kw_only=True)
class AffOTS(AffTS):
    r"""Thompson sampling that forgets old rewards faster when an arm seems to change and explores slightly less than
    AFF-TS. It needs no tuning and does well in all cases of the paper; its worst case is an abrupt change after a long
    constant period.

    A draw of `AffTS` below the posterior mean is replaced by the posterior mean.

    Parameters
    ----------
    step_size, floor, loss
        Parameters of the adaptive estimator with the sums m, w and k, see
        `dynabandit.estimators.AdaptiveForgetting`.
    prior
        The Beta prior of each arm, a pair of numbers in [1e-12, 1e12]; it is not discounted.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> bandit = db.Bandit("aff-ots", arms=["red", "green"], seed=7)
    >>> bandit.choose()
    'red'

    Notes
    -----
    The score is the larger of a draw from the posterior and its mean; the data are discounted while the arm is idle:

    .. math:: \mathrm{Beta}\left( a + \tilde{m}, \; b + \tilde{w} - \tilde{m} \right), \quad (\tilde{m}, \tilde{w}) =
        \lambda^{\mathrm{idle} / K} (m, w)

    Pending plays of an arm without any reward count as failures.

    Cost per step: O(K), O(log K) with more than 1,000 arms; see "Thompson sampling with many arms".

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, algorithm 5.
    """

    name = "aff-ots"
    functions = AffTS.functions._replace(optimistic=True)
