"""The requests that wait for the writer: admission, time-outs and answers.

`take`, `park` and `answer` run in the writer's thread, all else in the event loop.
"""

import asyncio
import contextlib
import dataclasses
import queue
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from dynabandit.service.admission import AdmissionControl
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.errors import OverloadedError, StoreError
from dynabandit.service.metrics import ServiceMetrics

MAX_LOCKED_BANDITS = 1_000  # per commit: PostgreSQL has room for some thousand locks
CONGESTED_COMMITS = 3.0  # a request may wait for one commit, be in the next, and be unlucky
CONGESTED_SECONDS = 0.005  # a burst of requests is normal
HEARTBEAT_SECONDS = 0.25
MAX_PARKED = 1_000  # requests of a caller that wait until their bandits are loaded, or not busy any more
MAX_PARKED_EVENTS = 100_000  # decisions and rewards that these bring: each takes some hundred bytes


@dataclasses.dataclass(eq=False, slots=True)
class WriterRequest:
    """A function to run in the writer's thread, its result or error, and the future that gets one of them.

    The function may be a generator, which returns the result. If `takes_long` then returns true, it runs `in_slices`
    (`turns.py`), and `ended` is its run.
    """

    run: Callable[[UnitOfWork], Any]
    name: str | None = None
    bandits: Collection[int] = ()
    alone: bool = False
    events: int = 1
    idempotency_key: str | None = None
    unit: str | None = None
    bandit_keys: Collection[tuple[int, str]] = ()
    takes_long: Callable[[UnitOfWork], bool] | None = None
    caller: str | None = None
    started: float = 0.0
    future: asyncio.Future[Any] | None = None
    abandoned: bool = False
    result: Any = None
    error: Exception | None = None
    bandits_needed: set[int] = dataclasses.field(default_factory=set)  # those of `name` and `bandits`
    to_load: set[int] = dataclasses.field(default_factory=set)  # those that must be loaded, or are busy
    in_slices: bool = False
    ended: Any = None


HEARTBEAT = WriterRequest(lambda work: None)  # wakes the writer's thread


def commits(batch: Iterable[WriterRequest]) -> Iterator[list[WriterRequest]]:
    """Divide requests into those that share a commit, in their order."""
    shared: list[WriterRequest] = []
    bandits = 0
    for request in batch:
        bandits += max(1, len(request.bandits))
        if shared and (request.alone or shared[-1].alone or bandits > MAX_LOCKED_BANDITS):
            yield shared
            shared, bandits = [], max(1, len(request.bandits))
        shared.append(request)
    if shared:
        yield shared


