"""A needle in a haystack: very many arms, and one that is good."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP, PATH, Stream, uniform
from dynabandit.environments.base import Environment, Kernels
from dynabandit.errors import integer, keep, number

__all__ = ["Needle"]

STRETCH, MEAN = range(2)
LOW, HIGH, PERIOD = range(3)
FOR_ALL = 0  # the arm in the key of a draw that all arms share


@kernel
def start(state: np.ndarray, arm: int, parameters: np.ndarray, table: np.ndarray, source: Stream) -> None:
    state[STRETCH, arm] = -1.0


@kernel
def advance(state: np.ndarray, arm: int, step: int, parameters: np.ndarray, table: np.ndarray, source: Stream) -> float:
    stretch = (step - 1) // int(parameters[PERIOD, arm])
    if stretch != state[STRETCH, arm]:
        arms = parameters.shape[1]
        needle = min(int(uniform(source, PATH, stretch + 1, FOR_ALL) * arms), arms - 1)
        state[STRETCH, arm] = stretch
        state[MEAN, arm] = parameters[HIGH, arm] if arm == needle else parameters[LOW, arm]
    return state[MEAN, arm]


@dataclass(frozen=True, kw_only=True)
class Needle(Environment):
    """Very many arms: one of them is good, and after each period another one may be.

    Parameters
    ----------
    arms
        How many arms, each equally likely to be the good one.
    low, high
        The mean of every arm but one, and the mean of that one, in [0, 1].
    period
        How many steps the good arm stays; each time all arms have the same chance, the last one too.

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

    name: ClassVar[str] = "needle"
    slots: ClassVar[tuple[str, ...]] = ("stretch", "mean")
    kernels: ClassVar[Kernels] = Kernels(start, advance)

    arms: int = 200
    low: float = 0.2
    high: float = 0.8
    period: int = 5000

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, low=number("low", self.low, 0.0, 1.0), high=number("high", self.high, 0.0, 1.0))
        if self.low > self.high:
            raise ValueError(f"low must not be above high, got {self.low!r} and {self.high!r}")
        keep(self, period=integer("period", self.period, 1, LARGEST_STEP))

    def numbers(self) -> np.ndarray:
        return np.repeat([[self.low], [self.high], [float(self.period)]], self.arms, axis=1)

    def still_until(self, step: int) -> int:
        return ((step - 1) // self.period + 1) * self.period
