"""The clock of the service: seconds during which it could accept rewards, and the wall clock for people to read."""

import time
from collections.abc import Callable

MAX_STEP = 2.0  # seconds; the writer reads the clock several times per second
GRACE_SECONDS = 10.0  # longer than clients wait before they repeat a refused request


class Clock:
    """Counts the seconds during which rewards could be accepted, from the latest time in the store.

    Reward windows are measured on it, so no window ends while no process runs, the process is stopped, or the store
    does not answer. Changes of the wall clock do not affect it. Only the thread of the writer reads it: a long time
    between two readings means that this thread, or the event loop that wakes it, could not accept rewards.

    `monotonic` returns seconds that never go back. `wall` returns the seconds since 1970 that are written beside each
    event; nothing is computed from them. More than `max_step` seconds between two readings do not count. After an
    interruption or a refused request, windows end later for `grace_seconds`, and by as much.

    Examples
    --------
    >>> seconds = iter([10.0, 10.5, 30.0, 30.0])
    >>> clock = Clock(lambda: next(seconds))
    >>> clock.now(), clock.now()
    (0.5, 0.5)
    >>> clock.advance_to(100.0), clock.now()
    (None, 100.0)
    """

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        max_step: float = MAX_STEP,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self._monotonic = monotonic
        self._max_step, self.grace_seconds = max_step, grace_seconds
        self._time = 0.0
        self._read_at = self._refused_at = monotonic()  # before the start all requests were refused
        self.stopped = False
        self.is_behind = True  # the store, or another process, may have reached a later time
        self.wall = wall

    def now(self) -> float:
        """Return the time."""
        read_at = self._monotonic()
        step, self._read_at = read_at - self._read_at, read_at
        if step > self._max_step or self.stopped:
            self._refused_at, self.is_behind = read_at, True
        else:
            self._time += step
        return self._time

    def grace(self) -> float:
        """Return the seconds by which windows end later now, so that refused rewards can be sent again."""
        return self.grace_seconds if self._read_at - self._refused_at < self.grace_seconds else 0.0

    def note_refusal(self) -> None:
        """Note that a request was refused; any thread may do so."""
        self._refused_at = self._monotonic()

    def stop(self) -> None:
        """Stand still, because the store has failed."""
        self.now()
        self.stopped = True

    def resume(self) -> None:
        """Continue, because the store works."""
        if self.stopped:
            self.now()
            self.stopped = False

    def advance_to(self, seen: float) -> None:
        """Move forward to a time that the store or another process has reached."""
        self._time = max(self._time, seen)
        self.is_behind = False
