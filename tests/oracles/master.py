"""MASTER with UCB1, literally: Wei & Luo (2021), procedure 1 and algorithms 2 and 3.

All instances, optimistic values and rewards of the current block are kept, and every test sums over them anew. By
chance, instances are started; `draw` gives the number for an order.
"""

import math
from collections.abc import Callable


class Instance:
    """UCB1 for the steps `start` to `end` of a block."""

    def __init__(self, order: int, start: int) -> None:
        self.order, self.start, self.end = order, start, start + 2**order - 1
        self.learned: list[tuple[int, float]] = []

    def scores(self, arms: int, log_horizon: float) -> list[float]:
        found = []
        for arm in range(arms):
            rewards = [reward for played, reward in self.learned if played == arm]
            width = math.sqrt(2 * log_horizon / len(rewards)) if rewards else math.inf
            found.append(math.fsum(rewards) / len(rewards) + width if rewards else math.inf)
        return found


class Master:
    def __init__(self, arms: int, horizon: int, scale: float) -> None:
        self.arms, self.log_horizon = arms, max(math.log(horizon), 1.0)
        self.factor = scale * 6 * (math.log2(horizon) + 1) * self.log_horizon
        self.restarts = 0
        self.begin(0)
        self.schedule(lambda order: 0.0)

    def rho(self, t: float) -> float:
        return math.sqrt(self.arms * self.log_horizon / t) + self.arms * self.log_horizon / t

    def begin(self, n: int) -> None:
        """Line 2 or the next round of the loop over n: a new MALG for 2^n steps."""
        self.n = n
        self.instances: list[Instance] = []
        self.optimistic: list[float] = []
        self.rewards: list[float] = []

    def schedule(self, draw: Callable[[int], float]) -> None:
        """Procedure 1 at tau = the steps so far: instances for the steps tau + 1 to tau + 2^m."""
        tau = len(self.rewards)
        for m in range(self.n, -1, -1):
            if tau % 2**m == 0 and (m == self.n or draw(m) < self.rho(2**self.n) / self.rho(2**m)):
                self.instances.append(Instance(m, tau + 1))

    @property
    def active(self) -> Instance:
        """Algorithm 2: the shortest instance of the step to come."""
        now = len(self.rewards) + 1
        return min((one for one in self.instances if one.start <= now <= one.end), key=lambda one: one.order)

    def scores(self) -> list[float]:
        return self.active.scores(self.arms, self.log_horizon)

    def observe(self, arm: int, reward: float, draw: Callable[[int], float]) -> None:
        """Algorithm 3: one step, both tests, and what comes after them."""
        self.optimistic.append(min(max(self.scores()), 1.0))
        self.active.learned.append((arm, reward))
        self.rewards.append(reward)
        t = len(self.rewards)
        test_1 = any(
            math.fsum(self.rewards[one.start - 1 : one.end]) / 2**one.order
            >= min(self.optimistic) + 9 * self.factor * self.rho(2**one.order)
            for one in self.instances
            if one.end == t
        )
        excess = math.fsum(g - r for g, r in zip(self.optimistic, self.rewards, strict=True))
        test_2 = excess / t >= 3 * self.factor * self.rho(t)
        if test_1 or test_2:
            self.restarts += 1
            self.begin(0)
        elif t == 2**self.n:
            self.begin(self.n + 1)
        self.schedule(draw)
