"""Logs of past decisions whose true mean rewards are known."""

from typing import NamedTuple

import numpy as np

from dynabandit import offline

ARMS = ("a", "b", "c")


class TrueLog(NamedTuple):
    """A log with its true means."""

    arms: np.ndarray
    rewards: np.ndarray
    propensities: np.ndarray
    means: np.ndarray

    def log(self) -> offline.Log:
        table = {"arm": [ARMS[arm] for arm in self.arms], "reward": self.rewards, "p": self.propensities}
        return offline.from_columns(table, propensity="p")


def make_log(seed: int, rows: int = 300) -> TrueLog:
    """Return a log in which the means change halfway, with propensities that vary."""
    generator = np.random.default_rng(seed)
    wave = 0.15 * np.sin(np.arange(rows) / 20.0)
    chances = np.stack([0.3 + wave, np.full(rows, 0.4), 0.3 - wave], axis=1)
    arms = np.array([generator.choice(3, p=row) for row in chances])
    means = np.where(np.arange(rows)[:, None] < rows // 2, [0.2, 0.5, 0.8], [0.9, 0.5, 0.1])
    rewards = (generator.random(rows) < means[np.arange(rows), arms]).astype(float)
    return TrueLog(arms, rewards, chances[np.arange(rows), arms], means)
