"""Changes: the moments when the mean reward of an arm became another one."""

import math
from typing import Any, NamedTuple

__all__ = ["FALSE_ALARM", "Change", "Detector"]

BLOCK = 16  # rewards that are looked at together
MOST_ALIKE = 4  # blocks of a size; of more than that the two oldest become one of twice the size
FALSE_ALARM = 0.01  # chance that an arm that never changes is said to have changed

Block = tuple[int, float, int, float]  # rewards, their sum, step and clock of the first


class Change(NamedTuple):
    """A change that was noticed at step `step` and began, as far as one can tell, at step `since`.

    `rewards` rewards with the sum `total` came before it, since the last one; `clock` is what the caller's own clock
    showed when it began.
    """

    step: int
    since: int
    before: float
    after: float
    rewards: int
    total: float
    clock: float


class Detector:
    """Looks for a change in the rewards of one arm.

    The rewards since the last change are kept as blocks, short ones for the latest and ever longer ones for those
    before: some 4 log2(n / 64) in all. Whenever a block is full, every split into earlier and later blocks is tested
    by the generalised likelihood ratio of two Bernoulli means against one, which is conservative for any rewards in
    [0, 1]. Up to n rewards there are at most 4 n such tests for n up to many millions; the threshold log(4 n / 0.01) is
    what their union asks for, so that an arm that never changes gives an alarm with probability of about 0.01 at
    most.

    Examples
    --------
    >>> detector = Detector()
    >>> found = [detector.add(float(step > 100), step) for step in range(1, 201)]
    >>> next(change for change in found if change is not None)
    Change(step=112, since=97, before=0.0, after=0.75, rewards=96, total=0.0, clock=0.0)
    """

    __slots__ = ("_blocks", "_clock", "_count", "_start", "_total")

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._count, self._total, self._start, self._clock = 0, 0.0, 0, 0.0

    def add(self, reward: float, step: int, clock: float = 0.0) -> Change | None:
        """Take in a reward, and return the change that it made evident."""
        if self._count == 0:
            self._start, self._clock = step, clock
        self._count += 1
        self._total += reward
        if self._count < BLOCK:
            return None
        self._blocks.append((self._count, self._total, self._start, self._clock))
        self._count, self._total = 0, 0.0
        change = self._test(step)
        self._compress()
        return change

    def _test(self, step: int) -> Change | None:
        count = sum(block[0] for block in self._blocks)
        total = sum(block[1] for block in self._blocks)
        together = _likelihood(count, total)
        best, place = math.log(4.0 * count / FALSE_ALARM), 0
        left, left_total = 0, 0.0
        for index, (size, value, _, _) in enumerate(self._blocks[:-1], start=1):
            left += size
            left_total += value
            ratio = _likelihood(left, left_total) + _likelihood(count - left, total - left_total) - together
            if ratio > best:
                best, place = ratio, index
        if place == 0:
            return None
        old, self._blocks = self._blocks[:place], self._blocks[place:]
        rewards, value = sum(block[0] for block in old), sum(block[1] for block in old)
        after = (total - value) / (count - rewards)
        return Change(step, self._blocks[0][2], value / rewards, after, rewards, value, self._blocks[0][3])

    def _compress(self) -> None:
        """Keep the number of blocks small; their sizes fall from the oldest to the latest."""
        blocks, size, end = self._blocks, BLOCK, len(self._blocks)
        while True:
            start = end
            while start > 0 and blocks[start - 1][0] == size:
                start -= 1
            if end - start <= MOST_ALIKE:
                return
            one, two = blocks[start], blocks[start + 1]
            blocks[start : start + 2] = [(one[0] + two[0], one[1] + two[1], one[2], one[3])]
            size, end = 2 * size, start + 1

    def to_list(self) -> list[Any]:
        """Return all there is to know; `from_list` goes on from it."""
        return [self._blocks, self._count, self._total, self._start, self._clock]

    @classmethod
    def from_list(cls, content: list[Any]) -> "Detector":
        """Return the detector that `to_list` wrote."""
        detector = cls()
        blocks, detector._count, detector._total, detector._start, detector._clock = content
        detector._blocks = [(count, total, start, clock) for count, total, start, clock in blocks]
        return detector


def _likelihood(count: int, total: float) -> float:
    """Return the logarithm of the largest likelihood of a Bernoulli mean."""
    p = total / count
    if p <= 0.0 or p >= 1.0:
        return 0.0
    return count * (p * math.log(p) + (1.0 - p) * math.log1p(-p))
