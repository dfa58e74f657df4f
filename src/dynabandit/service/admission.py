"""Admission control: which requests may wait for the writer when more arrive than it can serve."""

from collections.abc import Callable

from dynabandit.service.errors import OverloadedError

MAX_WAITING = 256
ALWAYS_ADMITTED = 32  # at some 0.1 ms per request they wait for milliseconds
MAX_EVENTS_WAITING = 20_000  # decisions and rewards of all waiting requests: some tenths of a second of work


class AdmissionControl:
    """Counts the waiting requests, so that every admitted request is served soon.

    A few requests may always wait. More are admitted while they wait for the disk and not for each other: on a slow
    disk many requests share a commit, and refusing some of them helps nobody. Requests with priority, such as pausing
    an arm, are admitted when decisions and rewards no longer are, so that an operator can act under overload.

    At most `max_requests` requests may wait, with at most `MAX_EVENTS_WAITING` events together; twice as many for a
    request with priority. A request with more events is admitted when nothing waits. `is_congested` returns whether
    requests wait for each other, which is longer than the disk alone makes them wait.

    Examples
    --------
    >>> admission = AdmissionControl(max_requests=1)
    >>> admission.enter(), admission.is_full(), admission.is_full(priority=True)
    (None, True, False)
    """

    def __init__(self, max_requests: int, is_congested: Callable[[], bool] = lambda: False) -> None:
        self._max_requests = max_requests
        self._always = min(max_requests, ALWAYS_ADMITTED)
        self._is_congested = is_congested
        self.requests = 0
        self.events = 0

    def is_full(self, events: int = 1, priority: bool = False) -> bool:
        """Whether a request that brings this many events must be refused."""
        factor = 2 if priority else 1
        if self.requests >= factor * self._max_requests:
            return True
        if self.requests > 0 and self.events + events > factor * MAX_EVENTS_WAITING:
            return True
        return self.requests >= factor * self._always and self._is_congested()

    def enter(self, events: int = 1, priority: bool = False) -> None:
        """Admit a request, or raise `OverloadedError`."""
        if self.is_full(events, priority):
            raise OverloadedError
        self.requests += 1
        self.events += events

    def leave(self, events: int = 1) -> None:
        """Note that a request was answered."""
        self.requests -= 1
        self.events -= events
