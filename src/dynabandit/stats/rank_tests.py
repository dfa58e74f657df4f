"""Tests of ranks over several environments."""

import math

from dynabandit.extras import import_extra
from dynabandit.stats.intervals import LEVEL


def critical_difference(policies: int, environments: int) -> float:
    """Return by how much two mean ranks must differ to be significantly different (Nemenyi's test).

    Examples
    --------
    >>> round(critical_difference(policies=10, environments=30), 2)
    2.47

    References
    ----------
    Demšar (2006), Statistical comparisons of classifiers over multiple data sets. JMLR 7.
    """
    if policies < 2 or environments < 1:
        return math.nan
    stats = import_extra("scipy.stats", "lab")
    quantile = float(stats.studentized_range.ppf(LEVEL, policies, math.inf)) / math.sqrt(2.0)
    return quantile * math.sqrt(policies * (policies + 1) / (6.0 * environments))
