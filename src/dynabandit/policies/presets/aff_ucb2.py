"""AFF-UCB2 as printed in the paper, and a variant with a bonus that grows while an arm is idle."""

import math
from dataclasses import dataclass

from dynabandit.core.compilation import kernel
from dynabandit.core.special_functions import exp_positive
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step, idle_steps
from dynabandit.policies.memories import aff_shared
from dynabandit.policies.memories.aff_shared import AdaptivePolicy, AffParams
from dynabandit.policies.pending_plays import pending_plays

PRINTED_SLOTS = (*aff_shared.SLOTS, "index")
GROWING_SLOTS = (*aff_shared.SLOTS, "index", "bonus", "log_forgetting")
INDEX = GROWING_SLOTS.index("index")
BONUS = GROWING_SLOTS.index("bonus")
LOG_FORGETTING = GROWING_SLOTS.index("log_forgetting")
LARGEST_BONUS = math.sqrt(aff_shared.CONFIDENCE)  # the bonus of one observation: w^2 / k = 1
LARGEST_EXPONENT = 50.0  # above this any bonus is at its cap, and exp would soon overflow


@kernel
def start(state: PolicyState, arm: int, params: AffParams) -> None:
    aff_shared.start(state, arm, params)
    state.memory[INDEX, arm] = math.inf


@kernel
def printed_score(state: PolicyState, arm: int, step: Step, params: AffParams) -> float:
    pending = pending_plays(state, arm)
    if pending > 0:
        return aff_shared.pending_mean(state, arm, pending) + aff_shared.pending_hoeffding(state, arm, 1.0, pending)
    return state.memory[INDEX, arm]


@kernel
def printed_learn(state: PolicyState, arm: int, reward: Reward, params: AffParams) -> None:
    # Equations (16) to (19): w~^2 / k~ = (lambda^n w)^2 / (lambda^2n k) = w^2 / k. The discount cancels, so the
    # bonus of an idle arm is constant and the whole index can be computed here, once.
    estimate = aff_shared.observe(state, arm, reward.value, params)
    state.memory[INDEX, arm] = estimate.mean + aff_shared.hoeffding(estimate)


@kernel
def growing_score(state: PolicyState, arm: int, step: Step, params: AffParams) -> float:
    # With k~ discounted as w~ is, w~^2 / k~ = lambda^(idle/|A|) w^2 / k
    # and 0.5 / |A| is one division for all arms
    memory, idle, pending = state.memory, idle_steps(state, arm, step), pending_plays(state, arm)
    if pending > 0:
        factor = aff_shared.discount(memory[LOG_FORGETTING, arm], idle, step.arms)
        return aff_shared.pending_mean(state, arm, pending) + aff_shared.pending_hoeffding(state, arm, factor, pending)
    exponent = min(memory[LOG_FORGETTING, arm] * float(idle) * (-0.5 / float(step.arms)), LARGEST_EXPONENT)
    return memory[INDEX, arm] + min(memory[BONUS, arm] * exp_positive(exponent), LARGEST_BONUS)


@kernel
def growing_learn(state: PolicyState, arm: int, reward: Reward, params: AffParams) -> None:
    estimate = aff_shared.observe(state, arm, reward.value, params)
    state.memory[INDEX, arm] = estimate.mean
    state.memory[BONUS, arm] = aff_shared.hoeffding(estimate)
    state.memory[LOG_FORGETTING, arm] = aff_shared.log_forgetting(estimate)


@dataclass(frozen=True, kw_only=True)
class AffUCB2(AdaptivePolicy):
    r"""UCB that forgets old rewards faster when an arm seems to change, with little exploration. Use it with 50 arms or
    more; with few arms it rarely tries an idle arm again.

    This is UCB on the adaptive mean with the effective size w^2 / k, as printed in the paper, which discounts w by
    lambda and k by lambda^2 while an arm is idle, so that its bonus grows. The two discounts cancel, and the bonus
    stays constant. `AffUCB2Growing` implements what the text of the paper describes.

    Parameters
    ----------
    step_size, floor, loss
        Parameters of the adaptive estimator with the sums m, w and k, see
        `dynabandit.estimators.AdaptiveForgetting`.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-ucb2", step_size="variance-scaled").label
    'aff-ucb2(step_size=variance-scaled)'

    Notes
    -----
    The score of an arm, where the discounts of w and k for idle steps cancel:

    .. math:: \frac{m}{w} + \sqrt{\frac{- \log 0.05}{2 w^2 / k}}

    Cost per step: O(log K), because a score changes only when its arm is played.

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, algorithm 3.
    """

    name = "aff-ucb2"
    slots = PRINTED_SLOTS
    functions = PolicyFunctions(
        start=start, score=printed_score, learn=printed_learn, static_index=True, params=AffParams
    )


@dataclass(frozen=True, kw_only=True)
class AffUCB2Growing(AdaptivePolicy):
    r"""AFF-UCB2 with a bonus that grows while an arm is idle, so that idle arms are tried again. Use it in place of
    AFF-UCB2 with few arms.

    While an arm is idle, k is discounted by lambda, as w is. The bonus grows like lambda^(-idle / 2K), up to the bonus
    of a single observation.

    Parameters
    ----------
    step_size, floor, loss
        Parameters of the adaptive estimator with the sums m, w and k, see
        `dynabandit.estimators.AdaptiveForgetting`.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-ucb2-growing").name
    'aff-ucb2-growing'

    Notes
    -----
    The score of an arm, with a bonus that never exceeds that of a single observation:

    .. math:: \frac{m}{w} + \lambda^{- \mathrm{idle} / (2 K)} \sqrt{\frac{- \log 0.05}{2 w^2 / k}}

    Cost per step: O(K).

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 3.2.2, and ``docs/paper-notes.md``
    for the correction.
    """

    name = "aff-ucb2-growing"
    slots = GROWING_SLOTS
    functions = PolicyFunctions(start=start, score=growing_score, learn=growing_learn, params=AffParams)
