"""Verification: replay every log from its first event, and report its first difference."""

import itertools
from typing import NamedTuple

from dynabandit.service.domain.bandit_state import EARLIER_RELEASES, HASH_PREFIX, LoggedState
from dynabandit.service.domain.local_replay import LocalReplay
from dynabandit.service.domain.log_start import state_at_start
from dynabandit.service.domain.names import public_id
from dynabandit.service.errors import ReplayMismatchError
from dynabandit.service.stores import Store


class Verification(NamedTuple):
    """The result of replaying one log; `problem` is None if everything agrees."""

    name: str
    id: str
    start: int  # the log was compacted up to this event, so the replay started there; usually 0
    events: int
    steps: int
    made_by: dict[str, int]  # release -> decisions that are taken from the log; all others are made again
    hashes: int  # how many snapshots were compared
    state_hash: str
    problem: str | None
    local: int = 0  # decisions of local deciders that were made again
    local_taken: int = 0  # and those that were taken from the log, because the state behind them cannot decide again
    local_different: int = 0  # and those for which the log has another choice than the replay: the decider is wrong
    first_different: int = 0  # the event of the first of these
    imported: int = 0  # decisions that were made by another system: they are taken from the log


def verify(store: Store) -> list[Verification]:
    """Replay the logs of all bandits, deleted ones included."""
    rows = itertools.chain(store.all_bandits(), store.all_bandits(deleted=True))
    return [verify_bandit(store, row.number, row.name) for row in rows]


def verify_bandit(store: Store, bandit_number: int, name: str) -> Verification:
    """Replay one log: every decision by the current rules and every snapshot of them must come out again.

    Decisions by earlier rules are taken from the log, and their rewards must belong to them.
    """
    state, saved, compared = LoggedState(bandit_number, store), store.snapshot_hashes(bandit_number), 0
    problem, start, local = None, 0, None
    try:
        state = state_at_start(store, bandit_number)
        start = state.sequence
        local = LocalReplay(store, state)
        for event in store.log(bandit_number, start):
            local.check(state, event)
            state.apply(event)
            local.keep(state)
            if saved.get(event.sequence, "").startswith(HASH_PREFIX):
                if state.saved_hash != saved[event.sequence]:
                    problem = "the state that was saved here is not the replay's"
                    raise ReplayMismatchError(name, event.sequence, problem)
                compared += 1
        if state.sequence == 0:
            raise ReplayMismatchError(name, 1, "the log is empty")
        if state.settings.name != name:
            raise ReplayMismatchError(name, 1, f"it creates {state.settings.name!r}")
        if max(saved, default=0) > state.sequence:
            raise ReplayMismatchError(name, state.sequence + 1, "a state was saved after the end of the log")
    except ReplayMismatchError as error:
        problem = str(ReplayMismatchError(name, error.sequence, error.problem))  # a damaged log may not say whose it is
    steps, state_hash = (state.bandit.step, state.state_hash()) if state.sequence else (0, "")
    made_by = {EARLIER_RELEASES[rules - 1]: count for rules, count in state.taken.items()}
    of_deciders = (local.made, local.taken, local.different, local.first_different) if local else (0, 0, 0, 0)
    imported = max(0, min(steps, state.settings.imported))
    identity, found = public_id(bandit_number), (made_by, compared, state_hash, problem, *of_deciders, imported)
    return Verification(name, identity, start, state.sequence, steps, *found)
