"""Sliding-window Thompson sampling, literally: Trovò, Paladino, Restelli & Gatti (2020), SW-TS.

The posterior of an arm counts its successes and failures among the last tau rounds of *all* arms.
"""

import math
from collections.abc import Sequence

History = Sequence[tuple[int, float]]


def posterior(history: History, arm: int, window: int, prior: tuple[float, float]) -> tuple[float, float]:
    """The Beta law of an arm before step len(history) + 1."""
    recent = [reward for played, reward in history[max(0, len(history) - window) :] if played == arm]
    successes = math.fsum(recent)
    return prior[0] + successes, prior[1] + len(recent) - successes
