"""From results to the runs of the paper: what they are called, and where to find them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from dynabandit.results import Results, Run
from dynabandit.stats.bootstrap import smallest_mean

__all__ = [
    "ADAPTIVE", "ARMS", "CASES", "DISCOUNTS", "FIELD", "FLOORED", "MANY", "MEMORIES", "PAPER", "STEP_SIZES", "WINDOWS",
    "Missing", "case", "first", "key", "name", "present", "series", "setting", "shown", "title",
]  # fmt: skip

PAPER = (
    "eps-greedy", "ucb", "ts", "ots", "d-ucb", "sw-ucb",
    "aff-d-greedy", "aff-ucb1", "aff-ucb2", "aff-ts", "aff-ots",
)  # fmt: skip
ADAPTIVE = {
    "aff-d-greedy": "eps-greedy",
    "aff-ucb1": "ucb",
    "aff-ucb2": "ucb",
    "aff-ts": "ts",
    "aff-ots": "ots",
}
"""Each adaptive policy with the standard one that it adapts."""

CASES = (1, 2, 3, 4)
ARMS = (2, 50, 100)
MANY = (50, 100)
STEP_SIZES = (0.0001, 0.001, 0.01, "variance-scaled")
DISCOUNTS = (None, 0.99, 0.8, 0.5)
WINDOWS = (None, 10, 100, 1000)
MEMORIES = (5, 10, 100, 1000)

FIELD = ("small-changes", *(f"case-{number}-arms-{arms}" for number in CASES for arms in ARMS))
"""The experiments in which all policies of the paper are compared."""

FLOORED = "aff-ucb1-floor"  # AFF-UCB1 with a variance floor
NAMES = {
    "eps-greedy": "ε-Greedy",
    "ucb": "UCB",
    "ts": "TS",
    "ots": "OTS",
    "d-ucb": "D-UCB",
    "sw-ucb": "SW-UCB",
    "dts": "DTS",
    "aff-d-greedy": "AFF-d-Greedy",
    "aff-ucb1": "AFF-UCB1",
    "aff-ucb2": "AFF-UCB2",
    "aff-ucb2-growing": "AFF-UCB2 growing",
    FLOORED: "AFF-UCB1 with a floor",
    "aff-ts": "AFF-TS",
    "aff-ots": "AFF-OTS",
    "aff-dts1": "AFF-DTS1",
    "aff-dts2": "AFF-DTS2",
    "uniform": "Uniform",
    "best-arm": "Best arm",
}


class Missing(LookupError):  # noqa: N818 (it is no fault: part of the paper was asked for)
    """What a claim needs is not in the results."""


def case(number: int, arms: int) -> str:
    """Return the id of an experiment, such as ``case-3-arms-50``."""
    return f"case-{number}-arms-{arms}"


def name(policy: str) -> str:
    """Return a policy's name as the paper writes it."""
    return NAMES.get(policy, policy)


def title(experiment: str) -> str:
    """Return an experiment in words.

    Examples
    --------
    >>> from dynabandit.paper import lookup
    >>> lookup.title("case-3-arms-50")
    'Case 3, 50 arms'
    """
    stem, _, arms = experiment.partition("-arms-")
    words = {
        "small-changes": "small number of changes",
        "step-size": "Case 3",
        "discount-window": "Case 3",
        "memory": "Case 1, 2 arms",
        "bounds": "bounds of the appendix",
    }
    known = words.get(stem) or (stem.replace("case-", "Case ") if stem.startswith("case-") else experiment)
    return f"{known}, {arms} arms" if arms else known


def key(run: Run) -> str:
    """Return the policy, told apart where the paper's experiments hold it in two forms."""
    return FLOORED if run.policy == "aff-ucb1" and run.parameters.get("variance_floor") else run.policy


def present(results: Results, experiment: str) -> bool:
    """Return whether an experiment was run."""
    if experiment == "bounds":
        return bool(results.coverage)
    return any(run.experiment == experiment for run in results)


def series(results: Results, experiment: str) -> dict[str, Run]:
    """Return the runs of an experiment by `key`, with eps-greedy at the best epsilon, chosen with hindsight."""
    groups: dict[str, list[Run]] = {}
    for run in results.select(experiment=experiment):
        groups.setdefault(key(run), []).append(run)
    if not groups:
        raise Missing(f"{experiment} was not run")
    for policy, runs in groups.items():
        if len(runs) > 1 and policy != "eps-greedy":
            raise Missing(f"{experiment} holds {policy} in several forms: {', '.join(run.label for run in runs)}")
    return {policy: runs[smallest_mean([run.total_regret for run in runs])] for policy, runs in groups.items()}


def shown(results: Results) -> list[Run]:
    """Return the runs for a table: where all policies are compared, eps-greedy appears once, at its best epsilon."""
    best = {
        experiment: series(results, experiment)["eps-greedy"]
        for experiment in FIELD
        if any(run.experiment == experiment and run.policy == "eps-greedy" for run in results)
    }
    return [run for run in results if run.policy != "eps-greedy" or best.get(run.experiment, run) is run]


def setting(results: Results, experiment: str, policy: str, parameter: str, value: Any) -> Run:
    """Return the run of a policy at one value of a parameter."""
    for run in results.select(experiment=experiment, policy=policy):
        if parameter in run.parameters and run.parameters[parameter] == value:
            return run
    raise Missing(f"{experiment} has no {policy} with {parameter} = {value}")


def first(results: Results, replications: int) -> Results:
    """Return the first replications alone.

    The share of correct selections is kept over all replications only: it becomes NaN.
    """
    return Results(_shortened(results, replications), results.metadata, results.paths, results.coverage)


def _shortened(runs: Iterable[Run], replications: int) -> Iterable[Run]:
    for run in runs:
        if run.replications <= replications:
            yield run
        else:
            yield replace(run, regret=run.regret[:replications], correct=np.full_like(run.correct, np.nan))
