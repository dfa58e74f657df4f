"""Decisions, and the idempotency keys under which they are given again."""

from dynabandit.service import api_types
from dynabandit.service.domain.bandit_state import RULES, LoggedState
from dynabandit.service.domain.events import EventRow
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.errors import ConflictError, InvalidValueError

MAX_DRAWS = 10_000_000  # per request: arms times decisions, which take about a second


def decide(work: UnitOfWork, name: str, count: int, key: str | None) -> list[api_types.Decision]:
    """Make decisions, or return those that the idempotency key gave before."""
    state = work.named(name)
    if key is not None:
        before = work.find_keyed(state.number, key)
        if before:
            if len(before) != count:
                raise ConflictError(
                    f"count must be {len(before)}, as when this Idempotency-Key came first, got {count}"
                )
            return _api_decisions(work, state, before)
    arms = len(state.bandit.names)
    if count > 1 and count * arms > MAX_DRAWS:
        raise InvalidValueError(f"count must be at most {max(1, MAX_DRAWS // arms)} with {arms} arms, got {count}")
    now, wall = work.now(state), work.clock.wall()
    if state.rules < RULES and not all(arm.paused for arm in state.bandit.arms.values()):
        work.events.append(state.adopt_rules(now, wall))
    try:
        events = [state.decide(now, wall, key, str(count) if count > 1 and key is not None else None)]
    except ValueError as error:  # every arm is paused; nothing has changed yet
        raise ConflictError(str(error)) from None
    events += [state.decide(now, wall) for _ in range(count - 1)]
    if key is not None:
        work.keyed[state.number, key] = events
    work.events += events
    return _api_decisions(work, state, events)


def _api_decisions(work: UnitOfWork, state: LoggedState, events: list[EventRow]) -> list[api_types.Decision]:
    ids, names = work.store.decision_ids(), state.bandit.names
    return [
        api_types.Decision(ids.make(state.number, event.step or 0), names[event.arm or 0], event.step or 0)
        for event in events
    ]
