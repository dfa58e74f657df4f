"""The unit of work: the bandits in memory, and the events that the next commit will write.

Everything here runs in the writer's thread. Events of a batch are not in the store before its commit, so whatever a
later request of the same batch may ask the store for is kept here as well.
"""

from dynabandit.service.clock import Clock
from dynabandit.service.domain.bandit_state import DAMAGE, HASH_PREFIX, LoggedState
from dynabandit.service.domain.events import POLICY, EventRow
from dynabandit.service.errors import NotFoundError, ReplayMismatchError, WriteConflictError
from dynabandit.service.stores import Snapshot, Store

SNAPSHOT_EVERY = 10_000  # events


class UnitOfWork:
    """The states of all bandits in use, and the events of the current batch."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.states: dict[int, LoggedState] = {}
        self.names: dict[str, int] = {}
        self.clear()

    def clear(self) -> None:
        """Start the next batch."""
        self.events: list[EventRow] = []
        self.created: list[tuple[int, str]] = []
        self.deleted: list[int] = []
        self.erased: list[int] = []
        self.settled: dict[tuple[int, int], tuple[str, float | None]] = {}  # (bandit, step) -> kind, reward
        self.keyed: dict[tuple[int, str], list[EventRow]] = {}  # (bandit, idempotency key) -> decisions

    def discard(self) -> None:
        """Drop the batch and every state; they are read again from the store."""
        self.clear()
        self.states.clear()
        self.names.clear()

    def find(self, name: str) -> int | None:
        """Return the number of the bandit with this name."""
        number = self.names.get(name)
        if number is None:
            number = self.store.find(name)
            if number is not None:
                self.names[name] = number
        return number

    def named(self, name: str) -> LoggedState:
        """Return the state of the bandit with this name."""
        number = self.find(name)
        if number is None:
            raise NotFoundError(f"there is no bandit {name!r}")
        state = self.state(number)
        if state.deleted:  # by another process, since the name was looked up
            del self.names[name]
            raise WriteConflictError(f"bandit {name!r} was deleted meanwhile")
        return state

    def state(self, number: int) -> LoggedState:
        """Return the state of a bandit, loaded from its latest snapshot and the events after it where necessary."""
        state = self.states.get(number)
        if state is None:
            state = self._catch_up(self._restore(number, 0) or LoggedState(number, self.store))
            if state.sequence == 0:
                raise ReplayMismatchError(self.store.name_of(number), 1, "the log is empty")
            self.states[number] = state
        return state

    def _restore(self, number: int, sequence: int) -> LoggedState | None:
        """Return the state of the latest snapshot, if it is at least as recent as an event and of this version."""
        snapshot = self.store.snapshot(number)
        if snapshot is None or snapshot.body is None or snapshot.sequence < sequence:
            return None
        if not snapshot.state_hash.startswith(HASH_PREFIX):
            return None
        try:
            state = LoggedState.from_json(number, snapshot.body, self.store)
            is_whole = state.saved_hash == snapshot.state_hash
        except DAMAGE:
            is_whole = False
        if not is_whole:
            problem = "the snapshot does not have its own hash"
            raise ReplayMismatchError(self.store.name_of(number), snapshot.sequence, problem)
        return state

    def catch_up(self, number: int) -> None:
        """Apply the events that other processes have added to the log of a bandit."""
        self.states[number] = self._catch_up(self.states[number])

    def _catch_up(self, state: LoggedState) -> LoggedState:
        for event in self.store.log(state.number, state.sequence):
            if event.kind == POLICY:  # it comes with a snapshot, which saves learning all rewards again
                restored = self._restore(state.number, event.sequence)
                if restored is not None:
                    return self._catch_up(restored)
            state.apply(event)
        return state

    def snapshot(self, number: int) -> Snapshot:
        """Return a snapshot of a state."""
        state = self.state(number)
        return Snapshot(state.sequence, state.saved_hash, state.to_json())

    def now(self, state: LoggedState) -> float:
        """Return the time of the next event of a bandit; within a log, time never goes back."""
        return max(self.clock.now(), state.time)
