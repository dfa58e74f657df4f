"""Thompson sampling and its optimistic variant, with a Beta posterior that never forgets."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import CONSTANT, Policy, PolicyFunctions, PolicyState, Step
from dynabandit.policies.beta_posterior import Prior, checked_prior
from dynabandit.policies.memories import sample_mean_policy
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.validation import set_fields

TOTAL = sample_mean_policy.SLOTS.index("total")
PLAYS = sample_mean_policy.SLOTS.index("plays")


class Params(NamedTuple):
    prior: Prior


@kernel
def posterior(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float]:
    """Return the Beta posterior of equations (20) and (21)."""
    total, plays = state.memory[TOTAL, arm], state.memory[PLAYS, arm]
    return params.prior.a + total, params.prior.b + plays - total + assumed_zeros(state, arm, plays)


@dataclass(frozen=True, kw_only=True)
class TS(Policy):
    r"""Thompson sampling: draw a plausible mean for each arm, given its rewards, and play the arm with the largest
    draw. A baseline for constant means: it never forgets, so it reacts slowly to changes.

    Parameters
    ----------
    prior
        The Beta prior of each arm, a pair of numbers in [1e-12, 1e12].
    burn_in
        The number of plays of each arm before the policy decides; by default 0, so that the prior is used from the
        first step.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("ts", prior=(1, 1)).label
    'ts(prior=(1, 1))'

    Notes
    -----
    The score of an arm with S successes and F failures is one draw from its posterior:

    .. math:: \theta \sim \mathrm{Beta}(a + S, \; b + F)

    Pending plays of an arm without any reward count as failures.

    Cost per step: O(K), O(log K) with more than 1,000 arms; see "Thompson sampling with many arms".

    References
    ----------
    Thompson (1933), On the likelihood that one unknown probability exceeds another. Biometrika 25.
    Chapelle & Li (2011), An empirical evaluation of Thompson sampling. NIPS.
    """

    name = "ts"
    slots = sample_mean_policy.SLOTS
    functions = PolicyFunctions(
        start=sample_mean_policy.start,
        learn=sample_mean_policy.learn,
        posterior=posterior,
        idle_posterior=CONSTANT,
        params=Params,
    )

    burn_in: int = 0
    prior: tuple[float, float] = (2.0, 2.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, prior=checked_prior(self.prior))

    def params(self, arms: int) -> Any:
        return Params(Prior(*self.prior))


@dataclass(frozen=True, kw_only=True)
class OTS(TS):
    r"""Optimistic Thompson sampling, which explores slightly less: no draw is below the estimated mean of its arm. Use
    it if means are constant; it never forgets.

    A draw of `TS` below the posterior mean is replaced by the posterior mean.

    Parameters
    ----------
    prior
        The Beta prior of each arm, a pair of numbers in [1e-12, 1e12].
    burn_in
        The number of plays of each arm before the policy decides; by default 0, so that the prior is used from the
        first step.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("ots").parameters
    {'burn_in': 0, 'prior': (2.0, 2.0)}

    Notes
    -----
    The score is a draw from the posterior, or the posterior mean if that is larger:

    .. math:: \max\left( \theta, \; \frac{a + S}{a + b + S + F} \right), \quad \theta \sim \mathrm{Beta}(a + S, \; b +
        F)

    Pending plays of an arm without any reward count as failures.

    Cost per step: O(K), O(log K) with more than 1,000 arms; see "Thompson sampling with many arms".

    References
    ----------
    May, Korda, Lee & Leslie (2012), Optimistic Bayesian sampling in contextual-bandit problems. JMLR 13.
    """

    name = "ots"
    functions = TS.functions._replace(optimistic=True)
