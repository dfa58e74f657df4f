"""Mean and variance of the rewards of all arms, as policies for rewards in any unit keep them in `shared`.

They stand in for what an arm does not have: a variance of its own before its rewards differ, and a mean before its
first reward. So these policies need no constant in the unit of the rewards.
"""

import numpy as np

from dynabandit.core.compilation import kernel

COUNT, MEAN, SQUARES = range(3)  # SQUARES: the sum of the squared deviations from the mean
SIZE = 3


@kernel
def add(shared: np.ndarray, value: float) -> None:
    """Add a reward (Welford, 1962)."""
    shared[COUNT] += 1.0
    deviation = value - shared[MEAN]
    shared[MEAN] += deviation / shared[COUNT]
    shared[SQUARES] += deviation * (value - shared[MEAN])


@kernel
def variance(shared: np.ndarray) -> float:
    """Return the variance of the rewards of all arms; 0 before the second one."""
    return shared[SQUARES] / (shared[COUNT] - 1.0) if shared[COUNT] > 1.0 else 0.0
