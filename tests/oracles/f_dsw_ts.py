"""f-discounted-sliding-window Thompson sampling, literally: Cavenaghi, Sottocornola, Stella & Zanker (2021).

Two laws for each arm: the historic one discounts the rewards of every arm at every step, the hot one counts the last n
rewards of *that arm*, however old they are. A draw from each, put together by f, is the arm's score.
"""

import math
from collections.abc import Sequence

from oracles import d_ts

History = Sequence[tuple[int, float]]
COMBINE = {"min": min, "max": max, "mean": lambda historic, hot: (historic + hot) / 2}


def laws(
    history: History, arm: int, discount: float, window: int, prior: tuple[float, float]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The historic and the hot Beta law of an arm before step len(history) + 1."""
    own = [reward for played, reward in history if played == arm][-window:]
    successes = math.fsum(own)
    hot = prior[0] + successes, prior[1] + len(own) - successes
    return d_ts.posterior(history, arm, discount, prior), hot
