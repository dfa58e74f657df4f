"""Forced exploration on a schedule: at regular steps each arm is played in turn.

`common` encodes the schedule in the one number that all scores of a step share: a negative value names the arm to play.
"""

import math
from collections.abc import Callable
from typing import Any

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyState, Step

NOT_FORCED = 1.0
LARGEST_PERIOD = 1e15  # in steps: longer than any run, and still an exact whole number


@kernel
def scheduled(number: int, arms: int, share: float) -> float:
    """Return -1 - arm if an arm is forced at this step, else `NOT_FORCED`.

    Each period of floor(K / share) steps begins with one play of each of the K arms.

    Examples
    --------
    >>> [scheduled(number, 2, 0.5) for number in range(1, 7)]
    [-1.0, -2.0, 1.0, 1.0, -1.0, -2.0]
    """
    if share <= 0.0:
        return NOT_FORCED
    place = (number - 1) % max(int(min(float(arms) / share, LARGEST_PERIOD)), arms)
    return -1.0 - float(place) if place < arms else NOT_FORCED


def make_score(score: Callable[..., float]) -> Callable[..., float]:
    """Return `score`, except that a forced arm scores infinity and all others 0."""

    @kernel
    def score_or_force(state: PolicyState, arm: int, step: Step, params: Any) -> float:
        if step.common < 0.0:
            return math.inf if arm == -1.0 - step.common else 0.0
        return score(state, arm, step, params)

    return score_or_force
