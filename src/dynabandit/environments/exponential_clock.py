"""Abrupt changes at random times, with exponential waiting times."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import NamedTuple, cast

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import PATH, START, uniform_pair, words
from dynabandit.environments.base import Environment, EnvironmentFunctions, EnvironmentStep
from dynabandit.validation import integer, number, set_fields

MEAN, NEXT_CHANGE = range(2)
NEVER = 1e18


class Params(NamedTuple):
    rate: np.ndarray
    low: np.ndarray
    high: np.ndarray


@kernel
def start(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> None:
    renew(state, arm, step, params, words(step.random, START, 0, arm, 0))


@kernel
def advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> float:
    if step.number >= state[NEXT_CHANGE, arm]:
        renew(state, arm, step, params, words(step.random, PATH, step.number, arm, 0))
    return state[MEAN, arm]


@kernel
def renew(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params, four: tuple[int, int, int, int]) -> None:
    """Draw a new mean and the step of the next change."""
    level, clock = uniform_pair(four)
    low = params.low[arm]
    state[MEAN, arm] = low + (params.high[arm] - low) * level
    # A step has a change with probability 1 - exp(-theta), so P(no change in n steps) = exp(-theta n)
    rate = params.rate[arm]
    exponential = -math.log(clock)
    # Compiled code uses 64-bit integers: a larger wait would overflow to a negative number
    wait = exponential / rate if rate > exponential / NEVER else NEVER
    state[NEXT_CHANGE, arm] = step.number + math.ceil(wait)


@dataclass(frozen=True, kw_only=True)
class ExponentialClock(Environment):
    """Abrupt changes: each arm keeps its mean for a random time, then jumps to a new one.

    The times are those of a Poisson clock, and a new mean is drawn from U(low, high).

    Parameters
    ----------
    rates
        The rate theta of each arm's Poisson clock per step; with 0 it never rings.
    low, high
        The bounds of each arm's mean, in [0, 1].
    arms
        The number of arms, at least the number of rates, which is the default. If there are more arms, the parameters
        are repeated in order.

    Examples
    --------
    >>> import dynabandit as db
    >>> env = db.environment("exponential-clock", rates=[0.0, 0.1], low=[0.5, 0.0], high=[0.5, 1.0])
    >>> env.path(horizon=4, seed=1)[:, 0].tolist()
    [0.5, 0.5, 0.5, 0.5]

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, equation (27).
    """

    name = "exponential-clock"
    slots = ("mean", "next_change")
    functions = EnvironmentFunctions(start, advance, Params)

    rates: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    arms: int = cast(int, None)  # as many as rates

    def __post_init__(self) -> None:
        limits = {"rates": math.inf, "low": 1.0, "high": 1.0}
        for argument, limit in limits.items():
            values = getattr(self, argument)
            if not hasattr(values, "__len__") or isinstance(values, str) or len(values) == 0:
                raise ValueError(
                    f"{argument} must be a sequence of numbers, at least one, which arms take in turn, got {values!r}"
                )
            values = tuple(number(f"{argument}[{i}]", value, 0.0, limit) for i, value in enumerate(values))
            set_fields(self, **{argument: values})
        if not len(self.rates) == len(self.low) == len(self.high):
            raise ValueError(
                "rates, low and high must be equally long, "
                f"got {len(self.rates)}, {len(self.low)} and {len(self.high)} numbers"
            )
        for i, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            if low > high:
                raise ValueError(f"low[{i}] must not be above high[{i}], got {low!r} and {high!r}")
        if cast("int | None", self.arms) is None:
            set_fields(self, arms=len(self.rates))
        super().__post_init__()
        if self.arms < len(self.rates):
            raise ValueError(f"arms must be at least {len(self.rates)}, one for each of rates, got {self.arms}")

    def params(self) -> Params:
        return Params(*(np.array(list(islice(cycle(row), self.arms))) for row in (self.rates, self.low, self.high)))


@dataclass(frozen=True, kw_only=True)
class Case1(ExponentialClock):
    """Abrupt changes: after random times an arm jumps to a new mean between 0 and 1, odd arms rarely and even arms
    often. Case 1 of the paper.

    Parameters
    ----------
    arms
        The number of arms, at least 2.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environment("case-1", arms=50).arms
    50

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, table 1.
    """

    name = "case-1"

    arms: int = 2
    rates: Sequence[float] = field(default=(0.001, 0.010), init=False)
    low: Sequence[float] = field(default=(0.0, 0.0), init=False)
    high: Sequence[float] = field(default=(1.0, 1.0), init=False)

    def __post_init__(self) -> None:
        integer("arms", self.arms, 2)
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class Case2(Case1):
    """Abrupt changes as in Case 1, but odd arms are better most of the time: their means are in [0.3, 1], those of even
    arms in [0, 0.7]. Case 2 of the paper.

    Parameters
    ----------
    arms
        The number of arms, at least 2.

    Examples
    --------
    >>> import dynabandit as db
    >>> bool(db.environment("case-2").path(horizon=500, seed=1)[:, 0].min() >= 0.3)
    True

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, table 1.
    """

    name = "case-2"

    low: Sequence[float] = field(default=(0.3, 0.0), init=False)
    high: Sequence[float] = field(default=(1.0, 0.7), init=False)
