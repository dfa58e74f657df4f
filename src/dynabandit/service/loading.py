"""Loading: bandits that are not in memory, or are behind the log, are brought up to date in short steps."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from dynabandit.policies import PolicyFunctions
from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.unit_of_work import CatchUp, UnitOfWork, read_snapshot
from dynabandit.service.domain.warm_start import code_of, compile_bandit
from dynabandit.service.errors import ReplayMismatchError, StoreError
from dynabandit.service.logging_setup import log
from dynabandit.service.stores import Snapshot, Store

STEP_SECONDS = 0.005  # of loading, before requests for other bandits have their turn
LARGE_SNAPSHOT = 1 << 19  # characters: it is read in another thread
LARGE_TREE = 5_000  # arms: it is built in another thread
WORTH_A_SNAPSHOT = 1_000  # events that were replayed: after a crash nobody should wait for them again
Code = tuple[PolicyFunctions, bool]  # what `code_of` returns


class Loader:
    """The bandits that are to be loaded: first those that requests wait for, then the others.

    It runs in the writer's thread, between two commits and outside of any transaction. One bandit is loaded at a time,
    so that the first one is served as soon as possible.
    """

    def __init__(self, work: UnitOfWork, timer: Callable[[], float] = time.monotonic) -> None:
        self._work = work
        self._timer = timer
        self._wanted: dict[int, None] = {}  # in order
        self._others: dict[int, None] = {}  # in order
        self._started: dict[int, CatchUp] = {}
        self._reading: dict[int, tuple[Snapshot, Future[LoggedState | None]]] = {}  # large snapshots
        self._building: dict[int, Future[None]] = {}  # trees
        self._thread = ThreadPoolExecutor(1, "dynabandit-snapshot")
        self._compiled: set[Code] = set()
        self._compiling: dict[Code, Future[None]] = {}

    def __bool__(self) -> bool:
        return bool(self._wanted or self._others)

    def is_loading(self, bandit_number: int) -> bool:
        """Whether a bandit is being loaded or is about to be."""
        return bandit_number in self._wanted or bandit_number in self._others

    def add(self, bandit_numbers: Iterable[int], wanted: bool = True) -> None:
        """Load bandits, or bring those in memory up to date; `wanted` if a request waits for them."""
        for bandit_number in bandit_numbers:
            if wanted:
                self._others.pop(bandit_number, None)
                self._wanted[bandit_number] = None
            elif bandit_number not in self._wanted:
                self._others[bandit_number] = None

    def build_trees(self, state: LoggedState) -> None:
        """Let another thread build what the next decision needs after a change of many arms; requests wait for it."""
        if any(bandit.unbuilt_arms >= LARGE_TREE for bandit in state.bandits):
            self._wanted[state.bandit_number] = None
            self._building[state.bandit_number] = self._thread.submit(_build_trees, state)
            self._compiled |= {code_of(bandit) for bandit in state.bandits}  # they have decided before

    def remove(self, bandit_number: int) -> None:
        """Stop loading a bandit."""
        for where in (self._wanted, self._others, self._started, self._reading, self._building):
            where.pop(bandit_number, None)

    def step(self) -> tuple[int, int] | None:
        """Load for a moment; return a bandit that is now up to date or cannot be loaded, and how many events it took.

        A bandit whose log is damaged is kept in `UnitOfWork.damaged`. An error of the store loses no progress.
        """
        work, bandit_number = self._work, next(iter(self._wanted or self._others))
        until = self._timer() + STEP_SECONDS
        try:
            if bandit_number not in self._started:
                if bandit_number in self._building and not _is_done(self._building[bandit_number]):
                    return None
                built = self._building.pop(bandit_number, None)
                if built is not None and (problem := built.exception()) is not None:  # the next decision tries again
                    log.error("building a tree failed", bandit=bandit_number, exc_info=problem)
                state = self._latest(bandit_number)
                if state is None:
                    return None
                self._started[bandit_number] = CatchUp(work, state)
            loading = self._started[bandit_number]
            is_new = loading.state.sequence == 0  # the first event says what is to be compiled
            if not is_new and not self._is_compiled(loading.state):
                return None
            if not loading.run(lambda: not is_new and self._timer() < until) or not self._is_compiled(loading.state):
                return None
        except StoreError:
            line = self._wanted if bandit_number in self._wanted else self._others
            line[bandit_number] = line.pop(bandit_number)  # others may be readable
            raise
        except Exception as error:
            work.states.pop(bandit_number, None)
            if bandit_number in self._started and work.was_compacted(self._started.pop(bandit_number).state):
                return None  # it is loaded again, from the start of the log
            if not isinstance(error, ReplayMismatchError):
                log.exception("loading failed", bandit=bandit_number)
                error = ReplayMismatchError(
                    work.store.name_of(bandit_number), 0, f"it cannot be loaded: {error!r:.200}"
                )
            work.damaged[bandit_number] = error
            self.remove(bandit_number)
            return bandit_number, 0
        work.states[bandit_number] = loading.state
        self.remove(bandit_number)
        return bandit_number, loading.applied

    def _latest(self, bandit_number: int) -> LoggedState | None:
        """Return the latest state of a bandit, or None while a large snapshot of it is read in another thread."""
        if bandit_number not in self._reading:
            snapshot = self._work.latest_snapshot(bandit_number)
            if snapshot is None or len(snapshot.body or "") < LARGE_SNAPSHOT:
                return self._work.latest(bandit_number)
            self._reading[bandit_number] = (
                snapshot,
                self._thread.submit(_read, bandit_number, snapshot, self._work.store),
            )
        snapshot, reading = self._reading[bandit_number]
        if not _is_done(reading):
            return None
        del self._reading[bandit_number]
        state = reading.result()
        if state is not None:
            self._compiled |= {code_of(bandit) for bandit in state.bandits}
        return self._work.checked(bandit_number, snapshot, state)

    def stop(self) -> None:
        """End the thread."""
        self._thread.shutdown(cancel_futures=True)

    def _is_compiled(self, state: LoggedState) -> bool:
        """Whether the policies are compiled: otherwise another thread compiles them, or loads their compiled code."""
        for bandit in state.bandits:
            code = code_of(bandit)
            if code in self._compiled:
                continue
            if code not in self._compiling:
                self._compiling[code] = self._thread.submit(compile_bandit, bandit)
            if not _is_done(self._compiling[code]):
                return False
            self._compiling.pop(code).result()
            self._compiled.add(code)
        return True


def _read(bandit_number: int, snapshot: Snapshot, log: Store) -> LoggedState | None:
    """Return the state of a large snapshot, ready for decisions, or None if it is damaged."""
    state = read_snapshot(bandit_number, snapshot, log)
    for bandit in () if state is None else state.bandits:
        bandit.compile()
        bandit.build_tree()
    return state


def _build_trees(state: LoggedState) -> None:
    for bandit in state.bandits:
        bandit.build_tree()


def _is_done(work: Future[Any]) -> bool:
    """Whether another thread has done some work, after waiting for a moment."""
    return bool(wait([work], timeout=STEP_SECONDS).done)
