"""The settling age: how long to wait for a positive reward before a missing one counts as the default reward.

A click arrives soon after its decision, while "no click" is only known at the end of the reward window. Learning each
as soon as it is known overestimates every arm; waiting for the end of the window learns everything late. The settling
age is between the two: by this age nearly all positive rewards have arrived, so what is known then can be learned.

A delay can only be seen if it is shorter than the age of its decision, so short delays are seen too often: the data
are truncated. The distribution of the delays is therefore estimated as a product (Lynden-Bell, 1971; Woodroofe, 1985).
For each bin of ages, only decisions count that have reached its largest age. Of their rewards that came by that age,
some came in the bin; the rest are the share that came before, if all came by that age. The product of these shares,
from the longest age down to a bin, estimates the share of all rewards that came before the bin. The settling age is an
upper limit of the quantile: the product is made smaller by 1.645 standard errors (Greenwood).

What data cannot show is how many rewards will come later than the longest age that decisions have reached. Until this
age is the window, the settling age is at most a quarter of it, or else the window. Apart from the errors of finite
samples, the first settling age then covers 99.0 % of exponential delays and 98.9 % of log-normal ones with sigma = 2.
"""

import math

import numpy as np

from dynabandit.core.compilation import kernel

SHARE = 0.99  # of the positive rewards arrive by the settling age
DEVIATIONS = 1.645  # standard errors by which that share is to be exceeded: an upper limit of 95 %
# Positive rewards of decisions that have reached an age, before that age counts as observed. An estimate from ten of
# them can be too short, but that costs less than waiting for more: a reward that comes later is still learned.
FEWEST = 10
REACH = 4.0  # times the settling age, for which decisions were observed before it is less than the window
RATIO = 0.84  # between the largest ages of two neighbouring bins: the settling age is at most 19 % too large
BINS = 64
SHORTEST = RATIO ** (BINS - 1)  # ages up to so many windows, 0.00002, are in the last bin
SLOTS = 4  # of the time of decisions; those of a slot count for the ages that the latest of them has reached
# The state: the settling age, the number of positive rewards, the time when the first slot begins, the length of a
# slot, and for each slot how many rewards arrived by the largest age of each bin
AGE, COUNT, ORIGIN, LENGTH, FIRST = range(5)
SIZE = FIRST + SLOTS * BINS


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
def observe(state: list[float] | np.ndarray, decided: float, age: float, window: float) -> None:
    """Count a positive reward; `update` then updates the settling age.

    Parameters
    ----------
    state
        `SIZE` numbers, a list or an array.
    decided
        The time of the decision, in steps or seconds.
    age
        The time between the decision and its reward, at most the window.
    window
        The time after which a decision accepts no reward.

    Examples
    --------
    >>> state = [0.0] * SIZE
    >>> start(state, window=3600.0)
    >>> for second in range(100):
    ...     observe(state, decided=float(second), age=second % 10, window=3600.0)
    >>> update(state, now=110.0, window=3600.0)
    >>> 9.0 <= state[AGE] <= 9.0 / RATIO
    True
    """
    if state[COUNT] == 0.0:
        state[ORIGIN] = decided
        state[LENGTH] = window * SHORTEST if window > 0.0 else 1.0
    while decided - state[ORIGIN] >= SLOTS * state[LENGTH]:
        _join_slots(state)
    slot = max(int((decided - state[ORIGIN]) / state[LENGTH]), 0)  # the first reward may be of a later decision
    first = FIRST + min(slot, SLOTS - 1) * BINS
    largest_age, place = window, 0
    state[first] += 1.0
    while place < BINS - 1 and age <= largest_age * RATIO:
        largest_age *= RATIO
        place += 1
        state[first + place] += 1.0
    state[COUNT] += 1.0


@kernel
def _join_slots(state: list[float] | np.ndarray) -> None:
    """Join each two neighbouring slots, which makes room for as many later ones."""
    state[LENGTH] *= 2.0
    for slot in range(SLOTS):
        for place in range(BINS):
            one = FIRST + 2 * slot * BINS + place
            state[FIRST + slot * BINS + place] = state[one] + state[one + BINS] if 2 * slot < SLOTS else 0.0


@kernel
def update(state: list[float] | np.ndarray, now: float, window: float) -> None:
    """Update the settling age at a time."""
    state[AGE] = settling_age(state, now, window)


@kernel
def settling_age(state: list[float] | np.ndarray, now: float, window: float) -> float:
    """Return the settling age at a time: the window while the rewards do not show yet that it is less.

    It is the largest age of a bin, and does not depend on the order of the rewards.
    """
    observed, share, variance, largest_age = 0.0, 1.0, 0.0, window
    for place in range(BINS):
        arrived = in_bin = 0.0
        for slot in range(SLOTS):
            if now - state[ORIGIN] - (slot + 1) * state[LENGTH] >= largest_age:  # all decisions have reached this age
                here = FIRST + slot * BINS + place
                arrived += state[here]
                in_bin += state[here] - (state[here + 1] if place < BINS - 1 else 0.0)
        if observed == 0.0 and arrived >= FEWEST:
            observed = largest_age
        if observed > 0.0 and in_bin > 0.0:
            if in_bin >= arrived:
                break
            share *= 1.0 - in_bin / arrived
            variance += in_bin / (arrived * (arrived - in_bin))  # of the logarithm of the share
            if share * math.exp(-DEVIATIONS * math.sqrt(variance)) < SHARE:
                break
        largest_age *= RATIO
    return largest_age if observed >= window or REACH * largest_age <= observed else window
