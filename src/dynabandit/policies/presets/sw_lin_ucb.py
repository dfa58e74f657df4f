"""SW-LinUCB: LinUCB with the rewards of the last steps."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.context import Context
from dynabandit.estimators import linear_model, links
from dynabandit.estimators.linear_model import dot, space_at, theta_at
from dynabandit.estimators.regression_kernels import Kind, make_regression
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step, row_of
from dynabandit.policies.memories import regression_policy
from dynabandit.policies.memories.regression_policy import RegressionPolicy, make_prediction
from dynabandit.validation import LARGEST_FACTOR, check_field, integer, number

REGRESSION = make_regression(links.identity, Kind())
PREDICTION = make_prediction(REGRESSION)
LARGEST_WINDOW = 100_000
# A model is followed by a queue of the rewards in the window: its first place and length, then the places
FIRST, LENGTH, HEADER = 0, 1, 2
# Rounding errors of 1 - x' P x are about 1e-16 x' x / prior. If it is below this multiple of x' x / prior, it has fewer
# than four correct digits: the model is then computed anew, instead of divided by it
DIGITS = 1e-12
STEP, VALUE, FEATURES = 0, 1, 2  # the numbers of a place; the features follow


class Params(NamedTuple):
    prior: float
    step_size: float
    width: float
    window: int


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
def forget(model: np.ndarray, dimension: int, until: int, params: Params) -> None:
    """Remove the rewards of decisions up to step `until` from a model."""
    queue = model[queue_at(model, dimension, params.window) :]
    while queue[LENGTH] > 0.0 and queue[HEADER + int(queue[FIRST]) * (FEATURES + dimension) + STEP] <= until:
        forget_first(model, dimension, params)


@kernel
def forget_first(model: np.ndarray, dimension: int, params: Params) -> None:
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
def rebuild(model: np.ndarray, dimension: int, params: Params) -> None:
    """Compute a model anew from its queue, so that rounding errors do not add up."""
    queue, size = model[queue_at(model, dimension, params.window) :], FEATURES + dimension
    linear_model.reset(model, dimension, params.prior)
    for i in range(int(queue[LENGTH])):
        place = HEADER + (int(queue[FIRST]) + i) % params.window * size
        change(model, queue[place + FEATURES : place + size], queue[place + VALUE], 1.0, 0.0)


@kernel
def prepare(state: PolicyState, step: Step, params: Params) -> None:
    for row in range(state.models.shape[0]):
        forget(state.models[row], step.features.shape[1], step.number - 1 - params.window, params)


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    mean, variance = PREDICTION(state, arm, step, params)
    return mean + params.width * math.sqrt(variance)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
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


@dataclass(frozen=True, kw_only=True)
class SWLinUCB(RegressionPolicy):
    r"""LinUCB that uses only the rewards of the latest steps. Use it if you know how fast the effect of the features
    changes.

    Parameters
    ----------
    width
        The width of the confidence bound, at least 0, in units of the reward.
    window
        The number of steps whose rewards count, at least 1 and at most 100,000; a model keeps them all.
    prior
        The precision of the prior of every coefficient, in [1e-12, 1e12], in rewards: the ridge penalty.
    model
        ``"separate"``: a model for each arm; ``"shared"``: one model for all arms, which have features of their own;
        ``"auto"``: shared if arms have features of their own, else separate.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("sw-lin-ucb", window=200).label
    'sw-lin-ucb(window=200)'

    Notes
    -----
    The score of an arm with features x, with sums over the last `window` steps:

    .. math:: x' \theta + w \sqrt{ x' \Lambda^{-1} x }, \quad \Lambda = \alpha I + \sum_s x_s x_s', \quad
        \theta = \Lambda^{-1} \sum_s r_s x_s

    A reward that leaves the window is subtracted, and each model is computed anew once per window, and whenever the
    difference would be inaccurate, which takes features of 1000 and more (for a prior of 1). A late reward whose
    decision has left the window is ignored; another one leaves it in the order of arrival. The paper has one shared
    model, and a window that follows from the horizon and the variation of the coefficients.

    Cost per step: O(K d^2).

    References
    ----------
    Cheung, Simchi-Levi & Zhu (2019), Learning to optimize under non-stationarity. AISTATS.
    """

    name = "sw-lin-ucb"
    kernels = REGRESSION
    models = ("auto", "separate", "shared")
    functions = PolicyFunctions(
        start=regression_policy.start, learn=learn, score=score, prepare=prepare, params=Params, contextual=True
    )

    width: float = 1.0
    window: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "width", number, 0.0, LARGEST_FACTOR)
        check_field(self, "window", integer, 1, LARGEST_WINDOW)

    def params(self, arms: int) -> Any:
        return Params(self.prior, 0.0, self.width, self.window)

    def models_shape(self, arms: int, context: Context) -> tuple[int, int]:
        rows, size = super().models_shape(arms, context)
        return rows, size + HEADER + self.window * (FEATURES + context.dimension)
