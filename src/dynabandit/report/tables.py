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
        Rows with ``experiment``, ``arms``, ``policy`` (the label), ``mean``, ``low`` and ``high``; ``difference``, the
        `Estimate` of the paired difference to the first policy of the experiment, and ``baseline``, the label of that
        policy, which is empty if it cannot be compared: if it did not see the same paths.

    Examples
    --------
    >>> import dynabandit as db
    >>> from dynabandit.report import tables
    >>> tables.summary(db.Results([]))
    []
    """
    rows: list[dict[str, Any]] = []
    first: dict[tuple[Any, ...], Run] = {}
    for run in runs:
        # Replications of runs with the same key have the same paths
        key = (run.experiment, run.environment, run.arms, str(run.environment_parameters), run.horizon, run.seed)
        baseline = first.setdefault(key, run)
        comparable = baseline.replications == run.replications
        difference = intervals.difference(run.total_regret, baseline.total_regret) if comparable else None
        mean, low, high = intervals.mean(run.total_regret)
        where = {"experiment": run.experiment, "arms": run.arms, "policy": run.label}
        paired = {"difference": difference, "baseline": baseline.label if comparable else ""}
        rows.append({**where, "mean": mean, "low": low, "high": high, **paired})
    return rows
