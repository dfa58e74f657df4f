"""How much a variant of a policy changes its total regret, per experiment."""

from dataclasses import dataclass

from dynabandit.paper import lookup
from dynabandit.paper.lookup import FIELD, present, title
from dynabandit.results import Results
from dynabandit.stats import bootstrap, intervals
from dynabandit.stats.intervals import Estimate

__all__ = ["Change", "changes"]


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
            pair = intervals.difference(two, one), bootstrap.ratio(two, one)
            rows.append(Change(title(experiment), intervals.mean(one), intervals.mean(two), *pair))
    return rows
