"""PB1 to PB4, the piecewise-stationary benchmarks of GLR-klUCB, and their random generator."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP, PATH, START, uniform, uniform_pair, words
from dynabandit.environments.base import Environment, EnvironmentFunctions, EnvironmentStep
from dynabandit.environments.scheduled import Piecewise
from dynabandit.validation import integer, number, set_fields, unknown

MEAN = 0
FOR_ALL = LARGEST_STEP  # the arm in the key of a random number that all arms share
CHANGED = ("all", "one")  # which arms change at a breakpoint


@dataclass(frozen=True, kw_only=True)
class PB1(Piecewise):
    """Three arms and four changes, each of one arm: benchmark 1 of the authors of GLR-klUCB.

    Parameters
    ----------
    arms
        Always 3.
    segment
        The number of steps of each of the five segments. 1,000 corresponds to a horizon of 5,000; the authors'
        published runs have 20,000 steps with segments of 4,000.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environment("pb-1").path(horizon=5000, seed=1)[::1000].tolist()
    [[0.9, 0.5, 0.3], [0.9, 0.2, 0.3], [0.1, 0.2, 0.3], [0.1, 0.7, 0.3], [0.1, 0.7, 0.5]]

    References
    ----------
    Besson, Kaufmann, Maillard & Seznec (2022), Efficient change-point detection for tackling piecewise-stationary
    bandits. JMLR 23. The means are those of its authors' code, which publishes them as problem 1.
    """

    name = "pb-1"
    begins: ClassVar[tuple[int, ...]] = (0, 1, 2, 3, 4)  # of the segments, in units of `segment`
    units: ClassVar[int] = 5  # of the whole benchmark

    arms: int = 3
    segment: int = 1000
    starts: Sequence[int] = field(default=(), init=False)
    means: Sequence[Sequence[float]] = field(
        default=((0.9, 0.5, 0.3), (0.9, 0.2, 0.3), (0.1, 0.2, 0.3), (0.1, 0.7, 0.3), (0.1, 0.7, 0.5)), init=False
    )

    def __post_init__(self) -> None:
        integer("arms", self.arms, 3, 3)
        segment = integer("segment", self.segment, 1, LARGEST_STEP // self.units)
        set_fields(self, segment=segment, starts=tuple(1 + segment * begin for begin in self.begins))
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class PB2(PB1):
    """Three arms and four changes, each of all arms: benchmark 2 of the authors of GLR-klUCB.

    Parameters
    ----------
    arms
        Always 3.
    segment
        The number of steps of each of the five segments. 1,000 corresponds to a horizon of 5,000; the authors'
        published runs have 20,000 steps with segments of 4,000.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environment("pb-2").path(horizon=5000, seed=1)[::1000].tolist()
    [[0.9, 0.5, 0.4], [0.7, 0.4, 0.5], [0.5, 0.3, 0.6], [0.3, 0.2, 0.7], [0.1, 0.1, 0.8]]

    References
    ----------
    Besson, Kaufmann, Maillard & Seznec (2022), Efficient change-point detection for tackling piecewise-stationary
    bandits. JMLR 23. The means are those of its authors' code, which publishes them as problem 2.
    """

    name = "pb-2"

    means: Sequence[Sequence[float]] = field(
        default=((0.9, 0.5, 0.4), (0.7, 0.4, 0.5), (0.5, 0.3, 0.6), (0.3, 0.2, 0.7), (0.1, 0.1, 0.8)), init=False
    )


@dataclass(frozen=True, kw_only=True)
class PB3(PB1):
    """Three arms and three changes of all or nearly all arms, most of them large: benchmark 3 of the authors of
    GLR-klUCB.

    Parameters
    ----------
    arms
        Always 3.
    segment
        The number of steps of each of the four segments; 1,250 corresponds to a horizon of 5,000.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environment("pb-3").path(horizon=5000, seed=1)[::1250].tolist()
    [[0.1, 0.2, 0.9], [0.4, 0.9, 0.1], [0.5, 0.1, 0.2], [0.2, 0.2, 0.3]]

    References
    ----------
    Besson, Kaufmann, Maillard & Seznec (2022), Efficient change-point detection for tackling piecewise-stationary
    bandits. JMLR 23. The means and the four equal segments are those of its authors' code, which publishes them as
    problem 3.
    """

    name = "pb-3"
    begins = (0, 1, 2, 3)
    units = 4

    segment: int = 1250
    means: Sequence[Sequence[float]] = field(
        default=((0.1, 0.2, 0.9), (0.4, 0.9, 0.1), (0.5, 0.1, 0.2), (0.2, 0.2, 0.3)), init=False
    )


@dataclass(frozen=True, kw_only=True)
class PB4(PB1):
    """Three arms, which are constant for long and then change four times: benchmark 4 of the authors of GLR-klUCB.

    Parameters
    ----------
    arms
        Always 3.
    segment
        The number of steps of each of the last four segments; the first one is four times as long. 625 corresponds to a
        horizon of 5,000.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environment("pb-4").path(horizon=5000, seed=1)[[0, 2499, 2500, 4375]].tolist()
    [[0.1, 0.5, 0.9], [0.1, 0.5, 0.9], [0.3, 0.4, 0.1], [0.1, 0.5, 0.2]]

    References
    ----------
    Besson, Kaufmann, Maillard & Seznec (2022), Efficient change-point detection for tackling piecewise-stationary
    bandits. JMLR 23. The means and the segments are those of its authors' code, which publishes them as problem 4.
    """

    name = "pb-4"
    begins = (0, 4, 5, 6, 7)
    units = 8

    segment: int = 625
    means: Sequence[Sequence[float]] = field(
        default=((0.1, 0.5, 0.9), (0.3, 0.4, 0.1), (0.5, 0.3, 0.2), (0.7, 0.4, 0.3), (0.1, 0.5, 0.2)), init=False
    )


class Params(NamedTuple):
    rate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    one: np.ndarray  # 1.0 if only one arm changes at a breakpoint


@kernel
def start(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> None:
    level = uniform(step.random, START, 0, arm)
    state[MEAN, arm] = params.low[arm] + (params.high[arm] - params.low[arm]) * level


@kernel
def advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> float:
    chance, which = uniform_pair(words(step.random, PATH, step.number, FOR_ALL, 0))
    is_breakpoint = step.number > 1 and chance < params.rate[arm]
    if is_breakpoint and (params.one[arm] == 0.0 or int(which * step.arms) == arm):
        level = uniform(step.random, PATH, step.number, arm)
        state[MEAN, arm] = params.low[arm] + (params.high[arm] - params.low[arm]) * level
    return state[MEAN, arm]


@dataclass(frozen=True, kw_only=True)
class RandomBreakpoints(Environment):
    """Abrupt changes: at random steps, all arms or a single one jump to a new mean.

    Parameters
    ----------
    arms
        The number of arms, at least 2.
    rate
        The probability that a step is a breakpoint, in [0, 1].
    changed
        Which arms draw a new mean at a breakpoint: ``"all"``, or ``"one"`` that is drawn at random.
    low, high
        The bounds of the uniform law of the means, in [0, 1].

    Examples
    --------
    >>> import dynabandit as db
    >>> path = db.environment("random-breakpoints", arms=5, rate=0.01).path(horizon=1000, seed=1)
    >>> moved = path[1:] != path[:-1]
    >>> bool((moved.all(axis=1) == moved.any(axis=1)).all())
    True

    References
    ----------
    The generator of random problems in the authors' code of Besson, Kaufmann, Maillard & Seznec (2022), Efficient
    change-point detection for tackling piecewise-stationary bandits. JMLR 23: geometric times between breakpoints and
    uniform means. Here every replication has its own breakpoints and means.
    """

    name = "random-breakpoints"
    slots = ("mean",)
    functions = EnvironmentFunctions(start, advance, Params)

    rate: float = 0.0005
    changed: str = "all"
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        rate, low = number("rate", self.rate, 0.0, 1.0), number("low", self.low, 0.0, 1.0)
        if self.changed not in CHANGED:
            raise unknown("value of changed", self.changed, CHANGED)
        set_fields(self, rate=rate, low=low, high=number("high", self.high, low, 1.0))

    def params(self) -> Params:
        return Params(*self.per_arm(self.rate, self.low, self.high, float(self.changed == "one")))
