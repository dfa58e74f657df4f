"""Verify: replay every log from its first event, and say where it first differs."""

from typing import NamedTuple

from dynabandit.service.domain.bandit_state import State
from dynabandit.service.domain.names import public_id
from dynabandit.service.errors import Differs
from dynabandit.service.stores import Store

__all__ = ["Verdict", "verify", "verify_bandit"]


class Verdict(NamedTuple):
    """What the replay of one log found; `problem` is None where all agrees."""

    name: str
    id: str
    events: int
    steps: int
    hashes: int  # of saved states that were met on the way
    state_hash: str
    problem: str | None


def verify(store: Store) -> list[Verdict]:
    """Replay the logs of all bandits, deleted ones included."""
    verdicts = []
    for deleted in (False, True):
        after = ""
        while page := store.bandits(deleted, after):
            verdicts += [verify_bandit(store, row.number, row.name) for row in page]
            after = page[-1].name
    return verdicts


def verify_bandit(store: Store, number: int, name: str) -> Verdict:
    """Replay one log: every decision must come out again, and every state that was saved."""
    state, saved, met = State(number, store.rewards_before), store.snapshot_hashes(number), 0
    problem = None
    try:
        for row in store.log(number):
            state.apply(row)
            if row.sequence in saved:
                if state.state_hash() != saved[row.sequence]:
                    raise Differs(name, row.sequence, "the state that was saved here is not the replay's")
                met += 1
        if state.sequence == 0:
            raise Differs(name, 1, "the log is empty")
        if state.settings.name != name:
            raise Differs(name, 1, f"it creates {state.settings.name!r}")
        if met < len(saved):
            raise Differs(name, state.sequence + 1, "a state was saved after the end of the log")
    except Differs as error:
        problem = str(Differs(name, error.sequence, error.problem))  # a damaged log may not say whose it is
    steps, state_hash = (state.bandit.step, state.state_hash()) if state.sequence else (0, "")
    return Verdict(name, public_id(number), state.sequence, steps, met, state_hash, problem)
