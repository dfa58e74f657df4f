"""What is remembered for decisions with features: regressions without, with fixed and with adaptive forgetting.

`models` has one row per arm (separate models), a single row (one model shared by all arms), or one row per arm and a
last row that all arms share (hybrid). In a hybrid the shared model learns all rewards as if it were alone, and the
model of an arm learns what its prediction leaves unexplained; a prediction is the sum of both, and so is its variance.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.core.context import Context
from dynabandit.core.streams import SCORE, SECOND, normal_pair, words
from dynabandit.policies.base import PolicyState, Reward, Step, row_of
from dynabandit.policies.belief import Belief
from dynabandit.policies.memories import links, regression_kernels
from dynabandit.policies.memories.linear_model import dot, faded, inverse_at, square, theta_at
from dynabandit.policies.memories.models import COEFFICIENTS, Draws, ModelKernels, ModelMemory
from dynabandit.policies.memories.regression_kernels import (
    FORGETTING,
    Kind,
    Regression as Kernels,
    RegressionParams,
    S,
    kept_until,
    make_regression,
    matrix_at,
    number_at,
)
from dynabandit.policies.part import Setting
from dynabandit.validation import BOUNDED, COUNTS, LARGEST_FACTOR, LEAST_FACTOR, NORMAL, check_field, listed, number

SMALLEST_PIVOT = 1e-14  # of a Cholesky factor, relative to the variance; a smaller one is a rounding error
MODELS = ("auto", "separate", "shared", "hybrid")


@kernel
def start(state: PolicyState, arm: int, params: Any) -> None:
    """Write nothing: `ModelMemory.initial_models` has the models without rewards."""


@kernel
def squared_weights(state: PolicyState, number: int, params: RegressionParams) -> float:
    """Return the sum of the squared weights of the past steps."""
    squared = params.forgetting * params.forgetting
    return number - 1.0 if squared == 1.0 else (1.0 - squared ** (number - 1.0)) / (1.0 - squared)


@inlined_kernel
def is_hybrid(state: PolicyState) -> bool:
    """Whether arms have models of their own and a shared one."""
    return state.models.shape[0] > state.last_played.size


@inlined_kernel
def has_shared_row(state: PolicyState) -> bool:
    """Whether the last row is a model of all arms: the only one, or that of a hybrid."""
    return state.models.shape[0] != state.last_played.size


def make_of_model(kernels: Kernels) -> Callable[..., tuple[float, float]]:
    """Return of_model(model, x, number, prior): the predictor and its variance after step `number`."""
    variance = kernels.variance

    @inlined_kernel
    def of_model(model: np.ndarray, x: np.ndarray, number: int, prior: float) -> tuple[float, float]:
        found, kept = variance(model, x), kept_until(model, x.size, number)
        precision = prior / square(x) if kept < 1.0 and found > 0.0 else 0.0
        return faded(dot(model, theta_at(x.size), x), found, kept, precision)

    return of_model


def make_prediction(kernels: Kernels) -> Callable[..., tuple[float, float]]:
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


def make_learn(kernels: Kernels) -> Callable[..., None]:
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


def make_draws(kernels: Kernels) -> Draws:
    """Return the kernels of Thompson sampling: models of arms are drawn independently, a shared one once per step."""
    of_model, kind, variance_of = make_of_model(kernels), kernels.kind, kernels.variance
    squared = kind.squared or kind.adaptive

    @kernel
    def prepare(state: PolicyState, step: Step, scale: float) -> None:
        if has_shared_row(state):
            model, d = state.models[state.models.shape[0] - 1], step.features.shape[1]
            draw_deviation(model, matrix_at(S, d) if squared else inverse_at(d), d, step, scale)

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
    def own_law(state: PolicyState, arm: int, step: Step, scale: float, params: Any) -> tuple[float, float]:
        """Return mean and deviation of what the arm's own model predicts."""
        x = step.features[row_of(step.features, arm)]
        mean, variance = of_model(state.models[row_of(state.models, arm)], x, step.number - 1, params.prior)
        return mean, scale * math.sqrt(variance)

    @kernel
    def score(state: PolicyState, arm: int, step: Step, scale: float, params: Any) -> float:
        x = step.features[row_of(step.features, arm)]
        total = 0.0
        if has_shared_row(state):
            total = shared_draw(state.models[state.models.shape[0] - 1], x, step.number - 1, params.prior)
        if is_hybrid(state) or not has_shared_row(state):
            mean, deviation = own_law(state, arm, step, scale, params)
            normal, _ = normal_pair(words(step.random, SCORE, step.number, arm, 0))
            total += mean + normal * deviation
        return total

    @kernel
    def law(state: PolicyState, arm: int, step: Step, scale: float, params: Any) -> tuple[float, float, float]:
        if has_shared_row(state):  # the scores of all arms depend on the same drawn coefficients
            return math.nan, math.nan, math.inf
        mean, deviation = own_law(state, arm, step, scale, params)
        return mean, deviation, math.inf

    return Draws(prepare, score, law)


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


