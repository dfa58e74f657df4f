"""What choosing at random would have brought: an estimate from the rewards that were seen, and how sure it is."""

import math
from typing import Any

import numpy as np

from dynabandit.stats.change_detection import Change
from dynabandit.stats.intervals import binomial_total

__all__ = ["Uniform"]

MOST_ENDED = 50  # stretches of an arm that are kept apart
Stretch = tuple[float, float, int, float]  # gathered by its start and its end, rewards, their sum


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
        self._eligible = 0
        # Of each arm, since its latest change: rewards, their sum, and what it had gathered when that began
        self._counts: list[int] = []
        self._totals: list[float] = []
        self._starts: list[float] = []
        self._ended: dict[str, list[Stretch]] = {}  # arm -> stretches that a change has ended
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
        ended = self._ended.setdefault(str(arm), [])
        ended.append((self._starts[arm], change.clock, change.rewards, change.total))
        if len(ended) > MOST_ENDED:
            (start, _, n, s), (_, end, more, sum_) = ended[:2]
            ended[:2] = [(start, end, n + more, s + sum_)]
        self._counts[arm] -= change.rewards
        self._totals[arm] -= change.total
        self._starts[arm] = change.clock

    def along(self, gathered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the estimate and its variance along a path, given what each arm had gathered: (points, arms).

        The whole path is judged by what is known now, a change that was noticed late included.
        """
        middle, variance = np.zeros(len(gathered)), np.zeros(len(gathered))
        for arm in range(gathered.shape[1]):
            now = (self._starts[arm], math.inf, self._counts[arm], self._totals[arm])
            for start, end, count, total in (*self._ended.get(str(arm), ()), now):
                weight = np.clip(gathered[:, arm] - start, 0.0, end - start)
                middle += weight * (total / count if count else self.total / max(self.count, 1))
                smooth = (total + 1.0) / (count + 2.0)
                variance += weight**2 * (smooth * (1.0 - smooth) / max(count, 1))
        return middle, variance

    def rest(self, first: int) -> tuple[float, float]:
        """Return the estimate and its variance of all arms from some on, which have no changes."""
        if first >= len(self._counts) or self.count == 0:
            return 0.0, 0.0
        n, s = np.array(self._counts[first:]), np.array(self._totals[first:])
        since = np.array([self.clock if one is None else one for one in self._since[first:]])
        weight = np.array(self._gathered[first:]) + self.clock - since
        mean = np.where(n > 0, s / np.maximum(n, 1), self.total / self.count)
        smooth = (s + 1.0) / (n + 2.0)
        return float(weight @ mean), float((weight**2) @ (smooth * (1.0 - smooth) / np.maximum(n, 1)))

    def interval(self) -> tuple[float, float, float]:
        """Return the lower end, the estimate and the upper end of the total now."""
        gathered = np.array([[self.gathered(arm) for arm in range(len(self._counts))]])
        ends = binomial_total(*self.along(gathered), np.array([self.count]))
        return float(ends[0][0]), float(ends[1][0]), float(ends[2][0])

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
