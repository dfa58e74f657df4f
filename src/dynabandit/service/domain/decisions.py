"""Decisions: the idempotency keys and the units for which they are given again, or a new choice of the policy."""

from collections.abc import Sequence

import msgspec

from dynabandit.bandit import Bandit
from dynabandit.bandit.live_policies import models_size
from dynabandit.service import api_types
from dynabandit.service.domain.bandit_state import RULES, LoggedState
from dynabandit.service.domain.decision_details import (
    ContextValues,
    DecisionDetails,
    check_context_size,
    context_size,
    read_details,
)
from dynabandit.service.domain.events import ACTIVATE, EventRow, UnitRow
from dynabandit.service.domain.steps import Steps, finish
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.errors import ConflictError, InvalidValueError
from dynabandit.service.stores.unit_table import remove_units, unit_hash
from dynabandit.validation import repeated

MAX_DRAWS = 10_000_000  # per request: arms times decisions, which take about a second
MAX_CONTEXTS = 1_000_000  # bytes per request: decisions times the size of their context
PLACE_DRAWS = 20  # the propensity of one place of a ranking takes as long as so many draws
REMOVED_UNITS = 10_000  # at a time
DECIDED_AT_ONCE = 20  # more decisions of a request are made in steps, between which other requests are served
DRAWS_AT_ONCE = 20_000  # likewise; they take a few milliseconds
MODEL_NUMBERS = 100  # numbers of the models of an arm that take as long as a draw without features
CONTEXT_DRAWS = 5  # a byte of a context takes as long as so many draws


def takes_long(work: UnitOfWork, name: str, asked: api_types.Decide) -> bool:
    """Return whether decisions are to be made in steps, because they may take more than a few milliseconds."""
    return asked.count > DECIDED_AT_ONCE or is_costly(work, name, context_size(asked.context), asked.count, asked.rank)


def is_costly(work: UnitOfWork, name: str, size: int, count: int = 1, places: int | None = None) -> bool:
    """Return whether decisions with a context of so many bytes may take more than a few milliseconds."""
    draws = CONTEXT_DRAWS * size + sum(_draws(one, places) for one in work.named(name).bandits)
    return count * draws > DRAWS_AT_ONCE


