"""Values of metrics: each metric of a decision counts once, for the arm of the decision."""

from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.events import METRIC, metric_key
from dynabandit.service.domain.rewards import bandit_of, find_decision
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.errors import ConflictError, InvalidValueError
from dynabandit.validation import unknown


def add_metrics(
    work: UnitOfWork, bandit_number: int, step: int, values: dict[str, float], namespace: str | None = None
) -> None:
    """Count the metrics of a decision; the same values again change nothing, another one is an error.

    With a namespace, decisions of bandits outside of it do not exist.
    """
    state = bandit_of(work, bandit_number, step, namespace)
    _check(state, values)
    arm = find_decision(work, state, step).arm
    new = {}
    for metric, value in values.items():
        before = work.find_keyed(bandit_number, metric_key(step, metric))
        if not before:
            new[metric] = value + 0.0  # turns -0.0 into 0.0, which every store returns unchanged
        elif before[0].value != value:
            decision = work.store.decision_ids().make(bandit_number, step)
            raise ConflictError(f"decision {decision!r} has the {metric} {before[0].value:g} already, got {value:g}")
    now, wall = work.now(state), work.clock.wall()
    for metric, value in new.items():
        key = metric_key(step, metric)
        event = state.append(METRIC, now, wall, arm=arm, value=value, key=key)
        work.keyed[bandit_number, key] = [event]
        work.events.append(event)


def _check(state: LoggedState, values: dict[str, float]) -> None:
    rules = state.monitoring.guardrails.rules
    if not rules:
        raise InvalidValueError(f"metrics must belong to guardrails, and bandit {state.settings.name!r} has none")
    for metric, value in values.items():
        if metric not in rules:
            raise InvalidValueError(f"metrics: {unknown('metric', metric, rules)}")
        limits = rules[metric].range
        if limits is not None and not limits[0] <= value <= limits[1]:
            raise InvalidValueError(
                f"metrics.{metric} must be a number from {limits[0]:g} to {limits[1]:g}, got {value:g}"
            )
