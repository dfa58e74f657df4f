"""What the AFF policies for rewards in any unit share: an estimator whose gradient step has no unit.

The step size is divided by the adaptive variance, as the paper's eta_4. There is no step, and the forgetting factor
keeps its value, while the rewards of an arm have no variance.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.estimators import adaptive_forgetting
from dynabandit.estimators.adaptive_forgetting import AdaptiveState, UnitFreeParams, is_variance
from dynabandit.estimators.base import Belief
from dynabandit.policies.base import Policy, PolicyState, Reward, Step
from dynabandit.policies.memories import aff_shared, pooled_moments
from dynabandit.validation import NORMAL, set_fields

SLOTS = (*aff_shared.SLOTS, "size", "own_variance", "log_forgetting")
FORGETTING, M, W = SLOTS.index("forgetting"), SLOTS.index("m"), SLOTS.index("w")
MEAN = SLOTS.index("mean")
SIZE = SLOTS.index("size")  # w^2 / k, 0 without rewards
OWN_VARIANCE = SLOTS.index("own_variance")  # s^2, or 0 if it is only rounding error
LOG_FORGETTING = SLOTS.index("log_forgetting")


class Params(NamedTuple):
    """The parameters of a policy that has only those of the estimator."""

    estimator: UnitFreeParams


@inlined_kernel
def observe(memory: np.ndarray, arm: int, value: float, estimator: UnitFreeParams) -> None:
    """Update the rows of `SLOTS` of an arm with a value."""
    estimate = adaptive_forgetting.observe_unit_free(adaptive_forgetting.load(memory, arm), value, estimator)
    adaptive_forgetting.store(memory, arm, estimate)
    memory[SIZE, arm] = estimate.w * estimate.w / estimate.k
    memory[OWN_VARIANCE, arm] = estimate.variance if is_variance(estimate.variance, estimate.mean) else 0.0
    memory[LOG_FORGETTING, arm] = aff_shared.log_forgetting(estimate)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Any) -> None:
    """Update the arm and what is known about all rewards."""
    observe(state.memory, arm, reward.value, params.estimator)
    pooled_moments.add(state.shared, reward.value)


@kernel
def mean(memory: np.ndarray, shared: np.ndarray, arm: int) -> float:
    """Return the mean of an arm, or of all rewards if the arm has none."""
    return memory[MEAN, arm] if memory[SIZE, arm] > 0.0 else shared[pooled_moments.MEAN]


@kernel
def variance(memory: np.ndarray, shared: np.ndarray, arm: int) -> float:
    """Return the variance of the rewards of an arm, or of all rewards if those of the arm have none."""
    return memory[OWN_VARIANCE, arm] if memory[OWN_VARIANCE, arm] > 0.0 else pooled_moments.variance(shared)


@kernel
def idle_size(memory: np.ndarray, state: PolicyState, arm: int, step: Step) -> float:
    """Return the effective size w^2 / k, discounted while the arm is idle, but never less than one reward."""
    factor = aff_shared.idle_discount(memory[LOG_FORGETTING, arm], state, arm, step)
    return max(memory[SIZE, arm] * factor, 1.0)


@dataclass(frozen=True, kw_only=True)
class UnitFreePolicy(Policy):
    """A policy whose first slots are `SLOTS`."""

    rewards = NORMAL

    burn_in: int = 2
    step_size: float = 0.0001  # eta_4(t) = 0.0001 / s_t^2, section 4.3.1
    floor: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        estimator = self._estimator()
        set_fields(self, step_size=estimator.step_size, floor=estimator.floor)

    def _estimator(self) -> UnitFreeParams:
        return adaptive_forgetting.make_unit_free_params(self.step_size, self.floor)

    def params(self, arms: int) -> Any:
        return Params(self._estimator())

    def shared_size(self) -> int:
        return pooled_moments.SIZE

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        return adaptive_forgetting.belief(AdaptiveState(*column[: adaptive_forgetting.SIZE].tolist()))
