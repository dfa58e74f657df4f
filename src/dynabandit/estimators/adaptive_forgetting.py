"""Adaptive forgetting: the forgetting factor follows the data by gradient descent (section 2 of the paper)."""

import math
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.errors import number, unknown
from dynabandit.estimators.base import Belief, Estimator

__all__ = [
    "LOSSES", "SIZE", "START", "VARIANCE_SCALED", "AdaptiveForgetting", "State", "Tuning", "belief", "load",
    "load_tuning", "observe", "store", "tuning",
]  # fmt: skip

VARIANCE_SCALED = "variance-scaled"
VARIANCE_SCALE = 0.0001  # eta_4(t) = 0.0001 / s_t^2, section 4.3.1
BERNOULLI_VARIANCE = 0.25  # the largest variance of a reward in [0, 1] stands in while s_t^2 is 0
LOSSES = ("squared-error", "bernoulli")
PROBABILITY_FLOOR = 1e-6  # keeps the Bernoulli likelihood of an impossible reward finite
NO_SPREAD = 1e-12  # up to this, v_t is rounding and one observation holds all the weight
NO_VARIANCE = 1e-12  # up to this, s_t^2 is rounding: equal rewards such as 0.1 do not give exactly 0


class State(NamedTuple):
    """One arm's recursions, named as in the paper; `step` is the step size that the last update used."""

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


SIZE = len(State._fields)
START = State(forgetting=1.0, m=0.0, w=0.0, k=0.0, m_dot=0.0, w_dot=0.0, mean=0.0, variance=0.0, change=0.0, step=0.0)


class Tuning(NamedTuple):
    """The estimator's parameters as numbers: `scaled` and `likelihood` are 1 for yes and 0 for no."""

    step_size: float
    scaled: float
    floor: float
    likelihood: float


def tuning(step_size: float | str = 0.001, floor: float = 0.0, loss: str = "squared-error") -> Tuning:
    """Check the estimator's parameters and turn them into numbers."""
    if loss not in LOSSES:
        raise unknown("loss", loss, LOSSES)
    floor = number("floor", floor, 0.0, 1.0)
    likelihood = float(loss == "bernoulli")
    if isinstance(step_size, str):
        if step_size != VARIANCE_SCALED:
            raise ValueError(f"step_size must be a number in [0, 1] or {VARIANCE_SCALED!r}, got {step_size!r}")
        return Tuning(VARIANCE_SCALE, 1.0, floor, likelihood)
    return Tuning(number("step_size", step_size, 0.0, 1.0), 0.0, floor, likelihood)


@kernel
def load(memory: np.ndarray, arm: int) -> State:
    """Read the state of one arm from the first rows of a policy's memory."""
    return State(
        memory[0, arm], memory[1, arm], memory[2, arm], memory[3, arm], memory[4, arm],
        memory[5, arm], memory[6, arm], memory[7, arm], memory[8, arm], memory[9, arm],
    )  # fmt: skip


@kernel
def store(memory: np.ndarray, arm: int, state: State) -> None:
    """Write what `load` reads."""
    for slot in range(SIZE):
        memory[slot, arm] = state[slot]


@kernel
def load_tuning(parameters: np.ndarray) -> Tuning:
    """Read the estimator's parameters from the first of a policy's."""
    return Tuning(parameters[0], parameters[1], parameters[2], parameters[3])


@kernel
def observe(state: State, reward: float, tuned: Tuning) -> State:
    """Take in one reward; every right-hand side holds the old values."""
    forgetting, m, w, k, m_dot, w_dot, mean, variance, _, _ = state
    error = mean - reward

    # Equation (9): the derivative of the one-step-ahead loss with respect to the past forgetting factors
    slope = (m_dot - w_dot * mean) / w if w > 0.0 else 0.0
    if tuned.likelihood > 0.0:
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
    # Equations (11) and (13); undefined, and left alone, while one observation has all the weight
    v = w * (1.0 - k / (w * w)) if w > 0.0 else 0.0
    new_v = new_w * (1.0 - new_k / (new_w * new_w))
    new_variance = variance
    if new_v > NO_SPREAD:
        new_variance = (forgetting * v * variance + (new_w - 1.0) / new_w * error * error) / new_v

    # Equation (6), truncated
    step = tuned.step_size
    if tuned.scaled > 0.0:
        step /= new_variance if new_variance > NO_VARIANCE else BERNOULLI_VARIANCE
    new_forgetting = min(max(forgetting - step * gradient, tuned.floor), 1.0)
    return State(
        new_forgetting, new_m, new_w, new_k, new_m_dot, new_w_dot,
        new_m / new_w, new_variance, abs(new_forgetting - forgetting), step,
    )  # fmt: skip


def belief(state: State) -> Belief:
    """Read mean and variance off the recursions."""
    if state.w <= 0.0:
        return Belief(math.nan, 0.0, 1.0, 0.0)
    return Belief(state.mean, state.variance, state.forgetting, state.w**2 / state.k)


class AdaptiveForgetting(Estimator):
    """Mean and variance under a forgetting factor that learns how fast the arm changes.

    After each reward the factor takes one step of gradient descent on the squared error (or the Bernoulli
    negative log-likelihood) with which the previous mean predicted that reward. In a still world the factor
    stays near 1; after a change it falls, and the past is forgotten.

    Parameters
    ----------
    step_size
        How far the forgetting factor moves after a reward: the paper's eta, or ``"variance-scaled"`` for its eta_4,
        0.0001 over the estimated variance.
    floor
        The smallest forgetting factor that is allowed, in [0, 1]. The paper uses 0; Bodenham & Adams' package uses 0.6.
    loss
        The error of a prediction that forgetting makes small: ``"squared-error"``, the paper's choice, or
        ``"bernoulli"``, the negative log-likelihood.

    Examples
    --------
    >>> from dynabandit.estimators import AdaptiveForgetting
    >>> estimate = AdaptiveForgetting(step_size=0.001)
    >>> for reward in [0] * 200 + [1] * 30:
    ...     _ = estimate.update(reward)
    >>> round(estimate.mean, 2), round(estimate.forgetting, 2)
    (0.64, 0.52)

    A sample mean of the same rewards would still be at 0.13.

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 2.
    Bodenham & Adams (2017), Continuous monitoring for changepoints in data streams using adaptive estimation.
    """

    def __init__(self, step_size: float | str = 0.001, floor: float = 0.0, loss: str = "squared-error") -> None:
        self._tuning = tuning(step_size, floor, loss)
        self.state: Any = START

    def _observe(self, reward: float) -> State:
        return observe(self.state, reward, self._tuning)

    @property
    def belief(self) -> Belief:
        return belief(self.state)

    @property
    def weight(self) -> float:
        return float(self.state.w)
