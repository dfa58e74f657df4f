"""AFF-Normal-TS: Thompson sampling from the normal posterior of the adaptive mean."""

import math
from dataclasses import dataclass
from typing import Any

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyFunctions, PolicyState, Step
from dynabandit.policies.memories import aff_shared, aff_unit_free
from dynabandit.policies.memories.aff_unit_free import Params, UnitFreePolicy
from dynabandit.policies.rules.score_laws import normal_scores


@kernel
def law(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float]:
    memory, shared = state.memory, state.shared
    variance = aff_unit_free.variance(memory, shared, arm) / aff_unit_free.idle_size(memory, state, arm, step)
    return aff_unit_free.mean(memory, shared, arm), math.sqrt(variance)


@dataclass(frozen=True, kw_only=True)
class AffNormalTS(UnitFreePolicy):
    r"""Thompson sampling for rewards in any unit that forgets old rewards faster when an arm seems to change. Use it
    for rewards without bounds: amounts, times, temperatures.

    The draws are from a normal posterior whose data are discounted. All rewards times a constant give the same choices.

    Parameters
    ----------
    step_size
        The step size of the forgetting factor, in [0, 1]; it is divided by the estimated variance, so it has no unit.
    floor
        The minimum forgetting factor, in [0, 1].
    burn_in
        The number of plays of each arm before the policy decides, so that a variance can be estimated.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-normal-ts", step_size=0.001).label
    'aff-normal-ts(step_size=0.001)'

    Notes
    -----
    The score of an arm is a draw from a normal distribution, where s^2 is its adaptive variance:

    .. math:: N\left( \frac{m}{w}, \; \frac{s^2}{n} \right), \quad n = \max\left( 1, \; \lambda^{\mathrm{idle} / K}
        \frac{w^2}{k} \right)

    Before the rewards of an arm differ, s^2 is the variance of the rewards of all arms, and the forgetting factor does
    not change.

    Cost per step: O(K).

    References
    ----------
    The estimator of Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 2, whose
    recursions hold for all rewards, with the step size eta_4 of section 4.3.1; the posterior is our own.
    """

    name = "aff-normal-ts"
    slots = aff_unit_free.SLOTS
    functions = PolicyFunctions(start=aff_shared.start, learn=aff_unit_free.learn, params=Params, **normal_scores(law))
