"""The decisions of local deciders, made again while their log is replayed."""

import heapq
from collections import Counter

import msgspec

from dynabandit.bandit import Bandit
from dynabandit.service.domain.bandit_state import RULES, LoggedState
from dynabandit.service.domain.decision_details import DecisionDetails, read_details
from dynabandit.service.domain.events import DECISION, EventRow
from dynabandit.service.domain.local_bandit import LocalBandit
from dynabandit.service.stores import Store
from dynabandit.service.stores.local_keys import local_bodies

MAX_COPIES = 256 * 2**20  # bytes of the copies of states that a replay keeps
MAX_RUNS = 100_000  # whose decisions are known before they are replayed: each takes some hundred bytes


class Run:
    """The decisions of a decider from one state, and the bandit that makes them again, if there is one."""

    def __init__(self, base: int, bandit: LocalBandit | None, left: int) -> None:
        self.base, self.bandit, self.left = base, bandit, left


class LocalReplay:
    """Makes local decisions again from copies of the states from which they were made, kept while they are needed.

    It reads the log ahead of the replay, to know which states are needed, as far as there are `MAX_RUNS` runs.

    Decisions cannot be made again if their state is before the start of a compacted log or decides by older rules, if
    earlier decisions from the same state are missing, if there was no room for a copy, or if they are so far behind
    their state that it was not known to be needed: `taken` counts them, unless they were stored by older rules. Where
    the log has another choice than the replay, `different` counts the decision, and those of its decider that follow
    from the same state are taken from the log. So a decider that is wrong changes nothing for others.
    """

    def __init__(self, store: Store, state: LoggedState) -> None:
        """Prepare a replay that starts with a state."""
        self._ahead = map(local_details, local_bodies(store, state.bandit_number, state.sequence))
        self._left = Counter[tuple[str, int]]()  # known decisions of runs that have not begun, by decider and state
        self._waiting = Counter[int]()  # the same by state
        self._room = Room()
        self._bases: dict[int, Bandit] = {}
        self._runs: dict[str, Run] = {}
        self._asked_for = 0  # the latest local decision
        self.made, self.taken, self.different = 0, 0, 0
        self.first_different = 0  # its event
        self.keep(state)

    def keep(self, state: LoggedState) -> None:
        """Keep a copy of a state from which decisions will be made; before the first event there is none."""
        self._look_ahead()
        base, decisions = state.sequence, self._waiting[state.sequence]
        if base > 0 and decisions > 0 and state.rules == RULES and self._has_room(base, state.bandit, decisions):
            self._bases[base] = state.bandit.copy()

    def _look_ahead(self) -> None:
        """Read the next decisions of the log, unless too many runs are known: then all up to the next one are."""
        while len(self._left) + len(self._runs) < MAX_RUNS:
            try:
                details = next(self._ahead)
            except StopIteration:
                return
            if details is None:
                continue
            decider, base = details.decider or "", details.base
            run = self._runs.get(decider)
            if run is not None and run.base == base:
                run.left += 1
            else:
                self._left[decider, base] += 1
                self._waiting[base] += 1

    def _has_room(self, key: int | str, bandit: Bandit, decisions: int) -> bool:
        """Whether there is room for another copy; remove those for which there is none any more."""
        dropped = self._room.take(key, bandit.nbytes, decisions)
        for other in dropped:
            if isinstance(other, int):
                self._bases.pop(other, None)
            elif other != key:
                self._runs[other].bandit = None
        return key not in dropped

    def bandit(self, state: LoggedState, decision: EventRow) -> Bandit | None:
        """Return the bandit that makes a decision, before it is applied to a state; None if it cannot be made again."""
        details = local_details(decision.body)
        if details is None:
            return state.bandit
        local = self._run(state, decision.sequence, details).bandit
        return None if local is None else local.bandit

    def _run(self, state: LoggedState, sequence: int, details: DecisionDetails) -> Run:
        decider, base = details.decider or "", details.base
        if sequence > self._asked_for:
            self._asked_for = sequence
            run, progress = self._runs.get(decider), state.deciders.get(decider)
            if run is None or run.base != base:
                run = self._begin(state, decider, base)
            if details.local_step != (1 if progress is None else progress.step + 1):
                self._give_up(decider)
        return self._runs[decider]

    def _begin(self, state: LoggedState, decider: str, base: int) -> Run:
        """Begin the decisions of a decider from a state.

        There is no bandit for a decider that returns to an earlier state, or to one of which a run has ended, because
        more decisions were not known.
        """
        self._room.free(decider)
        left, progress = self._left.pop((decider, base), 0), state.deciders.get(decider)
        found, local = self._bases.get(base), None
        is_new = progress is None or progress.base < base
        if found is not None and left and is_new and self._has_room(decider, found, left):
            local = LocalBandit(found, state.bandit_number, state.settings.holdout, decider, base)
        self._waiting[base] -= left
        if self._waiting[base] <= 0:
            del self._waiting[base]
            self._bases.pop(base, None)
            self._room.free(base)
        run = self._runs[decider] = Run(base, local, left)
        return run

    def _give_up(self, decider: str) -> None:
        """Take the other decisions of a run from the log."""
        self._runs[decider].bandit = None
        self._room.free(decider)

    def check(self, state: LoggedState, event: EventRow) -> bool:
        """Make a local decision again before its event is applied to a state; return whether the log has the same."""
        details = local_details(event.body) if event.kind == DECISION else None
        if details is None or details.decider is None:
            return True
        run = self._run(state, event.sequence, details)
        is_same = run.bandit is not None and is_made_by(run.bandit, event, details)
        if is_same:
            self.made += 1
        elif run.bandit is not None:
            self.different += 1
            self.first_different = self.first_different or event.sequence
            self._give_up(details.decider)
        else:
            self.taken += state.rules == RULES  # the state counts decisions by older rules
        run.left -= 1
        if run.left <= 0:
            self._room.free(details.decider)
            del self._runs[details.decider]
        return is_same


