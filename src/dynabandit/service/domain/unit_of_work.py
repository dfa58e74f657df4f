"""The unit of work: the bandits in memory, and the events that the next commit will write.

Everything here runs in the writer's thread. Events of a batch are not in the store before its commit, so whatever a
later request of the same batch may ask the store for is kept here as well.
"""

import contextlib
import copy
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dynabandit.service.clock import Clock
from dynabandit.service.domain.bandit_state import DAMAGE, HASH_PREFIX, LoggedState
from dynabandit.service.domain.events import POLICY, SHADOW, EventRow, LoggedDecision, UnitRow
from dynabandit.service.domain.log_start import read_start, state_at_start
from dynabandit.service.errors import UNUSABLE, NotFoundError, ReplayMismatchError, WriteConflictError, unreadable
from dynabandit.service.stores import NEW_EVENTS_PAGE, Snapshot, Store
from dynabandit.service.stores.rows import BanditUnit
from dynabandit.service.stores.unit_table import find_units, unit_hash

SNAPSHOT_EVERY = 10_000  # events
LOADED_ROWS = 1_000  # that are read at a time
FEW_EVENTS = 200  # are applied faster than the snapshot after them is read


class UnitOfWork:
    """The states of all bandits in use, and the events of the current batch."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.states: dict[int, LoggedState] = {}
        self.names: dict[str, int] = {}
        self.damaged: dict[int, ReplayMismatchError] = {}  # bandits that cannot be loaded
        self.clear()

    def clear(self) -> None:
        """Start the next batch."""
        self.touched: set[int] = set()  # bandits whose state may be ahead of the store
        self.events: list[EventRow] = []
        self.created: list[tuple[int, str]] = []
        self.deleted: list[int] = []
        self.erased: list[int] = []
        self.erasing: list[int] = []
        self.settled: dict[tuple[int, int], LoggedDecision] = {}  # (bandit, step) -> decision with its reward
        self.stored_decisions: dict[tuple[int, int], LoggedDecision] = {}  # that were looked up in the store together
        self.keyed: dict[tuple[int, str], list[EventRow]] = {}  # (bandit, idempotency key) -> decisions
        self.unused_keys: set[tuple[int, str]] = set()  # that are known not to be in the store
        self.units: dict[BanditUnit, UnitRow] = {}  # the latest decisions for units, made in this batch
        self.stored_units: dict[BanditUnit, UnitRow | None] = {}  # that were looked up in the store
        self.nonexistent: set[int] = set()  # bandits that are known not to be in the store

    def apart(self, bandit_numbers: Iterable[int]) -> "UnitOfWork":
        """Return a unit of work with these of the states, and a batch of its own for `adopt`."""
        other = copy.copy(self)
        other.states = {bandit_number: self.states[bandit_number] for bandit_number in bandit_numbers}
        other.clear()
        return other

    def adopt(self, other: "UnitOfWork") -> None:
        """Add the batch of a unit of work that was made by `apart`, and has only decided or rewarded."""
        self.touched |= other.touched
        self.events += other.events
        self.settled |= other.settled
        self.keyed |= other.keyed
        self.units |= other.units

    def batch(self) -> tuple[Any, ...]:
        """Return what `Store.commit` writes."""
        return self.events, self.created, self.deleted, self.erased, self.erasing, self.units

    def discard(self) -> None:
        """Drop the batch and the states that it used; they are read again from the store."""
        for bandit_number in (*self.touched, *(bandit_number for bandit_number, _ in self.created)):
            self.states.pop(bandit_number, None)
        self.names.clear()
        self.clear()

    def find(self, name: str) -> int | None:
        """Return the number of the bandit with this name."""
        bandit_number = self.names.get(name)
        if bandit_number is None:
            bandit_number = self.store.find(name)
            if bandit_number is not None:
                self.names[name] = bandit_number
        return bandit_number

    def forget(self, bandit_numbers: set[int]) -> bool:
        """Forget bandits that are not in the store any more; return whether a name was looked up for one of them."""
        for bandit_number in bandit_numbers & self.damaged.keys():
            del self.damaged[bandit_number]
        names = [name for name, bandit_number in self.names.items() if bandit_number in bandit_numbers]
        for name in names:
            del self.names[name]
        return bool(names)

    def named(self, name: str) -> LoggedState:
        """Return the state of the bandit with this name."""
        bandit_number = self.find(name)
        if bandit_number is None:
            raise NotFoundError(f"there is no bandit {name!r}")
        try:
            state = self.state(bandit_number)
            is_gone = state.deleted
        except ReplayMismatchError:
            is_gone = not self.store.alive([bandit_number])
            if not is_gone:
                raise
        if is_gone:  # another process deleted or erased it since the name was looked up
            self.names.pop(name, None)
            raise WriteConflictError(f"bandit {name!r} was deleted meanwhile")
        return state

    def state(self, bandit_number: int) -> LoggedState:
        """Return the state of a bandit, loaded from its latest snapshot and the events after it where necessary."""
        self.touched.add(bandit_number)
        state = self.states.get(bandit_number)
        if state is None:
            if bandit_number in self.damaged:
                error = self.damaged[bandit_number]
                error.__traceback__ = None  # which would grow with each call
                raise error
            loading = CatchUp(self, self.latest(bandit_number))
            loading.run()
            state = self.states[bandit_number] = loading.state
        return state

    def latest(self, bandit_number: int) -> LoggedState:
        """Return the state in memory or the one of the latest snapshot, whichever is quicker to bring up to date."""
        snapshot = self.latest_snapshot(bandit_number)
        if snapshot is not None:
            return self.checked(bandit_number, snapshot, read_snapshot(bandit_number, snapshot, self.store))
        return self.states.get(bandit_number) or state_at_start(self.store, bandit_number)

    def latest_snapshot(self, bandit_number: int) -> Snapshot | None:
        """Return the latest snapshot, if it is quicker to bring up to date than the state in memory."""
        state = self.states.get(bandit_number)
        if state is not None:
            return self._snapshot_since(bandit_number, state.sequence + FEW_EVENTS)
        # A replica that was behind may have saved an older snapshot than the start of a compacted log
        return self._snapshot_since(bandit_number, read_start(self.store, bandit_number).sequence)

    def _snapshot_since(self, bandit_number: int, sequence: int) -> Snapshot | None:
        """Return the latest snapshot, if it is at least as recent as an event and of this version."""
        snapshot = self.store.snapshot(bandit_number, sequence)
        is_usable = snapshot is not None and snapshot.body and snapshot.state_hash.startswith(HASH_PREFIX)
        return snapshot if is_usable else None

    def was_compacted(self, state: LoggedState) -> bool:
        """Whether events that a state has not seen were removed from the log."""
        with contextlib.suppress(ReplayMismatchError):
            return read_start(self.store, state.bandit_number).sequence > state.sequence
        return False

    def restore(self, bandit_number: int, sequence: int) -> LoggedState | None:
        """Return the state of the latest snapshot, if it is at least as recent as an event and of this version."""
        snapshot = self._snapshot_since(bandit_number, sequence)
        return (
            None
            if snapshot is None
            else self.checked(bandit_number, snapshot, read_snapshot(bandit_number, snapshot, self.store))
        )

    def checked(self, bandit_number: int, snapshot: Snapshot, state: LoggedState | None) -> LoggedState:
        """Return the state that was read from a snapshot, or raise an error if that was damaged."""
        if state is None:
            problem = "the snapshot does not have its own hash"
            raise ReplayMismatchError(self.store.name_of(bandit_number), snapshot.sequence, problem)
        return state

    def catch_up(self, bandit_number: int, events: Sequence[EventRow], may_continue: Callable[[], bool]) -> bool:
        """Apply the events that other processes have added to the log of a bandit; return whether these were all.

        `events` are the first ones, up to `NEW_EVENTS_PAGE`.
        """
        new = CatchUp(self, self.states[bandit_number], iter(events) if len(events) < NEW_EVENTS_PAGE else None)
        try:
            is_complete = new.run(may_continue)
        except ReplayMismatchError:
            del self.states[bandit_number]
            if self.was_compacted(new.state):
                raise WriteConflictError("events were removed meanwhile") from None  # the state is then loaded again
            raise
        self.states[bandit_number] = new.state
        return is_complete

    def find_keyed(self, bandit_number: int, key: str) -> list[EventRow]:
        """Return the decisions of an idempotency key, in order."""
        found = self.keyed.get((bandit_number, key))
        if found is None:
            found = [] if (bandit_number, key) in self.unused_keys else self.store.keyed(bandit_number, key)
        return found

    def find_unit(self, bandit_number: int, unit: str) -> UnitRow | None:
        """Return the latest decision for a unit."""
        asked = bandit_number, unit_hash(unit)
        if asked in self.units:
            return self.units[asked]
        if asked not in self.stored_units:
            self.look_up_units(bandit_number, [unit])
        return self.stored_units[asked]

    def look_up_units(self, bandit_number: int, units: Iterable[str]) -> None:
        """Read the latest decisions for units from the store, all at once, so that `find_unit` knows them."""
        asked = {(bandit_number, unit_hash(unit)) for unit in units} - self.stored_units.keys()
        found = find_units(self.store, asked)
        self.stored_units.update((one, found.get(one)) for one in asked)

    def look_up_decisions(self, asked: Iterable[tuple[int, int]]) -> None:
        """Read decisions, each a bandit and a step, from the store, all at once, so that `find_decision` knows them."""
        steps: dict[int, list[int]] = {}
        for bandit_number, step in asked:
            steps.setdefault(bandit_number, []).append(step)
        self.stored_decisions = {
            (bandit_number, step): found
            for bandit_number, some in steps.items()
            for step, found in self.store.decisions(bandit_number, some).items()
        }

    def find_decision(self, bandit_number: int, step: int) -> LoggedDecision | None:
        """Return a decision with its reward, for one that is not open or too old to be in memory."""
        asked = bandit_number, step
        return self.settled.get(asked) or self.stored_decisions.get(asked) or self.store.decision(bandit_number, step)

    def snapshot(self, bandit_number: int) -> Snapshot:
        """Return a snapshot of a state."""
        return snapshot_of(self.state(bandit_number))

    def append(self, state: LoggedState, kind: str, body: dict[str, Any] | None = None, arm: int | None = None) -> None:
        """Add an event to the log of a bandit."""
        text = None if body is None else json.dumps(body)
        self.events.append(state.append(kind, self.now(state), self.clock.wall(), arm=arm, body=text))

    def now(self, state: LoggedState) -> float:
        """Return the time of the next event of a bandit; within a log, time never goes back."""
        return max(self.clock.now(), state.time)


def snapshot_of(state: LoggedState) -> Snapshot:
    """Return a snapshot of a state; for any thread, if no other one changes the state."""
    return Snapshot(state.sequence, state.saved_hash, state.to_json())


def read_snapshot(bandit_number: int, snapshot: Snapshot, log: Store) -> LoggedState | None:
    """Return the state of a snapshot, or None if it is damaged; it reads later events from `log`. For any thread."""
    try:
        state = LoggedState.from_json(bandit_number, snapshot.body or "", log)
        return state if state.saved_hash == snapshot.state_hash else None
    except UNUSABLE as error:
        raise unreadable(log.name_of(bandit_number), snapshot.sequence, error) from None
    except DAMAGE:
        return None


class CatchUp:
    """Brings a state up to date with the log, in as many steps as wanted.

    The state is changed, or replaced by one from a snapshot. After an error of the store it can be continued.
    """

    def __init__(self, work: UnitOfWork, state: LoggedState, events: Iterator[EventRow] | None = None) -> None:
        self._work = work
        self.state = state
        self.applied = 0  # events
        self._events = events  # those that were not applied yet, if they were read already

    def run(self, may_continue: Callable[[], bool] = lambda: True) -> bool:
        """Apply new events, at least one, while it may continue; return whether these were all."""
        work, bandit_number = self._work, self.state.bandit_number
        events = self._events or work.store.log(bandit_number, self.state.sequence, page=LOADED_ROWS)
        self._events = None  # an error of the store ends the iterator
        for event in events:
            if event.kind in (POLICY, SHADOW):  # it comes with a snapshot, which saves learning all rewards again
                restored = work.restore(bandit_number, event.sequence)
                if restored is not None:
                    self.state = restored
                    return self.run(may_continue)
            self.state.apply(event)
            self.applied += 1
            if not may_continue():
                self._events = events
                return False
        if self.state.sequence == 0:
            raise ReplayMismatchError(work.store.name_of(bandit_number), 1, "the log is empty")
        return True
