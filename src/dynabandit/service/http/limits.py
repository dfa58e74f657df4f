"""Limits of HTTP requests, and the pace at which refusals are sent."""

import time
from collections.abc import Callable

SMALL_BODY = 1 << 20  # bytes
LARGE_BODY = 10 << 20  # a hundred thousand arms with names of a hundred characters
LARGE_CONTAINERS = 1_000_000  # lists and objects: the features of these arms
# A body of at most so many bytes and commas is decoded in the event loop: this takes at most some milliseconds, and
# refusing it, which looks at each value, about ten
DECODED_AT_ONCE = 1 << 16
COMMAS_AT_ONCE = 4_000
MAX_EVENTS = 10_000  # per page of the log
MAX_CONNECTIONS = 1000
MAX_UNSENT = 256 << 20  # bytes of responses that callers have not taken yet: a thousand may read slowly
SHARE_PER_ADDRESS = 0.9  # of the connections: a load balancer may have nearly all, and nobody can have all


class RefusalPacer:
    """Spreads refusals over time: clients that retry at once must not use up the time of admitted requests.

    At most `per_second` requests are refused per second, each delayed by at most `max_delay` seconds. By default that
    is enough for one request of each connection: further ones would be refused at once, and callers that then connect
    again without a pause take more time than any request.

    Examples
    --------
    >>> pacer = RefusalPacer(per_second=10, max_delay=0.15, timer=lambda: 0.0)
    >>> [pacer.delay() for _ in range(3)]
    [0.0, 0.1, None]
    """

    def __init__(
        self, per_second: float = 500.0, max_delay: float = 2.5, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._gap, self._max_delay, self._timer = 1.0 / per_second, max_delay, timer
        self._next = 0.0

    def delay(self) -> float | None:
        """Return the seconds by which to delay a refusal, or None if too many are delayed already."""
        now = self._timer()
        slot = max(now, self._next)
        if slot - now > self._max_delay:
            return None
        self._next = slot + self._gap
        return slot - now