class Room:
    """Which copies are kept, at most `MAX_COPIES` bytes: those for the fewest decisions are dropped first.

    Of several for as many decisions the oldest one is dropped first: most are needed soon after they were made.

    Examples
    --------
    >>> room = Room()
    >>> room.take(7, MAX_COPIES // 2, 30), room.take("decider", MAX_COPIES // 2, 20), room.take(9, 1, 25)
    ([], [], ['decider'])
    >>> room.take(11, MAX_COPIES // 2, 10)
    [11]
    """

    def __init__(self) -> None:
        self._kept: dict[int | str, tuple[int, int, int]] = {}  # copy -> decisions, its number and bytes
        self._order: list[tuple[int, int, int | str]] = []  # a heap, also of copies that are not kept any more
        self._bytes, self._number = 0, 0

    def take(self, copy: int | str, size: int, decisions: int) -> list[int | str]:
        """Note another copy, and return those that must be dropped, perhaps this one."""
        self._number, self._bytes, dropped = self._number + 1, self._bytes + size, []
        self._kept[copy] = decisions, self._number, size
        heapq.heappush(self._order, (decisions, self._number, copy))
        if len(self._order) > 1000 + 2 * len(self._kept):
            self._order = sorted((*one[:2], key) for key, one in self._kept.items())
        while self._bytes > MAX_COPIES:
            *entry, least = heapq.heappop(self._order)
            if entry == [*self._kept.get(least, ())[:2]]:
                self.free(least)
                dropped.append(least)
        return dropped

    def free(self, copy: int | str) -> None:
        """Note that a copy is not kept any more, if it was."""
        self._bytes -= self._kept.pop(copy, (0, 0, 0))[2]


def is_made_by(local: LocalBandit, event: EventRow, details: DecisionDetails) -> bool:
    """Let a bandit make a decision of the log again, and return whether it is the same."""
    try:
        again = local.decide(details.local_step, details.context, details.unit)
    except (TypeError, ValueError):  # it cannot decide, for example because every arm is paused
        return False
    return again == (event.arm, details.holdout)


def local_details(body: str | None) -> DecisionDetails | None:
    """Return the details of a local decision; None for other decisions, and for a damaged body, which `apply` finds."""
    try:
        details = read_details(body)
    except msgspec.DecodeError:
        return None
    return None if details.decider is None else details
