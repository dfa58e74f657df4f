"""Monitoring: what a state holds besides its policy, the lift over the holdout and the evidence of the guardrails."""

from collections.abc import Iterable, Mapping
from typing import Any

from dynabandit.bandit import Bandit
from dynabandit.service.domain.decision_details import read_details
from dynabandit.service.domain.events import ALERT, ARM, CREATE, GUARDRAILS, EventRow, read_metric_key
from dynabandit.service.domain.guardrails import Guardrails
from dynabandit.service.domain.learning import Observation
from dynabandit.service.domain.lift import HoldoutLift
from dynabandit.service.monitoring_types import Guardrail
from dynabandit.validation import BOUNDED


class Monitoring:
    """The lift of a bandit that has a holdout, and its guardrails, as its events make them. No decision uses them."""

    def __init__(self) -> None:
        self.lift: HoldoutLift | None = None
        self.guardrails = Guardrails({}, 1)

    def count(self, decision: EventRow) -> None:
        """Count a decision."""
        if self.lift is not None:
            self.lift.count(read_details(decision.body))

    def learn(self, observations: Iterable[Observation], bodies: Mapping[int, str | None], bandit: Bandit) -> None:
        """Add rewards that are final; with a lift, `bodies` must have those of their decisions."""
        if self.lift is not None:
            self.lift.learn(observations, bodies, bandit.rewards.is_within(BOUNDED))

    def add_metric(self, event: EventRow, bandit: Bandit) -> None:
        """Add the value of a metric."""
        step, metric = read_metric_key(event.key)
        if event.arm is None or not 0 <= event.arm < len(bandit.names) or not 1 <= step <= bandit.step:
            raise ValueError(f"it is a metric of step {step} and column {event.arm}")
        self.guardrails.add(metric, event.arm, float(event.value))  # type: ignore[arg-type]

    def change(self, event: EventRow, body: dict[str, Any], bandit: Bandit) -> None:
        """Apply a change, which was applied to the bandit before."""
        if event.kind == CREATE and body.get("holdout") is not None:
            self.lift = HoldoutLift(**body["holdout"])
        if event.kind == GUARDRAILS or (event.kind == CREATE and body.get("guardrails") is not None):
            rules = {metric: Guardrail(**rule) for metric, rule in body["guardrails"].items()}
            self.guardrails = Guardrails(rules, len(bandit.names))
        elif event.kind == ARM and body.get("paused") is False:
            self.guardrails.restart(len(bandit.names) - 1 - bandit.names[::-1].index(body["arm"]))
        elif event.kind == ALERT and event.arm is not None:
            self.guardrails.report(body["metric"], event.arm)
        elif event.kind == ALERT and self.lift is not None:
            self.lift.is_reported = True

    def copy(self) -> "Monitoring":
        """Return a copy that later events do not change."""
        other = Monitoring()
        other.lift = None if self.lift is None else self.lift.copy()
        other.guardrails = self.guardrails.copy()
        return other

    def to_plain(self) -> list[Any]:
        """Return everything as plain values, which `from_plain` reads; nothing if nothing is monitored."""
        lift = None if self.lift is None else self.lift.to_plain()
        guardrails = self.guardrails.to_plain() if self.guardrails.rules else None
        return [] if lift is None and guardrails is None else [lift, guardrails]

    @classmethod
    def from_plain(cls, content: list[Any]) -> "Monitoring":
        """Return what `to_plain` was called on."""
        monitoring = cls()
        if content:
            lift, guardrails = content
            monitoring.lift = None if lift is None else HoldoutLift.from_plain(lift)
            monitoring.guardrails = Guardrails({}, 1) if guardrails is None else Guardrails.from_plain(guardrails)
        return monitoring
