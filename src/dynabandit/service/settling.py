"""Settling: held decisions are learned and ended windows closed, in portions between the commits of requests."""

import functools
import itertools

from dynabandit.service.domain.rewards import SETTLE_PAGE, settle_due
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.request_queue import WriterRequest

SETTLED_BANDITS = 32  # per commit


class Settler:
    """The bandits that may have decisions to learn or to close, in the order of their turns."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work
        self._due: dict[int, None] = {}

    def __bool__(self) -> bool:
        return bool(self._due)

    def find(self) -> None:
        """Find the bandits in memory with a decision that may be due."""
        now = self._work.clock.now()
        self._due.update(
            (bandit_number, None) for bandit_number, state in self._work.states.items() if now > state.due_at
        )

    def requests(self, events: int) -> list[WriterRequest]:
        """Return requests for one commit, to be made after requests with so many events were served.

        They settle more decisions than that: settling keeps up with any rate of decisions, and the next requests wait
        little longer than for the requests before them.
        """
        turn = list(itertools.islice(self._due, SETTLED_BANDITS))
        page = (SETTLE_PAGE + 3 * events // 2) // len(turn)
        return [
            WriterRequest(functools.partial(settle_due, bandit_number=one, page=page), bandits=(one,)) for one in turn
        ]

    def finish(self, requests: list[WriterRequest]) -> None:
        """Note that the requests were made: bandits with more decisions that may be due get another turn."""
        for request in requests:
            (bandit_number,) = request.bandits
            del self._due[bandit_number]
            if request.result:
                self._due[bandit_number] = None
