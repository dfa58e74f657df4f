"""Policies that are tuned with the truth: the number of breakpoints, the variation, and a grid in hindsight."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from dynabandit.leaderboard.environments import Trial
from dynabandit.policies import Policy, policy as make_policy
from dynabandit.policies.horizons.practical_forms import FORMS, practical_form

PATHS = 3  # over which the facts of a random environment are averaged
MOST_BREAKPOINTS = 0.1  # of the steps; means with more of them drift
# Values of each parameter that are tried in hindsight, in place of that of the practical form
GRID: dict[str, tuple[float, ...]] = {
    "discount": (0.9, 0.99, 0.999),
    "window": (50, 200, 1000),
    "memory": (10, 100, 1000),
    "step_size": (0.0001, 0.01, 0.1),
    "epsilon": (0.01, 0.03),
    "scale": (0.05, 0.3, 1.0),
}
# Those of policies that decide by features
CONTEXTUAL_GRID: dict[str, tuple[float, ...]] = {
    "discount": (0.97, 0.99, 0.995, 0.998, 0.999, 0.9997, 1.0),
    "window": (100, 300, 1000, 3000),
}


@dataclass(frozen=True)
class PathFacts:
    """What is true about the paths of an environment, on average over some replications."""

    breakpoints: int
    """The number of steps at which a mean changes; 0 if the means drift."""
    variation: float
    """V_T: the sum over all steps of the largest change of a mean."""


def path_facts(trial: Trial, seed: int = 1) -> PathFacts:
    """Return the facts about the paths that a simulation with this seed uses.

    Examples
    --------
    >>> from dynabandit.leaderboard.environments import make_trials
    >>> trials = make_trials()
    >>> path_facts(trials["pb-1"]).breakpoints, path_facts(trials["case-3-10"]).breakpoints
    (4, 0)
    """
    counts, variations = [], []
    for replication in range(PATHS):
        path = trial.environment.path(trial.horizon, seed, replication)
        change = np.abs(np.diff(path, axis=0)).max(axis=1)
        counts.append(np.count_nonzero(change))
        variations.append(change.sum())
    breakpoints = float(np.mean(counts))
    drifts = breakpoints > MOST_BREAKPOINTS * trial.horizon
    return PathFacts(0 if drifts else round(breakpoints), float(np.mean(variations)))


def tuned_forms(asked: str | Policy, facts: PathFacts) -> list[Policy]:
    """Return the forms of a policy that use the truth or another value of one parameter.

    Parameters that differ from the defaults stay as they are. All forms know the horizon. The best of them and of the
    practical form, chosen in hindsight, is the tuned policy.

    Examples
    --------
    >>> [policy.label for policy in tuned_forms("sw-ucb", PathFacts(breakpoints=4, variation=2.0))]
    ['sw-ucb(changes=4)', 'sw-ucb(changes=1)', 'sw-ucb(window=50)', 'sw-ucb(window=200)', 'sw-ucb(window=1000)']
    """
    policy = make_policy(asked)
    parameters = _open_parameters(policy)
    if policy.label in FORMS:
        policy = make_policy(policy.name, **FORMS[policy.label])
    changes: list[dict[str, Any]] = [{}]
    if policy.needs_tuning and facts.breakpoints > 1:
        changes.insert(0, {"changes": facts.breakpoints})
    if "variation" in parameters and facts.variation > 0.0:
        changes.append({"variation": facts.variation})
    for parameter, values in _grid(policy).items():
        if parameter in parameters:
            changes += [{parameter: value} for value in values]
    forms = [replace(policy, **changed) for changed in changes]
    forms = [replace(form, changes=1) if form.needs_tuning else form for form in forms]  # type: ignore[call-arg]
    known = practical_form(asked).label
    return list({form.label: form for form in forms if form.label != known}.values())


def tunable(asked: str | Policy) -> bool:
    """Return whether a policy has a parameter for which the truth or a grid is tried."""
    policy = make_policy(asked)
    return not policy.informed and bool(_open_parameters(policy) & {"changes", "variation", *_grid(policy)})


def _open_parameters(policy: Policy) -> set[str]:
    """Return the parameters that have their defaults."""
    return {field.name for field in fields(policy) if getattr(policy, field.name) == field.default}


def _grid(policy: Policy) -> dict[str, tuple[float, ...]]:
    return CONTEXTUAL_GRID if policy.functions.contextual else GRID
