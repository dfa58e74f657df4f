"""Constant means with one burst of changes."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP, PATH, START, uniform, uniform_pair, words
from dynabandit.environments.base import Environment, EnvironmentFunctions, EnvironmentStep
from dynabandit.validation import check_field, integer, number


class Params(NamedTuple):
    first: np.ndarray
    end: np.ndarray
    rate: np.ndarray


@kernel
def start(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> None:
    state[0, arm] = uniform(step.random, START, 0, arm)


@kernel
def advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> float:
    if params.first[arm] <= step.number < params.end[arm]:
        level, chance = uniform_pair(words(step.random, PATH, step.number, arm, 0))
        if chance < params.rate[arm]:
            state[0, arm] = level
    return state[0, arm]


@dataclass(frozen=True, kw_only=True)
class Burst(Environment):
    """Means that are constant, except for one period in which all of them change often.

    The means are drawn from U(0, 1). A policy whose forgetting is tuned to the number of changes forgets too fast
    before and after the burst.

    Parameters
    ----------
    arms
        The number of arms.
    first
        The first step of the burst; with a shorter horizon there are no changes.
    length
        The number of steps of the burst.
    rate
        The probability that an arm draws a new mean at a step of the burst, in [0, 1].

    Examples
    --------
    >>> import dynabandit as db
    >>> path = db.environment("burst", first=100, length=50, rate=0.5).path(horizon=1000, seed=1)
    >>> bool((path[:99] == path[0]).all() and (path[149:] == path[149]).all() and (path[0] != path[149]).all())
    True

    References
    ----------
    None; it is the opposite of the evenly spread changes that the tuning rules of Garivier & Moulines (2011) assume.
    """

    name = "burst"
    slots = ("mean",)
    functions = EnvironmentFunctions(start, advance, Params)

    first: int = 4000
    length: int = 1000
    rate: float = 0.02

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "first", integer, 1, LARGEST_STEP)
        check_field(self, "length", integer, 0, LARGEST_STEP)
        check_field(self, "rate", number, 0.0, 1.0)

    def params(self) -> Params:
        return Params(*self.per_arm(float(self.first), float(self.first + self.length), self.rate))

    def constant_until(self, step: int) -> int:
        if step >= self.first + self.length or self.length == 0 or self.rate == 0.0:
            return LARGEST_STEP
        return max(step, self.first - 1)
