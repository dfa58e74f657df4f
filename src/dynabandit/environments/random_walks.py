"""Drift: random walks and AR(1) processes in [0, 1], by reflection or through the logistic function."""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import PATH, START, normal_pair, uniform, words
from dynabandit.environments.base import Environment, EnvironmentFunctions, EnvironmentStep
from dynabandit.validation import check_field, number

LARGEST_SPREAD = 1e300  # times a normal number it must stay finite
POSITION, SPARE = range(2)  # SPARE: the second normal number of a pair, for the next step


class Params(NamedTuple):
    deviation: np.ndarray


@kernel
def start(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> None:
    # mu_0 of Case 3 from its stationary distribution, z_0 of Case 4 as in equation (29): both uniform on (0, 1)
    state[POSITION, arm] = uniform(step.random, START, 0, arm)


@kernel
def innovation(state: np.ndarray, arm: int, step: EnvironmentStep, params: Any) -> float:
    """Return omega_t: odd steps draw a pair of normal numbers, even steps use its second number."""
    if step.number & 1:
        now, state[SPARE, arm] = normal_pair(words(step.random, PATH, step.number, arm, 0))
    else:
        now = state[SPARE, arm]
    return params.deviation[arm] * now


@kernel
def reflect(x: float) -> float:
    """The function f of equation (28)."""
    x = abs(x)
    if x >= 2.0:  # rare; a remainder costs as much as the rest of a step
        x %= 2.0
    return x if x <= 1.0 else 1.0 - (x - 1.0)


@kernel
def logistic(z: float) -> float:
    """1 / (1 + exp(-z)), without overflow."""
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@kernel
def reflected_advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> float:
    state[POSITION, arm] = reflect(state[POSITION, arm] + innovation(state, arm, step, params))
    return state[POSITION, arm]


@kernel
def logistic_advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> float:
    state[POSITION, arm] += innovation(state, arm, step, params)
    return logistic(state[POSITION, arm])


@dataclass(frozen=True, kw_only=True)
class ReflectedWalk(Environment):
    """The mean of each arm is a random walk that is reflected at 0 and 1.

    Its stationary distribution is uniform.

    Parameters
    ----------
    arms
        The number of arms, at least 2.
    variance
        The variance of one step of the walk.

    Examples
    --------
    >>> import dynabandit as db
    >>> path = db.environment("reflected-walk", arms=2, variance=0.01).path(horizon=1000, seed=1)
    >>> bool(((0 <= path) & (path <= 1)).all())
    True

    References
    ----------
    Slivkins & Upfal (2008), Adapting to a changing environment: the Brownian restless bandits. COLT.
    """

    name = "reflected-walk"
    slots = ("position", "spare")
    functions = EnvironmentFunctions(start, reflected_advance, Params)

    variance: float = 0.0001

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "variance", number, 0.0, math.inf)

    def params(self) -> Params:
        return Params(*self.per_arm(math.sqrt(self.variance)))


@dataclass(frozen=True, kw_only=True)
class LogisticWalk(ReflectedWalk):
    """The mean of each arm is a random walk that slows down near 0 and 1.

    It is the logistic function of a random walk; in the long run it approaches 0 or 1.

    Parameters
    ----------
    arms
        The number of arms, at least 2.
    variance
        The variance of one step of the walk.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environment("logistic-walk", arms=3, variance=0.001).path(horizon=10, seed=1).shape
    (10, 3)

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, equation (29).
    """

    name = "logistic-walk"
    functions = EnvironmentFunctions(start, logistic_advance, Params)

    variance: float = 0.001


class AutoregressiveParams(NamedTuple):
    deviation: np.ndarray  # of the noise of a step
    persistence: np.ndarray
    spread: np.ndarray  # the deviation of the stationary distribution


@kernel
def autoregressive_start(state: np.ndarray, arm: int, step: EnvironmentStep, params: AutoregressiveParams) -> None:
    first, _ = normal_pair(words(step.random, START, 0, arm, 0))
    state[POSITION, arm] = params.spread[arm] * first


@kernel
def autoregressive_advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: AutoregressiveParams) -> float:
    moved = params.persistence[arm] * state[POSITION, arm] + innovation(state, arm, step, params)
    state[POSITION, arm] = moved
    return logistic(moved)


@dataclass(frozen=True, kw_only=True)
class Autoregressive(Environment):
    """Drift that returns: the mean of each arm moves away from 0.5 at random and comes back again and again.

    It is the logistic function of an AR(1) process, which returns to 0.

    Parameters
    ----------
    arms
        The number of arms, at least 2.
    persistence
        The autocorrelation of successive steps, in [0, 1]; about 1 / (1 - persistence) steps are correlated.
    spread
        The standard deviation of the stationary distribution of the process, in [0, 1e300].

    Examples
    --------
    >>> import dynabandit as db
    >>> path = db.environment("ar-1", arms=2, persistence=0.99).path(horizon=10_000, seed=1)
    >>> bool((path.min(axis=0) < 0.3).all() and (path.max(axis=0) > 0.7).all())
    True

    References
    ----------
    Liu, Van Roy & Xu (2023), Nonstationary bandit learning via predictive sampling. AISTATS: AR(1) bandits. The
    logistic function keeps the means of Bernoulli rewards in (0, 1), as in Case 4 of Lu, Adams & Kantas.
    """

    name = "ar-1"
    slots = ("position", "spare")
    functions = EnvironmentFunctions(autoregressive_start, autoregressive_advance, AutoregressiveParams)

    persistence: float = 0.999
    spread: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "persistence", number, 0.0, 1.0)
        check_field(self, "spread", number, 0.0, LARGEST_SPREAD)

    def params(self) -> AutoregressiveParams:
        deviation = self.spread * math.sqrt(1.0 - self.persistence**2)
        return AutoregressiveParams(*self.per_arm(deviation, self.persistence, self.spread))


@dataclass(frozen=True, kw_only=True)
class Case3(ReflectedWalk):
    """Slow drift: the mean of each arm is a random walk between 0 and 1. Case 3 of the paper.

    The random walks are reflected at 0 and 1 and have the variance 0.0001.

    Parameters
    ----------
    arms
        The number of arms, at least 2.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environment("case-3").variance
    0.0001

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, equation (28).
    """

    name = "case-3"

    variance: float = field(default=0.0001, init=False)


@dataclass(frozen=True, kw_only=True)
class Case4(LogisticWalk):
    """Faster drift: the mean of each arm is a random walk that slows down near 0 and 1. Case 4 of the paper.

    The means are logistic functions of random walks with variance 0.001.

    Parameters
    ----------
    arms
        The number of arms, at least 2.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environment("case-4").variance
    0.001

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, equation (29).
    """

    name = "case-4"

    variance: float = field(default=0.001, init=False)
