"""Adaptive forgetting: the forgetting factor follows the data by gradient descent (section 2 of the paper)."""

import math
from typing import NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.core.records import column_reader, column_writer
from dynabandit.estimators.base import Belief, Estimator, EstimatorFunctions
from dynabandit.validation import number, unknown

VARIANCE_SCALED = "variance-scaled"
VARIANCE_SCALE = 0.0001  # eta_4(t) = 0.0001 / s_t^2, section 4.3.1
BERNOULLI_VARIANCE = 0.25  # the largest variance of a reward in [0, 1], used while s_t^2 is 0
LOSSES = ("squared-error", "bernoulli")
PROBABILITY_FLOOR = 1e-6  # keeps the Bernoulli likelihood of an impossible reward finite
NO_SPREAD = 1e-12  # up to this, v_t is rounding error and one observation has all the weight
NO_VARIANCE = 1e-12  # up to this, s_t^2 is rounding error: equal rewards such as 0.1 do not give exactly 0


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
def observe(state: AdaptiveState, reward: float, params: AdaptiveParams) -> AdaptiveState:
    """Update the state with one reward; every right-hand side has the old values."""
    forgetting, m, w, k, m_dot, w_dot, mean, variance, _, _ = state
    error = mean - reward

    # Equation (9): the derivative of the one-step-ahead loss with respect to the past forgetting factors
    slope = (m_dot - w_dot * mean) / w if w > 0.0 else 0.0
    if params.likelihood:
        p = min(max(mean, PROBABILITY_FLOOR), 1.0 - PROBABILITY_FLOOR)
        gradient = (p - reward) / (p * (1.0 - p)) * slope
    else:
        gradient = 2.0 * error * slope

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

    # Equation (6), truncated
    step = params.step_size
    if params.scaled:
        step /= new_variance if new_variance > NO_VARIANCE else BERNOULLI_VARIANCE
    new_forgetting = min(max(forgetting - step * gradient, params.floor), 1.0)
    return AdaptiveState(
        new_forgetting, new_m, new_w, new_k, new_m_dot, new_w_dot,
        new_m / new_w, new_variance, abs(new_forgetting - forgetting), step,
    )  # fmt: skip


@kernel
def mean(state: AdaptiveState) -> float:
    """Return the adaptive mean."""
    return state.mean


def belief(state: AdaptiveState) -> Belief:
    """Return the mean and variance of the recursions."""
    if state.w <= 0.0:
        return Belief(math.nan, 0.0, 1.0, 0.0)
    return Belief(state.mean, state.variance, state.forgetting, state.w**2 / state.k)


class AdaptiveForgetting(Estimator):
    r"""Mean and variance with a forgetting factor that adapts to the rate of change.

    After each reward, the factor takes one step of gradient descent on the squared error (or the Bernoulli negative
    log-likelihood) of the previous mean as a prediction of that reward. While the mean is constant the factor stays
    near 1; after a change it falls, and old rewards lose their weight. Use it if the rate of change is unknown.

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
    >>> from dynabandit.estimators import AdaptiveForgetting
    >>> estimate = AdaptiveForgetting(step_size=0.001)
    >>> for reward in [0] * 200 + [1] * 30:
    ...     _ = estimate.update(reward)
    >>> round(estimate.mean, 2), round(estimate.forgetting, 2)
    (0.64, 0.52)

    The sample mean of the same rewards is 0.13.

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

    functions = EstimatorFunctions(observe, mean)

    def __init__(self, step_size: float | str = 0.001, floor: float = 0.0, loss: str = "squared-error") -> None:
        self.params = (make_params(step_size, floor, loss),)
        self.state = START

    @property
    def belief(self) -> Belief:
        return belief(self.state)

    @property
    def weight(self) -> float:
        return float(self.state.w)
