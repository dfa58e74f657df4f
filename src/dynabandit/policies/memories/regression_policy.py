"""What policies with regression models share: which model an arm has, predictions, learning and draws.

`models` has one row per arm (separate models), a single row (one model shared by all arms), or one row per arm and a
last row that all arms share (hybrid). In a hybrid the shared model learns all rewards as if it were alone, and the
model of an arm learns what its prediction leaves unexplained; a prediction is the sum of both, and so is its variance.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.core.context import Context
from dynabandit.core.streams import SCORE, SECOND, normal_pair, words
from dynabandit.estimators import regression_kernels
from dynabandit.estimators.base import Belief
from dynabandit.estimators.linear_model import dot, faded, inverse_at, square, theta_at
from dynabandit.estimators.regression_kernels import (
    FORGETTING,
    Regression,
    RegressionParams,
    S,
    kept_until,
    matrix_at,
    number_at,
)
from dynabandit.policies.base import Policy, PolicyFunctions, PolicyState, Reward, ScoreLaw, Step, row_of
from dynabandit.policies.rules.score_laws import STUDENT
from dynabandit.validation import LARGEST_FACTOR, LEAST_FACTOR, NORMAL, check_field, listed, number

SMALLEST_PIVOT = 1e-14  # of a Cholesky factor, relative to the variance; a smaller one is a rounding error
MODELS = ("auto", "separate", "shared", "hybrid")


class Params(NamedTuple):
    """The parameters of all regression policies."""

    prior: float
    step_size: float  # of the forgetting factor
    width: float  # of a confidence bound, or the scale of a draw


@kernel
def start(state: PolicyState, arm: int, params: Any) -> None:
    """Write nothing: `Policy.initial_models` has the models without rewards."""


@inlined_kernel
def is_hybrid(state: PolicyState) -> bool:
    """Whether arms have models of their own and a shared one."""
    return state.models.shape[0] > state.last_played.size


@inlined_kernel
def has_shared_row(state: PolicyState) -> bool:
    """Whether the last row is a model of all arms: the only one, or that of a hybrid."""
    return state.models.shape[0] != state.last_played.size


def make_of_model(kernels: Regression) -> Callable[..., tuple[float, float]]:
    """Return of_model(model, x, number, prior): the predictor and its variance after step `number`."""
    variance = kernels.variance

    @inlined_kernel
    def of_model(model: np.ndarray, x: np.ndarray, number: int, prior: float) -> tuple[float, float]:
        found, kept = variance(model, x), kept_until(model, x.size, number)
        precision = prior / square(x) if kept < 1.0 and found > 0.0 else 0.0
        return faded(dot(model, theta_at(x.size), x), found, kept, precision)

    return of_model


def make_prediction(kernels: Regression) -> Callable[..., tuple[float, float]]:
    """Return prediction(state, arm, step, params): the predictor of an arm's reward and its variance."""
    of_model = make_of_model(kernels)

    @inlined_kernel
    def prediction(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float]:
        x, mean, variance = step.features[row_of(step.features, arm)], 0.0, 0.0
        for turn in range(2 if is_hybrid(state) else 1):
            row = row_of(state.models, arm) if turn == 0 else step.arms
            own_mean, own_variance = of_model(state.models[row], x, step.number - 1, params.prior)
            mean, variance = mean + own_mean, variance + own_variance
        return mean, variance

    return prediction


def make_learn(kernels: Regression) -> Callable[..., None]:
    """Return learn(state, arm, reward, params)."""
    learn_one, adaptive = kernels.learn, kernels.kind.adaptive

    @kernel
    def learn(state: PolicyState, arm: int, reward: Reward, params: Any) -> None:
        x, times, offset = reward.features, (reward.decided_at, reward.arrived_at), 0.0
        turns = 2 if is_hybrid(state) else 1
        for turn in range(turns):  # the shared model of a hybrid, then the arm's own
            row = row_of(state.models, arm) if turn == turns - 1 else state.last_played.size
            before = dot(state.models[row], theta_at(x.size), x)
            learn_one(state.models[row], x, reward.value, offset, times, params)
            offset = before
        model = state.models[row_of(state.models, arm)]
        if adaptive:  # for `belief`
            if state.models.shape[0] > 1:
                state.memory[0, arm] = model[number_at(FORGETTING, x.size)]
            else:
                state.shared[0] = model[number_at(FORGETTING, x.size)]

    return learn


