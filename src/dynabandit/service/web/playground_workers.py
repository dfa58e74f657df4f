"""Processes that run the trials of the playground: few at once, none for long, and none without its client."""

import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator

__all__ = ["MOST_AT_ONCE", "Busy", "Process", "Workers"]

MOST_AT_ONCE = 2
SECONDS = 90.0
CLOSING_SECONDS = 0.2  # between two looks at whether the service ends
SPARE_SECONDS = 300.0  # how long a process waits for work
LONGEST_LINE = 1 << 24
COMMAND = (sys.executable, "-P", "-m", "dynabandit.playground")

Process = asyncio.subprocess.Process


class Busy(Exception):  # noqa: N818 - an answer, not a fault
    """As many trials run as may run at once."""


class Workers:
    """Runs trials in processes of their own, so that compiling and computing never touch a decision.

    A process that has started and waits for a trial is kept as a spare for the next one. Each ends with its input,
    so that none outlives the service.

    Parameters
    ----------
    most
        How many trials may run at once.
    seconds
        After how long a trial is ended.
    closing
        Is set when the service is about to end.
    """

    def __init__(
        self, most: int = MOST_AT_ONCE, seconds: float = SECONDS, closing: threading.Event | None = None
    ) -> None:
        self.most = most
        self.seconds = seconds
        self.closing = threading.Event() if closing is None else closing
        self.running: set[Process] = set()
        self._entered = 0
        self._spare: Process | None = None
        self._starting: asyncio.Task[None] | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def worker(self) -> AsyncIterator[Process]:
        """Lend a process; it is killed on the way out, whatever it does then."""
        if self._entered >= self.most:
            raise Busy
        self._entered += 1
        process = None
        watch = None
        try:
            process = await self._take()
            watch = asyncio.create_task(self._kill_on_closing(process))
            self.running.add(process)
            yield process
        finally:
            self._entered -= 1
            if process is not None and watch is not None:
                watch.cancel()
                self.running.discard(process)
                await _end(process)

    async def _kill_on_closing(self, process: Process) -> None:
        while not self.closing.is_set():
            await asyncio.sleep(CLOSING_SECONDS)
        process.kill()

    async def lines(self, process: Process, link: str) -> AsyncGenerator[bytes, None]:
        """Hand a trial to a process and yield its messages; a time limit ends it with a `TimeoutError`."""
        assert process.stdin is not None
        assert process.stdout is not None
        async with asyncio.timeout(self.seconds):
            process.stdin.write(link.encode() + b"\n")
            while line := await process.stdout.readline():
                yield line

    def warm(self) -> None:
        """See to it that a process is ready when it is asked for: starting one takes a second."""
        if self.closing.is_set():
            return
        if self._starting is None and (self._spare is None or self._spare.returncode is not None):
            self._starting = asyncio.get_running_loop().create_task(self._start_spare())

    async def _start_spare(self) -> None:
        try:
            self._spare = await _start()
            self._expiry = asyncio.get_running_loop().call_later(SPARE_SECONDS, self._give_up)
        finally:
            self._starting = None

    async def _take(self) -> Process:
        if self._starting is not None:
            await asyncio.shield(self._starting)
        spare = self._without_spare()
        return spare if spare is not None and spare.returncode is None else await _start()

    def _without_spare(self) -> Process | None:
        spare, self._spare = self._spare, None
        if self._expiry is not None:
            self._expiry.cancel()
        return spare

    def _give_up(self) -> None:
        self._ending = asyncio.get_running_loop().create_task(self._end_spare())

    async def _end_spare(self) -> None:
        spare = self._without_spare()
        if spare is not None:
            await _end(spare)

    async def stop(self) -> None:
        """End all processes."""
        if self._starting is not None:
            await self._starting
        await self._end_spare()
        for process in self.running:  # whoever watches it waits for its end
            process.kill()


async def _start() -> Process:
    return await asyncio.create_subprocess_exec(
        *COMMAND, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LONGEST_LINE
    )


async def _end(process: Process) -> None:
    """Kill a process, and wait until nothing of it is left."""
    assert process.stdin is not None
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.stdin.close()
    await process.communicate()  # reads what it said last: the pipe would stay open
