"""Decisions: the idempotency keys and the units for which they are given again, or a new choice of the policy."""

from collections.abc import Sequence

import msgspec

from dynabandit.service import api_types
from dynabandit.service.domain.bandit_state import RULES, LoggedState
from dynabandit.service.domain.decision_details import DecisionDetails, read_details
from dynabandit.service.domain.events import EventRow, UnitRow
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.errors import ConflictError, InvalidValueError
from dynabandit.service.stores.unit_table import unit_hash

MAX_DRAWS = 10_000_000  # per request: arms times decisions, which take about a second
REMOVED_UNITS = 10_000  # at a time


def decide(work: UnitOfWork, name: str, asked: api_types.Decide, key: str | None = None) -> list[api_types.Decision]:
    """Make decisions, or return those that the idempotency key or the unit got before."""
    state = work.named(name)
    if key is not None:
        before = work.find_keyed(state.number, key)
        if before:
            _check_same_request(before, asked)
            return [_api_decision(work, state, event) for event in before]
    if asked.unit is not None and (assigned := _assignment(work, state, asked.unit)) is not None:
        return [_assigned_decision(work, state, assigned)]
    events = _make_decisions(work, state, asked, key)
    if key is not None:
        work.keyed[state.number, key] = events
    if asked.unit is not None:
        assign(work, state, asked.unit, events[0])
    work.events += events
    return [_api_decision(work, state, event) for event in events]


def _check_same_request(before: list[EventRow], asked: api_types.Decide) -> None:
    """Raise an error if the request whose decisions an idempotency key got before was another one."""
    if len(before) != asked.count:
        raise ConflictError(f"count must be {len(before)}, as when this Idempotency-Key came first, got {asked.count}")
    details = read_details(before[0].body)
    for field in ("context", "unit"):
        if getattr(details, field) != getattr(asked, field):
            raise ConflictError(f"{field} must be the same as when this Idempotency-Key came first")


def _assignment(work: UnitOfWork, state: LoggedState, unit: str) -> UnitRow | None:
    """Return the decision whose arm a unit keeps: one that is recent enough, and whose arm can still be chosen."""
    sticky_for = state.settings.sticky_for
    if sticky_for is None:
        return None
    latest = work.find_unit(state.number, unit)
    if latest is None or work.now(state) - latest.time >= sticky_for:
        return None
    return latest if latest.arm in state.bandit.available_columns() else None


def is_uncounted(work: UnitOfWork, state: LoggedState, unit: str | None, among: Sequence[int] | None = None) -> bool:
    """Return whether a new decision does not count for the lift.

    The unit had a decision before, or nobody could be in the holdout, because its arm cannot be chosen.
    """
    holdout = state.settings.holdout
    if holdout is None:
        return False
    returns = unit is not None and work.find_unit(state.number, unit) is not None
    return returns or not holdout.is_possible(state.bandit, among)


def assign(work: UnitOfWork, state: LoggedState, unit: str, event: EventRow) -> None:
    """Note the latest decision for a unit, if the bandit has consistent assignment, or a lift that counts units."""
    if state.settings.sticky_for is not None or state.settings.holdout is not None:
        holdout = read_details(event.body).holdout
        row = UnitRow(event.step or 0, event.arm or 0, event.time, event.value, holdout)
        work.units[state.number, unit_hash(unit)] = row


def _make_decisions(work: UnitOfWork, state: LoggedState, asked: api_types.Decide, key: str | None) -> list[EventRow]:
    count, bandit = asked.count, state.bandit
    if count > 1 and asked.unit is not None:
        raise InvalidValueError(f"count must be 1 with a unit, got {count}")
    arms = len(bandit.names)
    if count > 1 and count * arms > MAX_DRAWS:
        raise InvalidValueError(f"count must be at most {max(1, MAX_DRAWS // arms)} with {arms} arms, got {count}")
    now, wall = work.now(state), work.clock.wall()
    if state.rules < RULES and bandit.available_columns():
        work.events.append(state.adopt_rules(now, wall))
    uncounted = is_uncounted(work, state, asked.unit)
    details = DecisionDetails(context=asked.context, unit=asked.unit, uncounted=uncounted)
    first = msgspec.structs.replace(details, count=count) if count > 1 and key is not None else details
    try:
        events = [state.decide(now, wall, key, first)]
    except (TypeError, ValueError) as error:  # nothing has changed yet
        if not bandit.available_columns():
            raise ConflictError(str(error)) from None
        raise InvalidValueError(about_context(str(error))) from None
    return events + [state.decide(now, wall, None, details) for _ in range(count - 1)]


def about_context(problem: str) -> str:
    """Return what is wrong with a context, naming the field."""
    return problem if problem.startswith("context ") else f"context: {problem}"


def _assigned_decision(work: UnitOfWork, state: LoggedState, assigned: UnitRow) -> api_types.Decision:
    decision, arm = work.store.decision_ids().make(state.number, assigned.step), state.bandit.names[assigned.arm]
    return api_types.Decision(decision, arm, assigned.step, assigned.propensity, True, assigned.holdout)


def _api_decision(work: UnitOfWork, state: LoggedState, event: EventRow) -> api_types.Decision:
    step, arm = event.step or 0, state.bandit.names[event.arm or 0]
    holdout = read_details(event.body).holdout
    return api_types.Decision(
        work.store.decision_ids().make(state.number, step), arm, step, event.value, holdout=holdout
    )


def remove_expired_units(work: UnitOfWork) -> None:
    """Remove the units that keep their arm no longer, up to a number per bandit.

    With a holdout they stay: the lift counts each of them once.
    """
    for number, state in work.states.items():
        if state.settings.sticky_for is not None and state.settings.holdout is None:
            work.store.remove_units(number, work.now(state) - state.settings.sticky_for, REMOVED_UNITS)
