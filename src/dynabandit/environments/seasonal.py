"""Sinusoidal means."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.environments.base import Environment, EnvironmentFunctions, EnvironmentStep
from dynabandit.environments.scheduled import start
from dynabandit.validation import check_field, number


class Params(NamedTuple):
    middle: np.ndarray
    amplitude: np.ndarray
    period: np.ndarray
    phase: np.ndarray


@kernel
def advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> float:
    turn = (step.number / params.period[arm] + params.phase[arm]) % 1.0
    mean = params.middle[arm] + params.amplitude[arm] * math.sin(2.0 * math.pi * turn)
    return min(max(mean, 0.0), 1.0)


@dataclass(frozen=True, kw_only=True)
class Seasonal(Environment):
    """Means that rise and fall with a common period, such as a day; each arm has its peak at another time.

    The means are sinusoidal, and the peaks are evenly spaced over the period.

    Parameters
    ----------
    arms
        The number of arms; each is the best for a part of the period.
    period
        The period in steps, at least 1.
    middle
        The average of the means over a period, in [0, 1].
    amplitude
        The amplitude of the means; they must stay in [0, 1].

    Examples
    --------
    >>> import dynabandit as db
    >>> env = db.environment("seasonal", arms=2, period=4)
    >>> env.path(horizon=4, seed=1).round(3).tolist()
    [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9], [0.5, 0.5]]

    References
    ----------
    Sinusoidal arms are a common smooth environment, as in Besbes, Gur & Zeevi (2014), Stochastic multi-armed-bandit
    problem with non-stationary rewards. NIPS.
    """

    name = "seasonal"
    slots = ("unused",)
    functions = EnvironmentFunctions(start, advance, Params)

    period: float = 2000.0
    middle: float = 0.5
    amplitude: float = 0.4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "middle", number, 0.0, 1.0)
        check_field(self, "amplitude", number, 0.0, 1.0)
        room = min(self.middle, 1.0 - self.middle)
        if self.amplitude > room:
            raise ValueError(
                f"amplitude must be at most {room:g}, the room around middle={self.middle:g}, got {self.amplitude!r}"
            )
        check_field(self, "period", number, 1.0, math.inf)

    def params(self) -> Params:
        return Params(*self.per_arm(self.middle, self.amplitude, self.period, np.arange(self.arms) / self.arms))