class RequestQueue:
    """Requests from the event loop to the writer's thread, and their answers.

    At most `max_waiting` requests may wait (see `AdmissionControl`), and one that is not answered within `patience`
    seconds fails. Requests whose bandits must be loaded first are parked: they wait, but keep no others from waiting.
    `timer` returns seconds that never go back.

    At least every `wake_seconds` the event loop sends a heartbeat, on the way that requests take, and the writer's
    thread calls `on_heartbeat`. There are no heartbeats while one of the two could not serve a request.
    """

    def __init__(
        self,
        metrics: ServiceMetrics,
        max_waiting: int,
        patience: float,
        timer: Callable[[], float],
        on_heartbeat: Callable[[], object],
        wake_seconds: float,
    ) -> None:
        self.admission = AdmissionControl(max_waiting, self._is_congested)
        self.failures = 0  # requests that the store left unanswered
        self.commit_seconds = 0.0  # how long a commit takes when nothing delays it
        self.loop: asyncio.AbstractEventLoop | None = None
        self._metrics = metrics
        self._patience = patience
        self._timer = timer
        self._on_heartbeat = on_heartbeat
        self._heartbeat_seconds = min(HEARTBEAT_SECONDS, patience / 4, wake_seconds)
        self._heartbeat_waits = False
        self._queue: queue.SimpleQueue[WriterRequest | None] = queue.SimpleQueue()
        self._waiting: dict[WriterRequest, None] = {}  # in order
        self._parked: dict[WriterRequest, None] = {}  # in order
        self._parked_of = Counter[str | None]()  # how many of each caller
        self._parked_events = Counter[str | None]()  # and what they bring
        self._next_watch: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start; call it in a running event loop."""
        self.loop = asyncio.get_running_loop()
        self._watch()

    def stop(self) -> None:
        """Tell the writer's thread to end after the requests that wait."""
        if self._next_watch is not None:
            self._next_watch.cancel()
        self._queue.put(None)

    def submit(
        self,
        run: Callable[[UnitOfWork], Any],
        *,
        name: str | None = None,
        bandits: Collection[int] = (),
        alone: bool = False,
        events: int = 1,
        idempotency_key: str | None = None,
        unit: str | None = None,
        bandit_keys: Collection[tuple[int, str]] = (),
        takes_long: Callable[[UnitOfWork], bool] | None = None,
        caller: str | None = None,
        priority: bool = False,
    ) -> "asyncio.Future[Any]":
        """Run a function in the writer's thread; its result, or its error, is there after the commit.

        `name` or `bandits` (numbers) are the bandits that it uses, and `events` is about how many events it adds. It
        will look up the `idempotency_key`, the `unit`, and `bandit_keys`, other keys with their bandits. A function
        that reads the log runs `alone`, in its own commit. One with `priority` is admitted when decisions and rewards
        are refused. After a conflict with another process the function runs again. A generator runs
        to its end at once, unless `takes_long`, which is called when the bandits are in memory, returns true: requests
        for other bandits are then served between its steps, and its commit follows its end. `caller` is the id of the
        API key: what waits of one caller keeps no others from waiting.
        """
        assert self.loop is not None
        self.admission.enter(events, priority)
        future = self.loop.create_future()
        asked = (run, name, bandits, alone, events, idempotency_key, unit, bandit_keys, takes_long, caller)
        request = WriterRequest(*asked, self._timer(), future)
        self._waiting[request] = None
        self._queue.put(request)
        return future

    def _is_congested(self) -> bool:
        """Whether the oldest request has waited longer than a burst or the disk explain."""
        oldest = next(iter(self._waiting), None)
        limit = max(CONGESTED_SECONDS, CONGESTED_COMMITS * self.commit_seconds)
        return oldest is not None and self._timer() - oldest.started > limit

    def _watch(self) -> None:
        """Answer requests that have waited too long, because the store is slow or not available; send a heartbeat."""
        assert self.loop is not None
        limit = self._timer() - self._patience
        for waiting, problem in (
            (self._waiting, "the store did not answer in time"),
            (self._parked, "the bandit is still being loaded"),
        ):
            for request in list(waiting):
                if request.started > limit:
                    break
                request.abandoned = True
                self.failures += waiting is self._waiting
                self._answer(request, None, StoreError(problem))
        self._metrics.waiting.set(len(self._waiting))
        if not self._heartbeat_waits:
            self._heartbeat_waits = True
            self._queue.put(HEARTBEAT)
        self._next_watch = self.loop.call_later(self._heartbeat_seconds, self._watch)

    def _answer(self, request: WriterRequest, result: Any, error: Exception | None) -> None:
        if request in self._parked:
            del self._parked[request]
            self._parked_of[request.caller] -= 1
            self._parked_events[request.caller] -= request.events
        if request in self._waiting:
            del self._waiting[request]
            self.admission.leave(request.events)
        future = request.future
        if future is None or future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    def _answer_all(self, requests: list[WriterRequest]) -> None:
        for request in requests:
            self._answer(request, request.result, request.error)

    def _park_all(self, requests: list[WriterRequest]) -> None:
        for request in requests:
            if request not in self._waiting:
                continue
            del self._waiting[request]
            self.admission.leave(request.events)
            self._parked[request] = None
            self._parked_of[request.caller] += 1
            self._parked_events[request.caller] += request.events
            if self._parked_of[request.caller] > MAX_PARKED or self._parked_events[request.caller] > MAX_PARKED_EVENTS:
                request.abandoned = True
                self._answer(request, None, OverloadedError())

    # In the writer's thread

    def take(self, most: int, wait: bool) -> tuple[list[WriterRequest], bool]:
        """Return the requests that are there, up to a limit, and whether the thread is to end.

        If it is to wait, it waits for a request or a heartbeat.
        """
        batch: list[WriterRequest] = []
        with contextlib.suppress(queue.Empty):
            request = self._queue.get(block=wait)
            while True:
                if request is None:
                    return batch, True
                if request is HEARTBEAT:
                    self._heartbeat_waits = False
                    self._on_heartbeat()
                elif not request.abandoned:
                    batch.append(request)
                if len(batch) >= most:
                    break
                request = self._queue.get_nowait()
        return batch, False

    def answer(self, requests: list[WriterRequest]) -> None:
        """Pass results and errors to those who wait for them."""
        self._call(self._answer_all, requests)

    def park(self, requests: list[WriterRequest]) -> None:
        """Note that requests wait until their bandits are loaded."""
        self._call(self._park_all, requests)

    def _call(self, function: Callable[[list[WriterRequest]], None], requests: list[WriterRequest]) -> None:
        if requests and self.loop is not None:
            with contextlib.suppress(RuntimeError):  # the event loop has ended: nobody waits for the answers
                self.loop.call_soon_threadsafe(function, requests)
