"""The writer: one thread that runs all requests in order and commits many of them at once."""

import asyncio
import contextlib
import dataclasses
import queue
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import structlog

from dynabandit.service.admission import MAX_WAITING, AdmissionControl
from dynabandit.service.domain.decision_ids import DecisionIds
from dynabandit.service.domain.events import POLICY, EventRow
from dynabandit.service.domain.rewards import settle_due
from dynabandit.service.domain.unit_of_work import SNAPSHOT_EVERY, UnitOfWork
from dynabandit.service.errors import DomainError, ReplayMismatchError, StoreError, WriteConflictError
from dynabandit.service.metrics import Metrics

MAX_REQUESTS = 256  # per commit
CONGESTED_COMMITS = 3.0  # a request may wait for one commit, be in the next, and be unlucky
CONGESTED_SECONDS = 0.005  # a burst of requests is normal
COMMIT_SECONDS_GROWTH = 1.02  # per commit, of the shortest recent one
SAVE_TIME_SECONDS = 30.0
SHARE_TIME_SECONDS = 1.0  # with other processes: the most by which their clocks differ
LOAD_SECONDS = 30.0
MAX_HEARTBEAT_SECONDS = 0.25
ATTEMPTS = 3  # to commit a batch that conflicts with what other processes write

log = structlog.get_logger("dynabandit.service")


@dataclasses.dataclass(eq=False, slots=True)
class _Request:
    """A function to run in the writer's thread, its result or error, and the future that gets one of them."""

    run: Callable[[UnitOfWork], Any]
    name: str | None = None
    bandits: Iterable[int] = ()
    alone: bool = False
    events: int = 1
    started: float = 0.0
    future: asyncio.Future[Any] | None = None
    abandoned: bool = False
    result: Any = None
    error: Exception | None = None


HEARTBEAT = _Request(lambda work: None)  # wakes the thread and does nothing


