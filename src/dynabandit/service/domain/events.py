"""The log: rows that are only ever added, and whose sequence numbers are the order of everything."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from dynabandit.service.api_types import Event
from dynabandit.service.domain.names import decision_id, public_id

__all__ = [
    "ARM",
    "CLOSE",
    "COLUMNS",
    "CREATE",
    "DECISION",
    "DELETE",
    "KINDS",
    "POLICY",
    "REWARD",
    "Row",
    "Settled",
    "shown",
]

CREATE = "create"
DECISION = "decision"
REWARD = "reward"
CLOSE = "close"  # the window of a decision ended without a reward
ARM = "arm"
POLICY = "policy"
DELETE = "delete"
# What callers may ask for, and which kinds that are
KINDS: dict[str, tuple[str, ...]] = {
    "decision": (DECISION,),
    "reward": (REWARD, CLOSE),
    "change": (CREATE, ARM, POLICY, DELETE),
}


class Row(NamedTuple):
    """A row of the log."""

    bandit: int
    sequence: int
    kind: str
    step: int | None  # of a decision
    settles: int | None  # the step whose decision gets its reward, or none for ever
    arm: int | None  # a column
    value: float | None
    time: float  # the service's own clock, which never jumps
    wall: float  # the wall clock, for people: nothing depends on it
    key: str | None  # the caller's idempotency key, on the first decision it gave
    body: str | None  # JSON


COLUMNS = Row._fields


class Settled(NamedTuple):
    """A decision as the log has it; `kind` is None while no reward came and the window is open."""

    arm: int
    time: float
    kind: str | None
    value: float | None


def shown(row: Row, names: Sequence[str]) -> Event:
    """Return a row as callers see it."""
    step = row.step if row.step is not None else row.settles
    change: dict[str, Any] | None = None
    if row.body is not None and row.kind != DECISION:
        change = msgspec.json.decode(row.body)
    return Event(
        sequence=row.sequence,
        kind=row.kind,  # type: ignore[arg-type]
        time=row.time,
        wall=row.wall,
        decision=None if step is None else decision_id(public_id(row.bandit), step),
        step=step,
        arm=None if row.arm is None else names[row.arm],
        reward=row.value,
        key=row.key,
        change=change,
    )
