"""Delays: how many steps after its decision a reward arrives, and whether it arrives at all."""

import math
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import DELAY, LARGEST_STEP, Stream, uniform_pair, words
from dynabandit.validation import MissingParameterError, check_parameter_names, integer, number, set_fields, unknown

PerArm = float | Sequence[float] | np.ndarray

LOST = -1  # as a delay: the reward never arrives
LARGEST_QUANTILE = 1.0 - 1e-6  # a longer geometric delay is replaced by this quantile, 13.8 times the mean
UNIFORM, GEOMETRIC, RECORDED, BATCH = range(4)  # the laws that `draw_delay` draws from
AT_ONCE, HELD, SETTLED = range(3)
WINDOW_RULES = {"at-once": AT_ONCE, "held": HELD, "settled": SETTLED}
NO_WINDOW = -1


class DelayParams(NamedTuple):
    """A delay as the kernels read it."""

    law: int
    window: int  # in steps, or `NO_WINDOW`
    rule: int  # how rewards are learned if there is a window
    low: np.ndarray  # (arms,): the law's first number of each arm
    high: np.ndarray  # (arms,): its second one
    lost: np.ndarray  # (arms,): the probability that a reward never arrives
    sample: np.ndarray  # the recorded delays of all arms, else empty


NO_DELAY = DelayParams(UNIFORM, NO_WINDOW, AT_ONCE, np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1))


@kernel
def draw_delay(params: DelayParams, arm: int, number: int, random: Stream) -> int:
    """Return how many steps after step `number` the reward of its decision arrives, or `LOST`."""
    position, survival = uniform_pair(words(random, DELAY, number, arm, 0))
    low, high = params.low[arm], params.high[arm]
    if survival < params.lost[arm]:
        return LOST
    if params.law == GEOMETRIC:  # inverse transform, where low = log(mean / (1 + mean))
        return int(min(math.log(position) / low, high))
    if params.law == BATCH:
        return int(low) - 1 - (number - 1) % int(low)
    drawn = int(min(low + position * (high - low + 1.0), high))
    return int(params.sample[drawn]) if params.law == RECORDED else drawn


@dataclass(frozen=True, kw_only=True)
class Delay:
    """Base class of all delays; `dynabandit.delay` makes them.

    Parameters
    ----------
    lost
        The probability that a reward never arrives, in [0, 1], or one per arm.
    window
        The number of steps after which a decision is closed with the reward 0, if no positive reward has arrived by
        then: a reward of 0 is never reported itself. Without a window, every reward that is not lost is learned.
    rule
        How rewards are learned if there is a window: ``"at-once"`` learns a positive reward when it arrives and a 0 at
        the end of the window; ``"held"`` learns both at the end of the window; ``"settled"`` learns what is known at
        the settling age (`dynabandit.stats.settling_age`), and a positive reward that is later as one more reward.

    Examples
    --------
    >>> import dynabandit as db
    >>> late = db.delay("fixed", steps=[5, 10])
    >>> late.parameters
    {'kind': 'fixed', 'steps': [5, 10]}
    """

    kind: ClassVar[str]
    law: ClassVar[int]

    lost: PerArm = 0.0
    window: int | None = None
    rule: str = "settled"

    def __post_init__(self) -> None:
        set_fields(self, lost=_per_arm("lost", self.lost, lambda value: number("lost", value, 0.0, 1.0)))
        if self.window is not None:
            set_fields(self, window=integer("window", self.window, 0, LARGEST_STEP))
        if self.rule not in WINDOW_RULES:
            raise unknown("rule", self.rule, WINDOW_RULES)

    def _numbers(self) -> tuple[Any, Any]:
        """Return the two numbers of the law, each for all arms or one per arm."""
        raise NotImplementedError

    def _sample(self) -> np.ndarray:
        return np.zeros(0)

    def _longest(self) -> int:
        """Return the longest delay."""
        return int(np.max(self._numbers()[1]))

    def params(self, arms: int) -> DelayParams:
        """Return the delay of so many arms as the kernels read it."""
        low, high, lost = (self._of_arms(arms, numbers) for numbers in (*self._numbers(), self.lost))
        window = NO_WINDOW if self.window is None else self.window
        return DelayParams(self.law, window, WINDOW_RULES[self.rule], low, high, lost, self._sample())

    def _of_arms(self, arms: int, numbers: Any) -> np.ndarray:
        if np.ndim(numbers) == 1 and len(numbers) != arms:
            raise ValueError(
                f"delay must have one number per arm, {arms}, or one for all, got {len(numbers)}: {self.label}"
            )
        return np.full(arms, numbers, dtype=float)

    def capacity(self, horizon: int) -> int:
        """Return how many decisions can have a reward in flight: one per step of the longest delay, and this one."""
        return min(self._longest() if self.window is None else self.window, horizon) + 1

    @property
    def parameters(self) -> dict[str, Any]:
        """The kind and all parameters that differ from their defaults, as plain numbers, strings and lists."""
        changed = {
            field.name: _plain(getattr(self, field.name))
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }
        return {"kind": self.kind, **changed}

    @property
    def label(self) -> str:
        """The delay on one line, such as ``geometric(mean=100, lost=0.01)``."""
        shown = {name: f"{value:g}" if isinstance(value, float) else value for name, value in self.parameters.items()}
        return f"{shown.pop('kind')}({', '.join(f'{name}={value}' for name, value in shown.items())})"


