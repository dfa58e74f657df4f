"""AFF-d-Greedy: the largest adaptive mean; a random arm if its forgetting factor has just changed."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.estimators.adaptive_forgetting import AdaptiveParams
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.memories import aff_shared
from dynabandit.policies.memories.aff_shared import AdaptivePolicy
from dynabandit.policies.pending_plays import expected_mean, pending_plays
from dynabandit.validation import check_field, number

SLOTS = (*aff_shared.SLOTS, "index", "limit", "changed_at")
CHANGE = SLOTS.index("change")
INDEX = SLOTS.index("index")
LIMIT = SLOTS.index("limit")  # d, or the step size that replaces it
CHANGED_AT = SLOTS.index("changed_at")  # the step at which a reward changed lambda by d or more, -1 if none did
AS_STEP_SIZE = -1.0


class Params(NamedTuple):
    estimator: AdaptiveParams
    threshold: float


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    aff_shared.start(state, arm, params)
    state.memory[INDEX, arm] = math.inf
    threshold = params.threshold
    state.memory[LIMIT, arm] = params.estimator.step_size if threshold == AS_STEP_SIZE else threshold
    state.memory[CHANGED_AT, arm] = -1.0


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    pending = pending_plays(state, arm)
    return state.memory[INDEX, arm] if pending == 0 else expected_mean(state.memory[INDEX, arm], pending)


@kernel
def explore(state: PolicyState, leader: int, step: Step, params: Params) -> bool:
    # Algorithm 1 compares lambda at the latest two steps: a reward since the previous decision must have changed it
    return state.memory[CHANGED_AT, leader] == float(step.number - 1)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    estimate = aff_shared.observe(state, arm, reward.value, params)
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
    step_size, floor, loss
        Parameters of the adaptive estimator with the sums m, w and k, see
        `dynabandit.estimators.AdaptiveForgetting`.
    threshold
        The paper's d, in [0, 1]; 0 explores after every change. The default is the step size, as the paper suggests;
        with the variance-scaled step size, the step size of the latest update.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-d-greedy", step_size=0.01).label
    'aff-d-greedy(step_size=0.01)'

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
    slots = SLOTS
    functions = PolicyFunctions(
        start=start, score=score, learn=learn, explore=explore, static_index=True, params=Params
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

    def params(self, arms: int) -> Params:
        return Params(self._estimator(), AS_STEP_SIZE if self.threshold is None else self.threshold)
