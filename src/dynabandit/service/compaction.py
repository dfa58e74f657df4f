"""Compaction: old events of a log are replaced by the state that they lead to, from which the log then starts."""

from typing import NamedTuple

from dynabandit.service.domain.applied_changes import learns
from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.events import CLOSE, DECISION, LEARN, METRIC, POLICY, REWARD, SHADOW, read_metric_key
from dynabandit.service.domain.learning import AT_ONCE, SETTLED
from dynabandit.service.domain.log_start import start_event, state_at_start
from dynabandit.service.errors import ReplayMismatchError
from dynabandit.service.stores import Store
from dynabandit.service.stores.base import PAGE
from dynabandit.service.stores.due_decisions import reward_ages

REMOVED_ROWS = 1_000  # events that one transaction checks and removes: a service that uses the store waits for it
# Decisions that have no reward yet, or that the policy or the lift has not learned yet, are still needed, and so are
# their rewards
REMOVE = (
    "DELETE FROM events WHERE bandit = ? AND sequence > ? AND sequence <= ? AND (kind = ? OR (kind IN (?, ?)"
    " AND settles <= ?) OR (kind = ? AND step <= ? AND EXISTS (SELECT 1 FROM events r WHERE r.bandit = events.bandit"
    " AND r.settles = events.step AND r.sequence <= ?)))"
)
METRICS = "SELECT sequence, key FROM events WHERE bandit = ? AND sequence > ? AND sequence <= ? AND kind = ?"
NEXT_ROWS = (
    "SELECT max(sequence) FROM (SELECT sequence FROM events WHERE bandit = ? AND sequence > ? AND sequence <= ?"
    " ORDER BY sequence LIMIT ?) AS following"
)
# The body of the first of several decisions is or begins with their number; some of the others may have been removed
FORGET_KEYS = (
    "UPDATE events SET key = NULL WHERE bandit = ? AND sequence > ? AND sequence <= ? AND key IS NOT NULL"
    " AND body IS NOT NULL AND (body NOT LIKE ? OR body LIKE ?)"
)
HAS_FIELDS, HAS_COUNT = "{%", '{"count":%'


class Compacted(NamedTuple):
    """What became of one log: it starts after event `start`, or `problem` says why nothing was removed."""

    name: str
    start: int
    removed: int
    problem: str | None


def compact(store: Store, before: float, now: float) -> list[Compacted]:
    """Remove the events before a wall-clock time from all logs; a service may use the store meanwhile."""
    return [compact_bandit(store, row.number, row.name, before, now) for row in store.all_bandits()]


def compact_bandit(store: Store, bandit_number: int, name: str, before: float, now: float) -> Compacted:
    """Verify the events before a time by a replay, make the state after them the start of the log, and remove them.

    If the process ends in between, the next compaction removes the rest.
    """
    try:
        state = state_at_start(store, bandit_number)
        first = state.sequence
        for event in store.log(bandit_number, first):
            if event.wall >= before:
                break
            state.apply(event)
    except ReplayMismatchError as error:
        return Compacted(name, 0, 0, str(ReplayMismatchError(name, error.sequence, error.problem)))
    if state.sequence == 0:
        return Compacted(name, 0, 0, None)
    if state.sequence > first:
        _learn_settling_age(store, state)
        problem = _save_start(store, state, now)
        if problem is not None:
            return Compacted(name, first, 0, problem)
    return Compacted(name, state.sequence, _remove(store, state), None)


def _learn_settling_age(store: Store, state: LoggedState) -> None:
    """Learn from the rewards that are about to be removed when rewards come."""
    window = state.settings.reward_window
    while window is not None and state.learner.rule == SETTLED:
        found = reward_ages(store, state.bandit_number, state.settling.read_to, PAGE)
        known = [one for one in found if one[0] <= state.sequence]
        state.settling.add(known, state.settings.default_reward, window)
        if not known or len(known) < len(found):
            break


def _save_start(store: Store, state: LoggedState, now: float) -> str | None:
    """Make a state the start of its log, unless a later policy has learned the rewards before it; return why not."""
    bandit_number = state.bandit_number
    store.begin({bandit_number: state.sequence})  # no policy can be changed meanwhile
    changed = [
        event.sequence for event in store.log(bandit_number, state.sequence, (POLICY, SHADOW)) if learns(event.body)
    ]
    if changed or bandit_number not in store.alive([bandit_number]):
        store.commit(())
        if not changed:
            return "it was deleted"
        return f"the policy that was set by event {changed[-1]} learned these rewards; once it is as old, they can go"
    store.write(
        [
            ("DELETE FROM events WHERE bandit = ? AND sequence = 0", (bandit_number,)),
            *store.insert_statements([start_event(state, now)]),
            ("DELETE FROM snapshots WHERE bandit = ? AND sequence < ?", (bandit_number, state.sequence)),
        ]
    )
    store.commit(())
    return None


def _remove(store: Store, state: LoggedState) -> int:
    """Remove the events before the start of the log that nothing needs any more; return how many there were.

    The last one stays: a process whose state is older finds it, and notices that the events before it are missing.
    """
    bandit_number, last = state.bandit_number, state.sequence
    learned_to = state.bandit.step if state.learner.rule == AT_ONCE else state.learner.learned_to
    if state.learner.rule == SETTLED and state.monitoring.lift is not None:
        learned_to = min(learned_to, state.learner.final_to)
    count = ("SELECT count(*) FROM events WHERE bandit = ? AND sequence > 0 AND sequence <= ?", (bandit_number, last))
    before = store.rows(*count)[0][0]
    after = 0
    while (to := store.rows(NEXT_ROWS, (bandit_number, after, last - 1, REMOVED_ROWS))[0][0]) is not None:
        remove = (bandit_number, after, to, LEARN, REWARD, CLOSE, learned_to, DECISION, learned_to, last)
        store.write([(REMOVE, remove), (FORGET_KEYS, (bandit_number, after, to, HAS_FIELDS, HAS_COUNT))])
        _remove_metrics(store, bandit_number, after, to)
        after = to
    removed: int = before - store.rows(*count)[0][0]
    return removed


def _remove_metrics(store: Store, bandit_number: int, after: int, to: int) -> None:
    """Remove the metrics of decisions that are gone; those of the others say that they were counted."""
    steps = {
        sequence: read_metric_key(key)[0] for sequence, key in store.rows(METRICS, (bandit_number, after, to, METRIC))
    }
    stays = "SELECT step FROM events WHERE bandit = ? AND step IN ({})"
    kept = {step for (step,) in store.rows_in(stays, sorted(set(steps.values())), bandit_number)}
    gone = [sequence for sequence, step in steps.items() if step not in kept]
    store.rows_in("DELETE FROM events WHERE bandit = ? AND sequence IN ({})", gone, bandit_number)
