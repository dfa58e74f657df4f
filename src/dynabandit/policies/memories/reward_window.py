"""The latest rewards of all arms, as sliding-window policies keep them in `shared`: a count, then a ring buffer.

The ring has room for the longest window. A window may become longer from one reward to the next, not shorter.
"""

import numpy as np

from dynabandit.core.compilation import kernel

COUNT = 0  # how many rewards so far
RING = 1  # from here on: pairs of arm and reward
GONE = -1.0  # in place of the arm of a reward that has left the window or was forgotten


def size(window: int) -> int:
    """Return the length of `shared`."""
    return RING + 2 * window


@kernel
def place_of(shared: np.ndarray, number: int) -> int:
    """Return where a reward is, given how many rewards came before it."""
    return RING + 2 * (number % ((shared.size - RING) // 2))


@kernel
def take_oldest(shared: np.ndarray, window: int) -> tuple[int, float]:
    """Remove the reward that leaves the window with the next push; return its arm and its value.

    The arm is -1 if none leaves, or one that was forgotten.
    """
    leaving = int(shared[COUNT]) - window
    if leaving < 0:
        return -1, 0.0
    place = place_of(shared, leaving)
    arm = int(shared[place])
    shared[place] = GONE
    return arm, shared[place + 1]


@kernel
def forget(shared: np.ndarray, arm: int) -> None:
    """Forget the rewards of an arm; those of the others leave the window as if it had kept them."""
    for place in range(RING, shared.size - 1, 2):
        if int(shared[place]) == arm:
            shared[place] = GONE


@kernel
def push(shared: np.ndarray, arm: int, value: float) -> None:
    """Add a reward."""
    count = int(shared[COUNT])
    place = place_of(shared, count)
    shared[place] = arm
    shared[place + 1] = value
    shared[COUNT] = count + 1.0
