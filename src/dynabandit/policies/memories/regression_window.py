"""Linear regressions that keep the rewards of the latest steps only: those in a window, or since the latest restart."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.context import Context
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.policies.base import PolicyState, Reward, Step, row_of
from dynabandit.policies.memories import linear_model, links, regression, regression_kernels
from dynabandit.policies.memories.linear_model import CLOCK, dot, space_at, square, theta_at
from dynabandit.policies.memories.models import ModelKernels
from dynabandit.policies.memories.regression import RegressionMemory, make_learn, make_prediction
from dynabandit.policies.memories.regression_kernels import Kind, make_regression
from dynabandit.policies.part import Setting
from dynabandit.validation import check_field, integer

LINEAR = make_regression(links.identity, Kind())
predict_all, learn_all = make_prediction(LINEAR), make_learn(LINEAR)
LARGEST_WINDOW = 100_000
# A model is followed by a queue of the rewards in the window: its first place and length, then the places
FIRST, LENGTH, HEADER = 0, 1, 2
# Rounding errors of 1 - x' P x are about 1e-16 x' x / prior. If it is below this multiple of x' x / prior, it has fewer
# than four correct digits: the model is then computed anew, instead of divided by it
DIGITS = 1e-12
STEP, VALUE, FEATURES = 0, 1, 2  # the numbers of a place; the features follow


class WindowParams(NamedTuple):
    prior: float
    window: int


class RestartParams(NamedTuple):
    prior: float
    period: int


@kernel
def queue_at(model: np.ndarray, dimension: int, window: int) -> int:
    """Return where the queue of a model begins."""
    return model.size - HEADER - window * (FEATURES + dimension)


@kernel
def change(model: np.ndarray, x: np.ndarray, value: float, weight: float, smallest: float) -> bool:
    """Add a reward to a model (weight 1) or remove it (weight -1), unless 1 + weight x' P x is below `smallest`.

    Returns whether the model was changed.
    """
    total = 1.0 + weight * linear_model.multiply(model, x)
    if total < smallest:
        return False
    error = weight * (value - dot(model, theta_at(x.size), x))
    linear_model.subtract_product(model, x.size, weight / total, 1.0)
    for j in range(x.size):
        model[theta_at(x.size) + j] += error / total * model[space_at(x.size) + j]
    return True


@kernel
def forget(model: np.ndarray, dimension: int, until: int, params: WindowParams) -> None:
    """Remove the rewards of decisions up to step `until` from a model."""
    queue = model[queue_at(model, dimension, params.window) :]
    while queue[LENGTH] > 0.0 and queue[HEADER + int(queue[FIRST]) * (FEATURES + dimension) + STEP] <= until:
        forget_first(model, dimension, params)


@kernel
def forget_first(model: np.ndarray, dimension: int, params: WindowParams) -> None:
    """Remove the first reward of the queue from a model."""
    queue, size = model[queue_at(model, dimension, params.window) :], FEATURES + dimension
    place = HEADER + int(queue[FIRST]) * size
    x = queue[place + FEATURES : place + size]
    is_removed = change(model, x, queue[place + VALUE], -1.0, DIGITS * linear_model.square(x) / params.prior)
    queue[FIRST] = (queue[FIRST] + 1.0) % params.window
    queue[LENGTH] -= 1.0
    if queue[FIRST] == 0.0 or not is_removed:
        rebuild(model, dimension, params)


@kernel
def rebuild(model: np.ndarray, dimension: int, params: WindowParams) -> None:
    """Compute a model anew from its queue, so that rounding errors do not add up."""
    queue, size = model[queue_at(model, dimension, params.window) :], FEATURES + dimension
    linear_model.reset(model, dimension, params.prior)
    for i in range(int(queue[LENGTH])):
        place = HEADER + (int(queue[FIRST]) + i) % params.window * size
        change(model, queue[place + FEATURES : place + size], queue[place + VALUE], 1.0, 0.0)


@kernel
def prepare(state: PolicyState, step: Step, params: WindowParams) -> None:
    """Remove the rewards that have left the window from all models."""
    for row in range(state.models.shape[0]):
        forget(state.models[row], step.features.shape[1], step.number - 1 - params.window, params)


@kernel
def learn_in_window(state: PolicyState, arm: int, reward: Reward, params: WindowParams) -> None:
    """Add a reward to a model and its queue."""
    x = reward.features
    d, model, until = x.size, state.models[row_of(state.models, arm)], reward.arrived_at - params.window
    if reward.decided_at <= until:
        return  # the decision is not in the window any more
    forget(model, d, until, params)
    queue, size = model[queue_at(model, d, params.window) :], FEATURES + d
    if queue[LENGTH] == params.window:  # late rewards that left the window wait for earlier ones of later decisions
        forget_first(model, d, params)
    place = HEADER + (int(queue[FIRST]) + int(queue[LENGTH])) % params.window * size
    queue[place + STEP], queue[place + VALUE] = reward.decided_at, reward.value
    for j in range(d):
        queue[place + FEATURES + j] = x[j]
    queue[LENGTH] += 1.0
    change(model, queue[place + FEATURES : place + size], reward.value, 1.0, 0.0)


@kernel
def is_of_period(model: np.ndarray, number: int, period: int) -> bool:
    """Whether a model has learnt a reward in the period of a step."""
    return model[CLOCK] > (number - 1) // period * period


@kernel
def predict_in_period(state: PolicyState, arm: int, step: Step, params: RestartParams) -> tuple[float, float]:
    """Return the prediction of a model, or of its prior if it has no rewards of this period."""
    if not is_of_period(state.models[row_of(state.models, arm)], step.number, params.period):
        return 0.0, square(step.features[row_of(step.features, arm)]) / params.prior
    return predict_all(state, arm, step, params)


@kernel
def learn_in_period(state: PolicyState, arm: int, reward: Reward, params: RestartParams) -> None:
    """Learn a reward of the current period, after a restart if it is the first one."""
    if reward.decided_at <= (reward.arrived_at - 1) // params.period * params.period:
        return  # a late reward of an earlier period
    model = state.models[row_of(state.models, arm)]
    if not is_of_period(model, reward.arrived_at, params.period):
        regression_kernels.reset(model, reward.features.size, params.prior)
    learn_all(state, arm, reward, params)


@dataclass(frozen=True, kw_only=True)
class RecentRegression(RegressionMemory):
    """A regression of the rewards of recent steps.

    Parameters
    ----------
    model
        ``"separate"``: a model for each arm; ``"shared"``: one model for all arms, which have features of their own;
        ``"auto"``: shared if arms have features of their own, else separate.

    Examples
    --------
    >>> RecentRegression.models
    ('auto', 'separate', 'shared')
    """

    models = ("auto", "separate", "shared")


@dataclass(frozen=True, kw_only=True)
class WindowRegression(RecentRegression):
    """Predict the rewards of an arm by a linear regression of those of the latest steps. Use it if you know how fast
    the effect of the features changes.

    Parameters
    ----------
    window
        The number of steps whose rewards count, at least 1 and at most 100,000; a model keeps them all.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.WindowRegression(window=200).parameters
    {'prior': 1.0, 'model': 'auto', 'window': 200}

    References
    ----------
    Cheung, Simchi-Levi & Zhu (2019), Learning to optimize under non-stationarity. AISTATS.
    """

    name = "window-regression"
    kernels: ClassVar[Any] = ModelKernels(
        slots=(),
        start=regression.start,
        learn=learn_in_window,
        predict=predict_all,
        prepare=prepare,
        params=WindowParams,
    )

    window: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "window", integer, 1, LARGEST_WINDOW)

    def params(self, setting: Setting) -> Any:
        return WindowParams(self.prior, self.window)

    def models_shape(self, arms: int, context: Context, family: str | None) -> tuple[int, int]:
        rows, size = super().models_shape(arms, context, family)
        return rows, size + HEADER + self.window * (FEATURES + context.dimension)


@dataclass(frozen=True, kw_only=True)
class RestartRegression(RecentRegression):
    """Predict the rewards of an arm by a linear regression that forgets everything after every period.

    Parameters
    ----------
    period
        The number of steps between two restarts, at least 1.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.RestartRegression(period=200).parameters
    {'prior': 1.0, 'model': 'auto', 'period': 200}

    References
    ----------
    Zhao, Zhang, Jiang & Zhou (2020), A simple approach for non-stationary linear bandits. AISTATS.
    """

    name = "restart-regression"
    kernels: ClassVar[Any] = ModelKernels(
        slots=(), start=regression.start, learn=learn_in_period, predict=predict_in_period, params=RestartParams
    )

    period: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "period", integer, 1, LARGEST_STEP)

    def params(self, setting: Setting) -> Any:
        return RestartParams(self.prior, self.period)
