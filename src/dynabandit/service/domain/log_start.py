"""The start of a compacted log: the state after the old events, most of which were removed (see `compaction.py`).

It is kept as event 0 of the log. The events of changes, and decisions that may still be rewarded or learned, are not
removed.
"""

import json
from typing import NamedTuple

from dynabandit.service.domain.bandit_state import DAMAGE, HASH_PREFIX, LoggedState
from dynabandit.service.domain.events import START, EventRow
from dynabandit.service.domain.learning import EventLog
from dynabandit.service.errors import UNUSABLE, ReplayMismatchError, unreadable
from dynabandit.service.logging_setup import log as service_log
from dynabandit.service.stores import Store


class LogStart(NamedTuple):
    """The event after which a log is complete, and the decisions that the policy had learned then."""

    sequence: int = 0
    learned_to: int = 0


def start_event(state: LoggedState, wall: float) -> EventRow:
    """Return the event that makes a state the start of its log."""
    start = LogStart(state.sequence, state.learner.learned_to)
    body = json.dumps({**start._asdict(), "state_hash": state.saved_hash, "state": state.to_json()})
    return EventRow(state.bandit_number, 0, START, None, None, None, None, state.time, wall, None, body)


def read_start(store: Store, bandit_number: int) -> LogStart:
    """Return where the log of a bandit starts."""
    body = store.start_of_log(bandit_number)
    if body is None:
        return LogStart()
    try:
        content = json.loads(body)
        return LogStart(content["sequence"], content["learned_to"])
    except DAMAGE:
        raise _damaged(store, bandit_number) from None


def state_at_start(store: Store, bandit_number: int, log: EventLog | None = None) -> LoggedState:
    """Return the state with which the log of a bandit starts; it reads later events from `log`, or from the store."""
    body = store.start_of_log(bandit_number)
    if body is None:
        return LoggedState(bandit_number, log or store)
    try:
        content = json.loads(body)
        state = LoggedState.from_json(bandit_number, content["state"], log or store)
        saved = content["state_hash"]
        is_whole = state.saved_hash == saved or not saved.startswith(HASH_PREFIX)  # made by earlier rules
    except UNUSABLE as error:
        raise unreadable(store.name_of(bandit_number), 0, error) from None
    except DAMAGE:
        is_whole = False
    if not is_whole:
        raise _damaged(store, bandit_number)
    for metric in sorted(state.monitoring.guardrails.restarted):
        problem = "the compacted log has no evidence that this release can continue: the tests of its arms start again"
        service_log.warning("guardrail restarted", bandit=state.settings.name, metric=metric, problem=problem)
    return state


def _damaged(store: Store, bandit_number: int) -> ReplayMismatchError:
    return ReplayMismatchError(store.name_of(bandit_number), 0, "the start of the log does not have its own hash")
