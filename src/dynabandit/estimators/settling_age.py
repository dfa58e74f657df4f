"""The settling age: how long to wait for a positive reward before a missing one counts as the default reward.

A click arrives soon after its decision, while "no click" is only known at the end of the reward window. Learning each
as soon as it is known overestimates every arm; waiting for the end of the window learns everything late. The settling
age is between the two: by this age nearly all positive rewards have arrived, so what is known then can be learned.
"""

import numpy as np

from dynabandit.core.compilation import kernel

SHARE = 0.99  # of the positive rewards arrive by the settling age
# Positive rewards; with fewer, the settling age is the window. An estimate from ten of them can be too short, but that
# costs less than waiting for more: a positive reward that comes later is still learned.
FEWEST = 10
RATIO = 0.84  # between the largest ages of two neighbouring bins: the settling age is at most 19 % too large
BINS = 64  # ages below RATIO ** 63 = 0.00002 windows are in the last bin
AGE, COUNT, FIRST = range(3)  # the state: the settling age, the number of positive rewards, and their number per bin
SIZE = FIRST + BINS


@kernel
def start(state: list[float] | np.ndarray, window: float) -> None:
    """Write the state without any reward: the settling age is the window.

    Examples
    --------
    >>> state = [0.0] * SIZE
    >>> start(state, window=60.0)
    >>> state[AGE], state[COUNT]
    (60.0, 0.0)
    """
    for place in range(SIZE):
        state[place] = 0.0
    state[AGE] = window


@kernel
def observe(state: list[float] | np.ndarray, age: float, window: float) -> None:
    """Count a positive reward that arrived at this age, at most the window, and update the settling age.

    The bins are counted, so the result does not depend on the order of the rewards; it is the largest age of a bin.

    Parameters
    ----------
    state
        `SIZE` numbers, a list or an array.
    age
        The time between the decision and its reward, in steps or seconds.
    window
        The time after which a decision accepts no reward, in the same unit.

    Examples
    --------
    >>> state = [0.0] * SIZE
    >>> start(state, window=3600.0)
    >>> for second in range(100):
    ...     observe(state, age=second / 10, window=3600.0)
    >>> 9.8 <= state[AGE] <= 9.8 / RATIO
    True
    """
    largest_age = window
    place = FIRST
    while place < SIZE - 1 and age <= largest_age * RATIO:
        largest_age *= RATIO
        place += 1
    state[place] += 1.0
    state[COUNT] += 1.0
    if state[COUNT] >= FEWEST:
        state[AGE] = quantile(state, window)


@kernel
def quantile(state: list[float] | np.ndarray, window: float) -> float:
    """Return the smallest of the bins' largest ages by which the share `SHARE` of the positive rewards has arrived."""
    largest_age = window
    later = state[FIRST]
    place = FIRST
    # Bins go from the longest ages down: stop before more than 1 - SHARE of the rewards are left out
    while later <= (1.0 - SHARE) * state[COUNT]:
        largest_age *= RATIO
        place += 1
        later += state[place]
    return largest_age
