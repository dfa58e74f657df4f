"""Rate limits: how many decisions, rewards and metrics each API key may send per second."""

import math
import time
from collections.abc import Callable

from dynabandit.service.stores import KeyRow
from dynabandit.validation import number

MAX_WAIT = 86400.0  # seconds that a client is told to wait


class RateLimits:
    """Counts what each key sends. What it may send in one second may come in a burst; the rest must be spread.

    Examples
    --------
    >>> limits, key = RateLimits(timer=lambda: 0.0), KeyRow("k", "decide", "", "", 0.0, None, requests_per_second=2.0)
    >>> [limits.seconds_to_wait(key) for _ in range(3)]
    [0.0, 0.0, 0.5]
    """

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._next: dict[str, float] = {}  # key -> when the next one would come if all came evenly

    def seconds_to_wait(self, key: KeyRow, cost: int = 1, paid: int = 0) -> float:
        """Count a request; return 0, or after how many seconds it may be sent again if it must be refused.

        It counts as `cost`, at most `most_at_once`, of which `paid` was counted before.
        """
        if key.requests_per_second is None:
            return 0.0
        now, gap = self._timer(), 1.0 / key.requests_per_second
        due = max(now, self._next.get(key.id, 0.0))
        due = min(due, now + max(1.0, gap))  # the limit may have been lower when the latest request came
        ahead = due - now - max(0.0, 1.0 - (cost - paid) * gap)
        if ahead > 1e-9:
            again = paid * gap if paid else 0.0  # what was paid must be paid again when it is sent again
            return min(ahead + again, MAX_WAIT)
        self._next[key.id] = due + (cost - paid) * gap
        return 0.0


def most_at_once(rate: float) -> int:
    """Return what may be sent in one second, and so in one request.

    Examples
    --------
    >>> most_at_once(0.1), most_at_once(2.5)
    (1, 2)
    """
    return max(1, math.floor(rate))


def is_rate(rate: object) -> bool:
    """Whether a value is a limit of requests per second: a positive number, or None for no limit."""
    return rate is None or (isinstance(rate, int | float) and 0 < rate < math.inf)


def check_rate(rate: float | None) -> None:
    """Raise an error unless a value is a limit of requests per second."""
    if rate is not None:
        number("requests per second", rate, 0.0, math.inf, open_low=True)
