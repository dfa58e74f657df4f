"""The writer: one thread that runs every call in order and commits many of them at once."""

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import structlog

from dynabandit.service.domain.events import POLICY, Row
from dynabandit.service.domain.operations import SNAPSHOT_EVERY, Desk
from dynabandit.service.errors import Conflict, Differs, Refused, StoreFailed
from dynabandit.service.http.limits import MOST_WAITING, Floor, Room
from dynabandit.service.metrics import Metrics

__all__ = ["Call", "Writer"]

MOST_CALLS = 256  # in one commit
PATIENT_COMMITS = 3.0  # a call may wait for one commit, be in the next, and be unlucky
PATIENT_SECONDS = 0.005  # a burst is no crowd
SWEEP_SECONDS = 1.0
SAVE_TIME_SECONDS = 30.0
TRIES = 3  # of a batch that other processes get in the way of

log = structlog.get_logger("dynabandit.service")


class Call:
    """Something to do in the writer's thread; `run` gets the desk and returns the answer, or raises `Refused`."""

    __slots__ = ("abandoned", "alone", "bandits", "change", "events", "future", "names", "run", "started")

    def __init__(
        self,
        run: Callable[[Desk], Any],
        *,
        name: str | None = None,
        bandits: Iterable[int] = (),
        alone: bool = False,
        events: int = 1,
        change: bool = False,
    ) -> None:
        self.run = run
        self.names = () if name is None else (name,)
        self.bandits = tuple(bandits)
        self.alone = alone  # needs a commit of its own, because it reads the log
        self.events = events  # that it brings, about
        self.change = change  # is let in where others are turned away
        self.future: asyncio.Future[Any] | None = None
        self.abandoned = False
        self.started = time.monotonic()


