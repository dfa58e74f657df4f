"""The latest rewards of all arms, as windowed policies keep them in `shared`: a count, then a ring of pairs."""

import numpy as np

from dynabandit.core.compilation import kernel

__all__ = ["SEEN", "oldest", "push", "size"]

SEEN = 0  # how many rewards so far
RING = 1


def size(window: int) -> int:
    """Return how long `shared` must be."""
    return RING + 2 * window


@kernel
def oldest(shared: np.ndarray, window: int) -> tuple[int, float]:
    """Return the arm and the reward that the next one pushes out; the arm is -1 while the window is not full."""
    seen = int(shared[SEEN])
    if seen < window:
        return -1, 0.0
    place = RING + 2 * (seen % window)
    return int(shared[place]), shared[place + 1]


@kernel
def push(shared: np.ndarray, window: int, arm: int, reward: float) -> None:
    """Put a reward in the place of the oldest."""
    seen = int(shared[SEEN])
    place = RING + 2 * (seen % window)
    shared[place] = arm
    shared[place + 1] = reward
    shared[SEEN] = seen + 1.0
