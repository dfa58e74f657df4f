"""Adaptive forgetting: older rewards have less weight, by a factor that follows the data (section 2 of the paper)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.estimators import adaptive_forgetting
from dynabandit.estimators.adaptive_forgetting import AdaptiveParams, AdaptiveState
from dynabandit.estimators.base import Belief
from dynabandit.policies.base import PolicyState, Step
from dynabandit.policies.beta_posterior import Prior
from dynabandit.policies.memories.base import Memory, MemoryKernels, Weights, per_arm
from dynabandit.policies.part import Setting
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.validation import set_fields

SLOTS = AdaptiveState._fields
FORGETTING, M, W = (SLOTS.index(name) for name in ("forgetting", "m", "w"))
LOG_ZERO = -1e30  # for log 0 times an idle time: 0 steps give 0, one step gives exp(-1e30 / arms) = 0


@kernel
def size(estimate: AdaptiveState) -> float:
    """Return the effective size w^2 / k; 0 without rewards."""
    return estimate.w * estimate.w / estimate.k if estimate.k > 0.0 else 0.0


@kernel
def weights(estimate: AdaptiveState) -> Weights:
    """Return w and k."""
    return Weights(estimate.w, estimate.k)


@kernel
def log_forgetting(estimate: AdaptiveState) -> float:
    """Return log(lambda), with a finite value for log(0)."""
    return math.log(estimate.forgetting) if estimate.forgetting > 0.0 else LOG_ZERO


@kernel
def beta(state: PolicyState, arm: int, step: Step, kept: float, prior: Prior, params: Any) -> tuple[float, float]:
    """Equations (24) and (25), on the discounted m~ and w~ of (16) and (17)."""
    m, w = state.memory[M, arm], state.memory[W, arm]
    return prior.a + kept * m, prior.b + kept * (w - m) + assumed_zeros(state, arm, w)


@dataclass(frozen=True, kw_only=True)
class Adaptive(Memory):
    r"""Forget old rewards faster when an arm seems to change, and slowly those of idle arms, too. It needs no tuning.

    The factor of an arm is that of `dynabandit.estimators.AdaptiveForgetting`; while the arm is idle, its weight
    decreases by :math:`\lambda^{\mathrm{idle} / K}`.

    Parameters
    ----------
    step_size, floor, loss
        Parameters of the adaptive estimator with the sums m, w and k, see
        `dynabandit.estimators.AdaptiveForgetting`.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.Adaptive(step_size=0.01).parameters
    {'step_size': 0.01, 'floor': 0.0, 'loss': 'squared-error'}

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 2.
    """

    name = "adaptive"
    first_plays = 1
    kernels: ClassVar[MemoryKernels] = per_arm(
        adaptive_forgetting.START,
        adaptive_forgetting.observe,
        adaptive_forgetting.mean,
        size,
        params=AdaptiveParams,
        weights=weights,
        fading=log_forgetting,
    )._replace(laws=(("beta", beta),))

    step_size: float | str = 0.001
    floor: float = 0.0
    loss: str = "squared-error"

    def __post_init__(self) -> None:
        estimator = self._estimator()
        step_size = str(self.step_size) if estimator.scaled else estimator.step_size
        set_fields(self, step_size=step_size, floor=estimator.floor, loss=str(self.loss))

    def _estimator(self) -> AdaptiveParams:
        return adaptive_forgetting.make_params(self.step_size, self.floor, self.loss)

    def params(self, setting: Setting) -> Any:
        return self._estimator()

    def forgetting(self, column: np.ndarray, setting: Setting) -> float:
        return float(column[FORGETTING])

    def belief(self, column: np.ndarray, shared: np.ndarray, setting: Setting) -> Belief:
        return adaptive_forgetting.belief(AdaptiveState(*column[: adaptive_forgetting.SIZE].tolist()))
