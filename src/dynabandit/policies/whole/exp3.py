"""Exp3.S and Rexp3: exponential weights that share a part of their sum at each step, or restart in batches."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_LIVE_STEP
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.horizons.tuning_rules import HorizonTuned
from dynabandit.policies.rules.score_laws import weighted_scores
from dynabandit.policies.whole import sample_mean_policy
from dynabandit.policies.whole.sample_mean_policy import SampleMeanPolicy
from dynabandit.validation import LARGEST_FACTOR, check_field, integer, number

# Weights are stored as shares of their sum: the rule is the same for all multiples of the weights, and each share stays
# above about e alpha / K, so that nothing overflows or underflows in a long run.
SLOTS = (*sample_mean_policy.SLOTS, "share")
SHARE = SLOTS.index("share")
BATCH_SLOTS = (*sample_mean_policy.SLOTS, "log_weight")
LOG_WEIGHT = BATCH_SLOTS.index("log_weight")
# shared: the rewards of the current batch, and the logarithm of the sum of the weights, so that a step changes one arm
SEEN, LOG_SUM = range(2)
LEAST_VARIATION = 1e-9  # with less, a batch would have more steps than a bandit


class Params(NamedTuple):
    exploration: float
    sharing: float
    arms: float


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    sample_mean_policy.start(state, arm, params)
    state.memory[SHARE, arm] = 1.0 / params.arms


@kernel
def probability(share: float, params: Any) -> float:
    """Return p_i of figure 4."""
    return (1.0 - params.exploration) * share + params.exploration / params.arms


@kernel
def weight(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    return probability(state.memory[SHARE, arm], params)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    sample_mean_policy.observe(state, arm, reward.value)
    memory = state.memory
    arms = memory.shape[1]
    estimate = reward.value / probability(memory[SHARE, arm], params)
    total = 0.0
    for other in range(arms):
        total += memory[SHARE, other]
    gift = math.e * params.sharing / arms * total
    memory[SHARE, arm] *= math.exp(params.exploration * estimate / params.arms)
    total = 0.0
    for other in range(arms):
        memory[SHARE, other] += gift
        total += memory[SHARE, other]
    for other in range(arms):
        memory[SHARE, other] /= total


@dataclass(frozen=True, kw_only=True)
class Exp3S(HorizonTuned, SampleMeanPolicy):
    r"""Exp3.S: play arms at random, more often those with good rewards, but every arm now and then. Use it only if an
    adversary may choose the rewards; elsewhere it has much regret.

    An arm is drawn from exponential weights, which get a small share of their sum at each step. The policy has
    guarantees for rewards chosen by an adversary, relative to the best sequence of arms with few changes. A reward is
    weighted by the probability of its arm when it is learned: late rewards are weighted by later probabilities than
    that of their decision. In a `Bandit`, paused or removed arms keep their share of the weights, so the rewards of
    other arms get too much weight. If arms are added or removed, use another policy.

    Parameters
    ----------
    exploration
        The paper's gamma, in (0, 1]: the probability of a uniformly random decision.
    sharing
        The paper's alpha, in (0, 1]: the share of the sum of all weights that is added to each weight.
    changes
        Y, the expected number of changes of the best arm. By default a simulation counts them on its path, which is not
        possible in practice; `changes=1` does not use the path. Parameters above that are not given follow from the
        paper's corollaries: alpha = 1 / T and gamma = sqrt(K ((Y + 1) log(K T) + e) / ((e - 1) T)), or gamma = sqrt(K
        log(K T) / T) if Y is 1.

    Examples
    --------
    >>> import dynabandit as db
    >>> round(db.policy("exp3-s", changes=1, horizon=10_000).params(arms=2).exploration, 4)
    0.0445

    Notes
    -----
    With weights v, the probability of each arm and the update after a reward y of the arm that was played are

    .. math:: p_a = (1 - \gamma) \frac{v_a}{\sum_b v_b} + \frac{\gamma}{K}

    .. math:: v_a \leftarrow v_a \exp\left( \frac{\gamma}{K} \frac{y}{p_a} 1[\text{played}] \right) + \frac{e
        \alpha}{K} \sum_b v_b

    Cost per step: O(K).

    References
    ----------
    Auer, Cesa-Bianchi, Freund & Schapire (2002), The nonstochastic multiarmed bandit problem. SIAM J. Comput. 32.
    """

    name = "exp3-s"
    slots = SLOTS
    functions = PolicyFunctions(start=start, learn=learn, params=Params, **weighted_scores(weight))

    burn_in: int = 0
    exploration: float | None = None
    sharing: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "exploration", number, 0.0, 1.0, open_low=True, optional=True)
        check_field(self, "sharing", number, 0.0, 1.0, open_low=True, optional=True)

    def _follows_from_changes(self) -> bool:
        return self.exploration is None

    def _follows_from_horizon(self) -> bool:
        return self.exploration is None or self.sharing is None

    def params(self, arms: int) -> Params:
        changes, horizon = self._expected()
        learning = math.log(arms * horizon)
        if self.exploration is not None:
            exploration = self.exploration
        elif changes > 1:  # corollary 8.3, whose hardness counts the segments between changes
            rate = arms * ((changes + 1) * learning + math.e) / ((math.e - 1.0) * horizon)
            exploration = min(1.0, math.sqrt(rate))
        else:  # corollary 8.2, for an unknown hardness
            exploration = min(1.0, math.sqrt(arms * learning / horizon))
        return Params(exploration, 1.0 / horizon if self.sharing is None else self.sharing, float(arms))


class BatchParams(NamedTuple):
    exploration: float
    batch: float
    arms: float


@kernel
def start_batch(state: PolicyState, arm: int, params: BatchParams) -> None:
    sample_mean_policy.start(state, arm, params)
    if state.shared[SEEN] == 0.0:
        state.shared[LOG_SUM] = math.log(params.arms)


@kernel
def log_sum(state: PolicyState, number: int, params: BatchParams) -> float:
    return state.shared[LOG_SUM]


@kernel
def weight_in_batch(state: PolicyState, arm: int, step: Step, params: BatchParams) -> float:
    # Step 2a of the algorithm
    return probability(math.exp(state.memory[LOG_WEIGHT, arm] - step.common), params)


@kernel
def learn_in_batch(state: PolicyState, arm: int, reward: Reward, params: BatchParams) -> None:
    sample_mean_policy.observe(state, arm, reward.value)
    memory, shared = state.memory, state.shared
    share = math.exp(memory[LOG_WEIGHT, arm] - shared[LOG_SUM])
    estimate = reward.value / probability(share, params)
    growth = params.exploration * estimate / params.arms
    # log(sum + weight (e^growth - 1)) = log sum + log(1 + share (e^growth - 1))
    shared[LOG_SUM] += math.log1p(share * math.expm1(growth))
    memory[LOG_WEIGHT, arm] += growth
    shared[SEEN] += 1.0
    if shared[SEEN] >= params.batch:
        for other in range(memory.shape[1]):
            memory[LOG_WEIGHT, other] = 0.0
        shared[SEEN] = 0.0
        shared[LOG_SUM] = math.log(float(memory.shape[1]))


@dataclass(frozen=True, kw_only=True)
class Rexp3(HorizonTuned, SampleMeanPolicy):
    r"""Rexp3: play arms at random, more often those with good rewards, and start anew after each batch of rewards. A
    reference of the theory: it has guarantees for means that change little in total, and much regret in practice.

    An arm is drawn from exponential weights, which are reset at the end of each batch. The bound holds for all
    environments whose total variation of means is within a budget, with abrupt or slow changes. A reward is weighted by
    the probability of its arm when it is learned: late rewards are weighted by later probabilities than that of their
    decision. Batches count rewards. If arms of a `Bandit` are added or removed, probabilities are only correct again
    after the batch; use another policy in that case.

    Parameters
    ----------
    exploration
        The paper's gamma, in (0, 1]: the probability of a uniformly random decision; by default sqrt(K log K / ((e - 1)
        batch)), as in the paper.
    batch
        The number of rewards of all arms between two restarts; by default (K log K)^(1/3) (T / V)^(2/3) for T steps and
        a budget V, as in the paper.
    variation
        V, in [1e-9, 1e12]: the sum over steps of the largest change of a mean. The default is `changes`, or 1, such
        as one change from 0 to 1 or ten changes by 0.1.
    changes
        Used as V if `variation` is not given: this many changes, each by at most 1.

    Examples
    --------
    >>> import dynabandit as db
    >>> [db.policy("rexp3", variation=variation, horizon=10_000).params(arms=2).batch for variation in (1, 8)]
    [518.0, 130.0]

    Notes
    -----
    With weights v, which are 1 at the start of a batch:

    .. math:: p_a = (1 - \gamma) \frac{v_a}{\sum_b v_b} + \frac{\gamma}{K}

    .. math:: v_a \leftarrow v_a \exp\left( \frac{\gamma}{K} \frac{y}{p_a} 1[\text{played}] \right)

    Cost per step: O(K).

    References
    ----------
    Besbes, Gur & Zeevi (2014), Stochastic multi-armed-bandit problem with non-stationary rewards. NIPS.
    """

    name = "rexp3"
    slots = BATCH_SLOTS
    functions = PolicyFunctions(
        start=start_batch, learn=learn_in_batch, common=log_sum, params=BatchParams, **weighted_scores(weight_in_batch)
    )
    needs_double = True

    burn_in: int = 0
    exploration: float | None = None
    batch: int | None = None
    variation: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "exploration", number, 0.0, 1.0, open_low=True, optional=True)
        check_field(self, "batch", integer, 1, LARGEST_LIVE_STEP, optional=True)
        check_field(self, "variation", number, LEAST_VARIATION, LARGEST_FACTOR, optional=True)

    def _follows_from_changes(self) -> bool:
        return False  # V cannot be counted as the changes of the best arm: means may drift without one, or together

    def _follows_from_horizon(self) -> bool:
        return self.batch is None

    def params(self, arms: int) -> BatchParams:
        changes, horizon = self._expected()
        learning = arms * math.log(max(arms, 2))
        batch = self.batch
        if batch is None:
            budget = float(changes) if self.variation is None else self.variation
            batch = math.ceil(learning ** (1.0 / 3.0) * (horizon / budget) ** (2.0 / 3.0))
        exploration = self.exploration
        if exploration is None:
            exploration = min(1.0, math.sqrt(learning / ((math.e - 1.0) * batch)))
        return BatchParams(exploration, float(batch), float(arms))

    def shared_size(self) -> int:
        return 2
