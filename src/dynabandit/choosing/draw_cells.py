"""The cells of a draw tree: where their boundaries are, and how they follow the largest draw.

The hazard H(t) is the sum over all arms of -log F_i(t), so that exp(-H(t)) is the probability that no draw is above t.
A decision is cheap if the cell of the largest draw has few draws. The boundaries are therefore placed where H has the
values of `LEVELS`: close together where the largest draw usually is. H is known at the boundaries so far, and its
logarithm is interpolated between them. The cells decide how long a decision takes, not its law.
"""

import math

import numpy as np

from dynabandit.core.beta_cells import write_points
from dynabandit.core.compilation import kernel

CELLS = 32  # the first is above all boundaries, the last below
BOUNDARIES = CELLS - 1
LEVELS = (0.001, 0.01, 0.06, *(0.25 * i for i in range(1, 13)), *(3.0 * 1.32**i for i in range(1, 17)))
REFERENCE = LEVELS.index(3.0)  # with probability exp(-3) the largest draw is below this boundary
LOWEST_HAZARD, HIGHEST_HAZARD = 1e-9, 1e9  # what counts as 0 and as infinite when boundaries are placed
LARGEST_LOG_ODDS = 1e12  # draws are so large if a shape is very small
SMALLEST_GAP = 1e-9  # between two boundaries, relative to their size

# The head of a tree, see `choosing.draw_tree`: the numbers that a bandit saves, and others that follow from them
EXCESS = 0  # how many arms too many were visited since the boundaries were placed
BOUNDARY = 1  # the boundaries, falling log-odds; all 0 before they are placed
SAVED = BOUNDARY + BOUNDARIES
FILLED = SAVED  # whether the rest of the tree was computed
POINTS = FILLED + 1  # what `core.beta_cells.write_points` writes


# The nodes of a tree, see `choosing.draw_tree`
FAMILY = 8
NEW, EXPIRY = CELLS, CELLS + 1  # the fields after the masses: how many arms are new, and when the first mass expires
FIELDS = CELLS + 2
HEAD_ROWS = 3  # the cells; numbers of one computation; the column of a new arm


@kernel
def first_leaf_of(arms: int) -> int:
    """Return the first family of the last level."""
    families, first = 1, 0
    while families * FAMILY < arms:
        first += families
        families *= FAMILY
    return first


@kernel
def is_placed(head: np.ndarray) -> bool:
    """Whether boundaries were placed: they are different numbers then."""
    return head[BOUNDARY] != head[BOUNDARY + 1]


@kernel
def write_grid(head: np.ndarray) -> None:
    """Write what follows from the boundaries."""
    write_points(head[BOUNDARY:SAVED], head[POINTS:])


@kernel
def place_first(head: np.ndarray) -> None:
    """Place boundaries at equal distances over most log-odds, if nothing is known."""
    for i in range(BOUNDARIES):
        head[BOUNDARY + i] = 15.0 - i
    head[EXCESS] = 0.0
    write_grid(head)


@kernel
def place(head: np.ndarray, hazard: np.ndarray, placed: np.ndarray) -> None:
    """Place the boundaries again; `hazard` has H at the boundaries so far, `placed` is overwritten."""
    for i in range(BOUNDARIES):
        hazard[i] = math.log(min(max(hazard[i], LOWEST_HAZARD), HIGHEST_HAZARD))
    boundary, last = head[BOUNDARY:SAVED], BOUNDARIES - 1
    width = boundary[0] - boundary[last]
    reach = 4.0 * width + 0.1  # how far boundaries are placed beyond those so far
    knot = 0
    for i in range(BOUNDARIES):
        level = math.log(LEVELS[i])
        while knot < last and hazard[knot] < level:
            knot += 1
        if hazard[knot] < level:  # below the last boundary
            slope = max((hazard[last] - hazard[0]) / width, 1.0 / width)
            t = boundary[last] - min((level - hazard[last]) / slope, reach * (i + 1) / BOUNDARIES)
        elif knot == 0:  # above the first one
            slope = max((hazard[1] - hazard[0]) / (boundary[0] - boundary[1]), 1.0 / width)
            t = boundary[0] + min((hazard[0] - level) / slope, reach * (BOUNDARIES - i) / BOUNDARIES)
        else:
            share = (level - hazard[knot - 1]) / (hazard[knot] - hazard[knot - 1])
            t = boundary[knot - 1] - share * (boundary[knot - 1] - boundary[knot])
        placed[i] = min(max(t, -LARGEST_LOG_ODDS), LARGEST_LOG_ODDS)
        if i > 0:
            placed[i] = min(placed[i], placed[i - 1] - SMALLEST_GAP * max(abs(placed[i - 1]), 1.0))
    for i in range(BOUNDARIES):
        boundary[i] = placed[i]
    head[EXCESS] = 0.0
    write_grid(head)
