"""Admission: which calls are let in when more come than can be served, and how the others are turned away."""

import time
from collections.abc import Callable

__all__ = ["FEW_WAITING", "MOST_EVENTS_WAITING", "MOST_WAITING", "Floor", "Overloaded", "Pace", "Room"]

MOST_WAITING = 256
FEW_WAITING = 32  # at some 0.1 ms a call they wait for milliseconds
MOST_EVENTS_WAITING = 20_000  # decisions and rewards of all waiting calls together: some tenths of a second of work
FLOOR_GROWTH = 1.02
REFUSALS_A_SECOND = 500.0
LONGEST_REFUSAL = 1.0  # seconds


class Overloaded(Exception):  # noqa: N818
    """Too many calls wait already."""


class Room:
    """Counts what waits, so that whatever is let in is served soon.

    A few calls may always wait. More are let in while the calls wait for the disk and not for each other: on a slow
    disk many share a commit, and nobody gains if some of them are turned away. Changes, such as pausing an arm, are
    let in when decisions and rewards are not any more: whoever has to calm a storm must get through it.

    Parameters
    ----------
    most
        How many calls may wait, at the very most; twice as many where the others are changes.
    crowded
        Whether calls wait for each other: longer than the disk alone would make them.
    events
        How many events they may bring together. A call that brings more is let in when nothing waits.

    Examples
    --------
    >>> room = Room(most=1)
    >>> room.enter(), room.full(), room.full(change=True)
    (None, True, False)
    """

    def __init__(
        self, most: int, crowded: Callable[[], bool] = lambda: False, events: int = MOST_EVENTS_WAITING
    ) -> None:
        self._most, self._few, self._events = most, min(most, FEW_WAITING), events
        self._crowded = crowded
        self.calls = 0
        self.events = 0

    def full(self, events: int = 1, change: bool = False) -> bool:
        """Whether a call that brings so many events must be turned away."""
        more = 2 if change else 1
        if self.calls >= more * self._most or (self.calls > 0 and self.events + events > more * self._events):
            return True
        return self.calls >= more * self._few and self._crowded()

    def enter(self, events: int = 1, change: bool = False) -> None:
        """Let a call in, or raise `Overloaded`."""
        if self.full(events, change):
            raise Overloaded
        self.calls += 1
        self.events += events

    def leave(self, events: int = 1) -> None:
        """Take note that a call was answered."""
        self.calls -= 1
        self.events -= events


class Floor:
    """The least of recent times, which rises slowly: how long a commit takes when nothing is in its way.

    Examples
    --------
    >>> floor = Floor()
    >>> for seconds in (0.5, 0.1, 0.7):
    ...     floor.saw(seconds)
    >>> round(floor.seconds, 3)
    0.102
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    def saw(self, seconds: float) -> None:
        """Take in a time."""
        self.seconds = min(self.seconds * FLOOR_GROWTH or seconds, seconds)


class Pace:
    """Spreads refusals over time: callers that come again at once must not use up the time of those that are served.

    Parameters
    ----------
    a_second
        How many callers are turned away in a second.
    longest
        Seconds that a refusal may be held back.
    clock
        Tells the time.

    Examples
    --------
    >>> pace = Pace(a_second=10, longest=0.15, clock=lambda: 0.0)
    >>> [pace.wait() for _ in range(3)]
    [0.0, 0.1, None]
    """

    def __init__(
        self,
        a_second: float = REFUSALS_A_SECOND,
        longest: float = LONGEST_REFUSAL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._gap, self._longest, self._clock = 1.0 / a_second, longest, clock
        self._next = 0.0

    def wait(self) -> float | None:
        """Return the seconds to hold a refusal back, or None where so many are held back that none may be added."""
        now = self._clock()
        turn = max(now, self._next)
        if turn - now > self._longest:
            return None
        self._next = turn + self._gap
        return turn - now
