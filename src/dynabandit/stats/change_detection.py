"""Change detection: the generalised likelihood ratio test for a change of a Bernoulli mean."""

import math
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.bernoulli_kl import kl
from dynabandit.core.compilation import kernel

BLOCK = 16  # rewards per block of the newest kind
SAME_SIZE = 4  # blocks of one size at most; beyond that the two oldest are merged
FALSE_ALARM = 0.01  # probability that a change is reported for an arm that never changes

Block = tuple[int, float, int, float]  # rewards, their sum, step and clock of the first


@kernel
def likelihood_ratio(first: float, first_total: float, count: float, total: float, mean: float) -> float:
    """Return the log likelihood ratio of two means, before and after a split, against one mean.

    The first `first` of `count` rewards have the sum `first_total`; all have the sum `total` and the mean `mean`.
    It is conservative for any rewards in [0, 1].

    Examples
    --------
    >>> round(likelihood_ratio(10.0, 0.0, 20.0, 10.0, 0.5), 3)
    13.863
    """
    rest = count - first
    return first * kl(first_total / first, mean) + rest * kl((total - first_total) / rest, mean)


@kernel
def has_change(sums: np.ndarray, spacing: float, count: float, total: float, mean: float, threshold: float) -> bool:
    """Return whether the likelihood ratio of some split reaches a threshold.

    `sums` holds the sum of the first `spacing`, 2 `spacing`, 3 `spacing`, ... of `count` rewards.

    Examples
    --------
    >>> import numpy as np
    >>> has_change(np.array([0.0, 0.0]), 10.0, 30.0, 10.0, 1 / 3, 15.0)
    True
    """
    if mean <= 0.0 or mean >= 1.0:
        return False
    index = 0
    first = spacing
    while first < count:
        if likelihood_ratio(first, sums[index], count, total, mean) >= threshold:
            return True
        index += 1
        first += spacing
    return False


class Change(NamedTuple):
    """A change that was detected at step `step` and probably began at step `since`.

    `rewards` rewards with the sum `total` came before it, since the previous change; `clock` is the caller's own
    clock when it began.
    """

    step: int
    since: int
    before: float
    after: float
    rewards: int
    total: float
    clock: float


class ChangeDetector:
    """Detects changes in the rewards of one arm, with memory that grows with the logarithm of their number.

    The rewards since the last change are kept as blocks, short ones for the newest and longer ones for older
    rewards, about 4 log2(n / 64) in all. Whenever a block is full, every split between blocks is tested. Up to n
    rewards there are at most 4 n tests, for n up to many millions; with the threshold log(4 n / 0.01), the union
    bound limits the probability of a false alarm for an arm that never changes to about 0.01.

    Examples
    --------
    >>> detector = ChangeDetector()
    >>> found = [detector.add(float(step > 100), step) for step in range(1, 201)]
    >>> next(change for change in found if change is not None)
    Change(step=112, since=97, before=0.0, after=0.75, rewards=96, total=0.0, clock=0.0)
    """

    __slots__ = ("_blocks", "_clock", "_count", "_start", "_total")

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._count, self._total, self._start, self._clock = 0, 0.0, 0, 0.0

    def add(self, reward: float, step: int, clock: float = 0.0) -> Change | None:
        """Add a reward, and return the change that it reveals."""
        if self._count == 0:
            self._start, self._clock = step, clock
        self._count += 1
        self._total += reward
        if self._count < BLOCK:
            return None
        self._blocks.append((self._count, self._total, self._start, self._clock))
        self._count, self._total = 0, 0.0
        change = self._test(step)
        self._merge()
        return change

    def _test(self, step: int) -> Change | None:
        count = sum(block[0] for block in self._blocks)
        total = sum(block[1] for block in self._blocks)
        mean = total / count
        if mean <= 0.0 or mean >= 1.0:
            return None
        largest, split = math.log(4.0 * count / FALSE_ALARM), 0
        first, first_total = 0, 0.0
        for index, (size, value, _, _) in enumerate(self._blocks[:-1], start=1):
            first += size
            first_total += value
            ratio = likelihood_ratio(first, first_total, count, total, mean)
            if ratio > largest:
                largest, split = ratio, index
        if split == 0:
            return None
        old, self._blocks = self._blocks[:split], self._blocks[split:]
        rewards, value = sum(block[0] for block in old), sum(block[1] for block in old)
        after = (total - value) / (count - rewards)
        return Change(step, self._blocks[0][2], value / rewards, after, rewards, value, self._blocks[0][3])

    def _merge(self) -> None:
        """Merge old blocks; sizes fall from the oldest to the newest."""
        blocks, size, end = self._blocks, BLOCK, len(self._blocks)
        while True:
            start = end
            while start > 0 and blocks[start - 1][0] == size:
                start -= 1
            if end - start <= SAME_SIZE:
                return
            one, two = blocks[start], blocks[start + 1]
            blocks[start : start + 2] = [(one[0] + two[0], one[1] + two[1], one[2], one[3])]
            size, end = 2 * size, start + 1

    def to_list(self) -> list[Any]:
        """Return the state as plain values for `from_list`."""
        return [self._blocks, self._count, self._total, self._start, self._clock]

    @classmethod
    def from_list(cls, content: list[Any]) -> "ChangeDetector":
        """Return the detector whose state `to_list` returned."""
        detector = cls()
        blocks, detector._count, detector._total, detector._start, detector._clock = content
        detector._blocks = [(count, total, start, clock) for count, total, start, clock in blocks]
        return detector
