"""Alerts: events that say that an arm violates a guardrail, or that the groups of a holdout are not as they should be.

They are raised in the commit of the events that give the evidence.
"""

import json
from typing import Any

import msgspec

from dynabandit.service import monitoring_types
from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.events import ALERT, ARM, EventRow
from dynabandit.service.domain.names import public_id
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.stores import Store

GUARDRAIL, SAMPLE_RATIO = "guardrail", "sample-ratio"
MISMATCH_EVIDENCE = 100.0  # a false alarm of the sample ratio has a probability of at most 1 %


def raise_alerts(work: UnitOfWork) -> None:
    """Add the alerts for which the events of this commit gave the evidence, and pause the arms that they are about."""
    for bandit_number in {event.bandit for event in work.events}:
        state = work.states.get(bandit_number)
        if state is None or state.deleted:
            continue
        for metric, column in list(state.monitoring.guardrails.due):
            _report_violation(work, state, metric, column)
        lift = state.monitoring.lift
        if lift is not None and not lift.is_reported and lift.mismatch_evidence() >= MISMATCH_EVIDENCE:
            policy, holdout = lift.rewards(False), lift.rewards(True)
            body = {"alert": SAMPLE_RATIO, "share": lift.share, "policy": policy, "holdout": holdout}
            work.append(state, ALERT, body)


def _report_violation(work: UnitOfWork, state: LoggedState, metric: str, column: int) -> None:
    """Pause an arm, unless no other one could be chosen then, and raise the alert."""
    bandit, guardrails = state.bandit, state.monitoring.guardrails
    name, rule = bandit.names[column], guardrails.rules[metric]
    is_available = bandit.is_available(column)
    is_last = is_available and len(bandit.available_columns()) == 1
    mean, count = guardrails.mean(metric, column), guardrails.count(metric, column)
    if is_available and not is_last:
        work.append(state, ARM, {"arm": name, "paused": True, "guardrail": metric})
    body = {"alert": GUARDRAIL, "arm": name, "metric": metric, "mean": mean, "bound": rule.bound}
    body |= {"direction": rule.direction, "count": count, "paused": not is_last}
    work.append(state, ALERT, body, column)


def api_alert(event: EventRow, refused: int | None = None) -> monitoring_types.Alert:
    """Return an alert as the API shows it; `refused` is the status with which the webhook refused it for good."""
    body = json.loads(event.body or "{}")
    content = {"sequence": event.sequence, "time": event.time, "wall": event.wall, "message": describe(body), **body}
    content["refused"] = refused
    return msgspec.convert(content, monitoring_types.Alert)


def describe(body: dict[str, Any]) -> str:
    """Return an alert in words.

    Examples
    --------
    >>> describe({"alert": "sample-ratio", "share": 0.1, "policy": 900, "holdout": 200})
    'the holdout has 200 of 1100 rewards, which is not a share of 0.1'
    """
    if body["alert"] == SAMPLE_RATIO:
        both = body["policy"] + body["holdout"]
        return f"the holdout has {body['holdout']} of {both} rewards, which is not a share of {body['share']:g}"
    limit = "at most" if body["direction"] == "max" else "at least"
    done = "is paused" if body["paused"] else "is not paused, as the only one that can be chosen"
    return (
        f"arm {body['arm']!r} {done}: the mean of {body['metric']} is {body['mean']:.4g} in {body['count']} decisions, "
        f"and must be {limit} {body['bound']:g}"
    )


def sent_alert(store: Store, event: EventRow) -> monitoring_types.SentAlert:
    """Return an alert as the webhook sends it; its id is the same whenever it is sent again."""
    identity = public_id(event.bandit)
    alert = msgspec.structs.asdict(api_alert(event))
    return monitoring_types.SentAlert(
        id=f"{identity}-{event.sequence}", bandit=store.name_of(event.bandit), bandit_id=identity, **alert
    )
