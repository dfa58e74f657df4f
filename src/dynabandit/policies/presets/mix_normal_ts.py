"""MIX-Normal-TS: Thompson sampling from a mixture of memories, for rewards in any unit."""

import math
from dataclasses import dataclass

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.estimators.base import Belief
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.memories import mix_weights
from dynabandit.policies.memories.mix_weights import (
    ALL_COUNT,
    ALL_TOTAL,
    COUNT,
    MEAN,
    MEMORIES,
    SHARED_SIZE,
    SIZE,
    MixPolicy,
    Params,
)  # fmt: skip
from dynabandit.policies.rules.score_laws import normal_scores
from dynabandit.validation import NORMAL

SLOTS = (*mix_weights.SLOTS, "errors", "error_count")
ERRORS, ERROR_COUNT = SLOTS.index("errors"), SLOTS.index("error_count")  # discounted sum of squares, and number
# In `shared`: the first reward, from which all others are measured, and the prediction errors of all arms
FIRST, ALL_ERRORS, ALL_ERROR_COUNT = range(SHARED_SIZE, SHARED_SIZE + 3)
NORMAL_SHARED_SIZE = SHARED_SIZE + 3
KEPT = 0.999  # of earlier errors, with each new one
PRIOR_ERRORS = 2.0  # how many errors of an arm those of all arms count as
WEIGHT_OF_FIRST = 0.01  # of the error of an arm's first reward, which includes the difference between the arms' means
LEAST_EXPONENT = -60.0  # of a likelihood, so that a reward that no memory expects does not make all weights 0


@kernel
def mean_of_all(state: PolicyState, number: int, params: Params) -> float:
    return state.shared[ALL_TOTAL] / max(state.shared[ALL_COUNT], 1.0)


@kernel
def noise(state: PolicyState, arm: int) -> float:
    """Return the variance of the rewards of an arm around their mean; 0 if all rewards are equal."""
    memory, shared = state.memory, state.shared
    of_all = shared[ALL_ERRORS] / shared[ALL_ERROR_COUNT] if shared[ALL_ERROR_COUNT] > 0.0 else 0.0
    return (memory[ERRORS, arm] + PRIOR_ERRORS * of_all) / (memory[ERROR_COUNT, arm] + PRIOR_ERRORS)


@kernel
def likelihood(value: float, mean: float, size: float, noise: float) -> float:
    if noise == 0.0:
        return 1.0
    spread = 1.0 + 1.0 / size
    return math.exp(max(-0.5 * (value - mean) * (value - mean) / (noise * spread), LEAST_EXPONENT)) / math.sqrt(spread)


@kernel
def variance(mean: float, noise: float) -> float:
    return noise if noise > 0.0 else 1.0  # without noise all means are equal, and only sizes count


learn_mixture = mix_weights.make_learn(likelihood, variance, mean_of_all, noise)


