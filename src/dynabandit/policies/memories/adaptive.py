"""Adaptive forgetting: older rewards have less weight, by a factor that follows the data (section 2 of the paper)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.records import column_reader, column_writer
from dynabandit.policies.base import PolicyState, Step
from dynabandit.policies.beta_posterior import Prior
from dynabandit.policies.memories.base import Memory, MemoryKernels, Weights, per_arm
from dynabandit.policies.part import Setting
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.validation import number, set_fields, unknown

VARIANCE_SCALED = "variance-scaled"
VARIANCE_SCALE = 0.0001  # eta_4(t) = 0.0001 / s_t^2, section 4.3.1
BERNOULLI_VARIANCE = 0.25  # the largest variance of a reward in [0, 1], used while s_t^2 is 0
LOSSES = ("squared-error", "bernoulli")
PROBABILITY_FLOOR = 1e-6  # keeps the Bernoulli likelihood of an impossible reward finite
NO_SPREAD = 1e-12  # up to this, v_t is rounding error and one observation has all the weight
NO_VARIANCE = 1e-12  # up to this, s_t^2 is rounding error: equal rewards such as 0.1 do not give exactly 0
LOG_ZERO = -1e30  # for log 0 times an idle time: 0 steps give 0, one step gives exp(-1e30 / arms) = 0


class AdaptiveState(NamedTuple):
    """The recursions of one arm, named as in the paper; `step` is the step size of the last update."""

    forgetting: float
    m: float
    w: float
    k: float
    m_dot: float
    w_dot: float
    mean: float
    variance: float
    change: float
    step: float


SIZE = len(AdaptiveState._fields)
START = AdaptiveState(1.0, *[0.0] * (SIZE - 1))
load = column_reader(AdaptiveState)
store = column_writer(AdaptiveState)
SLOTS = AdaptiveState._fields
FORGETTING, M, W, VARIANCE = (SLOTS.index(name) for name in ("forgetting", "m", "w", "variance"))


class AdaptiveParams(NamedTuple):
    """The parameters of the estimator."""

    step_size: float
    scaled: bool  # whether the step size is divided by the variance
    floor: float
    likelihood: bool  # whether the loss is the Bernoulli negative log-likelihood


def make_params(step_size: float | str = 0.001, floor: float = 0.0, loss: str = "squared-error") -> AdaptiveParams:
    """Check the arguments of the estimator and return its parameters."""
    if loss not in LOSSES:
        raise unknown("loss", loss, LOSSES)
    floor = number("floor", floor, 0.0, 1.0)
    likelihood = loss == "bernoulli"
    if isinstance(step_size, str):
        if step_size != VARIANCE_SCALED:
            raise ValueError(f"step_size must be a number in [0, 1] or {VARIANCE_SCALED!r}, got {step_size!r}")
        return AdaptiveParams(VARIANCE_SCALE, True, floor, likelihood)
    return AdaptiveParams(number("step_size", step_size, 0.0, 1.0), False, floor, likelihood)


@kernel
def slope(state: AdaptiveState) -> float:
    """Return the derivative of the mean with respect to the past forgetting factors, the bracket of equation (9)."""
    return (state.m_dot - state.w_dot * state.mean) / state.w if state.w > 0.0 else 0.0


@kernel
def moved(state: AdaptiveState, reward: float) -> AdaptiveState:
    """Return the state after a reward, with its forgetting factor still to be updated."""
    forgetting, m, w, k, m_dot, w_dot, mean, variance, _, _ = state
    error = mean - reward
    # Equations (7) and (8)
    new_m_dot = forgetting * m_dot + m
    new_w_dot = forgetting * w_dot + w
    # Equations (4), (5) and (12)
    new_m = forgetting * m + reward
    new_w = forgetting * w + 1.0
    new_k = forgetting * forgetting * k + 1.0
    # Equations (11) and (13); undefined, and not updated, while one observation has all the weight
    v = w * (1.0 - k / (w * w)) if w > 0.0 else 0.0
    new_v = new_w * (1.0 - new_k / (new_w * new_w))
    new_variance = variance
    if new_v > NO_SPREAD:
        new_variance = (forgetting * v * variance + (new_w - 1.0) / new_w * error * error) / new_v
    return AdaptiveState(forgetting, new_m, new_w, new_k, new_m_dot, new_w_dot, new_m / new_w, new_variance, 0.0, 0.0)


@kernel
def stepped(state: AdaptiveState, step: float, gradient: float, floor: float) -> AdaptiveState:
    """Return the state with the forgetting factor of equation (6), truncated."""
    forgetting, m, w, k, m_dot, w_dot, mean, variance, _, _ = state
    new_forgetting = min(max(forgetting - step * gradient, floor), 1.0)
    change = abs(new_forgetting - forgetting)
    return AdaptiveState(new_forgetting, m, w, k, m_dot, w_dot, mean, variance, change, step)


@kernel
def observe(state: AdaptiveState, reward: float, params: AdaptiveParams) -> AdaptiveState:
    """Update the state with one reward; every right-hand side has the old values."""
    # Equation (9): the derivative of the one-step-ahead loss with respect to the past forgetting factors
    if params.likelihood:
        p = min(max(state.mean, PROBABILITY_FLOOR), 1.0 - PROBABILITY_FLOOR)
        gradient = (p - reward) / (p * (1.0 - p)) * slope(state)
    else:
        gradient = 2.0 * (state.mean - reward) * slope(state)
    new = moved(state, reward)
    step = params.step_size
    if params.scaled:
        step /= new.variance if new.variance > NO_VARIANCE else BERNOULLI_VARIANCE
    return stepped(new, step, gradient, params.floor)


@kernel
def mean(state: AdaptiveState) -> float:
    """Return the adaptive mean."""
    return state.mean


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

    After each reward of an arm, its factor takes one step of gradient descent on the squared error (or the Bernoulli
    negative log-likelihood) of the previous mean as a prediction of that reward. While the mean is constant the factor
    stays near 1; after a change it falls, and old rewards lose their weight. While the arm is idle, its weight
    decreases by :math:`\lambda^{\mathrm{idle} / K}`.

    Parameters
    ----------
    step_size
        The step size of the gradient descent: the paper's eta, or ``"variance-scaled"`` for its eta_4, 0.0001 divided
        by the estimated variance.
    floor
        The minimum forgetting factor, in [0, 1]; 0 in the paper, 0.6 in the package of Bodenham & Adams.
    loss
        The loss that the gradient descent minimises: ``"squared-error"`` as in the paper, or ``"bernoulli"``, the
        negative log-likelihood.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.Adaptive(step_size=0.01).parameters
    {'step_size': 0.01, 'floor': 0.0, 'loss': 'squared-error'}

    Notes
    -----
    The estimate after the reward y_t is m_t / w_t, with the sums, equations (4), (5) and (12):

    .. math:: m_t = \lambda_{t-1} m_{t-1} + y_t, \quad w_t = \lambda_{t-1} w_{t-1} + 1, \quad k_t = \lambda_{t-1}^2
        k_{t-1} + 1

    The forgetting factor takes a step against the derivative of the loss L_t, and is then kept in [floor, 1], equation
    (6):

    .. math:: \lambda_t = \lambda_{t-1} - \eta \, \Delta(L_t)

    The derivative of a past sum with respect to the past factors is computed by recursions, equations (7) and (8),
    which start from 0:

    .. math:: \dot{m}_t = \lambda_{t-1} \dot{m}_{t-1} + m_{t-1}, \quad \dot{w}_t = \lambda_{t-1} \dot{w}_{t-1} +
        w_{t-1}

    With the squared error as the loss, equation (9); it is 0 for the first reward:

    .. math:: \Delta(L_t) = 2 \left( \bar{x}_{t-1} - y_t \right) \frac{\dot{m}_{t-1} - \dot{w}_{t-1} \,
        \bar{x}_{t-1}}{w_{t-1}}, \quad \bar{x}_{t-1} = \frac{m_{t-1}}{w_{t-1}}

    With the Bernoulli loss, the first factor is replaced by the derivative of the negative log-likelihood,

    .. math:: \frac{\bar{x}_{t-1} - y_t}{\bar{x}_{t-1} \left( 1 - \bar{x}_{t-1} \right)}

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 2.
    Bodenham & Adams (2017), Continuous monitoring for changepoints in data streams using adaptive estimation.
    """

    name = "adaptive"
    first_plays = 1
    kernels: ClassVar[MemoryKernels] = per_arm(
        START,
        observe,
        mean,
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
        return make_params(self.step_size, self.floor, self.loss)

    def params(self, setting: Setting) -> Any:
        return self._estimator()

    def forgetting(self, column: np.ndarray, setting: Setting) -> float:
        return float(column[FORGETTING])

    def variance(self, column: np.ndarray, mean: float) -> float:
        return float(column[VARIANCE])
