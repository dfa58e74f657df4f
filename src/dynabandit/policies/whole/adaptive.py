"""AFF-d-Greedy and AFF-UCB1: policies of the paper that read the factor and the variance of the estimator itself."""

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.docstrings import descriptions_of
from dynabandit.policies.base import Policy, PolicyFunctions, PolicyState, Reward, Step, idle_steps
from dynabandit.policies.belief import Belief
from dynabandit.policies.memories.adaptive import Adaptive, AdaptiveParams, load
from dynabandit.policies.part import Setting
from dynabandit.policies.pending_plays import expected_mean, pending_plays
from dynabandit.policies.rules import hoeffding
from dynabandit.validation import check_field, number, set_fields

KERNELS = Adaptive.kernels
start_memory, learn_memory, estimate_of = KERNELS.start, KERNELS.learn, KERNELS.estimate
# The rows that AFF-d-Greedy and AFF-UCB1 keep after those of the memory
MEMORY_SLOTS = KERNELS.slots
W, VARIANCE, CHANGE = (MEMORY_SLOTS.index(name) for name in ("w", "variance", "change"))
INDEX = len(MEMORY_SLOTS)  # the mean, infinite before the first reward
FRESH = INDEX + 1  # the bonus right after a play
SPREAD = INDEX + 2  # sqrt(s^2 / w), the bonus of an idle arm before it grows
LIMIT = INDEX + 1  # d, or the step size that replaces it
CHANGED_AT = INDEX + 2  # the step at which a reward changed lambda by d or more, -1 if none did
AS_STEP_SIZE = -1.0
LARGEST_TABLE = 1 << 16


@dataclass(frozen=True, kw_only=True)
class AdaptivePolicy(Policy):
    """A policy with the memory `Adaptive` whose rule reads numbers that only this memory has."""

    burn_in: int = 1
    step_size: float | str = 0.001
    floor: float = 0.0
    loss: str = "squared-error"

    @classmethod
    def described_parameters(cls) -> dict[str, str]:
        return descriptions_of(Adaptive) | super().described_parameters()

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, **self._memory().parameters)

    def _memory(self) -> Adaptive:
        return Adaptive(step_size=self.step_size, floor=self.floor, loss=self.loss)

    def forgetting(self, column: np.ndarray) -> float:
        return self._memory().forgetting(column, Setting(1))

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        return self._memory().belief(column, shared, Setting(1))


class GreedyParams(NamedTuple):
    memory: AdaptiveParams
    threshold: float


@kernel
def start_greedy(state: PolicyState, arm: int, params: GreedyParams) -> None:
    start_memory(state, arm, params.memory)
    state.memory[INDEX, arm] = math.inf
    threshold = params.threshold
    state.memory[LIMIT, arm] = params.memory.step_size if threshold == AS_STEP_SIZE else threshold
    state.memory[CHANGED_AT, arm] = -1.0


@kernel
def score_greedy(state: PolicyState, arm: int, step: Step, params: GreedyParams) -> float:
    pending = pending_plays(state, arm)
    return state.memory[INDEX, arm] if pending == 0 else expected_mean(state.memory[INDEX, arm], pending)


@kernel
def explore_greedy(state: PolicyState, leader: int, step: Step, params: GreedyParams) -> bool:
    # Algorithm 1 compares lambda at the latest two steps: a reward since the previous decision must have changed it
    return state.memory[CHANGED_AT, leader] == float(step.number - 1)


@kernel
def learn_greedy(state: PolicyState, arm: int, reward: Reward, params: GreedyParams) -> None:
    learn_memory(state, arm, reward, params.memory)
    estimate = load(state.memory, arm)
    state.memory[INDEX, arm] = estimate.mean
    if params.threshold == AS_STEP_SIZE:
        state.memory[LIMIT, arm] = estimate.step
    if estimate.change > 0.0 and estimate.change >= state.memory[LIMIT, arm]:
        state.memory[CHANGED_AT, arm] = reward.arrived_at


