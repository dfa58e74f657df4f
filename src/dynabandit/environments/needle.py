"""Very many arms, one of which is good."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP, PATH, pick
from dynabandit.environments.base import Environment, EnvironmentFunctions, EnvironmentStep
from dynabandit.validation import check_field, integer, number

STRETCH, MEAN = range(2)
FOR_ALL = 0  # the arm in the key of a random number that all arms share


class Params(NamedTuple):
    low: np.ndarray
    high: np.ndarray
    period: np.ndarray


@kernel
def start(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> None:
    state[STRETCH, arm] = -1.0


@kernel
def advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> float:
    stretch = (step.number - 1) // int(params.period[arm])
    if stretch != state[STRETCH, arm]:
        needle = pick(step.random, PATH, stretch + 1, FOR_ALL, step.arms)
        state[STRETCH, arm] = stretch
        state[MEAN, arm] = params.high[arm] if arm == needle else params.low[arm]
    return state[MEAN, arm]


@dataclass(frozen=True, kw_only=True)
class Needle(Environment):
    """Very many arms, one of which is good; after each period another arm may become the good one.

    Parameters
    ----------
    arms
        The number of arms; each is equally likely to be the good one.
    low, high
        The mean of all arms except the good one, and the mean of the good one, in [0, 1].
    period
        The number of steps after which the good arm is drawn again from all arms.

    Examples
    --------
    >>> import dynabandit as db
    >>> path = db.environment("needle", arms=1000, period=50).path(horizon=200, seed=1)
    >>> (path == 0.8).sum(axis=1).tolist() == [1] * 200, len(set(path.argmax(axis=1).tolist()))
    (True, 4)

    References
    ----------
    Wang, Audibert & Munos (2008), Algorithms for infinitely many-armed bandits. NIPS: many arms, few of them good.
    """

    name = "needle"
    slots = ("stretch", "mean")
    functions = EnvironmentFunctions(start, advance, Params)

    arms: int = 200
    low: float = 0.2
    high: float = 0.8
    period: int = 5000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "low", number, 0.0, 1.0)
        check_field(self, "high", number, 0.0, 1.0)
        if self.low > self.high:
            raise ValueError(f"low must not be above high, got {self.low!r} and {self.high!r}")
        check_field(self, "period", integer, 1, LARGEST_STEP)

    def params(self) -> Params:
        return Params(*self.per_arm(self.low, self.high, float(self.period)))

    def constant_until(self, step: int) -> int:
        return ((step - 1) // self.period + 1) * self.period
