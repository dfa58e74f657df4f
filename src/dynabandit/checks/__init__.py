"""Checks of the contract that every estimator, policy and environment fulfils; run them on your own.

`yield_checks` yields one named check after another, so that a test framework can list them. Each raises an
`AssertionError` whose message says what is violated; the last one, about documentation, only warns.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from dynabandit.checks.detectors import DETECTOR_CHECKS
from dynabandit.checks.environments import (
    changes_means_in_one_direction,
    declares_its_environment,
    gives_the_simulator_its_path,
    keeps_means_constant,
    makes_valid_paths,
)
from dynabandit.checks.estimators import (
    constant_rewards,
    rejects_invalid_rewards,
    require,
    starts_empty,
    stays_in_range,
)
from dynabandit.checks.parts import MEMORY_CHECKS, RULE_CHECKS
from dynabandit.checks.policies import (
    allows_changing_arms,
    decides_alike_in_a_bandit,
    decides_alike_interpreted,
    declares_its_parts,
    plays_valid_arms,
    reaches_every_arm,
    reproduces_its_choices,
    scores_change_only_with_plays,
    starts_all_arms_alike,
)
from dynabandit.checks.posteriors import posteriors_change_as_declared
from dynabandit.environments import Environment
from dynabandit.estimators import Estimator
from dynabandit.policies import Policy
from dynabandit.policies.detectors import Detector
from dynabandit.policies.memories import Memory
from dynabandit.policies.part import Part
from dynabandit.policies.rules import Rule

__all__ = [
    "DocumentationAdvice", "check_detector", "check_environment", "check_estimator", "check_memory", "check_policy",
    "check_rule", "yield_checks",
]  # fmt: skip


class DocumentationAdvice(UserWarning):
    """What is missing in the documentation of an algorithm that passed all other checks.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore", DocumentationAdvice)  # for an algorithm that nobody else will use
    """


def yield_checks(subject: Any) -> Iterator[Callable[[Any], None]]:
    """Yield the checks of a policy, an environment or a function that makes an estimator.

    Examples
    --------
    >>> import dynabandit as db
    >>> policy = db.policy("uniform")
    >>> for check in db.checks.yield_checks(policy):
    ...     check(policy)
    >>> [check.__name__ for check in db.checks.yield_checks(db.estimators.SampleMean)]
    ['starts_empty', 'constant_rewards', 'stays_in_range', 'rejects_invalid_rewards']
    """
    if isinstance(subject, Policy):
        yield from (declares_its_parts, starts_all_arms_alike)
        if subject.functions.idle_posterior is not None:
            yield posteriors_change_as_declared
        if subject.functions.static_index:
            yield scores_change_only_with_plays
        yield from (plays_valid_arms, reproduces_its_choices, reaches_every_arm, decides_alike_interpreted)
        if not subject.informed:
            yield from (decides_alike_in_a_bandit, allows_changing_arms)
        yield is_documented
    elif isinstance(subject, Environment):
        yield from (declares_its_environment, makes_valid_paths, keeps_means_constant)
        if subject.reward_functions.observes_plays:
            yield changes_means_in_one_direction
        yield from (gives_the_simulator_its_path, is_documented)
    elif isinstance(subject, Memory):
        yield from (*MEMORY_CHECKS, is_documented)
    elif isinstance(subject, Rule):
        yield from (*RULE_CHECKS, is_documented)
    elif isinstance(subject, Detector):
        yield from (*DETECTOR_CHECKS, is_documented)
    else:
        yield from (starts_empty, constant_rewards, stays_in_range, rejects_invalid_rewards)


def check_estimator(make: Callable[[], Estimator]) -> None:
    """Check an estimator.

    Parameters
    ----------
    make
        Makes a new estimator, such as the class itself or a `lambda`.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.checks.check_estimator(lambda: db.estimators.SlidingWindow(window=10))
    """
    require(callable(make), f"make must make a new estimator, such as the class itself or a lambda, got {make!r}")
    _run_checks(make)


def check_policy(policy: Policy) -> None:
    """Check how a policy behaves: it raises an `AssertionError` that describes the first violated rule.

    A policy that passes all of these checks gets advice, a `DocumentationAdvice`, if its documentation lacks a section.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.checks.check_policy(db.policy("aff-ucb1", burn_in=2))
    """
    derived = is_dataclass(policy) and isinstance(policy, Policy)
    require(derived, "a policy must be a dataclass derived from Policy")
    _run_checks(policy)


def check_memory(memory: Memory) -> None:
    """Check a memory as `check_policy` checks a policy, in combination with all rules that it fits.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.checks.check_memory(db.memories.Window(window=20))
    """
    derived = is_dataclass(memory) and isinstance(memory, Memory)
    require(derived, "a memory must be a dataclass derived from Memory")
    _run_checks(memory)


def check_rule(rule: Rule) -> None:
    """Check a rule as `check_policy` checks a policy, in combination with all memories that it fits.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.checks.check_rule(db.rules.UCB(xi=0.6))
    """
    derived = is_dataclass(rule) and isinstance(rule, Rule)
    require(derived, "a rule must be a dataclass derived from Rule")
    _run_checks(rule)


def check_detector(detector: Detector) -> None:
    """Check a detector: that it finds a change, is quiet without one, keeps arms apart, and restarts as it starts.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.checks.check_detector(db.detectors.Cusum(threshold=10, exploration=0.05))
    """
    derived = is_dataclass(detector) and isinstance(detector, Detector)
    require(derived, "a detector must be a dataclass derived from Detector")
    _run_checks(detector)


def check_environment(environment: Environment) -> None:
    """Check an environment as `check_policy` checks a policy.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.checks.check_environment(db.environment("case-4", arms=3))
    """
    derived = is_dataclass(environment) and isinstance(environment, Environment)
    require(derived, "an environment must be a dataclass derived from Environment")
    _run_checks(environment)


def _run_checks(subject: Any) -> None:
    for check in yield_checks(subject):
        check(subject)


def is_documented(subject: Policy | Environment | Part) -> None:
    """The docstring of the class has all sections; this is advice."""
    kind = type(subject)
    sections = ("Parameters",) if fields(subject) else ()
    missing = [part for part in (*sections, "Examples", "References") if part not in (kind.__doc__ or "")]
    if missing:
        text = f"{kind.__name__} passed all checks; its docstring has no section {', '.join(missing)}"
        warnings.warn(text, DocumentationAdvice, stacklevel=4)
