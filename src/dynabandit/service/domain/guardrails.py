"""Guardrails: metrics besides the reward whose mean must stay within a bound, and a sequential test for every arm."""

import copy
from collections.abc import Sequence
from typing import Any

import msgspec

from dynabandit.service.monitoring_types import Guardrail, GuardrailArm, GuardrailState
from dynabandit.stats.sequential_tests import (
    COUNT,
    SIZE,
    TOTAL,
    add_excess,
    evidence_of,
    needed_evidence,
    new_test,
    unmet_condition,
)

MAX_TESTS = 100_000  # arms times metrics: the state of a bandit has up to 18 numbers for each


class Guardrails:
    """The guardrails of a bandit and the evidence so far that its arms violate them.

    `violations` are those for which an alert was raised. Setting the guardrails starts all tests again, and resuming an
    arm starts its tests again.
    """

    def __init__(self, rules: dict[str, Guardrail], arms: int) -> None:
        self.rules = rules
        self.arms = arms  # when the guardrails were set: these share one half of the rate of false alarms
        self.tests: dict[str, dict[int, list[float]]] = {metric: {} for metric in rules}  # by metric and column
        self.violations: set[tuple[str, int]] = set()
        self.due: list[tuple[str, int]] = []  # violations for which the same commit will raise an alert
        self.restarted: set[str] = set()  # metrics whose tests, of release 0.2.0 and without a range, were not read

    def add(self, metric: str, column: int, value: float) -> None:
        """Add a value of a metric for an arm."""
        rule = self.rules.get(metric)
        if rule is None:
            return
        test = self.tests[metric].setdefault(column, new_test(rule.room))
        evidence = add_excess(test, rule.sign * (value - rule.bound), rule.room)
        violation = (metric, column)
        if evidence >= self.needed(column) and violation not in self.violations and violation not in self.due:
            self.due.append(violation)

    def needed(self, column: int) -> float:
        """Return the evidence at which an arm violates a guardrail."""
        return needed_evidence(column, self.arms, len(self.rules))

    def evidence(self, metric: str, column: int) -> float:
        """Return the evidence as a part of what is needed, at most 1."""
        return min(evidence_of(self.tests[metric][column]) / self.needed(column), 1.0)

    def count(self, metric: str, column: int) -> int:
        """Return how many values a test has seen."""
        return int(self.tests[metric][column][COUNT])

    def mean(self, metric: str, column: int) -> float:
        """Return the mean of the values of a test."""
        test, rule = self.tests[metric][column], self.rules[metric]
        return rule.bound + rule.sign * test[TOTAL] / test[COUNT]

    def views(self, names: Sequence[str]) -> list[GuardrailState]:
        """Return what the API and the pages show; `names` are those of the arms by column."""
        return [
            GuardrailState(
                metric,
                rule.bound,
                rule.direction,
                rule.range,
                [self._arm_view(metric, column, names[column]) for column in sorted(self.tests[metric])],
            )
            for metric, rule in self.rules.items()
        ]

    def _arm_view(self, metric: str, column: int, name: str) -> GuardrailArm:
        count, mean, evidence = self.count(metric, column), self.mean(metric, column), self.evidence(metric, column)
        problem = unmet_condition(self.tests[metric][column])
        return GuardrailArm(name, count, mean, evidence, (metric, column) in self.violations, problem)

    def report(self, metric: str, column: int) -> None:
        """Note that an alert was raised."""
        self.violations.add((metric, column))
        self.due = [one for one in self.due if one != (metric, column)]

    def restart(self, column: int) -> None:
        """Forget the evidence about an arm, which was resumed."""
        for tests in self.tests.values():
            tests.pop(column, None)
        self.violations = {one for one in self.violations if one[1] != column}
        self.due = [one for one in self.due if one[1] != column]

    def copy(self) -> "Guardrails":
        """Return a copy that later values do not change."""
        other = copy.copy(self)
        other.tests = {
            metric: {column: test.copy() for column, test in tests.items()} for metric, tests in self.tests.items()
        }
        other.violations, other.due = self.violations.copy(), self.due.copy()
        return other

    def to_plain(self) -> list[Any]:
        """Return everything as plain values, which `from_plain` reads."""
        tests = {metric: sorted(tests.items()) for metric, tests in self.tests.items()}
        rules = {metric: list(msgspec.structs.astuple(rule)) for metric, rule in self.rules.items()}
        return [rules, self.arms, tests, sorted(self.violations)]

    @classmethod
    def from_plain(cls, content: list[Any]) -> "Guardrails":
        """Return what `to_plain` was called on; tests of release 0.2.0 without a range start again."""
        rules, arms, tests, violations = content
        guardrails = cls({metric: Guardrail(*rule) for metric, rule in rules.items()}, arms)
        for metric, found in tests.items():
            ranged = guardrails.rules[metric].range is not None
            readable = {column: test for column, test in found if ranged or len(test) == SIZE}
            guardrails.tests[metric] = readable
            if len(readable) < len(found):
                guardrails.restarted.add(metric)
        guardrails.violations = {(metric, column) for metric, column in violations}
        return guardrails