class Writer:
    """The thread that owns the states of all bandits and the store's connection for writing.

    At most `max_waiting` requests may wait (see `AdmissionControl`), and one that is not committed within `patience`
    seconds fails. Every `maintenance_seconds` it learns held decisions and closes those whose window has ended. `timer`
    returns seconds that never go back.

    The event loop sends heartbeats through the queue, as requests come. So the clock, which counts only the time
    between two readings that are close to each other, runs while both threads can serve requests.
    """

    def __init__(
        self,
        work: UnitOfWork,
        metrics: Metrics,
        max_waiting: int = MAX_WAITING,
        patience: float = 5.0,
        maintenance_seconds: float = 1.0,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._work = work
        self._store = work.store
        self._metrics = metrics
        self._timer = timer
        self.admission = AdmissionControl(max_waiting, self._is_congested)
        self._commit_seconds = 0.0  # the shortest recent commit: how long it takes when nothing delays it
        self._patience = patience
        self._maintenance_seconds = maintenance_seconds
        self._queue: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._waiting: dict[_Request, None] = {}  # in order; only the event loop uses it
        self._thread = threading.Thread(target=self._run_thread, name="dynabandit-writer", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._next_heartbeat: asyncio.TimerHandle | None = None
        self._heartbeat_seconds = min(MAX_HEARTBEAT_SECONDS, patience / 4, maintenance_seconds)
        self._heartbeat_waits = False
        self._next_maintenance = 0.0
        self._next_save = 0.0
        self._next_load = 0.0
        self._load_all = True
        self._prepared = False
        self.decision_ids: DecisionIds | None = None  # known when the store is prepared
        self._maintenance_problem: str | None = None  # the latest one that was logged, until it is over
        self.failures = 0  # requests that the store left unanswered
        self.saved_at: dict[int, int] = {}  # bandit -> sequence of the latest snapshot

    # In the event loop's thread

    def start(self) -> None:
        """Start; call it in a running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        self._watch()

    def submit(
        self,
        run: Callable[[UnitOfWork], Any],
        *,
        name: str | None = None,
        bandits: Iterable[int] = (),
        alone: bool = False,
        events: int = 1,
        priority: bool = False,
    ) -> "asyncio.Future[Any]":
        """Run a function in the writer's thread; its result, or its error, is there after the commit.

        `name` or `bandits` (numbers) are the bandits that it uses, `events` is about how many events it adds. A
        function that reads the log runs `alone`, in its own commit. One with `priority` is admitted when decisions and
        rewards are refused. After a conflict with another process the function runs again.
        """
        assert self._loop is not None
        self.admission.enter(events, priority)
        future = self._loop.create_future()
        request = _Request(run, name, bandits, alone, events, self._timer(), future)
        self._waiting[request] = None
        self._queue.put(request)
        return future

    def _is_congested(self) -> bool:
        """Whether the oldest request has waited longer than a burst or the disk explain."""
        oldest = next(iter(self._waiting), None)
        limit = max(CONGESTED_SECONDS, CONGESTED_COMMITS * self._commit_seconds)
        return oldest is not None and self._timer() - oldest.started > limit

    def _watch(self) -> None:
        """Answer requests that have waited too long, because the store is slow or not available; send a heartbeat."""
        assert self._loop is not None
        limit = self._timer() - self._patience
        for request in list(self._waiting):
            if request.started > limit:
                break
            request.abandoned = True
            self.failures += 1
            self._answer(request, None, StoreError("the store did not answer in time"))
        self._metrics.waiting.set(len(self._waiting))
        if not self._heartbeat_waits:
            self._heartbeat_waits = True
            self._queue.put(HEARTBEAT)
        self._next_heartbeat = self._loop.call_later(self._heartbeat_seconds, self._watch)

    def _answer(self, request: _Request, result: Any, error: Exception | None) -> None:
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

    def _answer_all(self, requests: list[_Request]) -> None:
        for request in requests:
            self._answer(request, request.result, request.error)

    async def stop(self) -> None:
        """Finish what waits, save snapshots, close the store."""
        if self._next_heartbeat is not None:
            self._next_heartbeat.cancel()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    # In the writer's thread

    def _run_thread(self) -> None:
        is_last = False
        while not is_last:
            batch, is_last = self._take_batch()
            shared: list[_Request] = []  # requests that share a commit
            for request in batch:
                if request.alone:
                    self._commit_and_answer(shared)
                    self._commit_and_answer([request])
                    shared = []
                else:
                    shared.append(request)
            self._commit_and_answer(shared)
            if self._timer() >= self._next_maintenance and not is_last:
                self._maintain()
        self._shutdown()

    def _take_batch(self) -> tuple[list[_Request], bool]:
        """Wait for requests; return all that are there, up to a limit, and whether the thread is to end."""
        batch: list[_Request] = []
        with contextlib.suppress(queue.Empty):
            request = self._queue.get(block=self._timer() < self._next_maintenance)
            while True:
                if request is None:
                    return batch, True
                if request is HEARTBEAT:
                    self._heartbeat_waits = False
                    self._work.clock.now()
                elif not request.abandoned:
                    batch.append(request)
                if len(batch) >= MAX_REQUESTS:
                    break
                request = self._queue.get_nowait()
        return batch, False

    def _commit_and_answer(self, requests: list[_Request]) -> None:
        if not requests:
            return
        self._commit(requests)
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the event loop has ended: nobody waits for the answers
                self._loop.call_soon_threadsafe(self._answer_all, requests)

    def _commit(self, requests: list[_Request]) -> None:
        """Run requests and commit them together; then each has its result or its error."""
        error: Exception = AssertionError("there is at least one attempt")
        for _ in range(ATTEMPTS):
            try:
                self._try_to_commit(requests)
                return
            except WriteConflictError as conflict:
                self._discard()
                error = StoreError(str(conflict))
                continue
            except StoreError as failure:
                self._discard()
                self._work.clock.stop()
                self._metrics.store_failures.inc()
                self.failures += 1
                log.error("store failed", problem=str(failure), calls=len(requests))
                error = failure
            except Exception as failure:
                self._discard()
                if len(requests) > 1:  # find the one that failed, and commit the others
                    for request in requests:
                        self._commit([request])
                    return
                log.exception("call failed")
                error = failure
            break
        for request in requests:
            request.result, request.error = None, error

    def _try_to_commit(self, requests: list[_Request]) -> None:
        work = self._work
        self._prepare()
        if self._store.shared:
            self._lock_bandits(requests)
        for request in requests:
            try:
                request.result, request.error = request.run(work), None
            except (DomainError, ReplayMismatchError) as error:
                request.result, request.error = None, error
        events = work.events
        new_policy = {event.bandit for event in events if event.kind == POLICY}
        if self._store.shared:  # in the same transaction: other processes need not learn all rewards again
            for number in new_policy:
                self._store.save_snapshot(number, work.snapshot(number))
        if events or work.created or work.deleted or work.erased:
            started = time.perf_counter()
            self._store.commit(events, work.created, work.deleted, work.erased)
            work.clock.resume()
            seconds = time.perf_counter() - started
            recent = self._commit_seconds * COMMIT_SECONDS_GROWTH
            self._commit_seconds = min(recent, seconds) if recent else seconds
            self._metrics.count_commit(events, seconds)
        elif self._store.shared:
            self._store.commit(())
            work.clock.resume()
        self._after_commit(new_policy)

    def _after_commit(self, new_policy: set[int]) -> None:
        """Count the events of the batch, forget deleted bandits and save snapshots that are due."""
        work, by_bandit = self._work, dict[int, list[EventRow]]()
        for event in work.events:
            by_bandit.setdefault(event.bandit, []).append(event)
        for number, events in by_bandit.items():
            state = work.states[number]
            self._metrics.count_arms(state.settings.name, state.bandit.names, events)
        for number in (*work.deleted, *work.erased):
            if (gone := work.states.pop(number, None)) is not None:
                self._metrics.remove_bandit(gone.settings.name)
        work.clear()
        for number in by_bandit:
            if number in new_policy and not self._store.shared:
                self._save_snapshot(number)
            self._save_snapshot_if_due(number)

    def _prepare(self) -> None:
        """Prepare the store at first; let the clock follow other processes after any interruption."""
        if not self._prepared:
            self._store.prepare()
            self.decision_ids = self._store.decision_ids()
            self._prepared = True
        clock = self._work.clock
        clock.now()
        if clock.is_behind:
            clock.advance_to(self._store.latest_time())

    def _lock_bandits(self, requests: list[_Request]) -> None:
        """Keep other processes from writing to the bandits, and apply the events that they have written."""
        work = self._work
        numbers = {number for request in requests for number in request.bandits}
        named = {number for one in requests if one.name is not None and (number := work.find(one.name)) is not None}
        numbers |= named
        self._store.begin(sorted(numbers))
        if (numbers - self._store.alive(numbers)) & (named | work.states.keys()):
            raise WriteConflictError("a bandit was deleted meanwhile")  # names and states are then looked up again
        for number in numbers:
            if number in work.states:
                work.catch_up(number)

    def _discard(self) -> None:
        """Forget all that was not committed; the next request reads the log again."""
        self._work.discard()
        self.saved_at.clear()
        self._store.rollback()

    def _save_snapshot_if_due(self, number: int) -> None:
        state = self._work.states.get(number)
        if state is None or state.deleted:
            return
        saved = self.saved_at.setdefault(number, state.sequence - state.sequence % SNAPSHOT_EVERY)
        if state.sequence - saved >= SNAPSHOT_EVERY:
            self._save_snapshot(number)

    def _save_snapshot(self, number: int) -> None:
        """Save a snapshot; if that fails, only the next start takes longer."""
        try:
            snapshot = self._work.snapshot(number)
            self._store.save_snapshot(number, snapshot)
            self.saved_at[number] = snapshot.sequence
        except Exception as error:  # the requests of this batch are committed, and must be answered
            log.warning("snapshot failed", problem=str(error))
            self._discard()

    def _maintain(self) -> None:
        """Learn and close the decisions that are due, and save the time of the clock now and then."""
        now = self._timer()
        self._next_maintenance = now + self._maintenance_seconds
        try:
            self._prepare()
            if now >= self._next_load:
                self._next_load = now + LOAD_SECONDS
                self._load_all = True  # other processes may have created bandits, or a failure dropped the states
            if now >= self._next_save or self._work.clock.stopped:
                self._next_save = now + (SHARE_TIME_SECONDS if self._store.shared else SAVE_TIME_SECONDS)
                self._save_time()
            for number in self._find_due():
                self._settle_due(number)
            problem = None
        except Exception as error:  # this thread must survive every error
            self._discard()
            if isinstance(error, StoreError):
                self._work.clock.stop()
            problem = str(error)
        before, self._maintenance_problem = self._maintenance_problem, problem
        if problem is not None and problem != before:  # not once per second
            log.error("maintenance failed", problem=problem)
        elif problem is None and before is not None:
            log.info("maintenance works again")

    def _save_time(self) -> None:
        """Save the time of the clock, and follow the process whose clock is furthest ahead."""
        clock = self._work.clock
        self._store.save_time(clock.now())
        clock.resume()
        if self._store.shared:
            clock.advance_to(self._store.latest_time())

    def _find_due(self) -> list[int]:
        """Return the bandits that may have a decision to learn or to close."""
        work = self._work
        if self._load_all:
            after = ""
            while page := self._store.bandits(after=after):
                for bandit in page:
                    with contextlib.suppress(ReplayMismatchError):
                        work.state(bandit.number)
                after = page[-1].name
            self._load_all = False
        return [number for number, state in work.states.items() if work.clock.now() > state.due_at]

    def _settle_due(self, number: int) -> None:
        """Learn and close one page of decisions in its own commit; requests are served between two pages."""
        request = _Request(lambda work: settle_due(work, number), bandits=[number])
        self._commit([request])
        if request.result:  # there may be more
            self._next_maintenance = 0.0

    def _shutdown(self) -> None:
        """Save a snapshot of every state that changed since its last one, and close the store."""
        for number, state in list(self._work.states.items()):
            if not state.deleted and state.sequence > self.saved_at.get(number, 0):
                self._save_snapshot(number)
        with contextlib.suppress(StoreError):
            if self._prepared:
                self._store.save_time(self._work.clock.now())
        self._store.close()