def upper_bound_functions(kernels: Regression) -> PolicyFunctions:
    """Return the functions of a policy that plays the arm with the largest upper confidence bound."""
    prediction = make_prediction(kernels)

    @kernel
    def score(state: PolicyState, arm: int, step: Step, params: Any) -> float:
        mean, variance = prediction(state, arm, step, params)
        return mean + params.width * math.sqrt(variance)

    return PolicyFunctions(start=start, learn=make_learn(kernels), score=score, params=Params, contextual=True)


def thompson_functions(kernels: Regression) -> PolicyFunctions:
    """Return the functions of Thompson sampling: models of arms are drawn independently, a shared one once per step."""
    of_model, kind, variance_of = make_of_model(kernels), kernels.kind, kernels.variance
    squared = kind.squared or kind.adaptive

    @kernel
    def prepare(state: PolicyState, step: Step, params: Any) -> None:
        if has_shared_row(state):
            model, d = state.models[state.models.shape[0] - 1], step.features.shape[1]
            draw_deviation(model, matrix_at(S, d) if squared else inverse_at(d), d, step, params.width)

    @inlined_kernel
    def shared_draw(model: np.ndarray, x: np.ndarray, number: int, prior: float) -> float:
        mean, deviation = dot(model, theta_at(x.size), x), dot(model, deviation_at(model, x.size), x)
        kept = kept_until(model, x.size, number)
        if kept == 1.0:
            return mean + deviation
        variance = variance_of(model, x)
        if not variance > 0.0:  # all features are 0
            return mean + deviation
        later_mean, later = faded(mean, variance, kept, prior / square(x))
        return later_mean + deviation * math.sqrt(later / variance)

    @inlined_kernel
    def own_law(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float]:
        """Return mean and deviation of what the arm's own model predicts."""
        x = step.features[row_of(step.features, arm)]
        mean, variance = of_model(state.models[row_of(state.models, arm)], x, step.number - 1, params.prior)
        return mean, params.width * math.sqrt(variance)

    @kernel
    def score(state: PolicyState, arm: int, step: Step, params: Any) -> float:
        x = step.features[row_of(step.features, arm)]
        total = 0.0
        if has_shared_row(state):
            total = shared_draw(state.models[state.models.shape[0] - 1], x, step.number - 1, params.prior)
        if is_hybrid(state) or not has_shared_row(state):
            mean, deviation = own_law(state, arm, step, params)
            normal, _ = normal_pair(words(step.random, SCORE, step.number, arm, 0))
            total += mean + normal * deviation
        return total

    @kernel
    def law(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float, float]:
        if has_shared_row(state):  # the scores of all arms depend on the same drawn coefficients
            return math.nan, math.nan, math.inf
        mean, deviation = own_law(state, arm, step, params)
        return mean, deviation, math.inf

    return PolicyFunctions(
        start=start, learn=make_learn(kernels), score=score, params=Params, prepare=prepare, contextual=True,
        law=ScoreLaw(STUDENT, law),
    )  # fmt: skip


# If Thompson sampling draws the coefficients of a model, its vector ends with the difference between the draw and
# theta, and with the Cholesky factor
@inlined_kernel
def deviation_at(model: np.ndarray, dimension: int) -> int:
    """Return where the deviation of the drawn coefficients begins."""
    return model.size - dimension * (dimension + 1)


