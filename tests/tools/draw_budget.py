"""A limit on the random numbers that interpreted code draws: a loop without end fails instead of hanging."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from dynabandit.core import streams
from dynabandit.core.philox import philox


class DrawBudget:
    """How many random numbers may still be drawn."""

    def __init__(self) -> None:
        self._left = 0

    def allow(self, draws: int) -> None:
        """Let the next piece of code draw so many random numbers."""
        self._left = draws

    def spend(self) -> None:
        """Count a random number."""
        self._left -= 1
        assert self._left >= 0, "too many random numbers were drawn"


@contextmanager
def draw_budget() -> Iterator[DrawBudget]:
    """Count the random numbers of the code inside."""
    budget, draw = DrawBudget(), philox

    def counted(*key: int) -> Any:
        budget.spend()
        return draw(*key)

    with mock.patch.object(streams, "philox", counted):
        yield budget
