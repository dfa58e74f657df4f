"""AFF-Normal-UCB: the adaptive mean plus a bonus in units of the adaptive standard deviation."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.estimators.adaptive_forgetting import UnitFreeParams
from dynabandit.policies.base import PolicyFunctions, PolicyState, Step
from dynabandit.policies.memories import aff_shared, aff_unit_free
from dynabandit.policies.memories.aff_unit_free import UnitFreePolicy
from dynabandit.policies.pending_plays import pending_plays
from dynabandit.validation import check_field, number


class Params(NamedTuple):
    estimator: UnitFreeParams
    level: float


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    memory, shared = state.memory, state.shared
    size = aff_unit_free.idle_size(memory, state, arm, step) + pending_plays(state, arm)
    variance = aff_unit_free.variance(memory, shared, arm) / size
    return aff_unit_free.mean(memory, shared, arm) + math.sqrt(params.level * variance)


@dataclass(frozen=True, kw_only=True)
class AffNormalUCB(UnitFreePolicy):
    r"""UCB for rewards in any unit that forgets old rewards faster when an arm seems to change. Use it for rewards
    without bounds: amounts, times, temperatures.

    The score is the adaptive mean plus a multiple of its standard error. The bonus grows while an arm is idle, up to
    that of a single reward. All rewards times a constant give the same choices.

    Parameters
    ----------
    step_size
        The step size of the forgetting factor, in [0, 1]; it is divided by the estimated variance, so it has no unit.
    floor
        The minimum forgetting factor, in [0, 1].
    confidence
        The probability that a mean exceeds its bound, in (0, 1]; 0.05 as in the appendix of the paper.
    burn_in
        The number of plays of each arm before the policy decides, so that a variance can be estimated.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-normal-ucb", step_size=0.01).label
    'aff-normal-ucb(step_size=0.01)'

    Notes
    -----
    The score of an arm, where s^2 is its adaptive variance; for rewards in [0, 1], whose variance is at most 1/4, it is
    at most that of `AffUCB2Growing`:

    .. math:: \frac{m}{w} + \sqrt{\frac{- 2 \log(\mathrm{confidence}) \, s^2}{n}}, \quad n = \max\left( 1, \;
        \lambda^{\mathrm{idle} / K} \frac{w^2}{k} \right)

    Before the rewards of an arm differ, s^2 is the variance of the rewards of all arms, and the forgetting factor does
    not change. Plays whose rewards are pending count in n.

    Cost per step: O(K).

    References
    ----------
    The estimator of Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 2, whose
    recursions hold for all rewards, with the step size eta_4 of section 4.3.1; the bound is that of a normal mean.
    """

    name = "aff-normal-ucb"
    slots = aff_unit_free.SLOTS
    functions = PolicyFunctions(start=aff_shared.start, score=score, learn=aff_unit_free.learn, params=Params)

    confidence: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "confidence", number, 0.0, 1.0, open_low=True)

    def params(self, arms: int) -> Params:
        return Params(self._estimator(), -2.0 * math.log(self.confidence))
