"""The latest rewards of all arms, as sliding-window policies keep them in `shared`: a count, then a ring buffer."""

import numpy as np

from dynabandit.core.compilation import kernel

COUNT = 0  # how many rewards so far
RING = 1  # from here on: pairs of arm and reward


def size(window: int) -> int:
    """Return the length of `shared`."""
    return RING + 2 * window


@kernel
def oldest(shared: np.ndarray, window: int) -> tuple[int, float]:
    """Return the arm and the reward that the next push replaces; the arm is -1 while the window is not full."""
    count = int(shared[COUNT])
    if count < window:
        return -1, 0.0
    place = RING + 2 * (count % window)
    return int(shared[place]), shared[place + 1]


@kernel
def push(shared: np.ndarray, window: int, arm: int, value: float) -> None:
    """Replace the oldest reward by a new one."""
    count = int(shared[COUNT])
    place = RING + 2 * (count % window)
    shared[place] = arm
    shared[place + 1] = value
    shared[COUNT] = count + 1.0