@kernel
def draw_deviation(model: np.ndarray, covariance: int, dimension: int, step: Step, scale: float) -> None:
    """Draw from N(0, scale^2 C), where the matrix C begins at `covariance`, by its Cholesky factor."""
    d = dimension
    deviation, factor = deviation_at(model, d), model.size - d * d
    for i in range(d * d):
        model[factor + i] = model[covariance + i]
    for i in range(d):
        model[deviation + i] = 0.0
    for k in range(d):
        pivot = factor + k * d
        normals = normal_pair(words(step.random, SECOND, step.number, k // 2, 0))
        normal = scale * (normals[0] if k % 2 == 0 else normals[1])
        least = SMALLEST_PIVOT * model[covariance + k * d + k]
        root = 1.0 / math.sqrt(model[pivot + k]) if model[pivot + k] > least else 0.0
        for j in range(k, d):
            model[pivot + j] *= root
            model[deviation + j] += normal * model[pivot + j]
        for i in range(k + 1, d):
            row, share = factor + i * d, model[pivot + i]
            for j in range(i, d):
                model[row + j] -= share * model[pivot + j]


@dataclass(frozen=True, kw_only=True)
class RegressionPolicy(Policy):
    """A policy whose models are those of `estimators.regression_kernels`."""

    slots = ("forgetting",)  # of the arm's own model, if it is adaptive and has a reward
    rewards = NORMAL
    needs_double = True  # with the 24 bits of a float32, small variances would be rounding errors after 10,000 rewards
    kernels: ClassVar[Regression]
    models: ClassVar[tuple[str, ...]] = MODELS  # the valid values of `model`
    is_drawn: ClassVar[bool] = False  # whether the coefficients of a shared model are drawn

    prior: float = 1.0
    model: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model not in self.models:
            raise ValueError(f"model must be one of {listed(self.models)}, got {self.model!r}")
        check_field(self, "prior", number, LEAST_FACTOR, LARGEST_FACTOR)

    def _estimator(self) -> RegressionParams:
        """Return the parameters of the regression."""
        return RegressionParams(self.prior, 1.0, 0.0)

    def models_shape(self, arms: int, context: Context) -> tuple[int, int]:
        if self.model == "shared" and not context.per_arm:
            raise ValueError(
                "model='shared' needs features of each arm: with one context for all arms, every arm would be "
                "predicted the same. Valid then: 'auto', 'separate', 'hybrid'"
            )
        shared = self.model == "shared" or (self.model == "auto" and context.per_arm)
        rows = 1 if shared else arms + (self.model == "hybrid")
        d = context.dimension
        draws = d * (d + 1) if self.is_drawn and (shared or self.model == "hybrid") else 0
        return rows, self.kernels.kind.size(d) + draws

    def initial_models(self, arms: int, context: Context) -> np.ndarray:
        rows, size = self.models_shape(arms, context)
        model = regression_kernels.initial(context.dimension, self.kernels.kind, self._estimator())
        return np.tile(np.pad(model, (0, size - len(model))), (rows, 1))

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        """Return NaN: the mean of an arm depends on the context."""
        return Belief(math.nan, math.nan, self._estimator().forgetting, math.nan)


@dataclass(frozen=True, kw_only=True)
class DiscountedPolicy(RegressionPolicy):
    """A policy with a fixed discount."""

    discount: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "discount", number, 0.0, 1.0, open_low=True)

    def _estimator(self) -> RegressionParams:
        return RegressionParams(self.prior, self.discount, 0.0)


@dataclass(frozen=True, kw_only=True)
class DiscountedPolicyWithWidth(DiscountedPolicy):
    """A policy with a fixed discount and a width of its bounds or draws."""

    width: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "width", number, 0.0, LARGEST_FACTOR)

    def params(self, arms: int) -> Any:
        return Params(self.prior, 0.0, self.width)


@dataclass(frozen=True, kw_only=True)
class AdaptivePolicy(RegressionPolicy):
    """A policy whose forgetting factors follow the data."""

    step_size: float = 0.2
    memory: float = 1000.0
    width: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "width", number, 0.0, LARGEST_FACTOR)
        check_field(self, "step_size", number, 0.0, 1.0)
        check_field(self, "memory", number, regression_kernels.SHORTEST_MEMORY, regression_kernels.LONGEST_MEMORY)

    def params(self, arms: int) -> Any:
        return Params(self.prior, self.step_size, self.width)

    def _estimator(self) -> RegressionParams:
        return RegressionParams(self.prior, 1.0 - 1.0 / self.memory, self.step_size)

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        """Return the forgetting factor of the arm's model; all else depends on the context."""
        forgetting = float(column[0] or shared[0] or self._estimator().forgetting)
        return Belief(math.nan, math.nan, forgetting, math.nan)
