"""Estimates what uniformly random choices would have earned, from the observed rewards."""

import math
from typing import Any

import numpy as np

from dynabandit.stats.change_detection import Change

MOST_ENDED = 50  # segments per arm; older ones are merged
Segment = tuple[float, float, int, float]  # expected plays at its start and end, number and sum of rewards


class UniformBaseline:
    """Estimates the total reward of uniformly random choices at the times of the actual decisions.

    At each reward, a random choice would have earned the average of the mean rewards of the available arms. The mean
    of an arm is estimated from its rewards between two detected changes; for an arm without rewards it is the mean of
    all rewards.

    The 95 % interval is that of the total of one such run. Its variance has two parts: that of the estimate, the sum
    over segments between changes of weight^2 p (1 - p) / n with p shrunk towards one half, and that of the rewards of
    the run, T p (1 - p) at most. Both are conservative for rewards in [0, 1]. Two errors are not included: changes of
    an arm that is hardly ever played are not detected, and a policy stops playing arms after unlucky rewards, which
    makes them look slightly worse than they are.

    Examples
    --------
    >>> uniform = UniformBaseline()
    >>> uniform.add_arm(), uniform.add_arm()
    (None, None)
    >>> for step in range(100):
    ...     uniform.reward(step % 2, float(step % 2))
    >>> estimate, variance = uniform.along(np.array([[50.0, 50.0]]))
    >>> round(float(estimate[0]))
    50
    """

    def __init__(self) -> None:
        self.clock = 0.0  # expected plays of an arm that was always available: a sum of 1 / arms
        self.count = 0
        self.total = 0.0
        self._eligible = 0
        # Per arm, since its last change: number and sum of rewards, and expected plays at the start
        self._counts: list[int] = []
        self._totals: list[float] = []
        self._starts: list[float] = []
        self._ended: dict[str, list[Segment]] = {}  # arm -> segments that were ended by a change
        self._gathered: list[float] = []  # expected plays before `_since`; stores keep this name
        self._since: list[float | None] = []  # the clock when it became available; None while it is not

    def add_arm(self) -> None:
        """Add a new arm."""
        self._counts.append(0)
        for values in (self._totals, self._starts, self._gathered):
            values.append(0.0)
        self._since.append(self.clock)
        self._eligible += 1

    def allow(self, arm: int, allowed: bool) -> None:
        """Set whether an arm is available from now on."""
        since = self._since[arm]
        if allowed and since is None:
            self._since[arm] = self.clock
            self._eligible += 1
        elif not allowed and since is not None:
            self._gathered[arm] += self.clock - since
            self._since[arm] = None
            self._eligible -= 1

    def expected_plays(self, arm: int) -> float:
        """Return the expected number of plays of an arm so far."""
        since = self._since[arm]
        return self._gathered[arm] + (0.0 if since is None else self.clock - since)

    def observed(self, arm: int) -> tuple[float, int]:
        """Return the mean and the number of the rewards of an arm since its latest change; NaN without rewards."""
        count = self._counts[arm]
        return (self._totals[arm] / count if count else math.nan), count

    def reward(self, arm: int, value: float) -> None:
        """Add a reward of an arm."""
        self.clock += 1.0 / max(self._eligible, 1)
        self.count += 1
        self.total += value
        self._counts[arm] += 1
        self._totals[arm] += value

    def change(self, arm: int, change: Change) -> None:
        """Start a new segment of an arm; the clock of the change is the expected plays of the arm at that time."""
        ended = self._ended.setdefault(str(arm), [])
        ended.append((self._starts[arm], change.clock, change.rewards, change.total))
        if len(ended) > MOST_ENDED:
            (start, _, n, s), (_, end, more, sum_) = ended[:2]
            ended[:2] = [(start, end, n + more, s + sum_)]
        self._counts[arm] -= change.rewards
        self._totals[arm] -= change.total
        self._starts[arm] = change.clock

    def along(self, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the estimate and its variance at several times, given the expected plays (times, arms).

        All times are estimated with the data known now, including changes that were detected later.
        """
        middle, variance = np.zeros(len(expected)), np.zeros(len(expected))
        for arm in range(expected.shape[1]):
            now = (self._starts[arm], math.inf, self._counts[arm], self._totals[arm])
            for start, end, count, total in (*self._ended.get(str(arm), ()), now):
                weight = np.clip(expected[:, arm] - start, 0.0, end - start)
                middle += weight * (total / count if count else self.total / max(self.count, 1))
                smooth = (total + 1.0) / (count + 2.0)
                variance += weight**2 * (smooth * (1.0 - smooth) / max(count, 1))
        return middle, variance

    def rest(self, first: int) -> tuple[float, float]:
        """Return the estimate and its variance for all arms from `first` on, whose changes are not tracked."""
        if first >= len(self._counts) or self.count == 0:
            return 0.0, 0.0
        n, s = np.array(self._counts[first:]), np.array(self._totals[first:])
        since = np.array([self.clock if one is None else one for one in self._since[first:]])
        weight = np.array(self._gathered[first:]) + self.clock - since
        mean = np.where(n > 0, s / np.maximum(n, 1), self.total / self.count)
        smooth = (s + 1.0) / (n + 2.0)
        return float(weight @ mean), float((weight**2) @ (smooth * (1.0 - smooth) / np.maximum(n, 1)))

    def to_plain(self) -> dict[str, Any]:
        """Return the state as plain values for `from_plain`."""
        return dict(vars(self))

    @classmethod
    def from_plain(cls, content: dict[str, Any]) -> "UniformBaseline":
        """Return the baseline whose state `to_plain` returned."""
        uniform = cls()
        for name in vars(uniform):
            setattr(uniform, name, content[name])
        return uniform
