"""Rewards: which one counts, which one is late, and what a decision gets when its window ends without one."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from dynabandit.bandit.live_policies import models_size
from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.decision_details import read_details
from dynabandit.service.domain.events import CLOSE, LEARN, REWARD, LoggedDecision
from dynabandit.service.domain.learning import AT_ONCE, SETTLED
from dynabandit.service.domain.names import in_namespace
from dynabandit.service.domain.steps import Steps
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.errors import (
    ConflictError,
    DomainError,
    InvalidValueError,
    LateRewardError,
    NotFoundError,
    ReplayMismatchError,
)
from dynabandit.service.stores.base import PAGE
from dynabandit.service.stores.due_decisions import next_decision_time, older_decisions, open_decisions, reward_ages
from dynabandit.validation import listed

RewardError = DomainError | ReplayMismatchError
LOOKED_UP = 500  # decisions whose rewards came before are read from the store at a time: each may have a large context
SETTLE_PAGE = 1_000  # decisions that are learned, and whose window is checked, at a time: about 30 ms
LEARNED_AT_ONCE = 400  # rewards of a request, without models: some milliseconds; more are learned in steps
MODEL_NUMBERS = 1_000  # numbers of the models of an arm that take as long to learn as a reward without models


class RewardOfDecision(NamedTuple):
    """A reward, its decision, and the arm of a ranking that it is for."""

    decision: tuple[int, int] | None  # the bandit and the step; None if there is none
    value: float
    arm: str | None = None  # by default the first one


def reward(
    work: UnitOfWork, bandit_number: int, step: int, value: float, namespace: str | None = None, arm: str | None = None
) -> None:
    """Count a reward once; the same reward again changes nothing, another one or a late one is an error.

    With a namespace, decisions of bandits outside of it do not exist. `arm` may be another arm of a ranking than the
    first one.
    """
    state = bandit_of(work, bandit_number, step, namespace)
    _check_value(state, value, "reward")
    _count(work, state, step, value, arm)


def takes_long(work: UnitOfWork, bandit_numbers: Iterable[int]) -> bool:
    """Whether rewards of these bandits, one of each, take so long that they are learned in steps."""
    counts = Counter(bandit_numbers)
    return sum(count * learning_cost(work.states[one]) for one, count in counts.items() if one in work.states) > (
        LEARNED_AT_ONCE
    )


def learning_cost(state: LoggedState) -> int:
    """Return how many rewards without models take as long as one of a bandit."""
    return max(1, sum(models_size(one.policy, 1, one.context) for one in state.bandits) // MODEL_NUMBERS)


def reward_many(
    work: UnitOfWork, given: Sequence[RewardOfDecision], namespace: str | None
) -> Steps[list[RewardError | None]]:
    """Count rewards as `reward` does, with a step for each, and return the error of each.

    A value that is not valid rejects all.
    """
    states: dict[int, LoggedState | None] = {}
    damaged: dict[int, ReplayMismatchError] = {}
    for bandit_number in {one.decision[0] for one in given if one.decision is not None}:
        try:
            states[bandit_number] = _find_bandit(work, bandit_number, namespace)
        except ReplayMismatchError as error:
            states[bandit_number], damaged[bandit_number] = None, error
    for place, (found, value, _) in enumerate(given):
        if found is not None and (state := states[found[0]]) is not None:
            _check_value(state, value, "rewards[{}].reward", place)
    results: list[RewardError | None] = []
    for place, (found, value, arm) in enumerate(given):
        if place % LOOKED_UP == 0:
            _look_up(work, states, given[place : place + LOOKED_UP])
        if found is not None and found[0] in damaged:
            results.append(damaged[found[0]])
            continue
        try:
            state = None if found is None else states[found[0]]
            if found is None:
                raise NotFoundError
            if state is None:
                raise _no_decision(work, *found)
            _count(work, state, found[1], value, arm)
            results.append(None)
        except DomainError as error:
            results.append(error)
        yield
    return results


def _look_up(work: UnitOfWork, states: dict[int, LoggedState | None], given: Sequence[RewardOfDecision]) -> None:
    """Read the decisions that are not in memory, so that each needs no statement of its own."""
    asked = {one.decision for one in given if one.decision is not None} - work.settled.keys()
    known = ((state, found) for found in asked if (state := states[found[0]]) is not None)
    stored = sorted(found for state, found in known if found[1] <= state.bandit.step and found[1] not in state.open)
    if len(stored) > 1:
        work.look_up_decisions(stored)


def _check_value(state: LoggedState, value: float, where: str, place: int = 0) -> None:
    """Raise an error if a reward is not one of the law of its bandit."""
    accepted = state.bandit.rewards
    if not accepted.contains(value):
        raise InvalidValueError(f"{where.format(place)} must be {accepted.description}, got {value:g}")


def _count(work: UnitOfWork, state: LoggedState, step: int, value: float, arm: str | None = None) -> None:
    """Count a valid reward once."""
    value += 0.0  # turns -0.0 into 0.0, which every store returns unchanged
    bandit_number = state.bandit_number
    found = find_decision(work, state, step)
    taken = found.arm if arm is None else _ranked_column(state, found, arm)
    if found.kind is None and _is_late(work, state, found.time):
        _close(work, state, [(step, found.arm)])
        raise _late_reward(work, state, step)
    if found.kind is None:
        now, wall = work.now(state), work.clock.wall()
        body = None if taken == found.arm else json.dumps({"chosen": found.arm})
        work.events.append(state.append(REWARD, now, wall, settles=step, arm=taken, value=value, body=body))
        work.settled[bandit_number, step] = found._replace(kind=REWARD, value=value, taken=taken)
    elif found.kind == CLOSE:
        raise _late_reward(work, state, step)
    elif found.value != value or found.taken != taken:
        decision, names = work.store.decision_ids().make(bandit_number, step), state.bandit.names
        there, given = f"{found.value:g}", f"{value:g}"
        if found.taken is not None and found.taken != taken:
            there, given = f"{there} for arm {names[found.taken]!r}", f"{given} for arm {names[taken]!r}"
        raise ConflictError(f"decision {decision!r} has the reward {there} already, got {given}")


def _ranked_column(state: LoggedState, found: LoggedDecision, arm: str) -> int:
    """Return the column of an arm of the ranking of a decision, or raise an error if it is none."""
    names = state.bandit.names
    ranking = read_details(found.body).ranking or [found.arm]
    for column in ranking:
        if names[column] == arm:
            return column
    ranked = listed([names[column] for column in ranking])
    raise InvalidValueError(f"arm must be one of the ranking of the decision, {ranked}, got {arm!r}")


def bandit_of(work: UnitOfWork, bandit_number: int, step: int, namespace: str | None) -> LoggedState:
    """Return the bandit of a decision, or raise an error if it does not exist or is not in the namespace."""
    state = _find_bandit(work, bandit_number, namespace)
    if state is None:
        raise _no_decision(work, bandit_number, step)
    return state


def _find_bandit(work: UnitOfWork, bandit_number: int, namespace: str | None = None) -> LoggedState | None:
    """Return a bandit that exists and is in the namespace, or None."""
    if bandit_number not in work.states:
        found = None if bandit_number in work.nonexistent else work.store.bandit(bandit_number)
        if found is None or found.deleted or not in_namespace(found.name, namespace):
            return None
    state = work.state(bandit_number)
    return None if state.deleted or not in_namespace(state.settings.name, namespace) else state


def find_decision(work: UnitOfWork, state: LoggedState, step: int) -> LoggedDecision:
    """Return a decision, or raise an error if there is none or it was removed from the log."""
    decided = state.open.get(step)
    if decided is not None:
        return decided
    if step > state.bandit.step:
        raise _no_decision(work, state.bandit_number, step)
    found = work.find_decision(state.bandit_number, step)
    if found is None:  # only settled decisions are removed from the log
        decision = work.store.decision_ids().make(state.bandit_number, step)
        raise LateRewardError(f"decision {decision!r} has a reward or was closed, and was removed from the log since")
    return found


def _is_late(work: UnitOfWork, state: LoggedState, decided: float) -> bool:
    window = state.settings.reward_window
    return window is not None and work.now(state) - decided > window + work.clock.grace()


def _close(work: UnitOfWork, state: LoggedState, decisions: list[tuple[int, int]]) -> None:
    """End the windows of decisions, each a step and a column: they get the default reward, or none."""
    default = state.settings.default_reward
    if default is not None:
        default += 0.0
    now, wall = work.now(state), work.clock.wall()
    for step, column in decisions:
        value = None if step in state.deferred else default
        work.events.append(state.append(CLOSE, now, wall, settles=step, arm=column, value=value))
        work.settled[state.bandit_number, step] = LoggedDecision(column, now, CLOSE, value, taken=column)


def settle_due(work: UnitOfWork, bandit_number: int, page: int = SETTLE_PAGE) -> bool:
    """Learn a page of held decisions and close a page of those whose window has ended; return whether more may be due.

    Only decisions that are due are learned and closed.
    """
    state = _find_bandit(work, bandit_number)
    if state is None:  # it was deleted meanwhile
        return False
    window = state.settings.reward_window
    if window is None:
        state.due_at = float("inf")
        return False
    page = max(1, page // learning_cost(state))
    now, window_end = work.now(state), window + work.clock.grace()  # read once: a decision is learned, then closed
    at_once = state.learner.rule == AT_ONCE
    next_learned = float("inf") if at_once else _learn_held(work, state, now, window, window_end, page)
    next_closed = _close_expired(work, state, now, window_end, page)
    state.due_at = min(next_learned, next_closed)
    return state.due_at == 0.0


def _learn_held(
    work: UnitOfWork, state: LoggedState, now: float, window: float, window_end: float, limit: int
) -> float:
    """Learn a page of the held decisions that have reached the settling age; count those for the lift that are final.

    `window_end` is the age at which windows end now, which may be later than `window`. Return the time at which the
    next decision will reach it: 0 if it may have done so already, infinity if none is held.
    """
    bandit_number, age, learner = state.bandit_number, window, state.learner
    if learner.rule == SETTLED:
        most = max(PAGE, limit)
        rewards = reward_ages(work.store, bandit_number, state.settling.read_to, most)
        state.settling.add(rewards, state.settings.default_reward, window)
        if len(rewards) == most:
            return 0.0
        age = state.settling.seconds(window, now)
    to, next_learned = _find_due(work, state, now, learner.learned_to, window_end if age == window else age, limit)
    if age == window and to < state.bandit.step:
        next_learned = min(next_learned, state.settling.next_look(now))
    first, last = learner.learned_to, to
    body: dict[str, Any] = {"to": to, "age": age}
    if learner.rule == SETTLED and state.monitoring.lift is not None:
        final, next_final = _find_due(work, state, now, learner.final_to, window_end, limit)
        first, last, next_learned = min(first, learner.final_to), max(last, final), min(next_learned, next_final)
        body["final"] = final
    if to > learner.learned_to or body.get("final", 0) > learner.final_to:
        skip = sorted(step for step in state.deferred if first < step <= last)
        work.append(state, LEARN, {**body, **({"skip": skip} if skip else {})})
    return next_learned


def _find_due(
    work: UnitOfWork, state: LoggedState, now: float, after: int, age: float, limit: int
) -> tuple[int, float]:
    """Return the last step of the decisions after a step, at most `limit`, that are older than an age, or that step.

    Also return the time at which the next one will be: 0 if it may be already, infinity if there is none. The times of
    a log never decrease.
    """
    count, to = older_decisions(work.store, state.bandit_number, after, limit, now, age)
    if count == limit:
        return to, 0.0
    decided = next_decision_time(work.store, state.bandit_number, to)
    return to, float("inf") if decided is None else decided + age


def _close_expired(work: UnitOfWork, state: LoggedState, now: float, window_end: float, limit: int) -> float:
    """Close a page of the decisions whose window has ended; return the time at which the next one will end."""
    to, next_closed = _find_due(work, state, now, state.settled_to, window_end, limit)
    _close(work, state, open_decisions(work.store, state.bandit_number, state.settled_to, to))
    state.settled_to = to
    return min(next_closed, now + window_end)  # the windows of later decisions end later


def _no_decision(work: UnitOfWork, bandit_number: int, step: int) -> NotFoundError:
    return NotFoundError(f"there is no decision {work.store.decision_ids().make(bandit_number, step)!r}")


def _late_reward(work: UnitOfWork, state: LoggedState, step: int) -> LateRewardError:
    window, decision = state.settings.reward_window, work.store.decision_ids().make(state.bandit_number, step)
    return LateRewardError(f"a reward of decision {decision!r} must come within {window:g} seconds, and they are over")
