"""Means recorded from data: the success rate of each arm in each period."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.environments.base import Environment, EnvironmentFunctions, EnvironmentStep
from dynabandit.environments.scheduled import mean_rewards, start
from dynabandit.validation import integer, set_fields


class Params(NamedTuple):
    period: np.ndarray


@kernel
def advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> float:
    return step.table[(step.number - 1) // int(params.period[arm]), arm]


@dataclass(frozen=True, kw_only=True, eq=False)
class Recorded(Environment):
    """Rates recorded from data: a reward in a period is one of the arm's outcomes in that period, drawn at random.

    `dynabandit.offline.flights` provides such rates for one year of flights.

    Parameters
    ----------
    rates
        An array (periods, arms) with the share of successes, in [0, 1].
    period
        The number of steps per period.

    Examples
    --------
    >>> import dynabandit as db
    >>> env = db.environment("recorded", rates=[[0.1, 0.9], [0.9, 0.1]], period=2)
    >>> env.path(horizon=4, seed=1)[:, 0].tolist()
    [0.1, 0.1, 0.9, 0.9]

    References
    ----------
    None; the rates are provided by the user.
    """

    name = "recorded"
    slots = ("unused",)
    functions = EnvironmentFunctions(start, advance, Params)

    arms: int = field(init=False)
    rates: Sequence[Sequence[float]] | np.ndarray = field(repr=False)
    period: int = 1

    def __post_init__(self) -> None:
        rates = mean_rewards("rates", self.rates)
        rates.setflags(write=False)
        set_fields(self, rates=rates, arms=rates.shape[1], period=integer("period", self.period, 1, LARGEST_STEP))
        super().__post_init__()

    def params(self) -> Params:
        return Params(*self.per_arm(float(self.period)))

    def table(self) -> np.ndarray:
        return np.asarray(self.rates)

    def constant_until(self, step: int) -> int:
        return ((step - 1) // self.period + 1) * self.period

    @property
    def longest(self) -> int:
        return min(len(self.rates) * self.period, LARGEST_STEP)
