"""AFF-KL-UCB: the Kullback-Leibler index on the adaptive mean and its effective size."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from dynabandit.core.bernoulli_kl import negentropy, upper_bound
from dynabandit.core.compilation import kernel
from dynabandit.estimators.adaptive_forgetting import AdaptiveParams
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.memories import aff_shared
from dynabandit.policies.memories.aff_shared import AdaptivePolicy
from dynabandit.policies.pending_plays import pending_plays
from dynabandit.policies.rules import kl_index
from dynabandit.validation import check_field, number

SLOTS = (*aff_shared.SLOTS, "size", "negentropy", "log_forgetting")
MEAN, SIZE = SLOTS.index("mean"), SLOTS.index("size")
NEGENTROPY, LOG_FORGETTING = SLOTS.index("negentropy"), SLOTS.index("log_forgetting")


class Params(NamedTuple):
    estimator: AdaptiveParams
    level: float


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    memory, pending = state.memory, pending_plays(state, arm)
    if memory[SIZE, arm] == 0.0 and pending == 0:
        return math.inf
    # w~^2 / k~ = lambda^(idle/|A|) w^2 / k with k discounted as w is, but never less than one observation
    size = memory[SIZE, arm] * aff_shared.idle_discount(memory[LOG_FORGETTING, arm], state, arm, step)
    if pending > 0:
        mean = aff_shared.pending_mean(state, arm, pending)
        return kl_index.pending_bound(mean, pending, params.level / (size + pending))
    return upper_bound(memory[MEAN, arm], memory[NEGENTROPY, arm], params.level / max(size, 1.0))


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    estimate = aff_shared.observe(state, arm, reward.value, params)
    state.memory[SIZE, arm] = estimate.w * estimate.w / estimate.k
    state.memory[NEGENTROPY, arm] = negentropy(estimate.mean)
    state.memory[LOG_FORGETTING, arm] = aff_shared.log_forgetting(estimate)


@dataclass(frozen=True, kw_only=True)
class AffKLUCB(AdaptivePolicy):
    r"""UCB with a tight bound that forgets old rewards faster when an arm seems to change. Use it with 50 arms or more;
    after a long constant period it may never notice that the worst arm has become the best.

    It is `AffUCB2Growing` with a Kullback-Leibler bound in place of the Hoeffding bound: the largest q with n kl(mean,
    q) <= -log(confidence), where n is the effective size w^2 / k, which decreases towards 1 while an arm is idle.

    Parameters
    ----------
    step_size, floor, loss
        Parameters of the adaptive estimator with the sums m, w and k, see
        `dynabandit.estimators.AdaptiveForgetting`.
    confidence
        The probability that a mean exceeds its bound, in (0, 1]; 0.05 as in the appendix of the paper.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-kl-ucb", step_size=0.01).label
    'aff-kl-ucb(step_size=0.01)'

    Notes
    -----
    The score of an arm, with an effective size n that decreases while the arm is idle:

    .. math:: \max \left\{ q : n \, \mathrm{kl}\left( \frac{m}{w}, q \right) \leq - \log \mathrm{confidence} \right\},
        \quad n = \max\left( 1, \; \lambda^{\mathrm{idle} / K} \frac{w^2}{k} \right)

    Cost per step: O(K), with one root finding per arm.

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 3.2.2, with the index of Garivier
    & Cappe (2011).
    """

    name = "aff-kl-ucb"
    slots = SLOTS
    functions = PolicyFunctions(start=aff_shared.start, score=score, learn=learn, params=Params)

    confidence: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "confidence", number, 0.0, 1.0, open_low=True)

    def params(self, arms: int) -> Params:
        return Params(self._estimator(), -math.log(self.confidence))
