"""AdSwitch, literally: Auer, Gajane & Ortner (2019), with tests at every `every`-th step of an episode.

All rewards of the episode are kept, and every mean is computed from them anew. An interval [s, t] begins after step s
of the episode: 0 or a multiple of a distance, which is doubled until there are at most `capacity` of them. Checks of
bad arms are started by chance; `draw(i, arm)` gives the number for a check of the size 2^-i.
"""

import math
from collections.abc import Callable

from oracles.upper_bounds import glr_candidates

Interval = tuple[int, int]


class AdSwitch:
    def __init__(self, arms: int, horizon: int, constant: float, scale: float, every: int, capacity: int) -> None:
        self.arms, self.horizon, self.log_horizon = arms, horizon, max(math.log(horizon), 1.0)
        self.constant, self.scale, self.every, self.capacity = constant, scale, every, capacity
        self.episode, self.steps, self.checks = 0, 0, 0
        self.played_at = [0] * arms
        self.begin()

    def begin(self) -> None:
        self.episode += 1
        self.history: list[tuple[int, float]] = []
        self.good = set(range(self.arms))
        self.bad: dict[int, tuple[float, float]] = {}  # the mean and the gap of each
        self.obligations: dict[int, list[tuple[int, int]]] = {arm: [] for arm in range(self.arms)}  # plays, since when
        self.intervals: list[Interval] = []

    def rewards(self, arm: int, interval: Interval) -> list[float]:
        return [reward for played, reward in self.history[slice(*interval)] if played == arm]

    def mean(self, arm: int, interval: Interval) -> float:
        values = self.rewards(arm, interval)
        return math.fsum(values) / len(values)

    def candidates(self) -> list[int]:
        """Good arms, and bad arms with a sampling obligation; the one to play is that of the longest idle time."""
        t = len(self.history)
        return [
            arm
            for arm in range(self.arms)
            if arm in self.good or any(len(self.rewards(arm, (s, t))) < plays for plays, s in self.obligations[arm])
        ]

    def observe(self, arm: int, reward: float, draw: Callable[[int, int], float]) -> None:
        self.steps += 1
        self.played_at[arm] = self.steps
        self.history.append((arm, reward))
        t = len(self.history)
        if t % self.every != 0:
            return
        ending = [(s, t) for s in (0, *glr_candidates(t, self.every, self.capacity))]
        self.intervals += ending
        if any(self.good_arm_changed(one, ending) for one in self.good) or any(
            self.bad_arm_changed(one, ending) for one in self.bad
        ):
            self.begin()
            return
        self.evict(ending)
        self.add_checks(draw)

    def good_arm_changed(self, arm: int, ending: list[Interval]) -> bool:
        """Condition (3)."""
        seen = [(self.mean(arm, one), self.width(arm, one)) for one in self.intervals if self.rewards(arm, one)]
        now = [(self.mean(arm, one), self.width(arm, one)) for one in ending if self.rewards(arm, one)]
        return any(abs(x - y) > width + other for x, width in seen for y, other in now)

    def bad_arm_changed(self, arm: int, ending: list[Interval]) -> bool:
        """Condition (4)."""
        mean, gap = self.bad[arm]
        return any(
            abs(self.mean(arm, one) - mean) > gap / 4 + self.width(arm, one) for one in ending if self.rewards(arm, one)
        )

    def bounds(self, arm: int, unknown: float) -> tuple[float, float]:
        """The largest lower bound and the smallest upper bound of an arm's mean, of all intervals so far."""
        seen = [one for one in self.intervals if self.rewards(arm, one)]
        lower = max((self.mean(arm, one) - self.width(arm, one) for one in seen), default=-unknown)
        return lower, min((self.mean(arm, one) + self.width(arm, one) for one in seen), default=unknown)

    def due(self, arm: int) -> int:
        """The number of plays in the episode with which an arm has met its obligations; 0 if it never had one."""
        return max((plays + len(self.rewards(arm, (0, s))) for plays, s in self.obligations[arm]), default=0)

    def width(self, arm: int, interval: Interval) -> float:
        return math.sqrt(2 * self.log_horizon / len(self.rewards(arm, interval)))

    def evict(self, ending: list[Interval]) -> None:
        """Condition (1), by the oldest interval that shows it; an arm needs two rewards in the interval."""
        evicted: dict[int, tuple[float, float]] = {}
        for one in ending:
            means = {arm: self.mean(arm, one) for arm in self.good if len(self.rewards(arm, one)) > 1}
            for arm, mean in means.items():
                gap = max(means.values()) - mean
                plays = len(self.rewards(arm, one))
                if arm not in evicted and gap > math.sqrt(self.constant * self.log_horizon / (plays - 1)):
                    evicted[arm] = mean, gap
        self.bad |= evicted
        self.good -= evicted.keys()

    def add_checks(self, draw: Callable[[int, int], float]) -> None:
        rate = self.scale * math.sqrt(self.episode / (self.arms * self.horizon * self.log_horizon))
        for arm, (_, gap) in self.bad.items():
            i = 1
            while 2**-i >= gap / 16:
                if draw(i, arm) < self.every * 2**-i * rate:
                    self.checks += 1
                    plays = math.floor(2 * self.log_horizon / (2**-i) ** 2)
                    self.obligations[arm].append((plays, len(self.history)))
                i += 1
