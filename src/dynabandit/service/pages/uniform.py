"""What choosing at random would have brought: an estimate from the rewards that were seen, and how sure it is."""

import math
from typing import Any

import numpy as np

from dynabandit.service.pages.changes import Change

__all__ = ["Uniform"]

WIDTH = 1.959964  # of a normal law, for 95 %


class Uniform:
    """Estimates the total reward of a choice among the arms with equal chances, at the very moments of ours.

    At each reward that comes in, choosing at random would have brought the average, over the arms that could be
    chosen, of their mean rewards at that moment. The mean of an arm is that of the rewards it did get between two
    detected changes; an arm without any reward counts as the average of all.

    The interval says where the total of one such run would lie with 95 % chance. Its variance has two parts: that of
    the estimate, which is the sum over stretches of weight^2 p (1 - p) / n with p moved a little to one half, and the
    luck of the run itself, T p (1 - p) at most. Both are conservative for rewards in [0, 1]. Not in it is what nobody
    saw: an arm that changes while it is hardly ever played; and a policy leaves arms that were unlucky, which
    makes them look a little worse than they are.

    Examples
    --------
    >>> uniform = Uniform(2)
    >>> for step in range(100):
    ...     uniform.reward(step % 2, float(step % 2))
    >>> low, middle, high = uniform.interval()
    >>> round(middle), low < 50 < high
    (50, True)
    """

    def __init__(self, arms: int) -> None:
        self.clock = 0.0  # what an arm that can always be chosen has gathered: a sum of 1 / arms
        self.count = 0
        self.total = 0.0
        self._done = 0.0  # of the stretches that a change has ended
        self._done_variance = 0.0
        self._eligible = 0
        # Of each arm, since its latest change: rewards, their sum, and what it had gathered when that began
        self._counts: list[int] = []
        self._totals: list[float] = []
        self._starts: list[float] = []
        self._gathered: list[float] = []
        self._since: list[float | None] = []  # the clock when it became possible to choose it; None while it is not
        for _ in range(arms):
            self.add_arm()

    def add_arm(self) -> None:
        """Take in a new arm."""
        self._counts.append(0)
        for values in (self._totals, self._starts, self._gathered):
            values.append(0.0)
        self._since.append(self.clock)
        self._eligible += 1

    def allow(self, arm: int, allowed: bool) -> None:
        """Note whether an arm can be chosen from now on."""
        since = self._since[arm]
        if allowed and since is None:
            self._since[arm] = self.clock
            self._eligible += 1
        elif not allowed and since is not None:
            self._gathered[arm] += self.clock - since
            self._since[arm] = None
            self._eligible -= 1

    def gathered(self, arm: int) -> float:
        """Return how often choosing at random would have taken an arm so far."""
        since = self._since[arm]
        return self._gathered[arm] + (0.0 if since is None else self.clock - since)

    def reward(self, arm: int, value: float) -> None:
        """Take in a reward of an arm."""
        self.clock += 1.0 / max(self._eligible, 1)
        self.count += 1
        self.total += value
        self._counts[arm] += 1
        self._totals[arm] += value

    def change(self, arm: int, change: Change) -> None:
        """Take in that an arm has changed; the clock of the change is what the arm had gathered by then."""
        weight = change.clock - self._starts[arm]
        smooth = (change.total + 1.0) / (change.rewards + 2.0)
        self._done += weight * change.before
        self._done_variance += weight**2 * smooth * (1.0 - smooth) / change.rewards
        self._counts[arm] -= change.rewards
        self._totals[arm] -= change.total
        self._starts[arm] = change.clock

    def interval(self) -> tuple[float, float, float]:
        """Return the lower end, the estimate and the upper end."""
        if self.count == 0:
            return 0.0, 0.0, 0.0
        n, s = np.array(self._counts), np.array(self._totals)
        since = np.array([self.clock if one is None else one for one in self._since])
        weight = np.array(self._gathered) + self.clock - since - np.array(self._starts)
        mean = np.where(n > 0, s / np.maximum(n, 1), self.total / self.count)
        smooth = (s + 1.0) / (n + 2.0)
        variance = smooth * (1.0 - smooth) / np.maximum(n, 1)
        middle = self._done + float(weight @ mean)
        p = min(max(middle / self.count, 0.0), 1.0)
        spread = self._done_variance + float((weight**2) @ variance) + self.count * p * (1.0 - p)
        half = WIDTH * math.sqrt(spread)
        return max(0.0, middle - half), middle, min(float(self.count), middle + half)

    def to_dict(self) -> dict[str, Any]:
        """Return all there is to know; `from_dict` goes on from it."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Uniform":
        """Return what `to_dict` wrote."""
        uniform = cls(0)
        for name in vars(uniform):
            setattr(uniform, name, content[name])
        return uniform
