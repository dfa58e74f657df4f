"""The parts of a running service: writer, readers, thread pools and API keys, from start to stop."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from dynabandit.service.admission import MAX_WAITING
from dynabandit.service.clock import Clock
from dynabandit.service.decider_contacts import DeciderContacts
from dynabandit.service.domain.decision_ids import DecisionIds
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.errors import OverloadedError, StoreError, WorkInterruptedError
from dynabandit.service.keys import Keyring
from dynabandit.service.local_state_cache import LocalStateCache
from dynabandit.service.metrics import ServiceMetrics
from dynabandit.service.preview_worker import PreviewWorker
from dynabandit.service.rate_limits import RateLimits
from dynabandit.service.stores import Statements, Store
from dynabandit.service.stores.key_tables import api_keys
from dynabandit.service.thread_pool import BoundedThreadPool, Check, ConcurrencyLimit, ReaderThread
from dynabandit.service.writer import Writer

MAX_REPLAYS = 16  # running and waiting
MAX_PREVIEWS = 4  # likewise; every key with the role `read` may ask for them
PREVIEW_SECONDS = 60.0
MAX_LARGE_STATES = 8  # copies of states with many arms that are being encoded, or wait for it
MAX_LARGE_BODIES = 64  # that are being decoded, or wait for it
MAX_STREAMS = 16  # of events and exports; each has a connection to the store
MAX_LIVE_PAGES = 256
READY_CACHED = 0.5  # seconds
Result = TypeVar("Result")


class Webhook(NamedTuple):
    """Where alerts are sent, the secret that signs them, and the seconds until the first retry and of an attempt."""

    url: str
    secret: bytes
    first_retry: float = 1.0
    timeout: float = 10.0


class Service:
    """What HTTP handlers and pages use: `writer` for the states of bandits and all changes, `read` for the log.

    `clock` measures the reward windows. The keys are read every `key_seconds`, if callers need them. Alerts are sent to
    the `webhook`. Web pages of the `allowed_origins` may decide and reward. The service is not ready if a write takes
    longer than `ready_seconds`. A preview takes at most `preview_seconds`. For the other parameters see `Writer`.
    """

    def __init__(
        self,
        store: Store,
        needs_keys: bool = False,
        clock: Clock | None = None,
        max_waiting: int = MAX_WAITING,
        patience: float = 5.0,
        *,
        maintenance_seconds: float = 1.0,
        key_seconds: float = 1.0,
        ready_seconds: float = 2.0,
        snapshot_seconds: float = 2.0,
        preview_seconds: float = PREVIEW_SECONDS,
        timer: Callable[[], float] = time.monotonic,
        webhook: Webhook | None = None,
        allowed_origins: Collection[str] = (),
    ) -> None:
        self.decider_contacts, self.local_state_cache = DeciderContacts(timer), LocalStateCache[Any]()
        self.metrics = ServiceMetrics(self.decider_contacts)
        self.webhook, self.allowed_origins = webhook, frozenset(allowed_origins)
        self.needs_keys = needs_keys
        self.keyring = Keyring()
        self.rate_limits = RateLimits(timer)
        self.closing = threading.Event()  # set when the server is about to stop: endless streams then end
        self.compiled: set[str] = set()  # policies
        self.store = store
        clock = clock or Clock()
        self.note_refusal = clock.note_refusal  # of a request that may be repeated: reward windows then end later
        work = UnitOfWork(store, clock)
        self.writer = Writer(work, self.metrics, max_waiting, patience, maintenance_seconds, timer, snapshot_seconds)
        # Long work has its own threads, and so have pages of the log, for which short reads do not wait. So have the
        # keys: learning that one was revoked must not wait for anything
        self.replays = BoundedThreadPool("replay", store, threads=2, max_requests=MAX_REPLAYS)
        self.previews = BoundedThreadPool("preview", store, 1, MAX_PREVIEWS, preview_seconds, self.closing)
        self.preview_worker = PreviewWorker()  # in which they compute
        self.large_states = BoundedThreadPool("state", store, threads=1, max_requests=MAX_LARGE_STATES)
        self.streams, self.live_pages = ConcurrencyLimit(MAX_STREAMS), ConcurrencyLimit(MAX_LIVE_PAGES)
        self._exports = ThreadPoolExecutor(2, "dynabandit-export")
        self._bodies, self._large_bodies = ThreadPoolExecutor(1, "dynabandit-body"), ConcurrencyLimit(MAX_LARGE_BODIES)
        self._short_reads, self._log_reads = ReaderThread("read", store), ReaderThread("log", store)
        self._key_reads = ReaderThread("keys", store)
        self._key_seconds = key_seconds
        self._timer = timer
        self._ready_seconds = ready_seconds
        self._ready_until, self._ready_failures = 0.0, 0
        self._ready_check: asyncio.Task[None] | None = None
        self._key_refresher: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the writer, and read the keys."""
        self.writer.start()
        if self.needs_keys:
            await self._read_keys()
            self._key_refresher = asyncio.create_task(self._refresh_keys())

    async def stop(self) -> None:
        """Finish what waits and close the store."""
        if self._key_refresher is not None:
            self._key_refresher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._key_refresher
        self.closing.set()
        await self.writer.stop()
        self._exports.shutdown(wait=False, cancel_futures=True)  # running exports see `closing` and end
        self._bodies.shutdown(wait=False, cancel_futures=True)
        await self.replays.stop()
        await asyncio.to_thread(self.preview_worker.stop)
        await self.previews.stop()
        await self.large_states.stop()
        for reader in (self._short_reads, self._log_reads, self._key_reads):
            await reader.stop()

    async def _refresh_keys(self) -> None:
        while True:
            await asyncio.sleep(self._key_seconds)
            await self._read_keys()

    async def _read_keys(self) -> None:
        with contextlib.suppress(StoreError):  # the keys that were read last remain valid
            self.keyring.replace(await self._key_reads.run(api_keys))

    async def read(self, query: Callable[[Store], Result]) -> Result:
        """Read a few rows of the store, in another thread and on another connection than the writer's."""
        return await self._short_reads.run(query)

    async def read_log(self, query: Callable[[Store], Result]) -> Result:
        """Read many rows of a log in the same way; `read` does not wait for it."""
        return await self._log_reads.run(query)

    async def decision_ids(self) -> DecisionIds:
        """Return what makes and checks the ids of decisions, when the writer has prepared the store."""
        ids = self.writer.decision_ids
        return ids or await self.writer.submit(lambda work: work.store.decision_ids(), priority=True)

    def write_from_thread(self, statements: Statements, timeout: float) -> None:
        """Run statements that are no events in the writer's thread; for another thread, which waits until then."""
        loop = self.writer.requests.loop
        assert loop is not None

        async def write() -> None:
            await self.writer.submit(lambda work: work.store.write(statements), alone=True)

        asyncio.run_coroutine_threadsafe(write(), loop).result(timeout)

    async def run_long(self, function: Callable[[Store, Check], Result]) -> Result:
        """Run a function that may read a whole log, or compile a policy; see `BoundedThreadPool.run`."""
        with self.replays.reserve():
            return await self.replays.run(function)

    async def run_apart(self, decode: Callable[[], Result]) -> Result:
        """Return what decoding a large body returns, one after the other in another thread than the event loop."""
        with self._large_bodies.reserve():
            return await asyncio.get_running_loop().run_in_executor(self._bodies, decode)

    async def check_ready(self) -> None:
        """Raise an error unless the store accepts writes.

        A write is expensive and anybody may ask. So all who ask share one write, and a success is remembered for a
        moment, unless a request fails.
        """
        if self._ready_until > self._timer() and self._ready_failures == self.writer.requests.failures:
            return
        if self._ready_check is None:
            self._ready_check = asyncio.create_task(self._try_to_write())
            self._ready_check.add_done_callback(self._end_ready_check)
        await asyncio.shield(self._ready_check)

    def _end_ready_check(self, check: asyncio.Task[None]) -> None:
        self._ready_check = None
        if not check.cancelled():
            check.exception()  # those who asked may have left

    async def _try_to_write(self) -> None:
        failures = self.writer.requests.failures
        try:
            write = self.writer.submit(lambda work: work.store.save_time(work.clock.now()), alone=True, priority=True)
            await asyncio.wait_for(write, self._ready_seconds)
        except (TimeoutError, OverloadedError):
            raise StoreError("the store did not answer in time") from None
        self._ready_until, self._ready_failures = self._timer() + READY_CACHED, failures

    async def stream(
        self, make: Callable[[Store, Callable[[], bool]], Iterator[bytes]], may_continue: Callable[[], bool]
    ) -> AsyncIterator[bytes]:
        """Return the pieces that a generator makes on its own connection, each in a thread of the exports.

        The generator can ask whether its pieces are still wanted. A stream that may not continue ends with
        `WorkInterruptedError`, so that the response does not look complete.
        """
        gone = threading.Event()

        def run() -> Generator[bytes, None, None]:
            with contextlib.closing(self.store.reader()) as store:
                yield from make(store, lambda: not (gone.is_set() or self.closing.is_set()))

        pieces = run()
        making: Future[bytes | None] | None = None
        try:
            while not self.closing.is_set() and may_continue():
                making = self._exports.submit(next, pieces, None)
                piece = await asyncio.wrap_future(making)
                if piece is None:
                    return
                if piece:
                    yield piece
            raise WorkInterruptedError
        finally:
            gone.set()
            # The reader may have left in the middle of a statement: only the thread that runs it may close
            if making is not None:
                making.add_done_callback(lambda _: pieces.close())
