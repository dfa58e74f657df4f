"""Rewards: which one counts, which one is late, and what a decision gets when its window ends without one."""

from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.events import CLOSE, REWARD, LoggedDecision
from dynabandit.service.domain.names import decision_id, public_id
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.errors import ConflictError, InvalidValueError, LateRewardError, NotFoundError

EXPIRY_PAGE = 500  # decisions whose window is checked in one transaction


def check_reward(work: UnitOfWork, number: int, step: int, value: float, where: str = "reward") -> LoggedState:
    """Return the bandit of a decision, or raise an error if the reward is not one of its law."""
    state = _find_bandit(work, number, step)
    accepted = state.bandit.rewards
    if not accepted.contains(value):
        raise InvalidValueError(f"{where} must be {accepted.description}, got {value:g}")
    return state


def reward(work: UnitOfWork, number: int, step: int, value: float) -> None:
    """Count a reward once; the same reward again changes nothing, another one or a late one is an error."""
    value += 0.0  # turns -0.0 into 0.0, which every store returns unchanged
    state = check_reward(work, number, step, value)
    found = _find_decision(work, state, step)
    if found is None:
        raise _no_decision(number, step)
    if found.kind is None and _is_late(work, state, found.time):
        _close(work, state, step, found.arm)
        raise _late_reward(state, step)
    if found.kind is None:
        now, wall = work.now(state), work.clock.wall()
        work.events.append(state.append(REWARD, now, wall, settles=step, arm=found.arm, value=value))
        work.settled[number, step] = (REWARD, value)
    elif found.kind == CLOSE:
        raise _late_reward(state, step)
    elif found.value != value:
        decision = decision_id(public_id(number), step)
        raise ConflictError(f"decision {decision!r} has the reward {found.value:g} already, got {value:g}")


def _find_bandit(work: UnitOfWork, number: int, step: int) -> LoggedState:
    if number not in work.states:
        found = work.store.bandit(number)
        if found is None or found.deleted:
            raise _no_decision(number, step)
    state = work.state(number)
    if state.deleted:
        raise _no_decision(number, step)
    return state


def _find_decision(work: UnitOfWork, state: LoggedState, step: int) -> LoggedDecision | None:
    decided = state.open.get(step)
    if decided is not None:
        return LoggedDecision(*decided, None, None)
    if step > state.bandit.step:
        return None
    settled = work.settled.get((state.number, step))
    if settled is not None:
        return LoggedDecision(-1, 0.0, *settled)  # arm and time matter only before it is settled
    return work.store.decision(state.number, step)


def _is_late(work: UnitOfWork, state: LoggedState, decided: float) -> bool:
    window = state.settings.reward_window
    return window is not None and work.now(state) - decided > window


def _close(work: UnitOfWork, state: LoggedState, step: int, column: int) -> None:
    """End the window of a decision: it gets the default reward, or none."""
    value = state.settings.default_reward
    if value is not None:
        value += 0.0
    now, wall = work.now(state), work.clock.wall()
    work.events.append(state.append(CLOSE, now, wall, settles=step, arm=column, value=value))
    work.settled[state.number, step] = (CLOSE, value)


def close_expired(work: UnitOfWork, number: int) -> bool:
    """Close decisions whose window has ended; return whether there may be more of them."""
    state = _find_bandit(work, number, 0)
    window = state.settings.reward_window
    if window is None:
        state.due_at = float("inf")
        return False
    now = work.now(state)
    page = work.store.decisions_after(state.number, state.settled_to, EXPIRY_PAGE)
    for step, column, decided, settled in page:
        if not settled:
            if now - decided <= window:
                state.due_at = decided + window
                return False
            _close(work, state, step, column)
        state.settled_to = step
    is_full = len(page) == EXPIRY_PAGE
    state.due_at = 0.0 if is_full else now + window  # the windows of later decisions end later
    return is_full


def _no_decision(number: int, step: int) -> NotFoundError:
    return NotFoundError(f"there is no decision {decision_id(public_id(number), step)!r}")


def _late_reward(state: LoggedState, step: int) -> LateRewardError:
    window, decision = state.settings.reward_window, decision_id(public_id(state.number), step)
    return LateRewardError(f"a reward of decision {decision!r} must come within {window:g} seconds, and they are over")
