"""The writer: one thread that runs all requests in order and commits many of them at once."""

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Callable, Generator
from typing import Any

from dynabandit.service.admission import MAX_WAITING
from dynabandit.service.domain.alerts import raise_alerts
from dynabandit.service.domain.decision_ids import DecisionIds
from dynabandit.service.domain.decisions import remove_expired_units
from dynabandit.service.domain.events import POLICY, SHADOW, EventRow
from dynabandit.service.domain.steps import finish
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.errors import (
    DomainError,
    ReplayMismatchError,
    StoreBusyError,
    StoreError,
    WriteConflictError,
)
from dynabandit.service.failure_log import FailureLog
from dynabandit.service.loading import WORTH_A_SNAPSHOT, Loader
from dynabandit.service.logging_setup import log
from dynabandit.service.metrics import ServiceMetrics
from dynabandit.service.request_queue import RequestQueue, WriterRequest, commits
from dynabandit.service.settling import Settler
from dynabandit.service.snapshots import SnapshotSaver
from dynabandit.service.stores.erasing import Eraser
from dynabandit.service.stores.unit_table import unit_hash
from dynabandit.service.turns import Turns

MAX_REQUESTS = 256  # per commit
COMMIT_SECONDS_GROWTH = 1.02  # per commit, of the shortest recent one
SAVE_TIME_SECONDS = 30.0
SHARE_TIME_SECONDS = 1.0  # with other processes: the most by which their clocks differ
SEARCH_SECONDS = 30.0  # between two searches for bandits that other processes created or began to erase
NO_EVENTS = 2**62  # a sequence number after which there are none
ATTEMPTS = 3  # to commit a batch that conflicts with what other processes write
LOCKED_SECONDS = 0.2  # of applying the events of other processes while these wait for the locks
RETRY_SECONDS = 0.25  # until loading or erasing is tried again


