"""Erasing: the log of a bandit is removed in small batches, so that no request waits long and a restart continues."""

from collections.abc import Iterable

from dynabandit.service.stores.base import ERASING, Store

ERASED_ROWS = 1_000  # events that are removed in one commit


def events_left(store: Store, bandit: int) -> int:
    """Return how many events of a bandit are in the store, as if its log had no gaps: a compacted log has fewer."""
    return store.last_sequence(bandit) - _erased_to(store, bandit)


def _erased_to(store: Store, bandit: int) -> int:
    """Return the sequence number before the first event that is left, or 0."""
    first = store.rows("SELECT min(sequence) FROM events WHERE bandit = ? AND sequence > 0", (bandit,))[0][0]
    return 0 if first is None else first - 1


class Eraser:
    """The bandits whose logs are being removed, oldest events first; the store marks them, so a restart knows them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._erased_to: dict[int, int] = {}  # bandit -> sequence

    def __bool__(self) -> bool:
        return bool(self._erased_to)

    def add(self, numbers: Iterable[int]) -> None:
        """Erase bandits that the store marks as being erased."""
        for number in numbers:
            self._erased_to.setdefault(number, 0)

    def find(self) -> None:
        """Look for bandits that a process was erasing when it ended."""
        self.add(number for (number,) in self._store.rows("SELECT number FROM bandits WHERE deleted = ?", (ERASING,)))

    def step(self) -> bool:
        """Remove a batch of events; with the last ones everything else that belongs to the bandit.

        If another process writes to the bandit, because it erases it, too, return false: requests do not wait for that.
        """
        number, erased_to = next(iter(self._erased_to.items()))
        store = self._store
        if erased_to == 0:
            erased_to = _erased_to(store, number)
        if not store.try_to_begin(number):
            self._erased_to[number] = self._erased_to.pop(number)  # the next one first
            return False
        if store.last_sequence(number) - erased_to <= ERASED_ROWS:
            store.commit((), erased=[number])
            del self._erased_to[number]
        else:
            erase_to = erased_to + ERASED_ROWS
            remove = "DELETE FROM events WHERE bandit = ? AND sequence > ? AND sequence <= ?"
            store.write([(remove, (number, erased_to, erase_to))])
            store.commit(())
            self._erased_to[number] = erase_to
        return True