def _draws(bandit: Bandit, places: int | None) -> int:
    """Return how many draws without features take as long as a decision, which may be a ranking."""
    draws = len(bandit.names) * max(1, models_size(bandit.policy, 1, bandit.context) // MODEL_NUMBERS)
    return draws if places is None else draws * places * PLACE_DRAWS


def check_context(context: ContextValues | None) -> None:
    """Raise an error if a context is too large."""
    try:
        check_context_size(context)
    except ValueError as error:
        raise InvalidValueError(about_context(str(error))) from None


def decide(work: UnitOfWork, name: str, asked: api_types.Decide, key: str | None = None) -> list[api_types.Decision]:
    """Make decisions, or return those that the idempotency key or the unit got before."""
    return finish(decide_in_steps(work, name, asked, key))


def decide_in_steps(
    work: UnitOfWork, name: str, asked: api_types.Decide, key: str | None = None
) -> Steps[list[api_types.Decision]]:
    """Make decisions as `decide` does, with a step for each."""
    state = work.named(name)
    if key is not None:
        before = work.find_keyed(state.bandit_number, key)
        if before:
            _check_same_request(state, before, asked)
            return [_api_decision(work, state, event) for event in before]
    details = DecisionDetails(context=asked.context, unit=asked.unit, among=_columns_among(state, asked.among))
    if asked.unit is not None and (assigned := _assignment(work, state, details)) is not None:
        return [_assigned_decision(work, state, assigned)]
    if asked.count > 1 and asked.unit is not None:
        raise InvalidValueError(f"count must be 1 with a unit, got {asked.count}")
    events = yield from make_decisions(work, state, details, key, asked.count, asked.rank)
    if asked.unit is not None:
        assign(work, state, asked.unit, events[0])
    return [_api_decision(work, state, event) for event in events]


def _check_same_request(state: LoggedState, before: list[EventRow], asked: api_types.Decide) -> None:
    """Raise an error if the request whose decisions an idempotency key got before was another one."""
    if len(before) != asked.count:
        raise ConflictError(f"count must be {len(before)}, as when this Idempotency-Key came first, got {asked.count}")
    details, names = read_details(before[0].body), state.bandit.names
    among = None if details.among is None else [names[column] for column in details.among]
    there = {"context": details.context, "unit": details.unit, "among": among}
    others = [field for field, value in there.items() if value != getattr(asked, field)]
    ranked = 0 if details.ranking is None else len(details.ranking)
    if (asked.rank is None) != (ranked == 0) or (asked.rank or 0) < ranked:
        others.append("rank")
    if others:
        raise ConflictError(f"{others[0]} must be the same as when this Idempotency-Key came first")


def _columns_among(state: LoggedState, among: list[str] | None) -> list[int] | None:
    """Return the columns of arms that a request names."""
    if among is None:
        return None
    if (twice := repeated(among)) is not None:
        raise InvalidValueError(f"among must have different arms, got {twice[0]!r} twice")
    try:
        return [state.bandit.column(arm) for arm in among]
    except ValueError as error:
        raise InvalidValueError(f"among: {error}") from None


def _assignment(work: UnitOfWork, state: LoggedState, asked: DecisionDetails) -> UnitRow | None:
    """Return the decision whose arm a unit keeps: one that is recent enough, and whose arm can still be chosen."""
    sticky_for = state.settings.sticky_for
    if sticky_for is None or asked.unit is None:
        return None
    latest = work.find_unit(state.bandit_number, asked.unit)
    if latest is None or work.now(state) - latest.time >= sticky_for:
        return None
    is_asked = asked.among is None or latest.arm in asked.among
    return latest if is_asked and state.bandit.is_available(latest.arm) else None


def is_uncounted(work: UnitOfWork, state: LoggedState, unit: str | None, among: Sequence[int] | None = None) -> bool:
    """Return whether a new decision does not count for the lift.

    The unit had a decision before, or nobody could be in the holdout, because its arm cannot be chosen.
    """
    holdout = state.settings.holdout
    if holdout is None:
        return False
    returns = unit is not None and work.find_unit(state.bandit_number, unit) is not None
    return returns or not holdout.is_possible(state.bandit, among)


def assign(work: UnitOfWork, state: LoggedState, unit: str, event: EventRow) -> None:
    """Note the latest decision for a unit, if the bandit has consistent assignment, or a lift that counts units."""
    if state.settings.sticky_for is not None or state.settings.holdout is not None:
        holdout = read_details(event.body).holdout
        row = UnitRow(event.step or 0, event.arm or 0, event.time, event.value, holdout)
        work.units[state.bandit_number, unit_hash(unit)] = row


def check_imported(state: LoggedState) -> None:
    """Raise an error while the first decisions of a bandit are being imported."""
    done, rows = state.bandit.step, state.settings.imported
    if done < rows:
        raise ConflictError(f"{done} of {rows} decisions are imported: let dynabandit import run to its end first")


def _check_work(bandit: Bandit, count: int, places: int | None, context: ContextValues | None) -> None:
    """Raise an error if decisions would take too long."""
    arms, numbers = len(bandit.names), models_size(bandit.policy, 1, bandit.context)
    draws = _draws(bandit, places)
    if count * draws > MAX_DRAWS and count > 1:
        ranked = "" if places is None else f" and rank {places}"
        if numbers >= 2 * MODEL_NUMBERS:
            ranked = f", models of {numbers} numbers{ranked}"
        raise InvalidValueError(
            f"count must be at most {max(1, MAX_DRAWS // draws)} with {arms} arms{ranked}, got {count}"
        )
    if draws > MAX_DRAWS and places is not None and places > 1:
        raise InvalidValueError(
            f"rank must be at most {max(1, MAX_DRAWS // _draws(bandit, 1))} with {arms} arms, got {places}"
        )
    size = context_size(context) if count > 1 else 0
    if count * size > MAX_CONTEXTS:
        raise InvalidValueError(
            f"count must be at most {max(1, MAX_CONTEXTS // size)} with a context of {size} bytes, got {count}"
        )


def make_decisions(
    work: UnitOfWork,
    state: LoggedState,
    details: DecisionDetails,
    key: str | None,
    count: int = 1,
    places: int | None = None,
) -> Steps[list[EventRow]]:
    """Make new decisions, with a step for each; with `places`, each has a ranking of so many arms."""
    check_imported(state)
    bandit, arms = state.bandit, len(state.bandit.names)
    _check_work(bandit, count, places, details.context)
    now, wall = work.now(state), work.clock.wall()
    if state.rules < RULES and len(bandit.available_columns()) > 0:
        work.events.append(state.adopt_rules(now, wall))
    details = msgspec.structs.replace(details, uncounted=is_uncounted(work, state, details.unit, details.among))
    first = msgspec.structs.replace(details, count=count) if count > 1 and key is not None else details
    places = None if places is None else min(places, arms)
    try:
        check_context_size(details.context)
        events = [(yield from state.decide(now, wall, key, first, places))]
    except (ArithmeticError, TypeError, ValueError) as error:  # nothing has changed yet
        if len(bandit.available_columns(details.among)) == 0:
            raise ConflictError(str(error)) from None
        raise InvalidValueError(about_context(str(error))) from None
    for _ in range(count - 1):
        yield
        events.append((yield from state.decide(now, wall, None, details, places)))
    if key is not None:
        work.keyed[state.bandit_number, key] = events
    work.events += events
    return events


def activate(work: UnitOfWork, state: LoggedState, step: int) -> None:
    """Let a decision whose activation was deferred get the default reward, unless another one comes."""
    if step in state.deferred:
        work.append(state, ACTIVATE, {"step": step})


def about_context(problem: str) -> str:
    """Return what is wrong with a context, naming the field."""
    return problem if problem.startswith("context ") else f"context: {problem}"


def _assigned_decision(work: UnitOfWork, state: LoggedState, assigned: UnitRow) -> api_types.Decision:
    step, names = assigned.step, state.bandit.names
    made = state.open.get(step) or work.store.decision(state.bandit_number, step)
    return api_types.Decision(
        work.store.decision_ids().make(state.bandit_number, step),
        names[assigned.arm],
        step,
        assigned.propensity,
        repeated=True,
        holdout=assigned.holdout,
        ranking=None if made is None else _api_ranking(state, read_details(made.body)),
    )


def _api_decision(work: UnitOfWork, state: LoggedState, event: EventRow) -> api_types.Decision:
    step, arm = event.step or 0, state.bandit.names[event.arm or 0]
    details = read_details(event.body)
    return api_types.Decision(
        work.store.decision_ids().make(state.bandit_number, step),
        arm,
        step,
        event.value,
        holdout=details.holdout,
        ranking=_api_ranking(state, details),
    )


def _api_ranking(state: LoggedState, details: DecisionDetails) -> list[api_types.RankedArm] | None:
    if details.ranking is None:
        return None
    propensities: Sequence[float | None] = details.propensities or [None] * len(details.ranking)
    pairs = zip(details.ranking, propensities, strict=True)
    return [api_types.RankedArm(state.bandit.names[column], propensity) for column, propensity in pairs]


def remove_expired_units(work: UnitOfWork) -> None:
    """Remove the units that keep their arm no longer, up to a number per bandit.

    With a holdout they stay: the lift counts each of them once.
    """
    for bandit_number, state in work.states.items():
        if state.settings.sticky_for is not None and state.settings.holdout is None:
            remove_units(work.store, bandit_number, work.now(state) - state.settings.sticky_for, REMOVED_UNITS)
