"""The decisions of local deciders, made again while their log is replayed."""

from collections import Counter

import msgspec

from dynabandit.bandit import Bandit
from dynabandit.service.domain.bandit_state import RULES, LoggedState
from dynabandit.service.domain.decision_details import DecisionDetails, read_details
from dynabandit.service.domain.events import DECISION, EventRow
from dynabandit.service.domain.local_bandit import LocalBandit
from dynabandit.service.errors import ReplayMismatchError
from dynabandit.service.stores import Store
from dynabandit.service.stores.local_keys import local_bodies


class LocalReplay:
    """Makes local decisions again from copies of the states from which they were made, kept while they are needed.

    Decisions cannot be made again if their state is before the start of a compacted log or decides by older rules, or
    if earlier decisions from the same state are missing: `taken` counts them, unless they were stored by older rules.
    """

    def __init__(self, store: Store, state: LoggedState) -> None:
        """Prepare a replay that starts with a state."""
        found = map(local_details, local_bodies(store, state.bandit_number, state.sequence))
        self._left = Counter((one.decider, one.base) for one in found if one)  # decisions of a decider from a state
        self._users = Counter(base for _, base in self._left if base)  # deciders that will use a state
        self._bases: dict[int, Bandit] = {}
        self._deciding: dict[str, LocalBandit | None] = {}
        self._asked_for = 0  # the latest local decision
        self.made, self.taken = 0, 0
        self.keep(state)

    def keep(self, state: LoggedState) -> None:
        """Keep a copy of a state from which decisions will be made."""
        if state.sequence in self._users and state.rules == RULES:
            self._bases[state.sequence] = state.bandit.copy()

    def bandit(self, state: LoggedState, decision: EventRow) -> Bandit | None:
        """Return the bandit that makes a decision, before it is applied to a state; None if it cannot be made again."""
        details = local_details(decision.body)
        if details is None:
            return state.bandit
        local = self._local_bandit(state, decision.sequence, details)
        return None if local is None else local.bandit

    def _local_bandit(self, state: LoggedState, sequence: int, details: DecisionDetails) -> LocalBandit | None:
        decider, base = details.decider or "", details.base
        if sequence > self._asked_for:
            self._asked_for = sequence
            progress = state.deciders.get(decider)
            if progress is None or progress.base != base:
                self._deciding[decider] = self._new_local_bandit(state, decider, base)
            if details.local_step != (1 if progress is None else progress.step + 1):
                self._deciding[decider] = None
        return self._deciding.get(decider)

    def _new_local_bandit(self, state: LoggedState, decider: str, base: int) -> LocalBandit | None:
        found = self._bases.get(base)
        self._users[base] -= 1
        if self._users[base] <= 0:
            self._bases.pop(base, None)
        holdout, bandit_number = state.settings.holdout, state.bandit_number
        return None if found is None else LocalBandit(found, bandit_number, holdout, decider, base)

    def check(self, state: LoggedState, event: EventRow) -> None:
        """Make a local decision again before its event is applied to a state, and compare."""
        details = local_details(event.body) if event.kind == DECISION else None
        if details is None or details.decider is None:
            return
        local = self._local_bandit(state, event.sequence, details)
        if local is None:
            self.taken += state.rules == RULES  # the state counts decisions by older rules
        else:
            self._make(local, state, event, details)
        self._left[details.decider, details.base] -= 1
        if not self._left[details.decider, details.base]:
            self._deciding.pop(details.decider, None)

    def _make(self, local: LocalBandit, state: LoggedState, event: EventRow, details: DecisionDetails) -> None:
        try:
            column, in_holdout = local.decide(details.local_step, details.context, details.unit)
        except (TypeError, ValueError) as error:
            problem = f"decider {details.decider} could not decide: {str(error)[:200]}"
            raise ReplayMismatchError(state.settings.name, event.sequence, problem) from error
        if (column, in_holdout) != (event.arm, details.holdout):
            chosen = f"arm {state.bandit.names[column]!r}{' of the holdout' if in_holdout else ''}"
            problem = f"the log has another choice of decider {details.decider} than the replay, {chosen}"
            raise ReplayMismatchError(state.settings.name, event.sequence, problem)
        self.made += 1


def local_details(body: str | None) -> DecisionDetails | None:
    """Return the details of a local decision; None for other decisions, and for a damaged body, which `apply` finds."""
    try:
        details = read_details(body)
    except msgspec.DecodeError:
        return None
    return None if details.decider is None else details
