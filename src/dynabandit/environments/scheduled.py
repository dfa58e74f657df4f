"""Means given by the user: constant, piecewise constant, or a path for each step."""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.environments.base import Environment, EnvironmentFunctions, EnvironmentStep
from dynabandit.validation import integer, number, set_fields


class FixedParams(NamedTuple):
    mean: np.ndarray


@kernel
def start(state: np.ndarray, arm: int, step: EnvironmentStep, params: Any) -> None:
    state[0, arm] = 0.0


@kernel
def fixed_advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: FixedParams) -> float:
    return params.mean[arm]


@kernel
def path_advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: Any) -> float:
    return step.table[step.number - 1, arm]


@kernel
def piecewise_advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: Any) -> float:
    # state: the current segment. table: one row per segment, its first step in the last column
    table = step.table
    segment = int(state[0, arm])
    while segment + 1 < table.shape[0] and step.number >= table[segment + 1, -1]:
        segment += 1
    state[0, arm] = segment
    return table[segment, arm]


def mean_rewards(argument: str, values: Sequence[Any] | np.ndarray) -> np.ndarray:
    """Return `values` as a two-dimensional array of probabilities, or raise an error that names an invalid one."""
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{argument} must be an array of numbers, each row of the same length: {error}") from None
    if array.ndim != 2 or array.shape[0] < 1 or array.shape[1] < 2:
        raise ValueError(f"{argument} must have steps in rows and at least 2 arms in columns, got shape {array.shape}")
    wrong = np.argwhere(~((array >= 0.0) & (array <= 1.0)))
    if len(wrong):
        row, arm = wrong[0]
        raise ValueError(f"{argument}[{row}][{arm}] must be a number in [0, 1], got {float(array[row, arm])!r}")
    return array


def _dimensions(values: Any) -> int:
    try:
        return np.ndim(values)
    except ValueError:  # rows of different lengths
        return 2


@dataclass(frozen=True, kw_only=True)
class Fixed(Environment):
    """Means that never change.

    Parameters
    ----------
    means
        The mean reward of each arm, in [0, 1].

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environment("fixed", means=[0.2, 0.8]).path(horizon=2, seed=1).tolist()
    [[0.2, 0.8], [0.2, 0.8]]

    References
    ----------
    The static bandit of section 1 of Lu, Adams & Kantas.
    """

    name = "fixed"
    slots = ("unused",)
    functions = EnvironmentFunctions(start, fixed_advance, FixedParams)

    arms: int = field(init=False)
    means: Sequence[float]

    def __post_init__(self) -> None:
        if isinstance(self.means, (str, bytes)) or _dimensions(self.means) != 1 or len(self.means) < 2:
            raise ValueError(f"means must hold the mean rewards of at least 2 arms, got {self.means!r}")
        means = tuple(number(f"means[{arm}]", mean, 0.0, 1.0) for arm, mean in enumerate(self.means))
        set_fields(self, means=means, arms=len(means))
        super().__post_init__()

    def params(self) -> FixedParams:
        return FixedParams(np.array(self.means))

    def constant_until(self, step: int) -> int:
        return LARGEST_STEP


@dataclass(frozen=True, kw_only=True, eq=False)
class Path(Environment):
    """Means that you give for each step and arm.

    Parameters
    ----------
    means
        An array (steps, arms) with the mean rewards, in [0, 1].

    Examples
    --------
    >>> import dynabandit as db
    >>> env = db.environment("path", means=[[0.1, 0.9], [0.9, 0.1]])
    >>> env.arms, env.longest
    (2, 2)

    References
    ----------
    None; the means are provided by the user.
    """

    name = "path"
    slots = ("unused",)
    functions = EnvironmentFunctions(start, path_advance)

    arms: int = field(init=False)
    means: Sequence[Sequence[float]] | np.ndarray = field(repr=False)

    def __post_init__(self) -> None:
        means = mean_rewards("means", self.means)
        means.setflags(write=False)
        set_fields(self, means=means, arms=means.shape[1])
        super().__post_init__()

    def table(self) -> np.ndarray:
        return np.asarray(self.means)

    @property
    def longest(self) -> int:
        return len(self.means)


@dataclass(frozen=True, kw_only=True)
class Piecewise(Environment):
    """Means that change at given steps and are constant in between.

    Parameters
    ----------
    starts
        The first step of each segment; the first segment starts at 1.
    means
        An array (segments, arms) with the mean rewards, in [0, 1].

    Examples
    --------
    >>> import dynabandit as db
    >>> env = db.environment("piecewise", starts=[1, 3], means=[[0.1, 0.9], [0.9, 0.1]])
    >>> env.path(horizon=3, seed=1)[:, 0].tolist()
    [0.1, 0.1, 0.9]

    References
    ----------
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name = "piecewise"
    slots = ("segment",)
    functions = EnvironmentFunctions(start, piecewise_advance)

    arms: int = field(init=False)
    starts: Sequence[int]
    means: Sequence[Sequence[float]]

    def __post_init__(self) -> None:
        means = mean_rewards("means", self.means)
        if np.ndim(self.starts) != 1:
            raise TypeError(f"starts must be a list with the first step of each segment, got {self.starts!r}")
        starts = tuple(integer(f"starts[{i}]", start, 1, LARGEST_STEP) for i, start in enumerate(self.starts))
        if len(starts) != len(means) or starts[0] != 1 or any(np.diff(starts) <= 0):
            raise ValueError(
                f"starts must be 1 and then rise, one for each of the {len(means)} rows of means, got {starts}"
            )
        set_fields(self, starts=starts, means=tuple(map(tuple, means.tolist())), arms=means.shape[1])
        super().__post_init__()

    def table(self) -> np.ndarray:
        return np.column_stack([np.array(self.means), np.array(self.starts, dtype=float)])

    def constant_until(self, step: int) -> int:
        later = bisect.bisect_right(self.starts, step)
        return self.starts[later] - 1 if later < len(self.starts) else LARGEST_STEP


@dataclass(frozen=True, kw_only=True)
class SmallChanges(Piecewise):
    """Three arms, of which the third is the best from step 3,000 to step 5,000 only. The paper's example with a small
    number of changes.

    Parameters
    ----------
    arms
        Always 3.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environment("small-changes").path(horizon=3000, seed=1)[[2998, 2999], 2].tolist()
    [0.4, 0.8]

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 4.1.
    """

    name = "small-changes"

    arms: int = 3
    starts: Sequence[int] = field(default=(1, 3000, 5000), init=False)
    means: Sequence[Sequence[float]] = field(default=((0.5, 0.3, 0.4), (0.5, 0.3, 0.8), (0.5, 0.3, 0.4)), init=False)

    def __post_init__(self) -> None:
        integer("arms", self.arms, 3, 3)
        super().__post_init__()
