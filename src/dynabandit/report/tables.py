"""Tables of total regret."""

from dataclasses import dataclass
from typing import Any

from dynabandit.paper import lookup
from dynabandit.paper.lookup import present, title
from dynabandit.report.figures import FIELD
from dynabandit.results import Results, Run
from dynabandit.stats import intervals
from dynabandit.stats.intervals import Estimate

__all__ = ["Change", "changes", "summary"]


def summary(results: Results) -> list[dict[str, Any]]:
    """Return the mean total regret of each run with its 95 % interval.

    In the paper's experiments ε-Greedy appears once, at its best ε, chosen with hindsight. The ends are NaN where
    there is one replication only.

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
    for run in _shown(results):
        mean, low, high = intervals.mean(run.total_regret)
        where = {"experiment": run.experiment, "arms": run.arms, "policy": run.label}
        rows.append({**where, "mean": mean, "low": low, "high": high})
    return rows


def _shown(results: Results) -> list[Run]:
    best = {
        experiment: lookup.series(results, experiment)["eps-greedy"]
        for experiment in FIELD
        if any(run.experiment == experiment and run.policy == "eps-greedy" for run in results)
    }
    return [run for run in results if run.policy != "eps-greedy" or best.get(run.experiment, run) is run]


@dataclass(frozen=True)
class Change:
    """What a change of a policy does to its total regret in one experiment."""

    experiment: str
    before: Estimate
    after: Estimate
    difference: Estimate
    ratio: Estimate


def changes(results: Results, before: str, after: str) -> list[Change]:
    """Return the change from one policy to another in every experiment that has both, paired."""
    rows = []
    for experiment in (one for one in FIELD if present(results, one)):
        runs = lookup.series(results, experiment)
        if before in runs and after in runs:
            one, two = runs[before].total_regret, runs[after].total_regret
            pair = intervals.difference(two, one), intervals.ratio(two, one)
            rows.append(Change(title(experiment), intervals.mean(one), intervals.mean(two), *pair))
    return rows
