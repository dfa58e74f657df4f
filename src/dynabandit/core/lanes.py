"""How the arms of one replication are walked: by a processor alone, or by the lanes of a GPU's warp together.

A decision, a step and a path are written once, as if several walkers shared the arms. On a processor there is one
walker, which visits them all, and what follows compiles to plain loops. On a GPU, `dynabandit.simulation.cuda` puts
a lane in the place of each walker.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dynabandit.core.argmax import top
from dynabandit.core.compilation import kernel

__all__ = ["ALONE", "Walk"]


class Walk(NamedTuple):
    """The functions with which walkers share the arms and meet again."""

    rounds: Callable[[int], int]
    """rounds(arms): in how many turns the walkers visit all arms, one each a turn."""
    turns: Callable[[int, int], int]
    """turns(start, end): the same for the arms from `start` up to `end`."""
    place: Callable[[int, int], int]
    """place(start, turn): this walker's arm at a turn; arms rise with the turns."""
    inside: Callable[[int, int], bool]
    """inside(arm, end): whether there is such an arm; at the last turn some walkers have none."""
    leads: Callable[[], bool]
    """leads(): whether this walker writes down what all have found."""
    meet: Callable[[], None]
    """meet(): wait until all walkers have come so far, and see what they wrote."""
    top: Callable[[np.ndarray], tuple[float, int, int]]
    """top(scores): the largest score of this walker's arms, the first arm that has it, and how many of them do."""
    highest: Callable[[float], float]
    """highest(value): the largest value of all walkers."""
    lowest: Callable[[int], int]
    """lowest(arm): the smallest arm of all walkers."""
    only: Callable[[int, bool, bool], int]
    """only(arm, holds, several): the arm of the only walker where `holds`, if not `several` there; else -1."""


@kernel
def all_rounds(arms: int) -> int:
    return arms


@kernel
def all_turns(start: int, end: int) -> int:
    return end - start


@kernel
def next_place(start: int, turn: int) -> int:
    return start + turn


@kernel
def always_inside(arm: int, end: int) -> bool:
    return True


@kernel
def always() -> bool:
    return True


@kernel
def nobody_to_meet() -> None:
    return


@kernel
def own_value(value: float) -> float:
    return value


@kernel
def own_arm(arm: int) -> int:
    return arm


@kernel
def own_only(arm: int, holds: bool, several: bool) -> int:
    return arm if holds and not several else -1


ALONE = Walk(
    all_rounds, all_turns, next_place, always_inside, always, nobody_to_meet, top, own_value, own_arm, own_only
)
