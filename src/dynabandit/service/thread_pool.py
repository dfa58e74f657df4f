"""A pool of threads for what takes long, such as reading a whole log, with room for few callers."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from dynabandit.service.http.limits import Overloaded
from dynabandit.service.stores import Store

__all__ = ["Pool"]

Result = TypeVar("Result")


class Pool:
    """Does work on connections of its own.

    Parameters
    ----------
    name
        What the threads are called.
    store
        What the work reads.
    threads
        How much of it runs at once.
    most
        How many callers may have a place, those whose work runs included.
    """

    def __init__(self, name: str, store: Store, threads: int, most: int) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(threads, f"dynabandit-{name}")
        self._most = most
        self.inside = 0  # callers that have a place

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place, or raise `Overloaded`."""
        if self.inside >= self._most:
            raise Overloaded
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    async def run(self, work: Callable[[Store], Result]) -> Result:
        """Do work in a thread; whoever asks for it holds a place."""

        def connected() -> Result:
            with contextlib.closing(self._store.reader()) as store:
                return work(store)

        return await asyncio.get_running_loop().run_in_executor(self._threads, connected)

    async def stop(self) -> None:
        """Finish what runs, and leave out what waits."""
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
