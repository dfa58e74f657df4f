"""Whether the propensities of a log are plausible; every estimate from the log relies on them."""

import math
from collections.abc import Sequence

import numpy as np

LEAST_RATIO, LARGEST_RATIO = 0.8, 1.25  # of the mean of 1 / propensity to the number of arms
FAR_FROM_UNIFORM = 4.0  # standard deviations; about 1 arm in 16,000 of a uniform log is further away


def doubt_of_propensities(inverse_mean: float, arms: int) -> str | None:
    """Return why logged propensities are doubtful, or None, from the mean of 1 / propensity.

    Examples
    --------
    >>> doubt_of_propensities(2.1, arms=2), doubt_of_propensities(1.0, arms=2)[:27]
    (None, '1 / propensity has mean 1, ')
    """
    if LEAST_RATIO <= inverse_mean / arms <= LARGEST_RATIO:
        return None
    return (
        f"1 / propensity has mean {inverse_mean:.4g}, but would have about {arms}, the number of arms, "
        "if every arm could be chosen at every row"
    )


def doubt_of_equal_chances(plays: np.ndarray, names: Sequence[str]) -> str | None:
    """Return why the arms of a log without propensities were not equally likely, or None, from the plays of each.

    Examples
    --------
    >>> doubt_of_equal_chances(np.array([52, 48]), ["a", "b"]) is None
    True
    """
    rows, share = int(plays.sum()), 1.0 / len(names)
    distances = np.abs(plays - rows * share)
    furthest = int(np.argmax(distances))
    if distances[furthest] <= FAR_FROM_UNIFORM * math.sqrt(rows * share * (1.0 - share)):
        return None
    return (
        f"without propensities all arms count as equally likely, but {names[furthest]!r} has "
        f"{plays[furthest] / rows:.1%} of the rows instead of about {share:.1%}"
    )
