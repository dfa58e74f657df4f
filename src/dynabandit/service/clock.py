"""The service's clock: seconds that the service was running, which no change of the wall clock moves."""

import time
from collections.abc import Callable

__all__ = ["Clock"]


class Clock:
    """Counts on from the latest time in the store, by a clock that never jumps.

    A reward's window is measured on it: while no process runs, no window ends.

    Examples
    --------
    >>> seconds = iter([10.0, 11.0, 12.0, 13.0])
    >>> clock = Clock(lambda: next(seconds))
    >>> clock.now()
    1.0
    >>> clock.reach(100.0), clock.now()
    (None, 101.0)
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._start = monotonic()

    def now(self) -> float:
        """Return the time."""
        return self._monotonic() - self._start

    def reach(self, seen: float) -> None:
        """Move forward to a time that the store or another process has reached."""
        self._start = min(self._start, self._monotonic() - seen)
