"""ADWIN: the latest rewards of an arm are compared with those before them, for many lengths of both."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.policies.base import PolicyState, Reward
from dynabandit.policies.detectors.base import NO_RESTART, THE_ARM, Detector, DetectorKernels
from dynabandit.policies.part import Setting
from dynabandit.validation import check_field, integer, number

SIZES = 24  # buckets of 1, 2, 4, ... rewards; those of more than 2^23 are dropped
LARGEST_NUMBER = 1000  # of buckets of one size


class Params(NamedTuple):
    doubt: float  # log(4 / delta)
    every: int
    buckets: int
    exploration: float


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    """Write nothing: there are no buckets."""


@kernel
def observe(state: PolicyState, arm: int, reward: Reward, total: float, plays: float, params: Params) -> int:
    """Add a reward to the buckets and test the arm at every so many plays."""
    insert(state.memory, arm, reward.value, params.buckets)
    if int(plays) % params.every != 0 or not has_changed(state.memory, arm, params):
        return NO_RESTART
    return THE_ARM


@kernel
def insert(memory: np.ndarray, arm: int, value: float, buckets: int) -> None:
    """Add a bucket with one reward; where there are too many of one size, the two oldest become one.

    The rows of a size are the number of its buckets and then their sums, the oldest first.
    """
    added = value
    for size in range(SIZES):
        row = size * (buckets + 1)
        held = int(memory[row, arm])
        if held < buckets:
            memory[row + 1 + held, arm] = added
            memory[row, arm] = held + 1.0
            return
        merged = memory[row + 1, arm] + memory[row + 2, arm]
        for place in range(row + 1, row + held - 1):
            memory[place, arm] = memory[place + 2, arm]
        memory[row + held - 1, arm] = added
        memory[row, arm] = held - 1.0
        added = merged


@kernel
def has_changed(memory: np.ndarray, arm: int, params: Params) -> bool:
    """Whether the means before and after some border between buckets differ by more than the bound of theorem 3.1."""
    count, total = count_and_total(memory, arm, params.buckets)
    doubt = math.log(count) + params.doubt
    newer, newer_total, rewards = 0.0, 0.0, 1.0
    for size in range(SIZES):
        row = size * (params.buckets + 1)
        held = int(memory[row, arm])
        for place in range(held):
            newer += rewards
            newer_total += memory[row + held - place, arm]
            older = count - newer
            if older <= 0.0:
                return False
            difference = newer_total / newer - (total - newer_total) / older
            # the bound sqrt((1 / n_0 + 1 / n_1) / 2 log(4 n / delta)), squared
            if difference * difference >= (1.0 / newer + 1.0 / older) / 2.0 * doubt:
                return True
        rewards *= 2.0
    return False


@kernel
def count_and_total(memory: np.ndarray, arm: int, buckets: int) -> tuple[float, float]:
    """Return the number and the sum of the rewards in all buckets."""
    count, total, rewards = 0.0, 0.0, 1.0
    for size in range(SIZES):
        row = size * (buckets + 1)
        held = int(memory[row, arm])
        count += rewards * held
        for place in range(row + 1, row + 1 + held):
            total += memory[place, arm]
        rewards *= 2.0
    return count, total


@kernel
def share(shared: np.ndarray, number: int, params: Params) -> float:
    """Return the probability of playing a random arm."""
    return params.exploration


@dataclass(frozen=True, kw_only=True)
class Adwin(Detector):
    r"""Forget the rewards of an arm when the latest of them differ from those before: for changes whose size and time
    are unknown. It needs neither the horizon nor the number of changes.

    The arm restarts if its n rewards can be split in two such that the means of the n_0 older and the n_1 newer ones
    differ too much:

    .. math:: \left| \bar{x}_0 - \bar{x}_1 \right| \geq \sqrt{\frac{1}{2} \left( \frac{1}{n_0} + \frac{1}{n_1} \right)
        \log \frac{4 n}{\delta}}

    The rewards are kept as sums of 1, 2, 4, ... of them, shorter ones for the newest, and only splits between two sums
    are tested: memory and time grow with log n. In the paper a change shortens the window by its oldest rewards; here
    the arm forgets all of them. The paper has no exploration, because it is about a single stream of numbers.

    Parameters
    ----------
    delta
        The paper's confidence, in (0, 1]: a test of an arm that has not changed fails with at most this probability.
    every
        The number of plays of an arm between two tests.
    buckets
        The paper's M, at least 2: how many sums of the same number of rewards are kept.
    exploration
        The probability of playing a random arm, in [0, 1], so that arms with small means are tested too.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.detectors.Adwin(delta=0.01).parameters
    {'delta': 0.01, 'every': 10, 'buckets': 5, 'exploration': 0.01}

    References
    ----------
    Bifet & Gavalda (2007), Learning from time-changing data with adaptive windowing. SDM.
    """

    name = "adwin"
    kernels = DetectorKernels(slots=(), start=start, observe=observe, share=share, params=Params)

    delta: float = 0.002
    every: int = 10
    buckets: int = 5
    exploration: float = 0.01

    def __post_init__(self) -> None:
        check_field(self, "delta", number, 0.0, 1.0, open_low=True)
        check_field(self, "every", integer, 1, LARGEST_STEP)
        check_field(self, "buckets", integer, 2, LARGEST_NUMBER)
        check_field(self, "exploration", number, 0.0, 1.0)

    def params(self, setting: Setting) -> Params:
        return Params(math.log(4.0 / self.delta), self.every, self.buckets, self.exploration)

    def history_size(self, setting: Setting) -> int:
        return SIZES * (self.buckets + 1)
