"""Finds the runs of the paper's experiments in results, and names them as the paper does."""

from dataclasses import replace
from typing import Any

import numpy as np

from dynabandit.results import Results, Run
from dynabandit.stats.bootstrap import smallest_mean

POLICIES = (
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
"""Each adaptive policy with the standard policy that it adapts."""

CASES = (1, 2, 3, 4)
ARMS = (2, 50, 100)
MANY = (50, 100)
STEP_SIZES = (0.0001, 0.001, 0.01, "variance-scaled")
DISCOUNTS = (None, 0.99, 0.8, 0.5)
WINDOWS = (None, 10, 100, 1000)
MEMORIES = (5, 10, 100, 1000)
COMPARED = ("small-changes", *(f"case-{number}-arms-{arms}" for number in CASES for arms in ARMS))
"""The experiments in which all policies of the paper are compared."""

FLOORED = "aff-ucb1-floor"  # AFF-UCB1 with a variance floor
NAMES = {
    "eps-greedy": "ε-Greedy", "aff-d-greedy": "AFF-d-Greedy", "aff-ucb2-growing": "AFF-UCB2 growing",
    FLOORED: "AFF-UCB1 with a floor",
}  # fmt: skip
TITLES = {
    "small-changes": "small number of changes",
    "step-size": "Case 3",
    "discount-window": "Case 3",
    "memory": "Case 1, 2 arms",
    "bounds": "bounds of the appendix",
}


class MissingResultError(LookupError):
    """Something that a claim or a figure needs is not in the results."""


def case_id(number: int, arms: int) -> str:
    """Return the id of an experiment, such as ``case-3-arms-50``."""
    return f"case-{number}-arms-{arms}"


def policy_name(policy: str) -> str:
    """Return the name of a policy as the paper writes it.

    Examples
    --------
    >>> policy_name("eps-greedy"), policy_name("aff-ucb1")
    ('ε-Greedy', 'AFF-UCB1')
    """
    return NAMES.get(policy, policy.upper())


def experiment_title(experiment: str) -> str:
    """Return an experiment as text.

    Examples
    --------
    >>> from dynabandit.paper import lookup
    >>> lookup.experiment_title("case-3-arms-50")
    'Case 3, 50 arms'
    """
    stem, _, arms = experiment.partition("-arms-")
    known = TITLES.get(stem) or (stem.replace("case-", "Case ") if stem.startswith("case-") else experiment)
    return f"{known}, {arms} arms" if arms else known


def policy_key(run: Run) -> str:
    """Return the policy of a run; AFF-UCB1 with a variance floor counts as another policy."""
    return FLOORED if run.policy == "aff-ucb1" and run.parameters.get("variance_floor") else run.policy


def was_run(results: Results, experiment: str) -> bool:
    """Return whether the results contain an experiment."""
    if experiment == "bounds":
        return bool(results.coverage)
    return any(run.experiment == experiment for run in results)


def runs_by_policy(results: Results, experiment: str) -> dict[str, Run]:
    """Return the runs of an experiment by `policy_key`, with eps-greedy at its best epsilon, chosen in hindsight."""
    groups: dict[str, list[Run]] = {}
    for run in results.select(experiment=experiment):
        groups.setdefault(policy_key(run), []).append(run)
    if not groups:
        raise MissingResultError(f"{experiment} was not run")
    for policy, runs in groups.items():
        if len(runs) > 1 and policy != "eps-greedy":
            labels = ", ".join(run.label for run in runs)
            raise MissingResultError(f"{experiment} holds {policy} in several forms: {labels}")
    return {policy: runs[smallest_mean([run.total_regret for run in runs])] for policy, runs in groups.items()}


def shown_runs(results: Results) -> list[Run]:
    """Return the runs for a table; where all policies are compared, eps-greedy is listed at its best epsilon only."""
    best = {
        experiment: runs_by_policy(results, experiment)["eps-greedy"]
        for experiment in COMPARED
        if any(run.experiment == experiment and run.policy == "eps-greedy" for run in results)
    }
    return [run for run in results if run.policy != "eps-greedy" or best.get(run.experiment, run) is run]


def run_at(results: Results, experiment: str, policy: str, parameter: str, value: Any) -> Run:
    """Return the run of a policy at one value of a parameter."""
    for run in results.select(experiment=experiment, policy=policy):
        if parameter in run.parameters and run.parameters[parameter] == value:
            return run
    raise MissingResultError(f"{experiment} has no {policy} with {parameter} = {value}")


def first_replications(results: Results, count: int) -> Results:
    """Return the first replications only.

    Where the results hold shares of correct selections over all replications only, these become NaN.
    """
    runs = [run if run.replications <= count else _shortened(run, count) for run in results]
    return Results(runs, results.metadata, results.paths, results.coverage)


def _shortened(run: Run, count: int) -> Run:
    correct, kept = np.full_like(run.correct, np.nan), run.correct_by_replication
    if kept is not None:
        kept = kept[:count]
        correct = kept.mean(axis=0)
    return replace(run, regret=run.regret[:count], correct=correct, correct_by_replication=kept)
