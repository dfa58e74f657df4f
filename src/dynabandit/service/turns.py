"""Turns: functions that take long run in slices, between which requests for other bandits are served."""

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any

from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.errors import WriteConflictError
from dynabandit.service.request_queue import WriterRequest

SLICE_SECONDS = 0.01
MOST_BEGUN = 20  # functions of a caller that have turns; its further ones wait until one of them has ended


@dataclasses.dataclass(eq=False, slots=True)
class LongRun:
    """A function that runs in slices, with a unit of work of its own: nothing of it is committed before its end.

    Its unit of work has only the states that it began with, and reads others from the store, so that nothing else sees
    what it changes. `sequences` has the latest events of these bandits in the log.
    """

    request: WriterRequest
    work: UnitOfWork
    steps: Generator[None, None, Any]
    sequences: dict[int, int]
    error: Exception | None = None

    def adopt(self, work: UnitOfWork) -> Any:
        """Add what the function has done to the next commit, and return its result or raise its error."""
        if self.error is not None:
            raise self.error
        if any(work.states.get(bandit_number) is not state for bandit_number, state in self.work.states.items()):
            raise WriteConflictError("a bandit was loaded again meanwhile")
        work.adopt(self.work)
        return self.request.result


class Turns:
    """The functions that run in slices: one at a time of each bandit.

    The callers have their turns in order, and of each caller the bandits. So it does not matter to the others how many
    functions a caller has, if they are not for the same bandit.

    While a function runs, its bandits are `busy`: their states are ahead of the log, and no other request uses them.
    """

    def __init__(self, work: UnitOfWork, timer: Callable[[], float] = time.monotonic) -> None:
        self._work, self._timer = work, timer
        self._waiting: list[WriterRequest] = []
        self._begun: list[LongRun] = []  # in the order of their latest turns
        self._latest_turns: dict[str | None, int] = {}  # of the callers, as numbers

    def __bool__(self) -> bool:
        return bool(self._waiting or self._begun)

    @property
    def busy(self) -> set[int]:
        """The bandits whose functions have begun and not ended."""
        return {bandit_number for run in self._begun for bandit_number in run.sequences}

    def add(self, requests: list[WriterRequest]) -> None:
        """Let the functions of requests, whose bandits are in memory, run in slices."""
        if not self:
            self._latest_turns.clear()
        self._waiting += requests

    def stop(self) -> list[WriterRequest]:
        """End all functions where they are, and return their requests; the states of `busy` bandits are of no use."""
        left = [run.request for run in self._begun] + self._waiting
        self._begun, self._waiting = [], []
        return left

    def take(self) -> LongRun | None:
        """Run the next function for a moment, and return it if it has ended."""
        self._begin()
        if not self._begun:
            return None
        run = min(self._begun, key=lambda run: self._latest_turn(run.request))
        self._begun.remove(run)
        self._latest_turns[run.request.caller] = 1 + max(self._latest_turns.values(), default=0)
        until = self._timer() + SLICE_SECONDS
        try:
            while True:
                next(run.steps)
                if self._timer() >= until:
                    self._begun.append(run)
                    return None
        except StopIteration as end:
            run.request.result = end.value
        except Exception as error:
            run.error = error
        return run

    def _latest_turn(self, request: WriterRequest) -> int:
        """Return the number of the latest turn of the caller of a request, 0 if it had none."""
        return self._latest_turns.get(request.caller, 0)

    def _begin(self) -> None:
        """Begin the functions that need not wait for another one; callers that gave up are forgotten."""
        waiting, self._waiting = self._waiting, []
        busy, begun = self.busy, Counter(run.request.caller for run in self._begun)
        for request in sorted(waiting, key=self._latest_turn):
            if request.abandoned:
                continue
            if begun[request.caller] >= MOST_BEGUN or request.bandits_needed & busy:
                self._waiting.append(request)
                busy |= request.bandits_needed  # requests of a caller for a bandit stay in their order
                continue
            begun[request.caller] += 1
            states = self._work.states
            sequences = {one: states[one].sequence for one in request.bandits_needed & states.keys()}
            work = self._work.apart(sequences)
            self._begun.append(LongRun(request, work, request.run(work), sequences))
            busy |= request.bandits_needed
