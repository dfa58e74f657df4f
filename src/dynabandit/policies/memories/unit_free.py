"""Adaptive forgetting for rewards in any unit, whose gradient step has no unit.

The step size is divided by the adaptive variance, as the paper's eta_4. There is no step, and the forgetting factor
keeps its value, while the rewards of an arm have no variance.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.policies.base import PolicyState, Reward, Step
from dynabandit.policies.beta_posterior import Prior
from dynabandit.policies.memories import adaptive, pooled_moments
from dynabandit.policies.memories.adaptive import FORGETTING, VARIANCE, AdaptiveState, M, W, moved, slope, stepped
from dynabandit.policies.memories.base import Estimate, Memory, MemoryKernels
from dynabandit.policies.memories.pooled_moments import is_variance
from dynabandit.policies.part import Setting
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.validation import NORMAL, number, set_fields

SLOTS = (*adaptive.SLOTS, "size", "own_variance")
MEAN = SLOTS.index("mean")
SIZE = SLOTS.index("size")  # w^2 / k, 0 without rewards
OWN_VARIANCE = SLOTS.index("own_variance")  # s^2, or 0 if it is only rounding error


class UnitFreeParams(NamedTuple):
    """The parameters of the estimator for rewards in any unit."""

    step_size: float  # is divided by the variance
    floor: float


def make_unit_free_params(step_size: float | str, floor: float) -> UnitFreeParams:
    """Check the arguments of the estimator for rewards in any unit and return its parameters."""
    return UnitFreeParams(number("step_size", step_size, 0.0, 1.0), number("floor", floor, 0.0, 1.0))


@kernel
def observe_unit_free(state: AdaptiveState, reward: float, params: UnitFreeParams) -> AdaptiveState:
    """Update the state with one reward in any unit: the step size is divided by the variance; no step without one."""
    gradient = 2.0 * (state.mean - reward) * slope(state)
    new = moved(state, reward)
    step = params.step_size / new.variance if is_variance(new.variance, new.mean) else 0.0
    return stepped(new, step, gradient, params.floor)


@kernel
def start(state: PolicyState, arm: int, params: Any) -> None:
    """Start with the first state of the estimator."""
    state.memory[FORGETTING, arm] = 1.0


@inlined_kernel
def observe(memory: np.ndarray, arm: int, value: float, estimator: UnitFreeParams) -> None:
    """Update the rows of an arm with a value."""
    estimate = observe_unit_free(adaptive.load(memory, arm), value, estimator)
    adaptive.store(memory, arm, estimate)
    memory[SIZE, arm] = estimate.w * estimate.w / estimate.k
    memory[OWN_VARIANCE, arm] = estimate.variance if is_variance(estimate.variance, estimate.mean) else 0.0


@inlined_kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: UnitFreeParams) -> Estimate:
    """Update the arm and what is known about all rewards."""
    observe(state.memory, arm, reward.value, params)
    pooled_moments.add(state.shared, reward.value)
    return estimate(state, arm)


@kernel
def variance(state: PolicyState, arm: int) -> float:
    """Return the variance of the rewards of an arm, or of all rewards if those of the arm have none."""
    return pooled_moments.variance_of(state.shared, state.memory[OWN_VARIANCE, arm])


@kernel
def estimate(state: PolicyState, arm: int) -> Estimate:
    """Return the adaptive mean, w^2 / k, w and k, and the logarithm of the forgetting factor."""
    numbers = adaptive.load(state.memory, arm)
    mean = numbers.mean if numbers.w > 0.0 else math.inf
    return Estimate(mean, adaptive.size(numbers), numbers.w, numbers.k, adaptive.log_forgetting(numbers))


@kernel
def gamma(
    state: PolicyState, arm: int, step: Step, kept: float, prior: Prior, params: Any
) -> tuple[float, float, float]:
    """Return the posterior of a Poisson mean, whose data count as one count or more: shape, rate and mean."""
    w = state.memory[W, arm]
    factor = kept
    if factor * w < 1.0 and w > 0.0:
        factor = 1.0 / w  # never less than one count
    shape = prior.a + factor * state.memory[M, arm]
    rate = prior.b + factor * w + assumed_zeros(state, arm, w)
    return shape, rate, shape / rate


@dataclass(frozen=True, kw_only=True)
class UnitFree(Memory):
    r"""Forget old rewards in any unit faster when an arm seems to change, and slowly those of idle arms, too.

    The factor of an arm is that of `Adaptive`, with a step size that is divided by the estimated variance, as the
    paper's eta_4, but without any constant in the unit of the rewards: there is no step while the rewards have no
    variance. All rewards times a constant give the same factors. While the arm is idle, its weight decreases by
    :math:`\lambda^{\mathrm{idle} / K}`. Before the rewards of an arm differ, their variance is that of all arms.

    Parameters
    ----------
    step_size
        The step size of the forgetting factor, in [0, 1]; it is divided by the estimated variance, so it has no unit.
    floor
        The minimum forgetting factor, in [0, 1].

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.UnitFree(step_size=0.01).parameters
    {'step_size': 0.01, 'floor': 0.0}

    Notes
    -----
    The forgetting factor after a reward y, where s^2 is the adaptive variance:

    .. math:: \lambda \leftarrow \lambda - \frac{\eta}{s^2} \, \frac{\partial}{\partial \lambda} \left( \frac{m}{w} - y
        \right)^2

    References
    ----------
    The estimator of Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 2, whose
    recursions hold for all rewards, with the step size eta_4 of section 4.3.1.
    """

    name = "unit-free"
    first_plays = 2  # so that a variance can be estimated
    rewards = NORMAL
    kernels: ClassVar[MemoryKernels] = MemoryKernels(
        slots=SLOTS,
        start=start,
        learn=learn,
        estimate=estimate,
        laws=(*pooled_moments.laws(MEAN, SIZE, variance), ("gamma", gamma)),
        fading=True,
        params=UnitFreeParams,
        while_idle=None,  # an arm without rewards changes with those of others
    )

    step_size: float = 0.0001  # eta_4(t) = 0.0001 / s_t^2, section 4.3.1
    floor: float = 0.0

    def __post_init__(self) -> None:
        estimator = self.params(Setting(1))
        set_fields(self, step_size=estimator.step_size, floor=estimator.floor)

    def params(self, setting: Setting) -> UnitFreeParams:
        return make_unit_free_params(self.step_size, self.floor)

    def shared_size(self, setting: Setting, family: str | None) -> int:
        return pooled_moments.SIZE

    def forgetting(self, column: np.ndarray, setting: Setting) -> float:
        return float(column[FORGETTING])

    def variance(self, column: np.ndarray, mean: float) -> float:
        return float(column[VARIANCE])