@functools.cache
def model_kernels(link: Callable[..., Any], kind: Kind) -> ModelKernels:
    """Return the kernels of a memory with regressions of one kind."""
    kernels = make_regression(link, kind)
    return ModelKernels(
        slots=("forgetting",) if kind.adaptive else (),  # of the arm's own model, if it has a reward
        start=start,
        learn=make_learn(kernels),
        predict=make_prediction(kernels),
        clock=squared_weights,
        draws=make_draws(kernels),
        shared=int(kind.adaptive),
        params=RegressionParams,
    )


@dataclass(frozen=True, kw_only=True)
class RegressionMemory(ModelMemory):
    """A memory whose models are those of `memories.regression_kernels`.

    Parameters
    ----------
    prior
        The precision of the prior of every coefficient, in [1e-12, 1e12]; in a linear regression it is the ridge
        penalty, in rewards.
    model
        ``"separate"``: a model for each arm; ``"shared"``: one model for all arms, which have features of their own;
        ``"hybrid"``: both; ``"auto"``: shared if arms have features of their own, else separate.
    """

    rewards = NORMAL
    kind: ClassVar[Kind] = Kind()
    models: ClassVar[tuple[str, ...]] = MODELS  # the valid values of `model`

    prior: float = 1.0
    model: str = "auto"

    def __post_init__(self) -> None:
        if self.model not in self.models:
            raise ValueError(f"model must be one of {listed(self.models)}, got {self.model!r}")
        check_field(self, "prior", number, LEAST_FACTOR, LARGEST_FACTOR)

    def _estimator(self) -> RegressionParams:
        """Return the parameters of the regression."""
        return RegressionParams(self.prior, 1.0, 0.0)

    def params(self, setting: Setting) -> Any:
        return self._estimator()

    def models_shape(self, arms: int, context: Context, family: str | None) -> tuple[int, int]:
        if self.model == "shared" and not context.per_arm:
            raise ValueError(
                "model='shared' needs features of each arm: with one context for all arms, every arm would be "
                "predicted the same. Valid then: 'auto', 'separate', 'hybrid'"
            )
        shared = self.model == "shared" or (self.model == "auto" and context.per_arm)
        rows = 1 if shared else arms + (self.model == "hybrid")
        d = context.dimension
        draws = d * (d + 1) if family == COEFFICIENTS and (shared or self.model == "hybrid") else 0
        return rows, self.kind.size(d) + draws

    def initial_models(self, arms: int, context: Context, family: str | None) -> np.ndarray:
        rows, size = self.models_shape(arms, context, family)
        model = regression_kernels.initial(context.dimension, self.kind, self._estimator())
        return np.tile(np.pad(model, (0, size - len(model))), (rows, 1))

    def belief(self, column: np.ndarray, shared: np.ndarray, setting: Setting) -> Belief:
        """Return NaN: the mean of an arm depends on the context."""
        return Belief(math.nan, math.nan, self._estimator().forgetting, math.nan)


@dataclass(frozen=True, kw_only=True)
class Regression(RegressionMemory):
    """Predict the rewards of an arm from features by linear regression, which may discount its data. Without a
    discount it never forgets: use it if the effect of the features does not change.

    Parameters
    ----------
    discount
        The factor by which the data fade per step, in (0, 1]; 1 keeps all data. The prior does not fade.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.Regression(discount=0.99).parameters
    {'prior': 1.0, 'model': 'auto', 'discount': 0.99}

    References
    ----------
    Li, Chu, Langford & Schapire (2010), A contextual-bandit approach to personalized news article recommendation. WWW.
    """

    name = "regression"
    kernels: ClassVar[Any] = model_kernels(links.identity, Kind())

    discount: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "discount", number, 0.0, 1.0, open_low=True)

    def _estimator(self) -> RegressionParams:
        return RegressionParams(self.prior, self.discount, 0.0)