class Writer:
    """The thread that owns the states of all bandits and the store's connection for writing.

    Every `maintenance_seconds` it learns held decisions and closes those whose window has ended. When it stops, it
    saves snapshots for at most `snapshot_seconds`. For `max_waiting`, `patience` and `timer` see `RequestQueue`.
    """

    def __init__(
        self,
        work: UnitOfWork,
        metrics: ServiceMetrics,
        max_waiting: int = MAX_WAITING,
        patience: float = 5.0,
        maintenance_seconds: float = 1.0,
        timer: Callable[[], float] = time.monotonic,
        snapshot_seconds: float = 2.0,
    ) -> None:
        self._work = work
        self._store = work.store
        self._metrics = metrics
        self._timer = timer
        self.requests = RequestQueue(metrics, max_waiting, patience, timer, work.clock.now, maintenance_seconds)
        self.submit, self.admission = self.requests.submit, self.requests.admission
        self._maintenance_seconds, self._snapshot_seconds = maintenance_seconds, snapshot_seconds
        self._thread = threading.Thread(target=self._run_thread, name="dynabandit-writer", daemon=True)
        self._stopping = False
        self._next_maintenance = 0.0
        self._next_save = 0.0
        self._next_search = 0.0
        self._loader = Loader(work, timer)
        self._eraser = Eraser(work.store)
        self._settler = Settler(work)
        self._turns = Turns(work, timer)
        self._parked: list[WriterRequest] = []  # wait until their bandits are loaded, or no longer busy
        self._next_work_between = 0.0
        self.is_prepared = False  # before, the tables may be those of an earlier release
        self.on_alert: Callable[[], object] = lambda: None  # called after the commit of an alert
        self.decision_ids: DecisionIds | None = None  # known when the store is prepared
        self._maintenance_problem: str | None = None  # the latest one that was logged, until it is over
        self._store_failures = FailureLog("store", timer)
        self._snapshots = SnapshotSaver(work, self._snapshot_failed)

    # In the event loop's thread

    def start(self) -> None:
        """Start; call it in a running event loop."""
        self.requests.start()
        self._thread.start()

    async def stop(self) -> None:
        """Finish what waits, save snapshots, close the store."""
        self._stopping = True
        self.requests.stop()
        await asyncio.to_thread(self._thread.join)

    # In the writer's thread

    def _run_thread(self) -> None:
        is_last = False
        while not is_last:
            is_idle = not self._loader and not self._eraser
            next_turn = min(self._next_maintenance, math.inf if is_idle else self._next_work_between)
            may_wait = not self._settler and not self._turns and self._timer() < next_turn
            batch, is_last = self.requests.take(MAX_REQUESTS, wait=may_wait)
            self._serve(batch)
            if self._turns:
                self._take_turn()
            if self._timer() >= self._next_maintenance and not is_last:
                self._maintain()
            if self._settler and not is_last:
                self._settle(events=sum(request.events for request in batch))
            if self._timer() >= self._next_work_between and not is_last:
                self._work_between_commits()
        self._shutdown()

    def _serve(self, batch: list[WriterRequest]) -> None:
        """Run requests, commit them and answer those that need not wait for a bandit to be loaded."""
        for requests in commits(batch):
            self._run_and_commit(requests)
            served = [request for request in requests if not request.to_load]
            long = [one for one in served if one.in_slices and one.ended is None and one.error is None]
            self.requests.park(long)
            self._turns.add(long)
            self.requests.answer([request for request in served if request not in long])

    def _take_turn(self) -> None:
        """Run a function in slices for a moment; commit what it has done when it has ended."""
        run = self._turns.take()
        if run is None:
            return
        request = run.request
        self._work.touched |= run.sequences.keys()  # their states are ahead of the log, whatever fails now
        usual: tuple[type[Exception], ...] = (StoreError,) if run.work.events else (StoreError, DomainError)
        if run.error is not None and not isinstance(run.error, usual):
            log.error("call failed", exc_info=run.error)
            self._discard()
            request.error = run.error
            self.requests.answer([request])
        else:
            request.ended = run
            self._serve([request])
        self._unpark(*run.sequences)

    def _run_and_commit(self, requests: list[WriterRequest]) -> None:
        """Run requests and commit them together; then each has its result or its error, or is parked."""
        error: Exception = AssertionError("there is at least one attempt")
        for _ in range(ATTEMPTS):
            try:
                self._try_to_run_and_commit([request for request in requests if not request.to_load])
                return
            except WriteConflictError as conflict:
                self._discard()
                for request in requests:
                    if request.ended is not None:  # it runs again in one piece, while its bandits are locked
                        request.ended = request.takes_long = None
                error = StoreError(str(conflict))
                continue
            except StoreError as failure:
                dropped = self._work.touched & self._work.states.keys()
                self._discard()
                self._loader.add(dropped, wanted=False)  # their windows end although nobody may use them again
                self._count_failure(failure, sum(request.future is not None for request in requests))
                error = failure
            except Exception as failure:
                self._discard()
                if len(requests) > 1:  # find the one that failed, and commit the others
                    for request in requests:
                        self._run_and_commit([request])
                    return
                log.exception("call failed")
                error = failure
            break
        for request in requests:
            if not request.to_load:
                request.result, request.error = None, error

    def _count_failure(self, failure: StoreError, calls: int) -> None:
        self._work.clock.stop()
        self._metrics.store_failures.inc()
        self.requests.failures += 1
        self._store_failures.note_failure(str(failure), calls)

    def _try_to_run_and_commit(self, requests: list[WriterRequest]) -> None:
        work = self._work
        self._prepare()
        requests = self._park(requests)
        while self._store.shared and requests and not self._lock_bandits(requests):
            requests = self._park(requests)
        for request in requests:
            try:
                request.result, request.error = self._result(request), None
            except (DomainError, ReplayMismatchError) as error:
                if isinstance(error, ReplayMismatchError) and request.bandits_needed & work.states.keys():
                    raise  # a state in memory may be changed in part: it is loaded again
                request.result, request.error = None, error
        raise_alerts(work)
        events = work.events
        new_policy = {event.bandit for event in events if event.kind in (POLICY, SHADOW)}
        if self._store.shared:  # in the same transaction: other processes need not learn all rewards again
            for bandit_number in new_policy:
                self._store.save_snapshot(bandit_number, work.snapshot(bandit_number))
        if events or work.created or work.deleted or work.erased or work.erasing:
            started = time.perf_counter()
            self._write(len(requests))
            seconds = time.perf_counter() - started
            recent = self.requests.commit_seconds * COMMIT_SECONDS_GROWTH
            self.requests.commit_seconds = min(recent, seconds) if recent else seconds
            self._metrics.count_commit(events, seconds)
        elif self._store.in_transaction:
            self._store.commit(())
            self._resume_clock()
        self._after_commit(new_policy)

    def _result(self, request: WriterRequest) -> Any:
        if request.ended is not None:
            return request.ended.adopt(self._work)
        request.in_slices = request.takes_long is not None and request.takes_long(self._work)
        if request.in_slices:
            return None
        result = request.run(self._work)
        return finish(result) if isinstance(result, Generator) else result

    def _write(self, calls: int) -> None:
        """Commit the batch. While another program keeps the store locked, nothing is lost by trying again."""
        work = self._work
        while True:
            try:
                self._store.commit(*work.batch())
                self._note_write()
                return
            except StoreBusyError as failure:
                if self._stopping:
                    raise
                self._count_failure(failure, calls)
                calls = 0  # each counts once

    def _park(self, requests: list[WriterRequest]) -> list[WriterRequest]:
        """Return the requests whose bandits are loaded and not busy; the others wait until these are."""
        work, loader, busy = self._work, self._loader, self._turns.busy
        for request in requests:
            request.bandits_needed = set(request.bandits)
            if request.name is not None and (bandit_number := work.find(request.name)) is not None:
                request.bandits_needed.add(bandit_number)
        needed = {bandit for request in requests for bandit in request.bandits_needed}
        behind = {one for one in needed if one not in work.states or loader.is_loading(one)}
        if not behind and not needed & busy:
            return requests
        absent = behind - work.states.keys()
        existing = self._store.alive(absent)
        work.nonexistent = absent - existing
        if work.forget(work.nonexistent):
            return self._park(requests)  # another process may have used the name again
        behind = (behind - absent) | (existing - work.damaged.keys())
        for request in requests:  # in the order in which they came
            request.to_load = request.bandits_needed & (behind | busy)
            loader.add(request.bandits_needed & behind)
        parked = [one for one in requests if one.to_load and one.future is not None]  # maintenance comes back anyway
        self._parked = [one for one in self._parked if not one.abandoned] + parked
        self.requests.park(parked)
        if any(request.to_load & behind for request in parked):
            work.clock.stop()
        return [request for request in requests if not request.to_load]

    def _after_commit(self, new_policy: set[int]) -> None:
        """Count the events of the batch, forget deleted bandits and save snapshots that are due."""
        work, by_bandit = self._work, dict[int, list[EventRow]]()
        for event in work.events:
            by_bandit.setdefault(event.bandit, []).append(event)
        for bandit_number, events in by_bandit.items():
            state = work.states[bandit_number]
            self._metrics.count_arms(state.settings.name, state.bandit.names, events)
            self._metrics.lifts.note(state.settings.name, state.monitoring.lift)
            if self._metrics.count_alerts(state.settings.name, events):
                self.on_alert()
            if state.shadow is not None:
                self._metrics.count_shadow(state.settings.name, events)
        self._eraser.add(work.erasing)
        for bandit_number in (*work.deleted, *work.erased, *work.erasing):
            self._loader.remove(bandit_number)
            if (gone := work.states.pop(bandit_number, None)) is not None:
                self._metrics.remove_bandit(gone.settings.name)
        work.clear()
        for bandit_number in by_bandit:
            if bandit_number in new_policy and not self._store.shared:
                self._snapshots.save(bandit_number)
            self._snapshots.save_if_due(bandit_number)
            if bandit_number in work.states:
                self._loader.build_trees(work.states[bandit_number])

    def _note_write(self) -> None:
        """Note that the store has accepted a write."""
        self._resume_clock()
        self._store_failures.note_success()

    def _resume_clock(self) -> None:
        """Let the clock continue after the store has worked, unless requests wait for a bandit to be loaded."""
        if not any(self._loader.is_loading(bandit) for request in self._parked for bandit in request.to_load):
            self._work.clock.resume()

    def _prepare(self) -> None:
        """Prepare the store at first; let the clock follow other processes after any interruption."""
        if not self.is_prepared:
            self._store.prepare()
            self.decision_ids = self._store.decision_ids()
            self.is_prepared = True
        clock = self._work.clock
        clock.now()
        if clock.is_behind:
            clock.advance_to(self._store.latest_time())

    def _lock_bandits(self, requests: list[WriterRequest]) -> bool:
        """Keep other processes from writing to the bandits, and apply the events that they have written.

        Bandits that do not exist are not locked: a caller may send any number of them. If applying the events takes
        long, nothing is locked, the loader applies the rest, and this returns false.
        """
        work = self._work
        needed = {bandit for request in requests for bandit in request.bandits_needed} - work.nonexistent
        loaded = needed & work.states.keys()
        named = {bandit for one in requests if one.name is not None and (bandit := work.find(one.name)) is not None}
        keyed = [(one.name, one.idempotency_key) for one in requests if one.name in work.names]
        keys = {(work.names[name], key) for name, key in keyed if name is not None and key is not None}
        keys |= {key for one in requests for key in one.bandit_keys}
        units = {(work.names[one.name], unit_hash(one.unit)) for one in requests if one.unit and one.name in work.names}
        known = {bandit: work.states[bandit].sequence if bandit in loaded else NO_EVENTS for bandit in needed}
        decided = {
            bandit: at for one in requests if one.ended is not None for bandit, at in one.ended.sequences.items()
        }
        known |= decided
        begun = self._store.begin(known, keys, units)
        gone = (needed - begun.events.keys()) & (named | loaded)
        if gone:
            work.touched |= gone
            for bandit_number in gone & loaded:
                self._metrics.remove_bandit(work.states[bandit_number].settings.name)
            raise WriteConflictError("a bandit was deleted meanwhile")  # names and states are then looked up again
        if any(begun.events[bandit] for bandit in decided):
            raise WriteConflictError("another process wrote to a bandit meanwhile")
        work.unused_keys = keys - begun.used_keys
        work.stored_units = {unit: begun.units.get(unit) for unit in units}
        until = self._timer() + LOCKED_SECONDS
        behind = [
            bandit
            for bandit in loaded
            if not work.catch_up(bandit, begun.events[bandit], lambda: self._timer() < until)
        ]
        if behind:
            self._store.commit(())
            self._loader.add(behind)
        return not behind

    def _discard(self) -> None:
        """Forget all that was not committed; the states that it changed are loaded again."""
        self._work.discard()
        self._store.rollback()

    def _snapshot_failed(self, error: Exception) -> None:
        """Log why, and forget what the store may have done in part."""
        if isinstance(error, StoreError):
            self._store_failures.note_failure(str(error), calls=0)
        else:
            log.warning("snapshot failed", problem=str(error))
        self._discard()

    def _maintain(self) -> None:
        """Find the decisions that are due, and save the time of the clock now and then."""
        now = self._timer()
        self._next_maintenance = now + self._maintenance_seconds
        problem: str | None = None
        try:
            self._prepare()
            if now >= self._next_save or self._work.clock.stopped:
                self._save_time()
                self._next_save = now + (SHARE_TIME_SECONDS if self._store.shared else SAVE_TIME_SECONDS)
            if now >= self._next_search:
                self._find_work_between()
                self._next_search = now + SEARCH_SECONDS
            self._settler.find()
            self._snapshots.save_encoded(self._turns.busy)
        except StoreError as error:
            self._discard()
            self._work.clock.stop()
            self._store_failures.note_failure(str(error), calls=0)
        except Exception as error:  # this thread must survive every error
            self._discard()
            problem = str(error)
        self._store_failures.write_due()
        before, self._maintenance_problem = self._maintenance_problem, problem
        if problem is not None and problem != before:  # not once per second
            log.error("maintenance failed", problem=problem)
        elif problem is None and before is not None:
            log.info("maintenance works again")

    def _save_time(self) -> None:
        """Save the time of the clock, and follow the process whose clock is furthest ahead."""
        clock = self._work.clock
        self._store.save_time(clock.now())
        self._note_write()
        if self._store.shared:
            clock.advance_to(self._store.latest_time())

    def _find_work_between(self) -> None:
        """Load the bandits that nobody has used yet, whose windows end, too, and go on erasing those being erased."""
        self._work.damaged.clear()
        self._eraser.find()
        remove_expired_units(self._work)
        found = self._store.all_bandits()
        self._loader.add((one.number for one in found if one.number not in self._work.states), wanted=False)

    def _work_between_commits(self) -> None:
        """Load and erase bandits for a moment."""
        try:
            self._prepare()
            if self._loader:
                self._load()
            if self._eraser and not self._eraser.step() and not self._loader:
                self._next_work_between = self._timer() + RETRY_SECONDS
        except Exception as error:  # this thread must survive every error
            self._store.rollback()
            self._next_work_between = self._timer() + RETRY_SECONDS
            if isinstance(error, StoreError):
                self._store_failures.note_failure(str(error), calls=0)
            else:
                log.exception("loading or erasing failed")

    def _load(self) -> None:
        """Load bandits for a moment, and serve the requests that wait for one that is loaded now."""
        done = self._loader.step()
        if done is None:
            return
        bandit_number, applied = done
        if bandit_number in self._work.states:
            self._snapshots.note_loaded(bandit_number, self._work.states[bandit_number].sequence - applied)
        self._unpark(bandit_number)
        if applied >= WORTH_A_SNAPSHOT and bandit_number in self._work.states:
            self._snapshots.save(bandit_number)

    def _unpark(self, *bandit_numbers: int) -> None:
        """Serve the requests that wait only for these bandits."""
        for request in self._parked:
            request.to_load.difference_update(bandit_numbers)
        ready = [request for request in self._parked if not request.to_load]
        self._parked = [request for request in self._parked if request.to_load]
        if ready:
            self._resume_clock()
        self._serve([request for request in ready if not request.abandoned])

    def _settle(self, events: int) -> None:
        """Learn and close decisions that are due, after requests with so many events were served."""
        requests = self._settler.requests(events)
        self._run_and_commit(requests)
        self._settler.finish(requests)

    def _shutdown(self) -> None:
        """Save the time and snapshots, and close the store.

        The server has given calls in progress their time: those that run in slices have no caller any more, and
        nothing of them is committed.
        """
        self._work.touched |= self._turns.busy
        self._work.discard()
        left = [*self._turns.stop(), *self._parked]
        for request in left:
            request.error = StoreError("the service is stopping")
        self.requests.answer(left)
        self._loader.stop()
        with contextlib.suppress(StoreError):
            if self.is_prepared:
                self._store.save_time(self._work.clock.now())
        until = self._timer() + self._snapshot_seconds
        self._snapshots.save_all(lambda: self._timer() < until)
        self._store.close()
