"""How a part of a claim is measured and decided; fixed before any result was seen.

A part of a claim is a word of the paper and what it is said of; the word is a region of a measure. The part
holds when the 95 % interval of the measure lies inside the region, is contradicted when it lies outside, and
stays open when it reaches over an end.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dynabandit.paper import lookup
from dynabandit.paper.labels import BOUNDED, DEVIATION, DIFFERENCE, RATIO, SAME_LEVEL, SAME_ORDER, Word
from dynabandit.paper.lookup import Missing, name, title
from dynabandit.results import Results, Run
from dynabandit.stats import bootstrap, intervals
from dynabandit.stats.intervals import Estimate

__all__ = [
    "Bounds",
    "MoreArms",
    "Part",
    "Reaction",
    "Rule",
    "SettingVersus",
    "Settings",
    "SettingsVersus",
    "Versus",
    "VersusField",
]


@dataclass(frozen=True)
class Part:
    """One comparison of a claim, measured."""

    text: str
    word: Word
    effect: Estimate
    runs: tuple[tuple[str, str], ...]
    """The experiments and labels behind it."""
    note: str = ""

    @property
    def evidence(self) -> str:
        """``for``, ``against`` or ``open``."""
        _, low, high = self.effect
        if self.word.low < low and high < self.word.high:
            return "for"
        return "against" if high <= self.word.low or low >= self.word.high else "open"


class Rule(Protocol):
    """What a claim is made of: it says which experiments it needs and measures its parts."""

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments that it needs."""
        ...

    def measure(self, results: Results) -> Iterator[Part]:
        """Measure."""
        ...


def sources(*runs: Run) -> tuple[tuple[str, str], ...]:
    """Return experiment and label of the runs, each once."""
    return tuple(dict.fromkeys((run.experiment, run.label) for run in runs))


def policy_of(runs: dict[str, Run], policy: str, experiment: str) -> Run:
    """Return a policy's run, or say that it is missing."""
    if policy not in runs:
        raise Missing(f"{experiment} has no {policy}")
    return runs[policy]


COMPARISONS = {
    DIFFERENCE: intervals.difference,
    RATIO: bootstrap.ratio,
    DEVIATION: bootstrap.spread_ratio,
}


@dataclass(frozen=True)
class Versus:
    """One policy against another one, on the same paths."""

    experiment: str
    policy: str
    word: Word
    other: str

    @property
    def experiments(self) -> tuple[str, ...]:
        return (self.experiment,)

    def measure(self, results: Results) -> Iterator[Part]:
        runs = lookup.series(results, self.experiment)
        one = policy_of(runs, self.policy, self.experiment)
        two = policy_of(runs, self.other, self.experiment)
        text = f"{name(self.policy)} {self.word.words} {name(self.other)}: {title(self.experiment)}"
        yield compare(text, self.word, one, two, name(self.other))


def compare(text: str, word: Word, one: Run, two: Run, other: str) -> Part:
    """Measure one run against another."""
    effect = COMPARISONS[word.measure](one.total_regret, two.total_regret)
    note = ""
    if word.measure == DIFFERENCE and two.total_regret.mean() > 0.0:
        note = f"{one.total_regret.mean() / two.total_regret.mean():.2f} times the regret of {other}"
    return Part(text, word, effect, sources(one, two), note)


@dataclass(frozen=True)
class VersusField:
    """One policy against the best, the worst or the median of others, on the same paths.

    The best and the worst are those by mean total regret; the median is taken in each replication.
    """

    experiment: str
    policy: str
    word: Word
    which: str
    others: tuple[str, ...]

    @property
    def experiments(self) -> tuple[str, ...]:
        return (self.experiment,)

    def measure(self, results: Results) -> Iterator[Part]:
        found = lookup.series(results, self.experiment)
        one = policy_of(found, self.policy, self.experiment)
        runs = [policy_of(found, other, self.experiment) for other in self.others]
        totals = [run.total_regret for run in runs]
        if self.which == "median":
            effect = bootstrap.ratio(one.total_regret, np.median(totals, axis=0))
            text = f"{name(self.policy)} {self.word.words} the median of the others: {title(self.experiment)}"
            yield Part(text, self.word, effect, sources(one, *runs))
            return
        chosen = runs[(bootstrap.smallest_mean if self.which == "best" else bootstrap.largest_mean)(totals)]
        other = name(lookup.key(chosen))
        text = f"{name(self.policy)} {self.word.words} the {self.which} of the others ({other}): "
        yield compare(text + title(self.experiment), self.word, one, chosen, other)


