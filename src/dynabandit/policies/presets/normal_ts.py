"""Normal-TS: Thompson sampling for normal rewards with unknown mean and variance."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.estimators.adaptive_forgetting import is_variance
from dynabandit.estimators.base import Belief
from dynabandit.policies.base import Policy, PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.memories import pooled_moments
from dynabandit.policies.rules.score_laws import student_scores
from dynabandit.validation import NORMAL

SLOTS = ("plays", "mean", "squares")
PLAYS, MEAN, SQUARES = range(3)  # SQUARES: the sum of the squared deviations from the mean


@kernel
def start(state: PolicyState, arm: int, params: Any) -> None:
    state.memory[:, arm] = 0.0


@kernel
def law(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float, float]:
    plays, mean, squares = state.memory[PLAYS, arm], state.memory[MEAN, arm], state.memory[SQUARES, arm]
    freedom = plays - 2.0
    if freedom > 0.0 and is_variance(squares, mean):
        return mean, math.sqrt(squares / (plays * freedom)), freedom
    common = pooled_moments.variance(state.shared)
    if plays > 0.0:
        return mean, math.sqrt(common / plays), math.inf
    return state.shared[pooled_moments.MEAN], math.sqrt(common), math.inf


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Any) -> None:
    memory, value = state.memory, reward.value
    memory[PLAYS, arm] += 1.0
    deviation = value - memory[MEAN, arm]
    memory[MEAN, arm] += deviation / memory[PLAYS, arm]
    memory[SQUARES, arm] += deviation * (value - memory[MEAN, arm])
    pooled_moments.add(state.shared, value)


@dataclass(frozen=True, kw_only=True)
class NormalTS(Policy):
    r"""Thompson sampling for rewards in any unit. A baseline for constant means: it never forgets, so it reacts slowly
    to changes.

    The mean of each arm is drawn from its Student posterior, for normal rewards whose means and variances are constant;
    `AffNormalTS` forgets. All rewards times a constant give the same choices.

    Parameters
    ----------
    burn_in
        The number of plays of each arm before the policy decides; 4 as in the reference.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("normal-ts").rewards.check(-12.5)
    -12.5

    Notes
    -----
    With a uniform prior of the mean and of the standard deviation, the posterior of the mean of n rewards x is

    .. math:: \bar{x} + \sqrt{\frac{\sum (x - \bar{x})^2}{n (n - 2)}} \; t_{n - 2}

    Before an arm has three different rewards, its score is a draw from the normal distribution with its mean and the
    variance of the rewards of all arms, divided by n; an arm without rewards takes their mean too.

    Cost per step: O(K).

    References
    ----------
    Honda & Takemura (2014), Optimality of Thompson sampling for Gaussian bandits depends on priors. AISTATS; the prior
    with alpha = -1/2.
    """

    name = "normal-ts"
    rewards = NORMAL
    slots = SLOTS
    functions = PolicyFunctions(start=start, learn=learn, **student_scores(law))

    burn_in: int = 4

    def shared_size(self) -> int:
        return pooled_moments.SIZE

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        plays, mean, squares = column.tolist()
        if plays == 0.0:
            return Belief(math.nan, 0.0, 1.0, 0.0)
        return Belief(mean, squares / (plays - 1.0) if plays > 1.0 else 0.0, 1.0, plays)