@dataclass(frozen=True, kw_only=True)
class SquaredRegression(Regression):
    """A `Regression` that measures its uncertainty with squared weights, as the variance of discounted rewards does.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.SquaredRegression(discount=0.98).name
    'squared-regression'

    References
    ----------
    Russac, Vernade & Cappé (2019), Weighted linear bandits for non-stationary environments. NeurIPS.
    """

    name = "squared-regression"
    kind = Kind(squared=True)
    kernels = model_kernels(links.identity, Kind(squared=True))


@dataclass(frozen=True, kw_only=True)
class LogisticRegression(Regression):
    """A `Regression` for rewards of 0 or 1, such as clicks, and others in [0, 1]: it predicts their log-odds.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.LogisticRegression().rewards.name
    'bounded'

    References
    ----------
    Chapelle & Li (2011), An empirical evaluation of Thompson sampling. NIPS.
    """

    name = "logistic-regression"
    rewards = BOUNDED
    kernels = model_kernels(links.logistic, Kind())


@dataclass(frozen=True, kw_only=True)
class PoissonRegression(Regression):
    """A `Regression` for counts, such as sales: it predicts the logarithm of their mean.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.PoissonRegression().rewards.name
    'counts'

    References
    ----------
    Our own, in analogy to `LogisticRegression`.
    """

    name = "poisson-regression"
    rewards = COUNTS
    kernels = model_kernels(links.log, Kind())


@dataclass(frozen=True, kw_only=True)
class AdaptiveRegression(RegressionMemory):
    """A linear regression that sets its own memory: short when its predictions become worse, long otherwise. Use it if
    the effect of the features changes and you do not know how fast.

    Parameters
    ----------
    step_size
        The step size of the logarithm of the memory, in [0, 1].
    memory
        The memory at first, in steps, in [10, 10000]; its limits are the same.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.AdaptiveRegression(memory=100).parameters
    {'prior': 1.0, 'model': 'auto', 'step_size': 0.2, 'memory': 100.0}

    References
    ----------
    The contextual extension that Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, name as
    future work; the derivatives of recursive least squares are in Haykin (2002), Adaptive filter theory.
    """

    name = "adaptive-regression"
    kind = Kind(adaptive=True)
    kernels: ClassVar[Any] = model_kernels(links.identity, Kind(adaptive=True))

    step_size: float = 0.2
    memory: float = 1000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "step_size", number, 0.0, 1.0)
        check_field(self, "memory", number, regression_kernels.SHORTEST_MEMORY, regression_kernels.LONGEST_MEMORY)

    def _estimator(self) -> RegressionParams:
        return RegressionParams(self.prior, 1.0 - 1.0 / self.memory, self.step_size)

    def belief(self, column: np.ndarray, shared: np.ndarray, setting: Setting) -> Belief:
        """Return the forgetting factor of the arm's model; all else depends on the context."""
        forgetting = float(column[0] or shared[0] or self._estimator().forgetting)
        return Belief(math.nan, math.nan, forgetting, math.nan)


@dataclass(frozen=True, kw_only=True)
class AdaptiveLogisticRegression(AdaptiveRegression):
    """An `AdaptiveRegression` for rewards of 0 or 1, such as clicks, and others in [0, 1].

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.AdaptiveLogisticRegression().rewards.name
    'bounded'

    References
    ----------
    The contextual extension that Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, name as
    future work, for logistic models.
    """

    name = "adaptive-logistic-regression"
    rewards = BOUNDED
    kernels = model_kernels(links.logistic, Kind(adaptive=True))


@dataclass(frozen=True, kw_only=True)
class AdaptivePoissonRegression(AdaptiveRegression):
    """An `AdaptiveRegression` for counts, such as sales.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.AdaptivePoissonRegression().rewards.name
    'counts'

    References
    ----------
    The contextual extension that Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, name as
    future work, for counts.
    """

    name = "adaptive-poisson-regression"
    rewards = COUNTS
    kernels = model_kernels(links.log, Kind(adaptive=True))
