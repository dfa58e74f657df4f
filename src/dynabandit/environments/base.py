"""What every environment is: the mean reward of each arm, step by step."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.lanes import ALONE, Walk
from dynabandit.core.streams import LARGEST_STEP, Stream, shifted, stream
from dynabandit.errors import integer, keep

__all__ = ["Environment", "Kernels", "make_path", "make_path_writer", "path_writer"]


class Kernels(NamedTuple):
    """The two functions that make up an environment; arms are independent of each other.

    `state` is an array (slots, arms), `parameters` an array (parameters, arms), `table` what
    `Environment.table` gives.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environments.Fixed.kernels._fields
    ('start', 'advance')
    """

    start: Callable[..., None]
    """start(state, arm, parameters, table, source): write the arm's state at time 0."""
    advance: Callable[..., float]
    """advance(state, arm, step, parameters, table, source): move the arm to `step`, return its mean there."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Base of all environments; a subclass is a frozen dataclass whose fields are its parameters.

    Examples
    --------
    >>> import dynabandit as db
    >>> world = db.environment("small-changes")
    >>> isinstance(world, db.Environment), world.arms, world.slots
    (True, 3, ('segment',))
    """

    name: ClassVar[str]
    slots: ClassVar[tuple[str, ...]]
    kernels: ClassVar[Kernels]

    arms: int = 2

    def __post_init__(self) -> None:
        keep(self, arms=integer("arms", self.arms, 2))

    def numbers(self) -> np.ndarray:
        """Return the parameters of every arm as the array that the kernels read."""
        return np.zeros((1, self.arms))

    def table(self) -> np.ndarray:
        """Return what belongs to no single arm, as a two-dimensional array."""
        return np.zeros((0, 0))

    @property
    def longest(self) -> int:
        """The last step that the environment knows."""
        return LARGEST_STEP

    def still_until(self, step: int) -> int:
        """Return the last step up to which every mean stays what it is at `step`.

        Where that is later than `step`, `advance` is not asked in between: a simulation writes one row of means,
        however many arms there are and however long it lasts.

        Examples
        --------
        >>> import dynabandit as db
        >>> db.environment("case-1").still_until(10), db.environment("small-changes").still_until(10)
        (10, 2999)
        """
        return step

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}

    def check_horizon(self, horizon: int) -> int:
        """Return `horizon`, or raise an error where the environment does not reach so far."""
        horizon = integer("horizon", horizon, 1, LARGEST_STEP)
        if horizon > self.longest:
            raise ValueError(
                f"horizon must be at most {self.longest}, where environment {self.name!r} ends, got {horizon}"
            )
        return horizon

    def path(self, horizon: int, seed: int, replication: int = 0) -> np.ndarray:
        """Return one trajectory, an array (horizon, arms): the very one that a simulation uses.

        Examples
        --------
        >>> import dynabandit as db
        >>> db.environment("case-3", arms=3).path(horizon=1000, seed=1).shape
        (1000, 3)
        """
        horizon = self.check_horizon(horizon)
        source = stream(seed, replication)
        state = np.zeros((1, len(self.slots), self.arms))
        means = np.empty((1, horizon, self.arms))
        best = np.empty((1, horizon))
        path_writer(self.kernels)(state, self.numbers(), self.table(), means, best, 1, horizon, source)
        return means[0]


@functools.cache
def path_writer(kernels: Kernels) -> Callable[..., None]:
    """Return the compiled `make_path_writer` of an environment."""
    return compiled(make_path_writer(kernels))


def make_path_writer(kernels: Kernels) -> Callable[..., None]:
    """Return write(state, parameters, table, means, best, first, steps, source), the next block of means.

    All but `parameters` and `table` have replications in front; `source` belongs to the first of them. `means`
    gets `steps` steps from `first` on, and `best` the largest mean of each.
    """
    write_path = make_path(kernels, ALONE)

    @kernel
    def write(
        state: np.ndarray,
        parameters: np.ndarray,
        table: np.ndarray,
        means: np.ndarray,
        best: np.ndarray,
        first: int,
        steps: int,
        source: Stream,
    ) -> None:
        for row in range(means.shape[0]):
            write_path(state[row], parameters, table, means[row], best[row], first, steps, shifted(source, row))

    return write


def make_path(kernels: Kernels, walk: Walk) -> Callable[..., None]:
    """Return write_path(state, parameters, table, means, best, first, steps, source), for one replication."""
    start, advance = kernels
    rounds, place, inside, leads, highest = walk.rounds, walk.place, walk.inside, walk.leads, walk.highest

    @kernel
    def write_path(
        state: np.ndarray,
        parameters: np.ndarray,
        table: np.ndarray,
        means: np.ndarray,
        best: np.ndarray,
        first: int,
        steps: int,
        source: Stream,
    ) -> None:
        arms = means.shape[1]
        if first == 1:
            for turn in range(rounds(arms)):
                if inside(place(0, turn), arms):
                    start(state, place(0, turn), parameters, table, source)
        for step in range(steps):
            row = means[step]
            largest = 0.0
            for turn in range(rounds(arms)):
                arm = place(0, turn)
                if inside(arm, arms):
                    mean = advance(state, arm, first + step, parameters, table, source)
                    row[arm] = mean
                    largest = max(largest, mean)
            largest = highest(largest)
            if leads():
                best[step] = largest

    return write_path
