"""Means of the latest 1, 2, 4, ... rewards of an arm with O(log n) numbers, for RAW-UCB and FEWA.

A window of 2^j rewards moves on whenever 2^(j-1) new ones have come. The sum after the next move starts with these
rewards, which are the window of half the length at that time.
"""

from typing import Any

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyState
from dynabandit.policies.memories.sample_mean import Sums
from dynabandit.policies.whole import sample_mean_policy

SLOTS = sample_mean_policy.SLOTS
TOTAL, PLAYS = SLOTS.index("total"), SLOTS.index("plays")
WINDOWS = 32  # of 1 to 2^31 rewards
CURRENT = len(SLOTS)  # from this row on: the sum of each window
NEXT = CURRENT + WINDOWS  # from this row on: the part that is known of the sum after the next move
SIZE = NEXT + WINDOWS


@kernel
def start(state: PolicyState, arm: int, params: Any) -> None:
    """Write the state of an arm without rewards."""
    state.memory[:SIZE, arm] = 0.0


@kernel
def observe(state: PolicyState, arm: int, value: float) -> Sums:
    """Add a reward to the windows of an arm and to its sums, and return the sums."""
    memory = state.memory
    sums = sample_mean_policy.observe(state, arm, value)
    plays = int(sums.plays)
    memory[CURRENT, arm] = value
    half, place = 1, 1
    while 2 * half <= plays and place < WINDOWS:
        if plays == 2 * half:  # the window is full for the first time
            memory[NEXT + place, arm] = sums.total
        else:
            memory[NEXT + place, arm] += value
        if plays % half == 0:
            memory[CURRENT + place, arm] = memory[NEXT + place, arm]
            memory[NEXT + place, arm] = memory[CURRENT + place - 1, arm]
        half *= 2
        place += 1
    return sums


@kernel
def window_mean(memory: np.ndarray, arm: int, place: int) -> float:
    """Return the mean of the window of 2^place rewards, which must be full."""
    return memory[CURRENT + place, arm] / float(1 << place)
