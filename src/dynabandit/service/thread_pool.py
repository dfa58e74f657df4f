"""Threads for work outside of the writer: short reads on one connection, and long work that can be interrupted."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from dynabandit.service.errors import InvalidValueError, OverloadedError, StoreError, WorkInterruptedError
from dynabandit.service.stores import Store

Result = TypeVar("Result")
Check = Callable[[], None]  # raises an error when the work is no longer wanted, or takes too long


class ReaderThread:
    """A thread with its own connection, which runs one query after the other."""

    def __init__(self, name: str, store: Store) -> None:
        self._connection = store.reader()
        self._thread = ThreadPoolExecutor(1, f"dynabandit-{name}")

    async def run(self, query: Callable[[Store], Result]) -> Result:
        """Run a query and return its result."""

        def read() -> Result:
            try:
                return query(self._connection)
            except StoreError:
                self._connection.rollback()
                raise

        return await asyncio.get_running_loop().run_in_executor(self._thread, read)

    async def stop(self) -> None:
        """Finish the query that runs, drop those that wait, and close the connection."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)
        self._connection.close()


class ConcurrencyLimit:
    """A limit on how many requests may do the same thing at once."""

    def __init__(self, most: int) -> None:
        self._most, self.running = most, 0

    def check(self) -> None:
        """Raise `OverloadedError` if the limit is reached."""
        if self.running >= self._most:
            raise OverloadedError

    @contextlib.contextmanager
    def reserve(self) -> Iterator[None]:
        """Count towards the limit inside the block, or raise `OverloadedError`."""
        self.check()
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1


class BoundedThreadPool(ConcurrencyLimit):
    """Runs long functions in threads, each on its own connection to the store.

    At most `threads` functions run at once, each for at most `max_seconds`, and at most `max_requests` requests use the
    pool, running and waiting. A function calls the check that it is given every now and then; it is interrupted when
    `closing` is set or when nobody awaits its result any more.
    """

    def __init__(
        self,
        name: str,
        store: Store,
        threads: int,
        max_requests: int,
        max_seconds: float = float("inf"),
        closing: threading.Event | None = None,
    ) -> None:
        super().__init__(max_requests)
        self._store = store
        self._threads = ThreadPoolExecutor(threads, f"dynabandit-{name}")
        self._max_seconds = max_seconds
        self._closing = closing or threading.Event()

    async def run(self, function: Callable[[Store, Check], Result]) -> Result:
        """Run a function in a thread; the caller has called `reserve`."""
        is_abandoned = threading.Event()

        def with_connection() -> Result:
            deadline = time.monotonic() + self._max_seconds

            def check() -> None:
                if is_abandoned.is_set() or self._closing.is_set():
                    raise WorkInterruptedError
                if time.monotonic() > deadline:
                    raise InvalidValueError(f"this must take at most {self._max_seconds:g} seconds; ask for less")

            check()
            with contextlib.closing(self._store.reader()) as store:
                return function(store, check)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, with_connection)
        finally:
            is_abandoned.set()

    async def stop(self) -> None:
        """Interrupt what runs, and drop what waits."""
        self._closing.set()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
