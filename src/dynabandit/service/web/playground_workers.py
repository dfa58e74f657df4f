"""Worker processes that run the simulations of the playground, with limits on their number and time."""

import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator

import anyio

from dynabandit.policies import used_plugins
from dynabandit.service.thread_pool import ConcurrencyLimit

MAX_RUNS = 2  # at the same time
RUN_SECONDS = 90.0  # after which a run is ended
CLOSING_SECONDS = 0.2  # between two checks whether the service is being stopped
SPARE_SECONDS = 300.0  # after which an unused spare process is ended
LONGEST_LINE = 1 << 24
COMMAND = (sys.executable, "-P", "-m", "dynabandit.playground")

Process = asyncio.subprocess.Process


class WorkerPool:
    """Runs each simulation in a process of its own, so that compiling and computing never delay a decision.

    One process is started in advance and waits for the next run. A process ends when its standard input is closed, so
    none outlives the service. At most `limit` runs are in progress at the same time, each for at most `time_limit`
    seconds. `closing` is set when the service is being stopped.
    """

    def __init__(
        self, limit: int | None = None, time_limit: float | None = None, closing: threading.Event | None = None
    ) -> None:
        self.limit = MAX_RUNS if limit is None else limit
        self.time_limit = RUN_SECONDS if time_limit is None else time_limit
        self.closing = threading.Event() if closing is None else closing
        self.running: set[Process] = set()
        self._runs = ConcurrencyLimit(self.limit)
        self._spare: Process | None = None
        self._starting: asyncio.Task[None] | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def worker(self) -> AsyncIterator[Process]:
        """Provide a process, and kill it on exit; raise `OverloadedError` if too many are in use."""
        process = None
        closing_check = None
        try:
            with self._runs.reserve():
                with anyio.CancelScope(shield=True):  # a process that is being started must be known, to be ended
                    process = await self._take()
                assert process is not None
                closing_check = asyncio.create_task(self._kill_on_closing(process))
                self.running.add(process)
                yield process
        finally:
            if process is not None and closing_check is not None:
                closing_check.cancel()
                self.running.discard(process)
                with anyio.CancelScope(shield=True):  # a disconnected client must not interrupt this
                    await _end(process)

    async def _kill_on_closing(self, process: Process) -> None:
        while not self.closing.is_set():
            await asyncio.sleep(CLOSING_SECONDS)
        process.kill()

    async def messages(self, process: Process, link: str) -> AsyncGenerator[bytes, None]:
        """Send a run to a process and yield its messages; raise `TimeoutError` after the time limit."""
        assert process.stdin is not None
        assert process.stdout is not None
        async with asyncio.timeout(self.time_limit):
            process.stdin.write(link.encode() + b"\n")
            while line := await process.stdout.readline():
                yield line

    async def prepare(self) -> None:
        """Start a spare process unless there is one: starting takes about a second."""
        if self.closing.is_set():
            return
        if self._starting is None and (self._spare is None or self._spare.returncode is not None):
            self._starting = asyncio.get_running_loop().create_task(self._start_spare())

    async def _start_spare(self) -> None:
        try:
            self._spare = await _start()
            self._expiry = asyncio.get_running_loop().call_later(SPARE_SECONDS, self._expire)
        finally:
            self._starting = None

    async def _take(self) -> Process:
        if self._starting is not None:
            await asyncio.shield(self._starting)
        spare = self._take_spare()
        return spare if spare is not None and spare.returncode is None else await _start()

    def _take_spare(self) -> Process | None:
        spare, self._spare = self._spare, None
        if self._expiry is not None:
            self._expiry.cancel()
        return spare

    def _expire(self) -> None:
        self._ending = asyncio.get_running_loop().create_task(self._end_spare())

    async def _end_spare(self) -> None:
        spare = self._take_spare()
        if spare is not None:
            await _end(spare)

    async def stop(self) -> None:
        """End all processes."""
        if self._starting is not None:
            await self._starting
        await self._end_spare()
        for process in self.running:  # `worker` waits for the end of each
            process.kill()


async def _start() -> Process:
    return await asyncio.create_subprocess_exec(
        *COMMAND, *used_plugins(), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LONGEST_LINE
    )


async def _end(process: Process) -> None:
    """Kill a process and wait for its end."""
    assert process.stdin is not None
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.stdin.close()
    await process.communicate()  # reads the rest of its output, without which the pipe would stay open
