"""Environments from recorded rows: features, and the mean reward of every arm for each of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.context import Context
from dynabandit.core.streams import FEATURES, LARGEST_STEP, pick
from dynabandit.environments.base import Environment, EnvironmentFunctions, EnvironmentStep
from dynabandit.environments.linear import LARGEST_DIMENSION, start
from dynabandit.environments.scheduled import mean_rewards
from dynabandit.validation import check_field, integer, number, set_fields


class Params(NamedTuple):
    rotation: np.ndarray
    window: np.ndarray
    stride: np.ndarray


@kernel
def row_of(step: EnvironmentStep, params: Params) -> int:
    """Return the row of a step: a random one of the window, which moves on by `stride` rows per step."""
    window = int(params.window[0])
    first = min(int((step.number - 1) * params.stride[0]), step.table.shape[0] - window)
    return first + pick(step.random, FEATURES, step.number, 0, window)


@kernel
def write_features(state: np.ndarray, row: int, step: EnvironmentStep, params: Params) -> None:
    recorded = step.table[row_of(step, params)]
    for place in range(step.features.shape[1]):
        step.features[row, place] = recorded[place]


@kernel
def advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> float:
    rotation = int(params.rotation[arm])
    turns = (step.number - 1) // rotation if rotation > 0 else 0
    column = (arm + step.arms - turns % step.arms) % step.arms  # never negative: on a GPU arms are unsigned
    return step.table[row_of(step, params), step.features.shape[1] + column]


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordedContexts(Environment):
    """Rows from data, each with features and the mean reward of every arm; a step draws one of them at random.

    Parameters
    ----------
    contexts
        An array (rows, dimension): the features, the same for all arms. Policies add no constant, so it should have
        one.
    means
        An array (rows, arms): the mean reward of every arm in each row, in [0, 1].
    rotation
        After how many steps the rewards move to the next arm: then the second arm gets what the first one got, and the
        first arm what the last one got. None if they do not move.
    window
        The number of successive rows from which a step draws; None for all rows.
    stride
        By how many rows the window moves on at each step, for rows that are sorted by time. It needs a window
        of fewer rows than there are.

    Examples
    --------
    >>> import dynabandit as db
    >>> environment = db.environment(
    ...     "recorded-contexts", contexts=[[1.0, 0.0], [1.0, 1.0]], means=[[0.9, 0.1], [0.2, 0.8]], rotation=3
    ... )
    >>> environment.features(horizon=6, seed=1)[:, 0, 1].tolist()
    [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    >>> environment.path(horizon=6, seed=1)[:, 0].tolist()
    [0.9, 0.9, 0.9, 0.8, 0.1, 0.1]

    References
    ----------
    None; the data are provided by the user.
    """

    name = "recorded-contexts"
    slots = ("unused",)
    functions = EnvironmentFunctions(start, advance, Params, write_features=write_features)

    arms: int = field(init=False)
    contexts: Sequence[Sequence[float]] | np.ndarray = field(repr=False)
    means: Sequence[Sequence[float]] | np.ndarray = field(repr=False)
    rotation: int | None = None
    window: int | None = None
    stride: float = 0.0

    def __post_init__(self) -> None:
        means, contexts = mean_rewards("means", self.means), _checked_contexts(self.contexts)
        if len(contexts) != len(means):
            raise ValueError(f"contexts must have as many rows as means, {len(means)}, got {len(contexts)}")
        means.setflags(write=False)
        set_fields(self, contexts=contexts, means=means, arms=means.shape[1])
        check_field(self, "rotation", integer, 1, LARGEST_STEP, optional=True)
        check_field(self, "window", integer, 1, len(means), optional=True)
        check_field(self, "stride", number, 0.0, float(len(means)))
        if self.stride > 0.0 and self.window in (None, len(means)):
            raise ValueError(
                f"window must be below the number of rows, {len(means)}, if stride is positive, "
                f"got window={self.window} and stride={self.stride:g}"
            )
        super().__post_init__()

    @property
    def context(self) -> Context:
        return Context(np.shape(self.contexts)[1], per_arm=False)

    def params(self) -> Params:
        return Params(*self.per_arm(self.rotation or 0, self.window or len(self.means), self.stride))

    def table(self) -> np.ndarray:
        return np.column_stack([self.contexts, self.means])

    @property
    def longest(self) -> int:
        if self.stride == 0.0:
            return LARGEST_STEP
        spare = len(self.means) - (self.window or len(self.means))
        return min(int(spare / self.stride) + 1, LARGEST_STEP)


def _checked_contexts(values: Sequence[Sequence[float]] | np.ndarray) -> np.ndarray:
    """Return the features as a read-only array, or raise an error that names what is wrong."""
    try:
        contexts = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise TypeError(f"contexts must be an array of numbers, each row of the same length: {error}") from None
    if contexts.ndim != 2 or not 1 <= contexts.shape[1] <= LARGEST_DIMENSION or not len(contexts):
        raise ValueError(
            f"contexts must have rows of 1 to {LARGEST_DIMENSION} features, got an array of shape {contexts.shape}"
        )
    wrong = np.argwhere(~np.isfinite(contexts))
    if len(wrong):
        row, place = wrong[0]
        raise ValueError(f"contexts[{row}][{place}] must be a finite number, got {float(contexts[row, place])!r}")
    contexts.setflags(write=False)
    return contexts