@kernel
def learn_value(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    """Learn a reward that is measured from the first one."""
    memory, shared = state.memory, state.shared
    if memory[COUNT + MEMORIES - 1, arm] > 0.0:
        size = memory[SIZE, arm]
        error = (reward.value - memory[MEAN, arm]) * (reward.value - memory[MEAN, arm]) * size / (size + 1.0)
        memory[ERRORS, arm] = KEPT * memory[ERRORS, arm] + error
        memory[ERROR_COUNT, arm] = KEPT * memory[ERROR_COUNT, arm] + 1.0
        shared[ALL_ERRORS] = KEPT * shared[ALL_ERRORS] + error
        shared[ALL_ERROR_COUNT] = KEPT * shared[ALL_ERROR_COUNT] + 1.0
    elif shared[ALL_COUNT] > 0.0:
        difference = reward.value - mean_of_all(state, 0, params)
        shared[ALL_ERRORS] += WEIGHT_OF_FIRST * difference * difference
        shared[ALL_ERROR_COUNT] += WEIGHT_OF_FIRST
    learn_mixture(state, arm, reward, params)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    if state.shared[ALL_COUNT] == 0.0:
        state.shared[FIRST] = reward.value
    value = reward.value - state.shared[FIRST]
    learn_value(state, arm, Reward(value, reward.decided_at, reward.arrived_at, reward.features), params)


@kernel
def law(state: PolicyState, arm: int, step: Step, params: Params) -> tuple[float, float]:
    mean, size = mix_weights.estimate(state, arm, step, params)
    return mean, math.sqrt(noise(state, arm) / size)


@dataclass(frozen=True, kw_only=True)
class MixNormalTS(MixPolicy):
    r"""The recommended policy for rewards in any unit, such as amounts, times or temperatures. Thompson sampling with
    memories of several lengths for each arm, whose weights are learned; it needs no tuning.

    `MixTS` for rewards that are not in [0, 1]. All rewards times a positive constant, or plus a constant, give the same
    choices.

    Parameters
    ----------
    strength
        The number of rewards that the prior of each arm counts as, in [1e-9, 1e6]. Its mean is that of the latest
        rewards of all arms.
    share
        The share of its weights that an arm takes over from all arms after each of its rewards, in [0, 1].
    shared_share
        The share of the weights of all arms that is spread evenly after each reward, in [0, 1].
    sharpness
        The factor by which the draws are narrower than the posterior, as if there were so many times the rewards.
    surplus
        How much narrower the draws of an arm become with its share of the remembered rewards of all arms, at least 0.
    idle
        How much the memories of an idle arm forget, at least 0: in K steps as much as with this number of rewards.
    burn_in
        The number of plays of each arm before the policy decides, so that a variance can be estimated.

    Examples
    --------
    >>> import dynabandit as db
    >>> bandit = db.Bandit("mix-normal-ts", arms=["old", "new"], seed=1)
    >>> for reward in [20.5, 19.5] * 20 + [-3.5, -4.5] * 8:
    ...     bandit.reward("old", reward)
    >>> bandit.arms["old"].mean < 0
    True

    Notes
    -----
    Memories, weights and the numbers m, n, r and x of an arm are those of `MixTS`, with three differences. Rewards are
    measured from the first one. The prior mean is :math:`\mu = \sum_j 0.999^j y_j / \sum_j 0.999^j`. The law of rewards
    is normal, with the variance v of the noise: the factor of a weight for a reward y, and the size of the mixture, are

    .. math:: \frac{1}{\sqrt{1 + 1 / n_i}} \exp\left( - \frac{(y - q_i)^2}{2 v (1 + 1 / n_i)} \right), \quad n =
        \frac{v}{\sum_i w_i (q_i^2 + v / n_i) - m^2}, \quad n_i = N_i + \nu

    and the exponent is at least -60. The score is a draw from N(m, v / x), or m if it is larger.

    The noise is estimated from the errors :math:`e^2 = (y - m)^2 n / (n + 1)` of the arm's predictions, discounted by
    0.999 per reward, together with the mean error of all arms, which counts as two of them. The first reward of an arm
    has no prediction of its own: its error is :math:`(y - \mu)^2` and counts only for all arms, with the weight 0.01.

    Cost per step: O(K), and 8 memories of the arm that was played.

    References
    ----------
    Our own, see `MixTS`.
    """

    name = "mix-normal-ts"
    rewards = NORMAL
    slots = SLOTS
    functions = PolicyFunctions(
        start=mix_weights.start, learn=learn, common=mean_of_all, params=Params,
        **normal_scores(law, optimistic=True),
    )  # fmt: skip

    burn_in: int = 2
    strength: float = 0.5

    def shared_size(self) -> int:
        return NORMAL_SHARED_SIZE

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        if column[COUNT + MEMORIES - 1] == 0.0:
            return Belief(math.nan, 0.0, 1.0, 0.0)
        state = PolicyState(column[:, np.newaxis], shared, np.zeros(1))
        mean, size = float(shared[FIRST] + column[MEAN]), float(column[SIZE])
        return Belief(mean, float(noise(state, 0)), self.forgetting(column), size)
