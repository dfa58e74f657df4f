"""Means that decay with time."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import START, uniform_pair, words
from dynabandit.environments.base import Environment, EnvironmentFunctions, EnvironmentStep
from dynabandit.validation import check_field, number

INITIAL, RATE = range(2)


class Params(NamedTuple):
    low: np.ndarray
    high: np.ndarray
    fastest: np.ndarray
    slowest: np.ndarray


@kernel
def start(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> None:
    level, speed = uniform_pair(words(step.random, START, 0, arm, 0))
    low = params.low[arm]
    state[INITIAL, arm] = low + (params.high[arm] - low) * level
    # A log-uniform half-life: the fastest one times a uniform power of slowest / fastest
    fastest = params.fastest[arm]
    state[RATE, arm] = math.log(2.0) / (fastest * (params.slowest[arm] / fastest) ** speed)


@kernel
def advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> float:
    return state[INITIAL, arm] * math.exp(-state[RATE, arm] * (step.number - 1))


@dataclass(frozen=True, kw_only=True)
class Rotting(Environment):
    """Means that fall with time, each arm at its own speed, so that the best arm changes.

    The means decay exponentially, each with its own half-life, whether the arms are played or not (restless bandit). In
    `RestedRotting` they decay with their own plays.

    Parameters
    ----------
    arms
        The number of arms.
    low, high
        The bounds of the initial mean of each arm, which is uniform between them, in [0, 1].
    fastest, slowest
        The bounds of the half-life of each arm in steps, which is log-uniform between them, at least 1.

    Examples
    --------
    >>> import dynabandit as db
    >>> env = db.environment("rotting", arms=2, low=0.8, high=0.8, fastest=10, slowest=10)
    >>> env.path(horizon=21, seed=1)[::10, 0].round(3).tolist()
    [0.8, 0.4, 0.2]

    References
    ----------
    Levine, Crammer & Mannor (2017), Rotting bandits. NIPS. There, arms decay with their plays (rested bandit).
    """

    name = "rotting"
    slots = ("initial", "rate")
    functions = EnvironmentFunctions(start, advance, Params)

    low: float = 0.5
    high: float = 1.0
    fastest: float = 500.0
    slowest: float = 50_000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "low", number, 0.0, 1.0)
        check_field(self, "high", number, 0.0, 1.0)
        check_field(self, "fastest", number, 1.0, math.inf)
        check_field(self, "slowest", number, 1.0, math.inf)
        for least, most in (("low", "high"), ("fastest", "slowest")):
            if getattr(self, least) > getattr(self, most):
                raise ValueError(
                    f"{least} must not be above {most}, got {getattr(self, least)!r} and {getattr(self, most)!r}"
                )

    def params(self) -> Params:
        return Params(*self.per_arm(self.low, self.high, self.fastest, self.slowest))
