"""Forced exploration that follows from the step alone: each arm in its turn, at regular times.

A policy's `context` tells its `score` whose turn it is. One number has to carry that besides what the scores share,
so a turn is a negative one.
"""

from dynabandit.core.compilation import kernel

__all__ = ["FREE", "LONGEST", "arm_of", "turn"]

FREE = 1.0  # no arm's turn
LONGEST = 1e15  # in steps: for ever, and still a whole number


@kernel
def turn(step: int, arms: int, share: float) -> float:
    """Return the turn at a step, so that every floor(K / share) steps begin with one play of each of the K arms.

    Examples
    --------
    >>> [turn(step, 2, 0.5) for step in range(1, 7)]
    [-1.0, -2.0, 1.0, 1.0, -1.0, -2.0]
    """
    if share <= 0.0:
        return FREE
    place = (step - 1) % max(int(min(float(arms) / share, LONGEST)), arms)
    return -1.0 - float(place) if place < arms else FREE


@kernel
def arm_of(turn: float) -> int:
    """Return the arm whose turn it is, or -1 where it is nobody's."""
    return int(-turn) - 1 if turn < 0.0 else -1
