"""Decisions without a reward: the latest ones are in memory, and older ones are read from the store."""

from collections import OrderedDict

from dynabandit.service.domain.events import EventRow, LoggedDecision

MAX_OPEN = 20_000  # decisions
MAX_SIZE = 32_000_000  # characters in their bodies


class OpenDecisions(OrderedDict[int, LoggedDecision]):
    """The latest decisions without a reward, by step.

    An ordered dictionary, because the search for the first key of a plain one passes all the keys that were removed.
    """

    _size = 0

    def add(self, event: EventRow) -> None:
        """Add a decision, and forget the oldest ones if these are too many or too large."""
        self[event.step or 0] = LoggedDecision(event.arm or 0, event.time, None, None, event.body)
        self._size += len(event.body or "")
        while len(self) > MAX_OPEN or self._size > MAX_SIZE:
            self.end(next(iter(self)))

    def end(self, step: int) -> LoggedDecision | None:
        """Forget a decision and return it."""
        found = self.pop(step, None)
        if found is not None:
            self._size -= len(found.body or "")
        return found
