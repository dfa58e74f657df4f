"""The largest expected reward of rested arms, literally: over all ways to divide the plays among the arms."""

import itertools
import math
from collections.abc import Sequence


def best_reward(means: Sequence[Sequence[float]], steps: int) -> float:
    """The largest sum of means over `steps` plays; means[arm][n] is the mean after n plays of the arm.

    The order of the plays does not change the sum, only how many plays each arm has.
    """
    divisions = itertools.product(range(steps + 1), repeat=len(means))
    return max(
        math.fsum(math.fsum(own[:plays]) for own, plays in zip(means, division, strict=True))
        for division in divisions
        if sum(division) == steps
    )
