"""What the policies built on adaptive forgetting share: their first slots, their step size and belief."""

import math
from dataclasses import dataclass

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.special_functions import exp_negative
from dynabandit.errors import keep
from dynabandit.estimators import adaptive_forgetting
from dynabandit.estimators.base import Belief
from dynabandit.policies.base import Policy

__all__ = ["CONFIDENCE", "SLOTS", "Adaptive", "discount", "hoeffding", "log_forgetting", "observe", "start"]

SLOTS = adaptive_forgetting.State._fields
CONFIDENCE = -math.log(0.05) / 2.0  # the appendix bounds the error with probability 0.05
LOG_ZERO = -1e30  # log 0 for a product with an idle time: 0 steps give 0, one step gives exp(-1e30 / arms) = 0


@kernel
def start(memory: np.ndarray, shared: np.ndarray, arm: int, parameters: np.ndarray) -> None:
    """Write the state of an arm without rewards: lambda is 1 and all else 0."""
    memory[:, arm] = 0.0
    memory[0, arm] = 1.0


@kernel
def observe(memory: np.ndarray, arm: int, reward: float, parameters: np.ndarray) -> adaptive_forgetting.State:
    """Take in a reward and return the arm's new state."""
    state = adaptive_forgetting.observe(
        adaptive_forgetting.load(memory, arm), reward, adaptive_forgetting.load_tuning(parameters)
    )
    adaptive_forgetting.store(memory, arm, state)
    return state


@kernel
def hoeffding(state: adaptive_forgetting.State) -> float:
    """The exploration bonus of the appendix, sqrt(-log(0.05) / (2 w^2 / k))."""
    return math.sqrt(CONFIDENCE * state.k) / state.w


@kernel
def log_forgetting(state: adaptive_forgetting.State) -> float:
    """Return log(lambda), with a stand-in for log(0) that is safe to multiply."""
    return math.log(state.forgetting) if state.forgetting > 0.0 else LOG_ZERO


@kernel
def discount(log_forgetting: float, idle: int, arms: int) -> float:
    """The factor lambda^(idle/|A|) of equations (16) and (17)."""
    return exp_negative(log_forgetting * (float(idle) / float(arms)))


@dataclass(frozen=True, kw_only=True)
class Adaptive(Policy):
    """A policy whose first slots are those of adaptive forgetting, and so its first parameters."""

    burn_in: int = 1
    step_size: float | str = 0.001
    floor: float = 0.0
    loss: str = "squared-error"

    def __post_init__(self) -> None:
        super().__post_init__()
        tuned = self._tuning()
        step_size = str(self.step_size) if tuned.scaled else tuned.step_size
        keep(self, step_size=step_size, floor=tuned.floor, loss=str(self.loss))

    def _tuning(self) -> adaptive_forgetting.Tuning:
        return adaptive_forgetting.tuning(self.step_size, self.floor, self.loss)

    def numbers(self, arms: int) -> np.ndarray:
        return np.array(self._tuning())

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        return adaptive_forgetting.belief(adaptive_forgetting.State(*column[: adaptive_forgetting.SIZE].tolist()))
