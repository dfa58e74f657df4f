"""A thread pool for long work, such as reading a whole log, with a limit on how many requests may wait for it."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from dynabandit.service.errors import OverloadedError
from dynabandit.service.stores import Store

Result = TypeVar("Result")


class BoundedThreadPool:
    """Runs functions in threads, each on its own connection to the store.

    At most `threads` functions run at once, and at most `max_requests` requests use the pool, running and waiting.
    """

    def __init__(self, name: str, store: Store, threads: int, max_requests: int) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(threads, f"dynabandit-{name}")
        self._max_requests = max_requests
        self.requests = 0

    @contextlib.contextmanager
    def reserve(self) -> Iterator[None]:
        """Take one of the places, or raise `OverloadedError`."""
        if self.requests >= self._max_requests:
            raise OverloadedError
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1

    async def run(self, function: Callable[[Store], Result]) -> Result:
        """Run a function in a thread; the caller has reserved a place."""

        def with_connection() -> Result:
            with contextlib.closing(self._store.reader()) as store:
                return function(store)

        return await asyncio.get_running_loop().run_in_executor(self._threads, with_connection)

    async def stop(self) -> None:
        """Finish what runs, and drop what waits."""
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
