"""Snapshots: states that are saved now and then, so that a start need not replay the whole log."""

import functools
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor

from dynabandit.service.domain.unit_of_work import SNAPSHOT_EVERY, UnitOfWork, snapshot_of
from dynabandit.service.logging_setup import log
from dynabandit.service.stores import Snapshot

LARGE_STATE_ARMS = 500  # the state of this many arms is encoded in another thread
GROUP_SNAPSHOTS, GROUP_CHARACTERS = 100, 1 << 20  # that one transaction writes when the service stops


class SnapshotSaver:
    """Saves snapshots in the writer's thread; those of large states are encoded in another thread, from a copy.

    After a failure, which `on_failure` is told, only the next start takes longer.
    """

    def __init__(self, work: UnitOfWork, on_failure: Callable[[Exception], None]) -> None:
        self._work, self._on_failure = work, on_failure
        self._saved_at: dict[int, int] = {}  # bandit -> sequence of the latest snapshot
        self._encoding: dict[int, Future[Snapshot]] = {}
        self._wanted: set[int] = set()  # bandits of which another snapshot was asked for while one is encoded
        self._thread = ThreadPoolExecutor(1, "dynabandit-encode")

    def save_if_due(self, bandit_number: int) -> None:
        """Save a snapshot of a bandit if it has many events since its latest one."""
        state = self._work.states.get(bandit_number)
        if state is None or state.deleted or bandit_number in self._encoding:
            return
        saved = self._saved_at.setdefault(bandit_number, state.sequence - state.sequence % SNAPSHOT_EVERY)
        if state.sequence - saved >= SNAPSHOT_EVERY:
            self.save(bandit_number)

    def save(self, bandit_number: int) -> None:
        """Save a snapshot of a bandit, now or when its large state is encoded."""
        state = self._work.states.get(bandit_number)
        if state is None or len(state.bandit.names) < LARGE_STATE_ARMS:
            self._save(bandit_number, functools.partial(self._work.snapshot, bandit_number))
        elif bandit_number in self._encoding:
            self._wanted.add(bandit_number)
        else:
            self._encoding[bandit_number] = self._thread.submit(snapshot_of, state.copy())

    def save_encoded(self, busy: Collection[int] = ()) -> None:
        """Save the large snapshots that are encoded now, unless their bandits are gone; begin those wanted since.

        The states of `busy` bandits are ahead of the log: their turn comes later.
        """
        encoded_now = [one for one, snapshot in self._encoding.items() if snapshot.done() and one not in busy]
        for bandit_number in encoded_now:
            encoded, is_wanted = self._encoding.pop(bandit_number), bandit_number in self._wanted
            self._wanted.discard(bandit_number)
            if bandit_number in self._work.states:
                self._save(bandit_number, encoded.result)
            if is_wanted and bandit_number in self._work.states:
                self.save(bandit_number)

    def note_loaded(self, bandit_number: int, sequence: int) -> None:
        """Note that a bandit was loaded from what the store has of its state after an event."""
        self._saved_at.setdefault(bandit_number, sequence)

    def save_all(self, may_continue: Callable[[], bool]) -> None:
        """Save a snapshot of every state that changed since its latest one, while it may continue; end the thread.

        Those with the most events come first. The events of the others are in the log.
        """
        self._thread.shutdown(cancel_futures=True)
        self._wanted.clear()  # they are saved here
        self._encoding = {number: encoded for number, encoded in self._encoding.items() if not encoded.cancelled()}
        self.save_encoded()
        states = self._work.states
        new = {number: state.sequence - self._saved_at.get(number, 0) for number, state in states.items()}
        waiting = [number for number, events in new.items() if events > 0 and not states[number].deleted]
        waiting.sort(key=lambda number: -new[number])
        while waiting:
            if not may_continue() or not self._save_group(waiting):
                log.warning("snapshots left out", bandits=len(waiting))
                return

    def _save_group(self, waiting: list[int]) -> bool:
        """Save the first snapshots in one transaction, and remove them from those that wait; return whether it worked.

        A transaction for each would wait for the disk each time.
        """
        group: dict[int, Snapshot] = {}
        done = characters = 0
        for bandit_number in waiting[:GROUP_SNAPSHOTS]:
            done += 1
            try:
                group[bandit_number] = snapshot = self._work.snapshot(bandit_number)
            except Exception as error:
                self._on_failure(error)
                continue
            characters += len(snapshot.body or "")
            if characters > GROUP_CHARACTERS:
                break
        try:
            self._work.store.save_snapshots(group)
        except Exception as error:
            self._on_failure(error)
            return False
        del waiting[:done]
        return True

    def _save(self, bandit_number: int, make: Callable[[], Snapshot]) -> None:
        try:
            snapshot = make()
            self._work.store.save_snapshot(bandit_number, snapshot)
            self._saved_at[bandit_number] = snapshot.sequence
        except Exception as error:  # the requests of this batch are committed, and must be answered
            self._on_failure(error)
