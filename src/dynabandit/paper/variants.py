"""Compares a policy of the paper with a variant of it."""

from dataclasses import dataclass

from dynabandit.paper import lookup
from dynabandit.results import Results
from dynabandit.stats import bootstrap, intervals
from dynabandit.stats.intervals import Estimate


@dataclass(frozen=True)
class VariantEffect:
    """Total regret of a policy before and after a change of it, in one experiment."""

    experiment: str
    before: Estimate
    after: Estimate
    difference: Estimate
    ratio: Estimate


def compare_variants(results: Results, before: str, after: str) -> list[VariantEffect]:
    """Compare two policies, paired, in every experiment that has both."""
    rows = []
    for experiment in (compared for compared in lookup.COMPARED if lookup.was_run(results, compared)):
        runs = lookup.runs_by_policy(results, experiment)
        if before in runs and after in runs:
            old, new = runs[before].total_regret, runs[after].total_regret
            pair = intervals.difference(new, old), bootstrap.ratio(new, old)
            title = lookup.experiment_title(experiment)
            rows.append(VariantEffect(title, intervals.mean(old), intervals.mean(new), *pair))
    return rows