class Writer:
    """The thread that owns the states and the store's connection.

    Parameters
    ----------
    desk
        What calls work on.
    metrics
        Where it counts.
    most_waiting
        How many calls may wait; more are turned away, so that those that wait do not wait long. See `Room`.
    patience
        Seconds after which a call that was not committed is answered with 503.
    """

    def __init__(self, desk: Desk, metrics: Metrics, most_waiting: int = MOST_WAITING, patience: float = 5.0) -> None:
        self._desk = desk
        self._store = desk.store
        self._metrics = metrics
        self.room = Room(most_waiting, self._crowded)
        self._commit_floor = Floor()
        self._patience = patience
        self._queue: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._waiting: dict[Call, None] = {}  # in order; only the event loop touches it
        self._thread = threading.Thread(target=self._work, name="dynabandit-writer", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._patrol: asyncio.TimerHandle | None = None
        self._next_sweep = 0.0
        self._next_save = 0.0
        self._sweep_all = True
        self._prepared = False
        self._house_problem: str | None = None  # what was last said to be wrong, until it is right again
        self.failures = 0  # calls that the store left unanswered
        self.saved_at: dict[int, int] = {}  # bandit -> sequence of the latest snapshot

    # In the event loop's thread

    def start(self) -> None:
        """Start; call it in a running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        self._look_after()

    def submit(self, call: Call) -> "asyncio.Future[Any]":
        """Hand over a call; the result comes after its commit."""
        assert self._loop is not None
        self.room.enter(call.events, call.change)
        call.future = self._loop.create_future()
        self._waiting[call] = None
        self._queue.put(call)
        return call.future

    def _crowded(self) -> bool:
        """Whether the call that waits longest has waited longer than a burst or the disk explain."""
        longest = next(iter(self._waiting), None)
        patience = max(PATIENT_SECONDS, PATIENT_COMMITS * self._commit_floor.seconds)
        return longest is not None and time.monotonic() - longest.started > patience

    def _look_after(self) -> None:
        """Answer calls that have waited too long: the store is slow or gone."""
        assert self._loop is not None
        limit = time.monotonic() - self._patience
        for call in list(self._waiting):
            if call.started > limit:
                break
            call.abandoned = True
            self.failures += 1
            self._settle(call, StoreFailed("the store did not answer in time"), failed=True)
        self._metrics.waiting.set(len(self._waiting))
        self._patrol = self._loop.call_later(min(0.25, self._patience / 4), self._look_after)

    def _settle(self, call: Call, result: Any, failed: bool) -> None:
        if call in self._waiting:
            del self._waiting[call]
            self.room.leave(call.events)
        future = call.future
        if future is None or future.done():
            return
        if failed:
            future.set_exception(result)
        else:
            future.set_result(result)

    def _deliver(self, results: list[tuple[Call, Any, bool]]) -> None:
        for call, result, failed in results:
            self._settle(call, result, failed)

    async def stop(self) -> None:
        """Finish what waits, save snapshots, close the store."""
        if self._patrol is not None:
            self._patrol.cancel()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    # In the writer's thread

    def _work(self) -> None:
        ended = False
        while not ended:
            batch, ended = self._take()
            if batch:
                self._serve(batch)
            if time.monotonic() >= self._next_sweep and not ended:
                self._keep_house()
        self._farewell()

    def _take(self) -> tuple[list[Call], bool]:
        """Wait for calls and return all that are there, up to a limit."""
        batch: list[Call] = []
        with contextlib.suppress(queue.Empty):
            call = self._queue.get(timeout=max(0.0, self._next_sweep - time.monotonic()))
            while True:
                if call is None:
                    return batch, True
                if not call.abandoned:
                    batch.append(call)
                if len(batch) >= MOST_CALLS:
                    break
                call = self._queue.get_nowait()
        return batch, False

    def _serve(self, batch: list[Call]) -> None:
        """Run a batch in runs that share a commit; a call that stands alone ends a run."""
        run: list[Call] = []
        for call in batch:
            if call.alone:
                self._run(run)
                self._run([call])
                run = []
            else:
                run.append(call)
        self._run(run)

    def _run(self, calls: list[Call]) -> None:
        if not calls:
            return
        results = self._commit(calls)
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has gone: nobody waits for an answer
                self._loop.call_soon_threadsafe(self._deliver, results)

    def _commit(self, calls: list[Call]) -> list[tuple[Call, Any, bool]]:
        for attempt in range(TRIES):
            try:
                return self._attempt(calls)
            except Conflict as error:
                self._give_up()
                if attempt == TRIES - 1:
                    return [(call, StoreFailed(str(error)), True) for call in calls]
            except StoreFailed as error:
                self._give_up()
                self._metrics.store_failures.inc()
                self.failures += 1
                log.error("store failed", problem=str(error), calls=len(calls))
                return [(call, error, True) for call in calls]
            except Exception as error:
                self._give_up()
                if len(calls) > 1:  # find the one, and let the others through
                    return [result for call in calls for result in self._commit([call])]
                log.exception("call failed")
                return [(calls[0], error, True)]
        raise AssertionError("unreachable")

    def _attempt(self, calls: list[Call]) -> list[tuple[Call, Any, bool]]:
        desk, results = self._desk, []
        self._prepare()
        if self._store.shared:
            self._lock(calls)
        for call in calls:
            try:
                results.append((call, call.run(desk), False))
            except (Refused, Differs) as error:
                results.append((call, error, True))
        rows = desk.rows
        swapped = {row.bandit for row in rows if row.kind == POLICY}
        if self._store.shared:  # in the same transaction: the other processes need not learn it all again
            for number in swapped:
                self._store.save_snapshot(number, desk.snapshot(number))
        if rows or desk.created or desk.deleted or desk.erased:
            started = time.perf_counter()
            self._store.commit(rows, desk.created, desk.deleted, desk.erased)
            taken = time.perf_counter() - started
            self._commit_floor.saw(taken)
            self._metrics.committed(rows, taken)
        elif self._store.shared:
            self._store.commit(())
        self._count(rows)
        for number in (*desk.deleted, *desk.erased):
            if (gone := desk.states.pop(number, None)) is not None:
                self._metrics.forget(gone.settings.name)
        desk.clear()
        for number in {row.bandit for row in rows}:
            if number in swapped and not self._store.shared:
                self._save_snapshot(number)
            self._snapshot_if_due(number)
        return results

    def _count(self, rows: list[Row]) -> None:
        by_bandit: dict[int, list[Row]] = {}
        for row in rows:
            by_bandit.setdefault(row.bandit, []).append(row)
        for number, some in by_bandit.items():
            state = self._desk.states[number]
            self._metrics.learnt(state.settings.name, state.bandit.names, some)

    def _prepare(self) -> None:
        if not self._prepared:
            self._store.prepare()
            self._desk.clock.reach(self._store.latest_time())
            self._prepared = True

    def _lock(self, calls: list[Call]) -> None:
        """Keep other processes out, and take in what they have written."""
        desk = self._desk
        numbers = {number for call in calls for number in call.bandits}
        named = {number for call in calls for name in call.names if (number := desk.number(name)) is not None}
        numbers |= named
        self._store.begin(sorted(numbers))
        if (numbers - self._store.alive(numbers)) & (named | desk.states.keys()):
            raise Conflict("a bandit was deleted meanwhile")  # names and states are then looked up again
        for number in numbers:
            if number in desk.states:
                desk.catch_up(number)

    def _give_up(self) -> None:
        """Forget all that was not committed: the log is read again at the next call."""
        self._desk.drop()
        self.saved_at.clear()
        self._store.rollback()

    def _snapshot_if_due(self, number: int) -> None:
        state = self._desk.states.get(number)
        if state is None or state.deleted:
            return
        saved = self.saved_at.setdefault(number, state.sequence - state.sequence % SNAPSHOT_EVERY)
        if state.sequence - saved >= SNAPSHOT_EVERY:
            self._save_snapshot(number)

    def _save_snapshot(self, number: int) -> None:
        """Save a snapshot; where that fails nothing is lost but time."""
        try:
            snapshot = self._desk.snapshot(number)
            self._store.save_snapshot(number, snapshot)
            self.saved_at[number] = snapshot.sequence
        except Exception as error:  # the calls of this batch are committed, and must be answered so
            log.warning("snapshot failed", problem=str(error))
            self._give_up()

    def _keep_house(self) -> None:
        """Close what has ended, and write down the time now and then."""
        now = time.monotonic()
        self._next_sweep = now + SWEEP_SECONDS
        try:
            self._prepare()
            if now >= self._next_save:
                self._next_save = now + SAVE_TIME_SECONDS
                self._sweep_all = True
                self._store.save_time(self._desk.clock.now())
            for number in self._to_sweep():
                self._sweep(number)
            problem = None
        except Exception as error:  # this thread must outlive whatever goes wrong
            self._give_up()
            problem = str(error)
        self._note_house(problem)

    def _note_house(self, problem: str | None) -> None:
        """Write down what is wrong when it begins and when it ends, rather than once a second."""
        before, self._house_problem = self._house_problem, problem
        if problem is not None and problem != before:
            log.error("housekeeping failed", problem=problem)
        elif problem is None and before is not None:
            log.info("housekeeping goes on")

    def _to_sweep(self) -> list[int]:
        """Return the bandits that may have a decision whose window has ended."""
        desk = self._desk
        if self._sweep_all:
            after = ""
            while page := self._store.bandits(after=after):
                for bandit in page:
                    with contextlib.suppress(Differs):
                        desk.state(bandit.number)
                after = page[-1].name
            self._sweep_all = False
        return [number for number, state in desk.states.items() if desk.clock.now() > state.due_at]

    def _sweep(self, number: int) -> None:
        """Close decisions a page at a time, each page in a commit of its own, while calls go on in between."""
        result = self._commit([Call(lambda desk: desk.sweep(desk.known(number)), bandits=[number])])[0]
        if result[1] is True:
            self._next_sweep = 0.0

    def _farewell(self) -> None:
        """Save a snapshot of every state that moved since the last one, and close."""
        for number, state in list(self._desk.states.items()):
            if not state.deleted and state.sequence > self.saved_at.get(number, 0):
                self._save_snapshot(number)
        with contextlib.suppress(StoreFailed):
            if self._prepared:
                self._store.save_time(self._desk.clock.now())
        self._store.close()