@dataclass(frozen=True, kw_only=True)
class AffDGreedy(AdaptivePolicy):
    r"""Play the arm with the best estimate, which forgets old rewards faster when an arm seems to change, and explore
    only then. The simplest of the paper's adaptive policies; the others usually have less regret.

    The estimate is the adaptive mean. A random arm is played if the forgetting factor of the best arm has just changed
    by d or more, which indicates that its mean is changing.

    Parameters
    ----------
    threshold
        The paper's d, in [0, 1]; 0 explores after every change. The default is the step size, as the paper suggests;
        with the variance-scaled step size, the step size of the latest update.

    Notes
    -----
    The arm with the largest m / w is played, or a random arm if a reward that arrived since the previous decision has
    changed the factor of that arm:

    .. math:: | \lambda_{t - 1} - \lambda_{t - 2} | \geq d, \quad \lambda_{t - 1} \neq \lambda_{t - 2}

    Cost per step: O(log K), because a score changes only when its arm is played.

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, algorithm 1.
    """

    name = "aff-d-greedy"
    slots = (*MEMORY_SLOTS, "index", "limit", "changed_at")
    functions = PolicyFunctions(
        start=start_greedy,
        score=score_greedy,
        learn=learn_greedy,
        explore=explore_greedy,
        static_index=True,
        params=GreedyParams,
    )

    threshold: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "threshold", number, 0.0, 1.0, optional=True)

    def restored(self, memory: np.ndarray, last_played: np.ndarray) -> np.ndarray:
        if len(memory) != CHANGED_AT:
            return memory
        # Release 0.1.0 kept no step: a change belonged to the latest play of its arm
        changed = (memory[CHANGE] > 0.0) & (memory[CHANGE] >= memory[LIMIT])
        return np.vstack([memory, np.where(changed, last_played, -1.0)])

    def params(self, arms: int) -> GreedyParams:
        threshold = AS_STEP_SIZE if self.threshold is None else self.threshold
        return GreedyParams(self._memory().params(Setting(arms)), threshold)


class UCB1Params(NamedTuple):
    memory: AdaptiveParams
    rule: hoeffding.Params
    variance_floor: float


@kernel
def start_ucb1(state: PolicyState, arm: int, params: UCB1Params) -> None:
    start_memory(state, arm, params.memory)
    state.memory[INDEX, arm] = math.inf


@functools.lru_cache(maxsize=16)
def table(arms: int, horizon: int) -> np.ndarray:
    """Return idle^(1/|A|) for all but very long idle times: a power per arm and step would take most of the time."""
    return np.array([growth(idle, arms) for idle in range(min(horizon, LARGEST_TABLE))])


@kernel
def growth(idle: int, arms: int) -> float:
    return float(idle) ** (1.0 / float(arms))


@kernel
def score_ucb1(state: PolicyState, arm: int, step: Step, params: UCB1Params) -> float:
    # Equation (15). Written so that the compiler does not compute the power of the first line for every arm
    memory, idle, pending = state.memory, idle_steps(state, arm, step), pending_plays(state, arm)
    if pending > 0:
        mean = expected_mean(memory[INDEX, arm], pending)
        if idle == 0:
            return hoeffding.score(mean, estimate_of(state, arm).size + pending, 0.0, params.rule)
        variance = max(memory[VARIANCE, arm], params.variance_floor)
        return mean + math.sqrt(variance / (memory[W, arm] + pending)) * growth(idle, step.arms)
    if idle >= step.table.size:
        return memory[INDEX, arm] + memory[SPREAD, arm] * growth(idle, step.arms)
    return memory[INDEX, arm] + (memory[FRESH, arm] if idle == 0 else memory[SPREAD, arm] * step.table[idle])


@kernel
def learn_ucb1(state: PolicyState, arm: int, reward: Reward, params: UCB1Params) -> None:
    learn_memory(state, arm, reward, params.memory)
    estimate = load(state.memory, arm)
    state.memory[INDEX, arm] = estimate.mean
    state.memory[FRESH, arm] = hoeffding.bonus(estimate.w, estimate.k, params.rule.level)
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
    variance_floor
        The minimum variance in the bonus of an idle arm, in [0, 1]; 0 is the paper's formula.
    burn_in
        The number of plays of each arm before the policy decides, so that a variance can be estimated; 10 in the paper.

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
    slots = (*MEMORY_SLOTS, "index", "fresh", "spread")
    functions = PolicyFunctions(start=start_ucb1, score=score_ucb1, learn=learn_ucb1, table=table, params=UCB1Params)

    burn_in: int = 10
    variance_floor: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "variance_floor", number, 0.0, 1.0)

    def params(self, arms: int) -> UCB1Params:
        setting = Setting(arms)
        bound = hoeffding.Hoeffding().params(setting)
        return UCB1Params(self._memory().params(setting), bound, self.variance_floor)