def _per_arm(argument: str, value: Any, check: Any) -> Any:
    """Return a checked number, or a tuple of one checked number per arm."""
    if isinstance(value, (list, tuple, np.ndarray)):
        if len(value) < 2:
            raise ValueError(f"{argument} must be a number, or one number for each of at least 2 arms, got {value!r}")
        return tuple(check(one) for one in value)
    return check(value)


def _plain(value: Any) -> Any:
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _steps(argument: str, value: Any, least: int = 0) -> Any:
    return _per_arm(argument, value, lambda one: integer(argument, one, least, LARGEST_STEP))


@dataclass(frozen=True, kw_only=True)
class FixedDelay(Delay):
    """Every reward arrives `steps` steps after its decision."""

    kind = "fixed"
    law = UNIFORM

    steps: PerArm

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, steps=_steps("steps", self.steps))

    def _numbers(self) -> tuple[Any, Any]:
        return self.steps, self.steps


@dataclass(frozen=True, kw_only=True)
class GeometricDelay(Delay):
    """After each step the reward arrives with the same probability, on average `mean` steps after its decision.

    Delays beyond the quantile 1 - 10^-6 are replaced by that quantile, so that the rewards in flight are bounded.
    """

    kind = "geometric"
    law = GEOMETRIC

    mean: PerArm

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, mean=_per_arm("mean", self.mean, lambda one: number("mean", one, 0.0, 1e9)))

    def _numbers(self) -> tuple[Any, Any]:
        means = np.asarray(self.mean, dtype=float)
        with np.errstate(divide="ignore"):
            rates = np.log(means / (1.0 + means))
        return rates, np.floor(math.log(1.0 - LARGEST_QUANTILE) / rates)


@dataclass(frozen=True, kw_only=True)
class UniformDelay(Delay):
    """All delays from `low` to `high` steps are equally likely."""

    kind = "uniform"
    law = UNIFORM

    low: PerArm
    high: PerArm

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, low=_steps("low", self.low), high=_steps("high", self.high))
        if np.ndim(self.low) == np.ndim(self.high) == 1 and np.size(self.low) != np.size(self.high):
            raise ValueError(f"low and high must have as many numbers, got {self.low} and {self.high}")
        if np.any(np.asarray(self.low) > np.asarray(self.high)):
            raise ValueError(f"low must be at most high = {self.high}, got {self.low}")

    def _numbers(self) -> tuple[Any, Any]:
        return self.low, self.high


