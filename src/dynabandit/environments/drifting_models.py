"""Linear and logistic models whose coefficients drift: one model per arm, or one for all arms."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.context import Context
from dynabandit.core.streams import FEATURES, LARGEST_STEP, PATH, START, pick, uniform
from dynabandit.environments.base import Environment, EnvironmentFunctions, EnvironmentStep
from dynabandit.environments.linear import LARGEST_DIMENSION, normal_vector
from dynabandit.environments.random_walks import logistic
from dynabandit.environments.reward_laws import BERNOULLI, Normal, RewardLaw
from dynabandit.validation import check_field, integer, number, unknown

SPAN = 8.0  # linear means in [-8, 8] have values in [0, 1]; larger ones, which hardly occur, are clipped
FOR_ALL = LARGEST_STEP  # the arm in the key of a random number that all arms share
CHANGES = ("none", "flip", "redraw", "jump", "breakpoints", "turn", "walk")
MODELS = ("separate", "shared")
NONE, FLIP, REDRAW, JUMP, BREAKPOINTS, TURN, WALK = range(len(CHANGES))


class Params(NamedTuple):
    change: np.ndarray  # the place in CHANGES
    period: np.ndarray
    scale: np.ndarray
    shared: np.ndarray  # 1.0 if all arms have the same coefficients
    travel: np.ndarray
    logistic: np.ndarray  # 1.0 if the mean is the logistic function of the linear model


@kernel
def inner(a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for place in range(a.size):
        total += a[place] * b[place]
    return total


@kernel
def draw_model(target: np.ndarray, arm: int, role: int, step: EnvironmentStep, params: Params) -> None:
    """Write normal numbers with a squared length of 1 on average; arms that share a model draw the same ones."""
    normal_vector(target, role, step.number, arm if params.shared[arm] == 0.0 else 0, step.random)
    for place in range(target.size):
        target[place] /= math.sqrt(target.size)


@kernel
def set_length(target: np.ndarray, length: float) -> None:
    factor = length / math.sqrt(inner(target, target))
    for place in range(target.size):
        target[place] *= factor


@kernel
def start(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> None:
    dimension = step.features.shape[1]
    model, second = state[:dimension, arm], state[dimension : 2 * dimension, arm]
    draw_model(model, arm, START, step, params)
    if int(params.change[arm]) != WALK:
        set_length(model, 1.0)
    if int(params.change[arm]) == TURN:  # the plane of the turn is spanned by two orthogonal vectors
        draw_model(second, arm, PATH, step, params)
        shadow = inner(model, second)
        for place in range(dimension):
            second[place] -= shadow * model[place]
        set_length(second, 1.0)


@kernel
def write_features(state: np.ndarray, row: int, step: EnvironmentStep, params: Params) -> None:
    features = step.features[row]
    normal_vector(features, FEATURES, step.number, row, step.random)
    if params.shared[row] == 0.0:
        features[0] = 1.0
    if params.travel[row] > 0.0:
        for place in range(1, features.size):
            angle = 2.0 * math.pi * (step.number / params.period[row] + place / features.size)
            features[place] += params.travel[row] * math.sin(angle)


@kernel
def is_redrawn(arm: int, step: EnvironmentStep, params: Params) -> bool:
    """Return whether the arm has new coefficients at this step."""
    change = int(params.change[arm])
    if step.number == 1:
        return False
    if change == BREAKPOINTS:
        return uniform(step.random, PATH, step.number, FOR_ALL) * params.period[arm] < 1.0
    if (step.number - 1) % int(params.period[arm]) > 0:
        return False
    return change == REDRAW or (change == JUMP and pick(step.random, PATH, step.number, FOR_ALL, step.arms) == arm)


@kernel
def walk(model: np.ndarray, new: np.ndarray, period: float) -> None:
    """Move the coefficients by one step of an AR(1) process, which forgets its past within about a period."""
    kept = 1.0 - 1.0 / period
    share = math.sqrt(1.0 - kept * kept)
    for place in range(model.size):
        model[place] = kept * model[place] + share * new[place]


@kernel
def advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> float:
    features = step.features[arm if params.shared[arm] == 1.0 else 0]
    model, second = state[: features.size, arm], state[features.size : 2 * features.size, arm]
    change, before = int(params.change[arm]), step.number - 1
    if is_redrawn(arm, step, params):
        draw_model(model, arm, PATH, step, params)
        set_length(model, 1.0)
    if change == WALK and before > 0:
        draw_model(second, arm, PATH, step, params)
        walk(model, second, params.period[arm])
    linear = inner(model, features)
    if change == FLIP and (before // int(params.period[arm])) % 2 == 1:
        linear = -linear
    if change == TURN:
        angle = 2.0 * math.pi * (before / params.period[arm])
        linear = math.cos(angle) * linear + math.sin(angle) * inner(second, features)
    linear *= params.scale[arm]
    if params.logistic[arm] == 1.0:
        return logistic(linear)
    return min(max(0.5 + 0.5 * linear / SPAN, 0.0), 1.0)


@dataclass(frozen=True, kw_only=True)
class LinDrift(Environment):
    r"""Rewards that are a linear function of the features, whose coefficients change, with a model for each arm or one
    for all arms.

    Parameters
    ----------
    arms
        The number of arms, at least 2.
    dimension
        The number of features, from 2 to 256.
    models
        ``"separate"``: each arm has its own coefficients, and a step has one feature vector for all arms, which begins
        with the constant 1. ``"shared"``: all arms have the same coefficients, and each arm has its own features.
    change
        How the coefficients change: ``"none"``; ``"flip"``, all change their sign after every period; ``"redraw"``, all
        are drawn again; ``"jump"``, those of one arm are; ``"breakpoints"``, all are drawn again at random steps, once
        per period on average; ``"turn"``, each model turns in a random plane, once around per period; ``"walk"``, each
        coefficient is an AR(1) process that forgets its past within about a period.
    period
        The period of the changes in steps.
    scale
        The length of a coefficient vector; with features of variance 1 it is the standard deviation of the mean
        rewards. For a walk it is the length on average.
    travel
        How far the mean of each feature moves, like a sine with the period; 0 if it stays at 0. The first feature does
        not move: it is the constant 1 with separate models, and has the mean 0 with a shared one.
    rewards
        The reward law; by default normal with mean :math:`\theta_t' x` and standard deviation 0.5.

    Examples
    --------
    >>> import dynabandit as db
    >>> environment = db.environment("lin-drift", arms=3, dimension=4, change="turn", period=2000)
    >>> environment.features(horizon=100, seed=1).shape, environment.path(horizon=100, seed=1).shape
    ((100, 1, 4), (100, 3))

    Notes
    -----
    Features are independent standard normal numbers, and the directions of the coefficients are uniform. Each
    replication draws its own. The value of the path is :math:`(1 + \theta_t' x / 8) / 2`, so that other reward laws can
    be used; Bernoulli rewards then hardly depend on the features, other than those of ``"logistic-drift"``.

    References
    ----------
    None; the kinds of changes are those of environments without context.
    """

    name = "lin-drift"
    slots = ("model", "second")
    functions = EnvironmentFunctions(start, advance, Params, write_features=write_features)
    is_logistic: ClassVar[bool] = False

    arms: int = 4
    dimension: int = 5
    models: str = "separate"
    change: str = "flip"
    period: int = 1000
    scale: float = 1.0
    travel: float = 0.0
    rewards: RewardLaw = field(default=Normal(low=-SPAN, high=SPAN, deviation=0.5), repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.change not in CHANGES:
            raise unknown("value of change", self.change, CHANGES)
        if self.models not in MODELS:
            raise unknown("value of models", self.models, MODELS)
        check_field(self, "dimension", integer, 2, LARGEST_DIMENSION)
        check_field(self, "period", integer, 1, LARGEST_STEP)
        check_field(self, "scale", number, 0.0, 100.0, open_low=True)
        check_field(self, "travel", number, 0.0, 100.0)
        if self.models == "shared" and self.change == "jump":
            raise ValueError("change='jump' changes the model of one arm and needs models='separate', got 'shared'")

    @property
    def context(self) -> Context:
        return Context(self.dimension, per_arm=self.models == "shared")

    def state_size(self) -> int:
        return len(self.slots) * self.dimension

    def params(self) -> Params:
        change, shared = CHANGES.index(self.change), self.models == "shared"
        return Params(*self.per_arm(change, self.period, self.scale, shared, self.travel, self.is_logistic))


@dataclass(frozen=True, kw_only=True)
class MovingContexts(LinDrift):
    r"""Visitors with features: preferences never change, but with time other visitors come.

    Rewards are linear with constant coefficients, and the distribution of the features moves. Forgetting does not pay
    here: a model that forgets has to learn again what it knew when the features return.

    Parameters
    ----------
    arms, dimension, models, scale
        As for ``"lin-drift"``.
    change
        How the coefficients change, as for ``"lin-drift"``; by default they do not.
    period
        After how many steps the features return, and the period of changes.
    travel
        How far the mean of each feature except the first one moves, like a sine; the features have a standard deviation
        of 1.
    rewards
        The reward law; by default normal with mean :math:`\theta' x` and standard deviation 0.5.

    Examples
    --------
    >>> import dynabandit as db
    >>> features = db.environment("moving-contexts", dimension=3, travel=2).features(horizon=2000, seed=1)
    >>> features[:, 0].reshape(20, 100, 3).mean(axis=1)[::5, 1].round().tolist()
    [2.0, -1.0, -2.0, 1.0]

    References
    ----------
    None; the change of the distribution of features alone is known as covariate shift.
    """

    name = "moving-contexts"

    change: str = "none"
    period: int = 2000
    travel: float = 2.0


@dataclass(frozen=True, kw_only=True)
class LogisticDrift(LinDrift):
    r"""Visitors with features: what each visitor prefers depends on the features, and this changes with time.

    Rewards are 0 or 1, and their probability is a logistic function of the features, whose coefficients change.

    Parameters
    ----------
    arms, dimension, models, change, period, travel
        As for ``"lin-drift"``.
    scale
        The length of a coefficient vector: the standard deviation of the log-odds.
    rewards
        The reward law; by default Bernoulli.

    Examples
    --------
    >>> import dynabandit as db
    >>> path = db.environment("logistic-drift", arms=3).path(horizon=100, seed=1)
    >>> bool(((path > 0.0) & (path < 1.0)).all())
    True

    Notes
    -----
    With the coefficients :math:`\theta_t` of the arm and the features x the probability of a reward is

    .. math:: \frac{1}{1 + e^{-\theta_t' x}}

    References
    ----------
    None; the kinds of changes are those of environments without context.
    """

    name = "logistic-drift"
    is_logistic = True

    scale: float = 2.0
    rewards: RewardLaw = field(default=BERNOULLI, repr=False)