@dataclass(frozen=True)
class Reaction:
    """The share of correct selections after a change, averaged over the window at its deadline."""

    policy: str
    change: int
    word: Word

    experiment = "small-changes"
    deadline = 500
    window = 100

    @property
    def experiments(self) -> tuple[str, ...]:
        return (self.experiment,)

    def measure(self, results: Results) -> Iterator[Part]:
        run = policy_of(lookup.series(results, self.experiment), self.policy, self.experiment)
        end = self.change + self.deadline
        inside = (run.times > end - self.window) & (run.times <= end)
        if not inside.any():
            raise Missing(f"{self.experiment} has no recorded steps up to {end}")
        correct = float(run.correct[inside].mean())
        if math.isnan(correct):
            raise Missing("the share of correct selections is kept over all replications only")
        # A window's mean lies in [0, 1], so it varies at most as a single selection does
        successes = round(correct * run.replications)
        effect = Estimate(correct, *intervals.wilson(successes / run.replications, run.replications))
        text = f"{name(self.policy)} {self.word.words} step {self.change}"
        yield Part(text, self.word, effect, sources(run))


@dataclass(frozen=True)
class Settings:
    """One policy at several values of a parameter."""

    experiment: str
    policy: str
    parameter: str
    values: tuple[object, ...]
    word: Word

    @property
    def experiments(self) -> tuple[str, ...]:
        return (self.experiment,)

    def runs(self, results: Results) -> list[Run]:
        """Return its runs, one a value."""
        return [lookup.setting(results, self.experiment, self.policy, self.parameter, value) for value in self.values]

    @property
    def text(self) -> str:
        """Policy, word and parameter."""
        parameter = self.parameter.replace("_", " ")
        return f"{name(self.policy)} {self.word.words} its {parameter}: {title(self.experiment)}"

    def measure(self, results: Results) -> Iterator[Part]:
        runs = self.runs(results)
        effect = bootstrap.sensitivity([run.total_regret for run in runs])
        yield Part(self.text, self.word, effect, sources(*runs))


@dataclass(frozen=True)
class SettingsVersus:
    """The sensitivity of one policy over that of the most sensitive of others."""

    one: Settings
    others: tuple[Settings, ...]

    @property
    def experiments(self) -> tuple[str, ...]:
        return (self.one.experiment, *dict.fromkeys(other.experiment for other in self.others))

    def measure(self, results: Results) -> Iterator[Part]:
        runs = self.one.runs(results)
        others = [other.runs(results) for other in self.others]
        totals = [[run.total_regret for run in group] for group in others]
        effect = bootstrap.relative_sensitivity([run.total_regret for run in runs], totals)
        everything = (run for group in [runs, *others] for run in group)
        yield Part(self.one.text, self.one.word, effect, sources(*everything))


@dataclass(frozen=True)
class SettingVersus:
    """Two policies at the same value of a parameter."""

    experiment: str
    policy: str
    other: str
    parameter: str
    value: object
    word: Word

    @property
    def experiments(self) -> tuple[str, ...]:
        return (self.experiment,)

    def measure(self, results: Results) -> Iterator[Part]:
        one, two = (
            lookup.setting(results, self.experiment, policy, self.parameter, self.value)
            for policy in (self.policy, self.other)
        )
        text = f"{name(self.policy)} {self.word.words} {name(self.other)} with {self.parameter} {self.value}"
        yield compare(f"{text}: {title(self.experiment)}", self.word, one, two, name(self.other))


@dataclass(frozen=True)
class MoreArms:
    """The same policies with 50 and with 100 arms; not paired, since the paths are others."""

    number: int
    policies: tuple[str, ...]

    @property
    def experiments(self) -> tuple[str, ...]:
        return tuple(lookup.case(self.number, arms) for arms in lookup.MANY)

    def measure(self, results: Results) -> Iterator[Part]:
        fewer, more = (
            [policy_of(lookup.series(results, experiment), policy, experiment) for policy in self.policies]
            for experiment in self.experiments
        )
        place = f"Case {self.number}"
        for policy, one, two in zip(self.policies, fewer, more, strict=True):
            effect = bootstrap.ratio(two.total_regret, one.total_regret, paired=False)
            yield Part(f"{name(policy)} {SAME_LEVEL.words}: {place}", SAME_LEVEL, effect, sources(one, two))
        effect = bootstrap.rank_correlation(*([run.total_regret for run in runs] for runs in (fewer, more)))
        yield Part(f"The policies' {SAME_ORDER.words}: {place}", SAME_ORDER, effect, sources(*fewer, *more))


@dataclass(frozen=True)
class Bounds:
    """How often the bonus of the appendix is exceeded, one part for each set of streams."""

    experiments = ("bounds",)

    def measure(self, results: Results) -> Iterator[Part]:
        if not results.coverage:
            raise Missing("bounds was not run")
        for one in results.coverage:
            streams = f"mean {one.mean:g}, step size {one.step_size:g}, {one.observations:,} observations"
            effect = intervals.clopper_pearson(one.exceeded, one.streams)
            yield Part(f"The bound {BOUNDED.words}: {streams}", BOUNDED, effect, (("bounds", streams),))