@dataclass(frozen=True, kw_only=True)
class RecordedDelay(Delay):
    """Delays are drawn from a recorded sample, or from one sample per arm."""

    kind = "recorded"
    law = RECORDED

    delays: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.delays.tolist() if isinstance(self.delays, np.ndarray) else self.delays
        if not isinstance(given, (list, tuple)) or not given:
            raise TypeError(f"delays must be a list of steps, or one such list per arm, got {self.delays!r}")
        nested = [isinstance(one, (list, tuple, np.ndarray)) for one in given]
        samples = given if all(nested) else [given]
        if any(nested) and not all(nested):
            raise TypeError(f"delays must be a list of steps, or one such list per arm, got {self.delays!r}")
        if (all(nested) and len(given) < 2) or any(len(sample) == 0 for sample in samples):
            raise ValueError(f"delays must have at least one delay for each of at least 2 arms, got {self.delays!r}")
        checked = [tuple(integer("each delay in delays", one, 0, LARGEST_STEP) for one in sample) for sample in samples]
        set_fields(self, delays=tuple(checked) if all(nested) else checked[0])

    def _samples(self) -> list[Any]:
        return list(self.delays) if isinstance(self.delays[0], tuple) else [self.delays]

    def _numbers(self) -> tuple[Any, Any]:
        ends = np.cumsum([len(sample) for sample in self._samples()])
        starts = np.array([0, *ends[:-1]])
        return (starts, ends - 1) if len(ends) > 1 else (0, ends[0] - 1)

    def _sample(self) -> np.ndarray:
        return np.concatenate([np.array(sample, dtype=float) for sample in self._samples()])

    def _longest(self) -> int:
        return int(self._sample().max())


@dataclass(frozen=True, kw_only=True)
class BatchDelay(Delay):
    """All rewards since the previous batch arrive together, at the steps that are multiples of `every`."""

    kind = "batch"
    law = BATCH

    every: PerArm

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, every=_steps("every", self.every, least=1))

    def _numbers(self) -> tuple[Any, Any]:
        return self.every, np.asarray(self.every) - 1


DELAYS: dict[str, type[Delay]] = {
    "fixed": FixedDelay,
    "geometric": GeometricDelay,
    "uniform": UniformDelay,
    "recorded": RecordedDelay,
    "batch": BatchDelay,
}


def delay(kind: str | Delay, /, **parameters: Any) -> Delay:
    """Return a delay of rewards, for `dynabandit.simulate` and `dynabandit.compare`.

    A reward with delay D of the decision at step s is learned after the choice of step s + D. Every number can be given
    once per arm.

    Parameters
    ----------
    kind
        ``"fixed"`` (with `steps`), ``"geometric"`` (`mean`), ``"uniform"`` (`low` and `high`), ``"recorded"``
        (`delays`, a sample to draw from) or ``"batch"`` (`every`: rewards arrive at the next multiple of so many
        steps).
    parameters
        Those of the kind, and `lost`, `window` and `rule`, which `dynabandit.environments.delays.Delay` documents.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.delay("geometric", mean=100, lost=0.01).label
    'geometric(lost=0.01, mean=100)'
    >>> db.delay("fixed", steps=50)
    FixedDelay(lost=0.0, window=None, rule='settled', steps=50)
    """
    if isinstance(kind, Delay):
        if parameters:
            raise TypeError(f"parameters {sorted(parameters)} go with a kind of delay, not with {kind!r}")
        return kind
    if not isinstance(kind, str) or kind not in DELAYS:
        raise unknown("delay", kind, DELAYS)
    known = {field.name: field for field in fields(DELAYS[kind])}
    check_parameter_names(f"delay {kind!r}", parameters, known)
    missing = [name for name, field in known.items() if field.default is MISSING and name not in parameters]
    if missing:
        where = f"dynabandit.environments.delays.{DELAYS[kind].__name__}"
        raise MissingParameterError(f"delay {kind!r} needs {', '.join(missing)}", where)
    return DELAYS[kind](**parameters)
