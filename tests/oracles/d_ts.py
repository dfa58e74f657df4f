"""Discounted Thompson sampling, literally: Raj & Kalyani (2017), algorithm dTS.

At every step *all* arms take S <- gamma S and F <- gamma F; the played arm then adds its reward to S and one minus it
to F. Unrolled, a reward that is n steps old counts gamma^n, whichever arm it belongs to. The prior does not decay.
"""

import math
from collections.abc import Sequence

History = Sequence[tuple[int, float]]


def posterior(history: History, arm: int, discount: float, prior: tuple[float, float]) -> tuple[float, float]:
    """The Beta law of an arm before step len(history) + 1."""
    ages = [(len(history) - step, played, reward) for step, (played, reward) in enumerate(history, start=1)]
    successes = math.fsum(discount**age * reward for age, played, reward in ages if played == arm)
    failures = math.fsum(discount**age * (1 - reward) for age, played, reward in ages if played == arm)
    return prior[0] + successes, prior[1] + failures
