"""What the policies based on adaptive forgetting (AFF) share: their first slots, their parameters and their belief."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.core.special_functions import exp_negative
from dynabandit.estimators import adaptive_forgetting
from dynabandit.estimators.adaptive_forgetting import AdaptiveParams, AdaptiveState
from dynabandit.estimators.base import Belief
from dynabandit.policies.base import Policy, PolicyState, Step, idle_steps
from dynabandit.policies.pending_plays import expected_mean
from dynabandit.validation import set_fields

SLOTS = AdaptiveState._fields
FORGETTING, W, K, MEAN = (SLOTS.index(name) for name in ("forgetting", "w", "k", "mean"))
CONFIDENCE = -math.log(0.05) / 2.0  # the appendix bounds the error with probability 0.05
LOG_ZERO = -1e30  # for log 0 times an idle time: 0 steps give 0, one step gives exp(-1e30 / arms) = 0


class AffParams(NamedTuple):
    """The parameters of a policy that has only those of the estimator."""

    estimator: AdaptiveParams


@kernel
def start(state: PolicyState, arm: int, params: Any) -> None:
    """Write the state of an arm without rewards: lambda is 1 and everything else 0."""
    state.memory[:, arm] = 0.0
    state.memory[FORGETTING, arm] = 1.0


@inlined_kernel
def observe(state: PolicyState, arm: int, value: float, params: Any) -> AdaptiveState:
    """Update the estimator of an arm with a reward and return its new state."""
    memory = state.memory
    estimate = adaptive_forgetting.observe(adaptive_forgetting.load(memory, arm), value, params.estimator)
    adaptive_forgetting.store(memory, arm, estimate)
    return estimate


@kernel
def hoeffding(estimate: AdaptiveState) -> float:
    """Return the exploration bonus of the appendix, sqrt(-log(0.05) / (2 w^2 / k))."""
    return math.sqrt(CONFIDENCE * estimate.k) / estimate.w


@kernel
def pending_mean(state: PolicyState, arm: int, pending: int) -> float:
    """Return the adaptive mean of an arm with pending plays, which may have no reward yet."""
    return state.memory[MEAN, arm] if state.memory[W, arm] > 0.0 else expected_mean(math.inf, pending)


@kernel
def pending_hoeffding(state: PolicyState, arm: int, factor: float, pending: int) -> float:
    """Return the bonus of an arm with pending plays: they add to its effective size, times `factor` of its data."""
    w, k = state.memory[W, arm], state.memory[K, arm]
    size = (factor * w * w / k if k > 0.0 else 0.0) + pending
    return math.sqrt(CONFIDENCE * size) / size  # as in `hoeffding`: ties are equal to the last bit


@kernel
def log_forgetting(estimate: AdaptiveState) -> float:
    """Return log(lambda), with a finite value for log(0)."""
    return math.log(estimate.forgetting) if estimate.forgetting > 0.0 else LOG_ZERO


@kernel
def discount(log_forgetting: float, idle: int, arms: int) -> float:
    """Return the factor lambda^(idle/|A|) of equations (16) and (17)."""
    return exp_negative(log_forgetting * (float(idle) / float(arms)))


@kernel
def idle_discount(log_forgetting: float, state: PolicyState, arm: int, step: Step) -> float:
    """Return the factor of equations (16) and (17) for the idle time of an arm."""
    return discount(log_forgetting, idle_steps(state, arm, step), step.arms)


@dataclass(frozen=True, kw_only=True)
class AdaptivePolicy(Policy):
    """A policy whose first slots are the state of adaptive forgetting."""

    burn_in: int = 1
    step_size: float | str = 0.001
    floor: float = 0.0
    loss: str = "squared-error"

    def __post_init__(self) -> None:
        super().__post_init__()
        estimator = self._estimator()
        step_size = str(self.step_size) if estimator.scaled else estimator.step_size
        set_fields(self, step_size=step_size, floor=estimator.floor, loss=str(self.loss))

    def _estimator(self) -> AdaptiveParams:
        return adaptive_forgetting.make_params(self.step_size, self.floor, self.loss)

    def params(self, arms: int) -> Any:
        return AffParams(self._estimator())

    def forgetting(self, column: np.ndarray) -> float:
        return float(column[FORGETTING])

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        if self.functions.posterior is not None:
            return super().belief(column, shared)
        return adaptive_forgetting.belief(AdaptiveState(*column[: adaptive_forgetting.SIZE].tolist()))
