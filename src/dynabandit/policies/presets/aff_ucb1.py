"""AFF-UCB1: the adaptive mean with a bonus that grows while an arm is idle."""

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.estimators.adaptive_forgetting import AdaptiveParams
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step, idle_steps
from dynabandit.policies.memories import aff_shared
from dynabandit.policies.memories.aff_shared import AdaptivePolicy
from dynabandit.policies.pending_plays import pending_plays
from dynabandit.validation import check_field, number

SLOTS = (*aff_shared.SLOTS, "index", "fresh", "spread")
W, VARIANCE, INDEX = (SLOTS.index(name) for name in ("w", "variance", "index"))
FRESH = SLOTS.index("fresh")  # the bonus right after a play
SPREAD = SLOTS.index("spread")  # sqrt(s^2 / w), the bonus of an idle arm before it grows
LARGEST_TABLE = 1 << 16


class Params(NamedTuple):
    estimator: AdaptiveParams
    variance_floor: float


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    aff_shared.start(state, arm, params)
    state.memory[INDEX, arm] = math.inf


@functools.lru_cache(maxsize=16)
def table(arms: int, horizon: int) -> np.ndarray:
    """Return idle^(1/|A|) for all but very long idle times: a power per arm and step would take most of the time."""
    return np.array([growth(idle, arms) for idle in range(min(horizon, LARGEST_TABLE))])


@kernel
def growth(idle: int, arms: int) -> float:
    return float(idle) ** (1.0 / float(arms))


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    # Equation (15). Written so that the compiler does not compute the power of the first line for every arm
    memory, idle, pending = state.memory, idle_steps(state, arm, step), pending_plays(state, arm)
    if pending > 0:
        mean = aff_shared.pending_mean(state, arm, pending)
        if idle == 0:
            return mean + aff_shared.pending_hoeffding(state, arm, 1.0, pending)
        variance = max(memory[VARIANCE, arm], params.variance_floor)
        return mean + math.sqrt(variance / (memory[W, arm] + pending)) * growth(idle, step.arms)
    if idle >= step.table.size:
        return memory[INDEX, arm] + memory[SPREAD, arm] * growth(idle, step.arms)
    return memory[INDEX, arm] + (memory[FRESH, arm] if idle == 0 else memory[SPREAD, arm] * step.table[idle])


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    estimate = aff_shared.observe(state, arm, reward.value, params)
    state.memory[INDEX, arm] = estimate.mean
    state.memory[FRESH, arm] = aff_shared.hoeffding(estimate)
    state.memory[SPREAD, arm] = math.sqrt(max(estimate.variance, params.variance_floor) / estimate.w)


@dataclass(frozen=True, kw_only=True)
class AffUCB1(AdaptivePolicy):
    r"""UCB that forgets old rewards faster when an arm seems to change, with a bonus that grows while an arm is idle.
    Use it with few arms; it needs no tuning.

    The bonus of an idle arm grows like idle^(1/K). As printed in the paper, it is proportional to the estimated
    standard deviation of the arm. If all burn-in rewards of an arm were equal, the estimate is 0 and the arm gets no
    bonus; `variance_floor` avoids this.

    Parameters
    ----------
    step_size, floor, loss
        Parameters of the adaptive estimator with the sums m, w and k, see
        `dynabandit.estimators.AdaptiveForgetting`.
    variance_floor
        The minimum variance in the bonus of an idle arm, in [0, 1]; 0 is the paper's formula.
    burn_in
        The number of plays of each arm before the policy decides, so that a variance can be estimated; 10 in the paper.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-ucb1").burn_in
    10

    Notes
    -----
    The score of an arm, where s^2 is its adaptive variance:

    .. math:: \frac{m}{w} + \sqrt{\frac{- \log 0.05}{2 w^2 / k}} \quad \text{if it was just played}

    .. math:: \frac{m}{w} + \sqrt{\frac{s^2}{w}} \; \mathrm{idle}^{1 / K} \quad \text{else}

    Cost per step: O(K).

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, algorithm 2.
    """

    name = "aff-ucb1"
    slots = SLOTS
    functions = PolicyFunctions(start=start, score=score, learn=learn, table=table, params=Params)

    burn_in: int = 10
    variance_floor: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "variance_floor", number, 0.0, 1.0)

    def params(self, arms: int) -> Params:
        return Params(self._estimator(), self.variance_floor)
