"""Decisions without a reward: the latest ones are in memory, and older ones are read from the store."""

from typing import NamedTuple

from dynabandit.service.domain.events import EventRow

MAX_OPEN = 20_000  # decisions
MAX_SIZE = 32_000_000  # characters in their bodies


class OpenDecision(NamedTuple):
    """A decision without a reward; see `EventRow`."""

    column: int
    time: float
    body: str | None


class OpenDecisions(dict[int, OpenDecision]):
    """The latest decisions without a reward, by step."""

    _size = 0

    def add(self, event: EventRow) -> None:
        """Add a decision, and forget the oldest ones if these are too many or too large."""
        self[event.step or 0] = OpenDecision(event.arm or 0, event.time, event.body)
        self._size += len(event.body or "")
        while len(self) > MAX_OPEN or self._size > MAX_SIZE:
            self.end(next(iter(self)))

    def end(self, step: int) -> OpenDecision | None:
        """Forget a decision and return it."""
        found = self.pop(step, None)
        if found is not None:
            self._size -= len(found.body or "")
        return found
