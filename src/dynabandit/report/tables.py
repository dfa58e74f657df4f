"""Tables of total regret."""

from collections.abc import Iterable
from typing import Any

from dynabandit.results import Run
from dynabandit.stats import intervals


def summary(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """Return the mean total regret of each run with its 95 % interval, whose ends are NaN for one replication.

    Returns
    -------
    list of dict
        Rows with ``experiment``, ``arms``, ``policy`` (the label), ``mean``, ``low`` and ``high``.

    Examples
    --------
    >>> import dynabandit as db
    >>> from dynabandit.report import tables
    >>> tables.summary(db.Results([]))
    []
    """
    rows = []
    for run in runs:
        mean, low, high = intervals.mean(run.total_regret)
        where = {"experiment": run.experiment, "arms": run.arms, "policy": run.label}
        rows.append({**where, "mean": mean, "low": low, "high": high})
    return rows
