"""The clock of the service: seconds during which it ran, and the wall clock for people to read."""

import time
from collections.abc import Callable


class Clock:
    """Counts seconds from the latest time in the store; changes of the wall clock do not affect it.

    Reward windows are measured on it, so no window ends while no process runs.

    `monotonic` returns seconds that never go back. `wall` returns the seconds since 1970 that are written beside each
    event; nothing is computed from them.

    Examples
    --------
    >>> seconds = iter([10.0, 11.0, 12.0, 13.0])
    >>> clock = Clock(lambda: next(seconds))
    >>> clock.now()
    1.0
    >>> clock.advance_to(100.0), clock.now()
    (None, 101.0)
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._monotonic = monotonic
        self._start = monotonic()
        self.wall = wall

    def now(self) -> float:
        """Return the time."""
        return self._monotonic() - self._start

    def advance_to(self, seen: float) -> None:
        """Move forward to a time that the store or another process has reached."""
        self._start = min(self._start, self._monotonic() - seen)
