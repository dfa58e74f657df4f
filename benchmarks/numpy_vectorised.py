"""Policies in NumPy, vectorised over replications, as a reference for the benchmarks."""

from collections.abc import Callable

import numpy as np

WINDOW = 1000
DISCOUNT = 0.995
XI = 0.6


def play(choose: Callable[..., np.ndarray], learn: Callable[..., None], means: np.ndarray, horizon: int, lanes: int):
    """Return chosen arms and rewards with shape (horizon, replications)."""
    rng = np.random.default_rng(1)
    arms, rewards = np.empty((horizon, lanes), dtype=np.int32), np.empty((horizon, lanes), dtype=np.uint8)
    rows = np.arange(lanes) * means.size  # flat indices are faster
    for t in range(horizon):
        arm = choose(t, rng)
        reward = rng.random(lanes) < means[arm]
        learn(t, rows + arm, arm, reward)
        arms[t], rewards[t] = arm, reward
    return arms, rewards


class Index:
    """The index mean + c_t * width; a step changes one arm per replication."""

    def __init__(self, arms: int, lanes: int) -> None:
        self.arms, self.lanes = arms, lanes
        self.total, self.plays = np.zeros(arms * lanes), np.zeros(arms * lanes)
        self.mean, self.width = np.zeros((lanes, arms)), np.zeros((lanes, arms))
        self.score = np.empty((lanes, arms))

    def bonus(self, t: int) -> float:
        return float(np.sqrt(2.0 * np.log(t)))

    def choose(self, t: int, rng: np.random.Generator) -> np.ndarray:
        if t < self.arms:
            return np.full(self.lanes, t)
        np.multiply(self.width, self.bonus(t), out=self.score)
        self.score += self.mean
        return self.score.argmax(axis=1)

    def learn(self, t: int, cell: np.ndarray, arm: np.ndarray, reward: np.ndarray) -> None:
        self.total[cell] += reward
        self.plays[cell] += 1.0
        self.refresh(cell)

    def refresh(self, cell: np.ndarray) -> None:
        plays = self.plays[cell]
        self.mean.reshape(-1)[cell] = self.total[cell] / plays
        self.width.reshape(-1)[cell] = 1.0 / np.sqrt(plays)


class Discounted(Index):
    """All arms are discounted through one common scale, so a step changes one arm per replication."""

    scale = 1.0
    count = 0.0

    def bonus(self, t: int) -> float:
        return float(2.0 * np.sqrt(XI * np.log(max(self.count, 1.0)) / self.scale))

    def learn(self, t: int, cell: np.ndarray, arm: np.ndarray, reward: np.ndarray) -> None:
        self.scale *= DISCOUNT
        self.count = DISCOUNT * self.count + 1.0
        if self.scale < 1e-100:
            self.total *= self.scale
            self.plays *= self.scale
            self.width /= np.sqrt(self.scale)
            self.scale = 1.0
        self.total[cell] += reward / self.scale
        self.plays[cell] += 1.0 / self.scale
        self.refresh(cell)


class Windowed(Index):
    """A ring buffer of the latest rewards: a step adds one and removes one."""

    def __init__(self, arms: int, lanes: int) -> None:
        super().__init__(arms, lanes)
        self.ring_cell, self.ring_reward = np.zeros((WINDOW, lanes), dtype=np.int64), np.zeros((WINDOW, lanes))

    def bonus(self, t: int) -> float:
        return float(np.sqrt(XI * np.log(min(t, WINDOW))))

    def learn(self, t: int, cell: np.ndarray, arm: np.ndarray, reward: np.ndarray) -> None:
        place = t % WINDOW
        if t >= WINDOW:
            oldest = self.ring_cell[place]
            self.total[oldest] -= self.ring_reward[place]
            self.plays[oldest] -= 1.0
            with np.errstate(
                divide="ignore", invalid="ignore"
            ):  # an arm without plays in the window has an infinite score
                self.refresh(oldest)
            empty = oldest[self.plays[oldest] == 0.0]
            self.mean.reshape(-1)[empty] = np.inf
            self.width.reshape(-1)[empty] = 0.0
        self.ring_cell[place], self.ring_reward[place] = cell, reward
        super().learn(t, cell, arm, reward)


class Thompson:
    """One Beta draw per arm and replication, in one call."""

    optimistic = False

    def __init__(self, arms: int, lanes: int) -> None:
        self.a, self.b = np.full((lanes, arms), 2.0), np.full((lanes, arms), 2.0)

    def choose(self, t: int, rng: np.random.Generator) -> np.ndarray:
        draws = rng.beta(self.a, self.b)
        if self.optimistic:
            np.maximum(draws, self.a / (self.a + self.b), out=draws)
        return draws.argmax(axis=1)

    def learn(self, t: int, cell: np.ndarray, arm: np.ndarray, reward: np.ndarray) -> None:
        self.a.reshape(-1)[cell] += reward
        self.b.reshape(-1)[cell] += 1.0 - reward


class Optimistic(Thompson):
    optimistic = True


POLICIES = {"ucb": Index, "ts": Thompson, "ots": Optimistic, "d-ucb": Discounted, "sw-ucb": Windowed}


def run(name: str, means: np.ndarray, horizon: int, lanes: int):
    """Simulate one policy on arms with constant means."""
    policy = POLICIES[name](means.size, lanes)
    return play(policy.choose, policy.learn, means, horizon, lanes)
