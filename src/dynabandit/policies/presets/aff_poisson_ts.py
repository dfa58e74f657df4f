"""AFF-Poisson-TS: Thompson sampling for counts, from a gamma posterior whose data are discounted."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.estimators.adaptive_forgetting import UnitFreeParams
from dynabandit.estimators.base import Belief
from dynabandit.policies.base import PolicyFunctions, PolicyState, Step
from dynabandit.policies.beta_posterior import Prior, checked_prior
from dynabandit.policies.memories import aff_shared, aff_unit_free
from dynabandit.policies.memories.aff_unit_free import FORGETTING, LOG_FORGETTING, M, UnitFreePolicy, W
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.policies.rules.score_laws import gamma_scores
from dynabandit.validation import COUNTS, set_fields


class Params(NamedTuple):
    estimator: UnitFreeParams
    prior: Prior


@kernel
def law(state: PolicyState, arm: int, step: Step, params: Params) -> tuple[float, float, float]:
    memory = state.memory
    w = memory[W, arm]
    factor = aff_shared.idle_discount(memory[LOG_FORGETTING, arm], state, arm, step)
    if factor * w < 1.0 and w > 0.0:
        factor = 1.0 / w  # never less than one count
    shape = params.prior.a + factor * memory[M, arm]
    rate = params.prior.b + factor * w + assumed_zeros(state, arm, w)
    return shape, rate, shape / rate


@dataclass(frozen=True, kw_only=True)
class AffPoissonTS(UnitFreePolicy):
    r"""Thompson sampling for counts, such as sales, visits or items, that forgets old rewards faster when an arm seems
    to change. The recommended policy for counts is mix-poisson-ts.

    The draws are from Gamma(a + m~, b + w~), where the data of an idle arm are discounted.

    Parameters
    ----------
    step_size
        The step size of the forgetting factor, in [0, 1]; it is divided by the estimated variance.
    floor
        The minimum forgetting factor, in [0, 1].
    prior
        The gamma prior of each arm, a pair of numbers in [1e-12, 1e12]: it counts as b counts whose sum is a. The
        default assumes little, a tenth of a count.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-poisson-ts", prior=(2, 1)).label
    'aff-poisson-ts(prior=(2, 1))'

    Notes
    -----
    The score is a draw from the posterior of a Poisson mean, whose data, but not its prior, are discounted while the
    arm is idle, to not less than one count:

    .. math:: \mathrm{Gamma}\left( a + \tilde{m}, \; b + \tilde{w} \right), \quad (\tilde{m}, \tilde{w}) =
        \max\left( \lambda^{\mathrm{idle} / K}, \; \frac{1}{w} \right) (m, w)

    The forgetting factor does not change before the counts of an arm differ.

    Pending plays of an arm without a count are taken as zeros.

    Cost per step: O(K).

    References
    ----------
    The estimator of Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 2, with the step
    size eta_4 of section 4.3.1; the posterior of a Poisson mean in place of that of a probability.
    """

    name = "aff-poisson-ts"
    rewards = COUNTS
    slots = aff_unit_free.SLOTS
    functions = PolicyFunctions(start=aff_shared.start, learn=aff_unit_free.learn, params=Params, **gamma_scores(law))

    burn_in: int = 1
    prior: tuple[float, float] = (0.5, 0.1)

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, prior=checked_prior(self.prior))

    def params(self, arms: int) -> Params:
        return Params(self._estimator(), Prior(*self.prior))

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        m, w, forgetting = (float(column[row]) for row in (M, W, FORGETTING))
        mean = (self.prior[0] + m) / (self.prior[1] + w)
        return Belief(mean, mean, forgetting, self.prior[1] + w)  # the variance of a Poisson count is its mean
