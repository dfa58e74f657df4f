"""The event log: rows that are only ever added, ordered by their sequence numbers."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from dynabandit.service.api_types import Event
from dynabandit.service.domain.decision_details import read_details
from dynabandit.service.domain.decision_ids import DecisionIds

CREATE = "create"
DECISION = "decision"
REWARD = "reward"
CLOSE = "close"  # the reward window of a decision ended without a reward
LEARN = "learn"  # decisions that were held, up to a step, are learned
ACTIVATE = "activate"  # a decision whose activation was deferred gets the default reward, if no other one comes
ARM = "arm"
POLICY = "policy"
SHADOW = "shadow"  # a shadow policy begins or ends
GUARDRAILS = "guardrails"
METRIC = "metric"  # the value of a metric of a guardrail for one decision
ALERT = "alert"
DELETE = "delete"
START = "start"  # event 0 of a compacted log; callers do not see it
# The kinds that callers may filter by, and the kinds of events that each includes
KINDS: dict[str, tuple[str, ...]] = {
    "decision": (DECISION, ACTIVATE),
    "reward": (REWARD, CLOSE, LEARN),
    "metric": (METRIC,),
    "change": (CREATE, ARM, POLICY, SHADOW, GUARDRAILS, ALERT, DELETE),
}


class EventRow(NamedTuple):
    """An event as the store keeps it."""

    bandit: int
    sequence: int
    kind: str
    step: int | None  # of a decision
    settles: int | None  # the step whose decision this reward or close belongs to
    arm: int | None  # the index of the arm, in the order in which arms were added
    value: float | None  # the reward; of a decision, its propensity
    time: float  # the service's own clock
    wall: float  # the wall clock, for people to read
    key: str | None  # the idempotency key, on the first decision of its request
    body: str | None  # JSON


COLUMNS = EventRow._fields


class LoggedDecision(NamedTuple):
    """A decision in the log; `kind` is None until it is rewarded or closed.

    `taken` is the index of the arm that was rewarded, which may be another one of the ranking.
    """

    arm: int
    time: float
    kind: str | None
    value: float | None
    body: str | None = None
    taken: int | None = None


class UnitRow(NamedTuple):
    """The latest decision for a unit."""

    step: int
    arm: int
    time: float
    propensity: float | None
    holdout: bool


class Settlement(NamedTuple):
    """What a policy learns from in an event of the kinds reward, close and learn; see `EventRow`."""

    bandit: int
    sequence: int
    kind: str
    settles: int | None
    arm: int | None
    value: float | None
    body: str | None


class HeldDecision(NamedTuple):
    """A decision that the policy has not learned yet; `value` is None while it has no reward."""

    step: int
    arm: int
    value: float | None
    taken: int | None = None  # the arm that was rewarded


def metric_key(step: int, metric: str) -> str:
    """Return the key under which the log has the metric of a decision; callers cannot send it as their own key."""
    return f"metric\n{step}\n{metric}"


def read_metric_key(key: str | None) -> tuple[int, str]:
    """Return the step and the metric of a key.

    Examples
    --------
    >>> read_metric_key(metric_key(17, "latency"))
    (17, 'latency')
    """
    _, step, metric = (key or "").split("\n")
    return int(step), metric


def api_event(row: EventRow, names: Sequence[str], ids: DecisionIds | None = None) -> Event:
    """Return an event as the API shows it, with the id of its decision if `ids` is given.

    `names` are the names of the arms by index.
    """
    step = row.step if row.step is not None else row.settles
    metric: str | None = None
    if row.kind == METRIC:
        step, metric = read_metric_key(row.key)
    change: dict[str, Any] | None = None
    if row.body is not None and row.kind not in (DECISION, REWARD):
        change = msgspec.json.decode(row.body)
    if row.kind == ACTIVATE and change is not None:
        step, change = change["step"], None
    details = read_details(row.body if row.kind == DECISION else None)
    return Event(
        sequence=row.sequence,
        kind=row.kind,  # type: ignore[arg-type]
        time=row.time,
        wall=row.wall,
        decision=None if step is None or ids is None else ids.make(row.bandit, step),
        step=step,
        arm=None if row.arm is None else names[row.arm],
        reward=None if row.kind in (DECISION, METRIC) else row.value,
        metric=metric,
        value=None if metric is None else row.value,
        propensity=row.value if row.kind == DECISION else None,
        context=details.context,
        unit=details.unit,
        holdout=details.holdout,
        among=_names(details.among, names),
        ranking=_names(details.ranking, names),
        shadow=None if details.shadow is None else names[details.shadow.column],
        decider=details.decider,
        local_step=details.local_step,
        base=details.base,
        key=row.key if details.decider is None and metric is None else None,
        change=change,
    )


def _names(columns: Sequence[int] | None, names: Sequence[str]) -> list[str] | None:
    return None if columns is None else [names[column] for column in columns]
