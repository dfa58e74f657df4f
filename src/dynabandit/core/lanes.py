"""Lane groups: how the arms of one replication are divided over the lanes of a GPU warp, or visited by one CPU thread.

A decision, a step and a path are written once, for a group of lanes that share the arms. On the CPU the group has one
lane, and the functions below compile to plain loops. On a GPU, `dynabandit.simulation.cuda.kernels` defines the group.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dynabandit.core.argmax import top
from dynabandit.core.compilation import kernel


class LaneGroup(NamedTuple):
    """The functions with which lanes divide the arms and exchange values."""

    rounds: Callable[[int], int]
    """rounds(arms): the number of rounds in which the lanes visit all arms, one arm per lane and round."""
    rounds_between: Callable[[int, int], int]
    """rounds_between(start, end): the same for the arms from `start` up to `end`."""
    arm_at: Callable[[int, int], int]
    """arm_at(start, turn): the arm of this lane in a round, counted from `start`; it rises with the rounds."""
    exists: Callable[[int, int], bool]
    """exists(arm, end): whether `arm` is below `end`; in the last round some lanes have no arm."""
    is_leader: Callable[[], bool]
    """is_leader(): whether this lane writes the results of the group."""
    sync: Callable[[], None]
    """sync(): wait for all lanes; what they wrote before is visible afterwards."""
    top: Callable[[np.ndarray], tuple[float, int, int]]
    """top(scores): the largest score of this lane's arms, the first arm that has it, and how many have it."""
    highest: Callable[[float], float]
    """highest(value): the largest value over all lanes."""
    lowest: Callable[[int], int]
    """lowest(arm): the smallest arm over all lanes."""
    unique: Callable[[int, bool, bool], int]
    """unique(arm, holds, several): the arm of the one lane with `holds`; -1 if there are more, or it has `several`."""
    marked: Callable[[np.ndarray, int, int], int]
    """marked(scores, start, end): marks of the arms from `start` up to `end`, at most 32, with scores of at least 0.

    The lanes then divide these arms. A single lane has no marks and visits all arms."""
    marked_rounds: Callable[[int, int, int], int]
    """marked_rounds(marks, start, end): the number of rounds in which the lanes visit all arms with a mark."""
    marked_arm: Callable[[int, int, int], int]
    """marked_arm(marks, start, turn): the arm of this lane in such a round; lanes without one get a larger number."""
    count: Callable[[bool], int]
    """count(holds): how many lanes have `holds`; like `nth`, it may be called by some of the groups of a warp only."""
    nth: Callable[[int, bool, int], int]
    """nth(arm, holds, place): the arm of the lane before which `place` lanes have `holds`, and which has it too."""


@kernel
def all_rounds(arms: int) -> int:
    return arms


@kernel
def all_rounds_between(start: int, end: int) -> int:
    return end - start


@kernel
def next_arm(start: int, turn: int) -> int:
    return start + turn


@kernel
def always_exists(arm: int, end: int) -> bool:
    return True


@kernel
def always_leader() -> bool:
    return True


@kernel
def no_sync() -> None:
    return


@kernel
def own_value(value: float) -> float:
    return value


@kernel
def own_arm(arm: int) -> int:
    return arm


@kernel
def own_unique(arm: int, holds: bool, several: bool) -> int:
    return arm if holds and not several else -1


@kernel
def no_marks(scores: np.ndarray, start: int, end: int) -> int:
    return 0


@kernel
def all_rounds_marked(marks: int, start: int, end: int) -> int:
    return end - start


@kernel
def next_arm_marked(marks: int, start: int, turn: int) -> int:
    return start + turn


@kernel
def own_count(holds: bool) -> int:
    return 1 if holds else 0


@kernel
def own_nth(arm: int, holds: bool, place: int) -> int:
    return arm


SINGLE_LANE = LaneGroup(
    rounds=all_rounds,
    rounds_between=all_rounds_between,
    arm_at=next_arm,
    exists=always_exists,
    is_leader=always_leader,
    sync=no_sync,
    top=top,
    highest=own_value,
    lowest=own_arm,
    unique=own_unique,
    marked=no_marks,
    marked_rounds=all_rounds_marked,
    marked_arm=next_arm_marked,
    count=own_count,
    nth=own_nth,
)
