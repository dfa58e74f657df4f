"""The kinds of rules that decide a claim; fixed before any result was seen.

A rule measures one or several parts of a claim. A part holds when the 95 % interval of its measure lies inside the
region of its criterion, is contradicted when the interval lies outside, and is open otherwise.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dynabandit.paper import lookup
from dynabandit.paper.criteria import BOUNDED, DEVIATION, DIFFERENCE, RATIO, SAME_LEVEL, SAME_ORDER, Criterion
from dynabandit.paper.lookup import MissingResultError, experiment_title, policy_name
from dynabandit.results import Results, Run
from dynabandit.stats import bootstrap, intervals
from dynabandit.stats.intervals import Estimate

STATISTICS = {DIFFERENCE: intervals.difference, RATIO: bootstrap.ratio, DEVIATION: bootstrap.spread_ratio}


@dataclass(frozen=True)
class ClaimPart:
    """One measured comparison of a claim."""

    text: str
    criterion: Criterion
    effect: Estimate
    runs: tuple[tuple[str, str], ...]
    """Experiment and label of each run that was used."""
    note: str = ""

    @property
    def evidence(self) -> str:
        """``for``, ``against`` or ``open``."""
        _, low, high = self.effect
        if self.criterion.low < low and high < self.criterion.high:
            return "for"
        return "against" if high <= self.criterion.low or low >= self.criterion.high else "open"


class ClaimRule(Protocol):
    """A rule names the experiments that it needs and measures its parts."""

    @property
    def experiments(self) -> tuple[str, ...]: ...

    def measure(self, results: Results) -> Iterator[ClaimPart]: ...


def run_keys(*runs: Run) -> tuple[tuple[str, str], ...]:
    """Return experiment and label of the runs, without duplicates."""
    return tuple(dict.fromkeys((run.experiment, run.label) for run in runs))


def find_run(runs: dict[str, Run], policy: str, experiment: str) -> Run:
    """Return the run of a policy, or raise an error that names what is missing."""
    if policy not in runs:
        raise MissingResultError(f"{experiment} has no {policy}")
    return runs[policy]


def compare(text: str, criterion: Criterion, one: Run, two: Run, other: str) -> ClaimPart:
    """Measure one run against another, which is called `other` in the note."""
    effect = STATISTICS[criterion.measure](one.total_regret, two.total_regret)
    note = ""
    if criterion.measure == DIFFERENCE and two.total_regret.mean() > 0.0:
        note = f"{one.total_regret.mean() / two.total_regret.mean():.2f} times the regret of {other}"
    return ClaimPart(text, criterion, effect, run_keys(one, two), note)


@dataclass(frozen=True)
class InOneExperiment:
    """A rule about one experiment."""

    experiment: str

    @property
    def experiments(self) -> tuple[str, ...]:
        return (self.experiment,)


@dataclass(frozen=True)
class Comparison(InOneExperiment):
    """One policy against another, on the same paths."""

    policy: str
    criterion: Criterion
    other: str

    def measure(self, results: Results) -> Iterator[ClaimPart]:
        runs = lookup.runs_by_policy(results, self.experiment)
        one, two = (find_run(runs, policy, self.experiment) for policy in (self.policy, self.other))
        other = policy_name(self.other)
        text = f"{policy_name(self.policy)} {self.criterion.phrase} {other}: {experiment_title(self.experiment)}"
        yield compare(text, self.criterion, one, two, other)


@dataclass(frozen=True)
class ComparisonWithOthers(InOneExperiment):
    """One policy against the best, the worst or the median of others, on the same paths.

    Best and worst are chosen by mean total regret; the median is computed in each replication.
    """

    policy: str
    criterion: Criterion
    which: str
    others: tuple[str, ...]

    def measure(self, results: Results) -> Iterator[ClaimPart]:
        by_policy = lookup.runs_by_policy(results, self.experiment)
        own = find_run(by_policy, self.policy, self.experiment)
        runs = [find_run(by_policy, other, self.experiment) for other in self.others]
        totals = [run.total_regret for run in runs]
        where = experiment_title(self.experiment)
        text = f"{policy_name(self.policy)} {self.criterion.phrase} the {self.which} of the others"
        if self.which == "median":
            effect = bootstrap.ratio(own.total_regret, np.median(totals, axis=0))
            yield ClaimPart(f"{text}: {where}", self.criterion, effect, run_keys(own, *runs))
            return
        pick = bootstrap.smallest_mean if self.which == "best" else bootstrap.largest_mean
        chosen = runs[pick(totals)]
        other = policy_name(lookup.policy_key(chosen))
        yield compare(f"{text} ({other}): {where}", self.criterion, own, chosen, other)


@dataclass(frozen=True)
class Reaction:
    """The share of correct selections after a change, averaged over the window that ends at the deadline."""

    policy: str
    change: int
    criterion: Criterion

    experiments = ("small-changes",)
    deadline = 500
    window = 100

    def measure(self, results: Results) -> Iterator[ClaimPart]:
        (experiment,) = self.experiments
        run = find_run(lookup.runs_by_policy(results, experiment), self.policy, experiment)
        end = self.change + self.deadline
        inside = (run.times > end - self.window) & (run.times <= end)
        if not inside.any():
            raise MissingResultError(f"{experiment} has no recorded steps up to {end}")
        correct = float(run.correct[inside].mean())
        if math.isnan(correct):
            raise MissingResultError("these results keep the share of correct selections over all replications only")
        # The mean over a window lies in [0, 1], so it varies at most as much as a single selection
        successes = round(correct * run.replications)
        effect = Estimate(correct, *intervals.wilson(successes / run.replications, run.replications))
        text = f"{policy_name(self.policy)} {self.criterion.phrase} step {self.change}"
        yield ClaimPart(text, self.criterion, effect, run_keys(run))


@dataclass(frozen=True)
class Sensitivity(InOneExperiment):
    """The sensitivity of one policy to a parameter."""

    policy: str
    parameter: str
    values: tuple[object, ...]
    criterion: Criterion

    def runs(self, results: Results) -> list[Run]:
        """Return one run per value."""
        return [lookup.run_at(results, self.experiment, self.policy, self.parameter, value) for value in self.values]

    @property
    def text(self) -> str:
        """Policy, phrase, parameter and experiment."""
        what = f"{policy_name(self.policy)} {self.criterion.phrase} its {self.parameter.replace('_', ' ')}"
        return f"{what}: {experiment_title(self.experiment)}"

    def measure(self, results: Results) -> Iterator[ClaimPart]:
        runs = self.runs(results)
        effect = bootstrap.sensitivity([run.total_regret for run in runs])
        yield ClaimPart(self.text, self.criterion, effect, run_keys(*runs))


@dataclass(frozen=True)
class RelativeSensitivity:
    """The sensitivity of one policy divided by that of the most sensitive of others."""

    one: Sensitivity
    others: tuple[Sensitivity, ...]

    @property
    def experiments(self) -> tuple[str, ...]:
        return (self.one.experiment, *dict.fromkeys(other.experiment for other in self.others))

    def measure(self, results: Results) -> Iterator[ClaimPart]:
        runs = self.one.runs(results)
        others = [other.runs(results) for other in self.others]
        totals = [[run.total_regret for run in group] for group in others]
        effect = bootstrap.relative_sensitivity([run.total_regret for run in runs], totals)
        everything = (run for group in [runs, *others] for run in group)
        yield ClaimPart(self.one.text, self.one.criterion, effect, run_keys(*everything))


@dataclass(frozen=True)
class ComparisonAtSetting(InOneExperiment):
    """Two policies at the same value of a parameter."""

    policy: str
    other: str
    parameter: str
    value: object
    criterion: Criterion

    def measure(self, results: Results) -> Iterator[ClaimPart]:
        one, two = (
            lookup.run_at(results, self.experiment, policy, self.parameter, self.value)
            for policy in (self.policy, self.other)
        )
        other = policy_name(self.other)
        text = f"{policy_name(self.policy)} {self.criterion.phrase} {other} with {self.parameter} {self.value}"
        yield compare(f"{text}: {experiment_title(self.experiment)}", self.criterion, one, two, other)


@dataclass(frozen=True)
class MoreArms:
    """The same policies with 50 and with 100 arms; not paired, since the paths differ."""

    number: int
    policies: tuple[str, ...]

    @property
    def experiments(self) -> tuple[str, ...]:
        return tuple(lookup.case_id(self.number, arms) for arms in lookup.MANY)

    def measure(self, results: Results) -> Iterator[ClaimPart]:
        fewer, more = (
            [find_run(lookup.runs_by_policy(results, experiment), policy, experiment) for policy in self.policies]
            for experiment in self.experiments
        )
        where = f"Case {self.number}"
        for policy, one, two in zip(self.policies, fewer, more, strict=True):
            effect = bootstrap.ratio(two.total_regret, one.total_regret, paired=False)
            text = f"{policy_name(policy)} {SAME_LEVEL.phrase}: {where}"
            yield ClaimPart(text, SAME_LEVEL, effect, run_keys(one, two))
        effect = bootstrap.rank_correlation(*([run.total_regret for run in runs] for runs in (fewer, more)))
        yield ClaimPart(f"The policies' {SAME_ORDER.phrase}: {where}", SAME_ORDER, effect, run_keys(*fewer, *more))


@dataclass(frozen=True)
class BoundCoverage:
    """How often the bonus of the appendix is exceeded, one part for each set of streams."""

    experiments = ("bounds",)

    def measure(self, results: Results) -> Iterator[ClaimPart]:
        if not results.coverage:
            raise MissingResultError("bounds was not run")
        for coverage in results.coverage:
            streams = (
                f"mean {coverage.mean:g}, step size {coverage.step_size:g}, {coverage.observations:,} observations"
            )
            effect = intervals.clopper_pearson(coverage.exceeded, coverage.streams)
            yield ClaimPart(f"The bound {BOUNDED.phrase}: {streams}", BOUNDED, effect, (("bounds", streams),))
