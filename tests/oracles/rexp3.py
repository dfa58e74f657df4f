"""Rexp3, literally: Besbes, Gur & Zeevi (2014), the restarting Exp3 and theorem 2."""

import math
from collections.abc import Sequence

from oracles.exp3_s import mixed

History = Sequence[tuple[int, float]]


def probabilities(history: History, arms: int, exploration: float, batch: int) -> list[float]:
    """p_1..p_K of step len(history) + 1: those of Exp3 that knows the running batch alone."""
    weights = [1.0] * arms
    for played, reward in history[len(history) // batch * batch :]:
        estimate = reward / mixed(weights, exploration)[played]
        weights[played] *= math.exp(exploration * estimate / arms)
    return mixed(weights, exploration)


def tuned(arms: int, horizon: int, variation: float) -> tuple[float, int]:
    """gamma and the length of a batch, for a budget of variation."""
    learning = arms * math.log(arms)
    batch = math.ceil(learning ** (1 / 3) * (horizon / variation) ** (2 / 3))
    return min(1.0, math.sqrt(learning / ((math.e - 1) * batch))), batch
