"""The service without HTTP: each call of the API as a coroutine."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from dynabandit.policies import POLICIES
from dynabandit.service import api_types
from dynabandit.service.clock import Clock
from dynabandit.service.domain.bandit_state import State
from dynabandit.service.domain.events import Row, shown
from dynabandit.service.domain.names import is_whole, legible, public_id, read_decision_id, read_public_id
from dynabandit.service.domain.operations import Desk, view
from dynabandit.service.domain.preview import preview
from dynabandit.service.domain.warm_start import compile_policy, warmed
from dynabandit.service.errors import Interrupted, Refused, StoreFailed
from dynabandit.service.http.limits import MOST_WAITING, Overloaded, Pace
from dynabandit.service.keys import Keyring
from dynabandit.service.metrics import Metrics
from dynabandit.service.stores import BanditRow, Store
from dynabandit.service.thread_pool import Pool
from dynabandit.service.writer import Call, Writer

__all__ = ["Service", "find_log", "shown_events"]

MANY_ARMS = 500  # from here on a state is written out in a thread of its own
MOST_REPLAYS = 16  # that run or wait for a thread
MOST_PREVIEWS = 4  # likewise; whoever may read may ask for them
READY_SECONDS = 2.0
READY_FOR = 0.5  # seconds
WARMINGS = 4  # tries to warm a policy while nobody waits; then all wait for it
KEYS_SECONDS = 1.0
Result = TypeVar("Result")


class Service:
    """All that the HTTP layer calls.

    Parameters
    ----------
    store
        Where the log lives.
    needs_keys
        Whether callers must show an API key.
    clock
        Measures the windows.
    most_waiting, patience
        See `Writer`.
    """

    def __init__(
        self,
        store: Store,
        needs_keys: bool = False,
        clock: Clock | None = None,
        most_waiting: int = MOST_WAITING,
        patience: float = 5.0,
    ) -> None:
        self.metrics = Metrics()
        self.needs_keys = needs_keys
        self.keyring = Keyring()
        self.closing = threading.Event()  # set when the server is about to stop: whatever streams without end, ends
        self._store = store
        self._reader = store.reader()
        self._reading = threading.Lock()
        self._desk = Desk(store, clock or Clock())
        self._writer = Writer(self._desk, self.metrics, most_waiting, patience)
        # What takes long has threads of its own: reading the keys, of which some may be revoked, must not wait for it
        self._replays = Pool("replay", store, threads=2, most=MOST_REPLAYS)
        self._previews = Pool("preview", store, threads=1, most=MOST_PREVIEWS)
        self._exports = ThreadPoolExecutor(2, "dynabandit-export")
        self._key_reader, self._key_thread = store.reader(), ThreadPoolExecutor(1, "dynabandit-keys")
        self._compiled: set[str] = set()
        self._pace = Pace()
        self._ready_until, self._ready_failures = 0.0, 0
        self._refresher: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the writer, and read the keys."""
        self._writer.start()
        if self.needs_keys:
            await self._read_keys()
            self._refresher = asyncio.create_task(self._refresh_keys())

    async def stop(self) -> None:
        """Finish what waits and close the store."""
        if self._refresher is not None:
            self._refresher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._refresher
        self.closing.set()
        await self._writer.stop()
        self._exports.shutdown(wait=False, cancel_futures=True)  # what runs is told that nobody wants it any more
        await self._replays.stop()
        await self._previews.stop()
        await asyncio.to_thread(self._close_readers)

    def _close_readers(self) -> None:
        with self._reading:  # a caller may be gone, but what it asked runs
            self._reader.close()
        self._key_thread.submit(self._key_reader.close)
        self._key_thread.shutdown()

    async def _refresh_keys(self) -> None:
        while True:
            await asyncio.sleep(KEYS_SECONDS)
            await self._read_keys()

    async def _read_keys(self) -> None:
        with contextlib.suppress(StoreFailed):  # the keys that were read last still hold
            work = asyncio.get_running_loop().run_in_executor(self._key_thread, _ask, self._key_reader, Store.api_keys)
            self.keyring.replace(await work)

    async def read(self, ask: Callable[[Store], Result]) -> Result:
        """Ask the store something, in a thread and on a connection of its own."""

        def work() -> Result:
            with self._reading:
                return _ask(self._reader, ask)

        return await asyncio.to_thread(work)

    def reader(self) -> Store:
        """Return a store with a connection of its own, for a thread that follows the log."""
        return self._store.reader()

    async def write(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> None:
        """Write something that is no event, through the one thread that writes."""
        await self._writer.submit(Call(lambda desk: desk.store.write(statements), alone=True))

    def check_room(self) -> None:
        """Raise `Overloaded` where a decision or a reward would be turned away anyway, before its body is read."""
        if self._writer.room.full():
            raise Overloaded

    async def hold_back(self) -> bool:
        """Wait before a caller is turned away; return whether it may stay connected."""
        wait = self._pace.wait()
        if wait:
            await asyncio.sleep(wait)
        return wait is not None

    # Calls of the API; those that change something return also whether they did

    async def create(self, name: str, asked: api_types.Create) -> tuple[int, api_types.BanditState]:
        """PUT /v1/bandits/{name}."""

        def run(desk: Desk) -> tuple[int, Callable[[], api_types.BanditState]]:
            status, state = desk.create(name, asked)
            return status, view(state)

        if asked.policy in POLICIES.keys() - self._compiled:  # compiling takes seconds, and must keep nobody waiting
            await self._replay(lambda store: compile_policy(asked.policy, asked.parameters))
            self._compiled.add(asked.policy)
        status, shown = await self._writer.submit(Call(run, name=name, alone=True, change=True))
        return status, await self._written_out(shown, len(asked.arms))

    async def state(self, name: str) -> api_types.BanditState:
        """GET /v1/bandits/{name}."""

        def run(desk: Desk) -> tuple[int, Callable[[], api_types.BanditState]]:
            state = desk.named(name)
            return len(state.bandit.names), view(state)

        arms, shown = await self._writer.submit(Call(run, name=name))
        return await self._written_out(shown, arms)

    async def _written_out(self, shown: Callable[[], api_types.BanditState], arms: int) -> api_types.BanditState:
        return shown() if arms < MANY_ARMS else await asyncio.to_thread(shown)

    async def bandits(self, deleted: bool, after: str, limit: int) -> api_types.BanditList:
        """GET /v1/bandits."""
        found, more = await self.read(lambda store: _bandits(store, deleted, after, limit))
        listed = [api_types.BanditSummary(legible(row.name), public_id(row.number), row.deleted) for row in found]
        return api_types.BanditList(listed, listed[-1].name if more else None)

    async def decide(self, name: str, count: int, key: str | None) -> api_types.Decisions:
        """POST /v1/bandits/{name}/decisions."""
        call = Call(lambda desk: desk.decide(desk.named(name), count, key), name=name, events=count)
        return api_types.Decisions(await self._writer.submit(call))

    async def reward(self, decision: str, value: float) -> api_types.Rewarded:
        """PUT /v1/decisions/{id}/reward."""
        found = read_decision_id(decision)
        if found is None:
            raise Refused(404, f"there is no decision {decision[:100]!r}")
        number, step = found
        await self._writer.submit(Call(lambda desk: desk.reward(number, step, value), bandits=[number]))
        return api_types.Rewarded(decision, value)

    async def rewards(self, given: list[api_types.GivenReward]) -> api_types.RewardResults:
        """POST /v1/rewards."""
        read = [(read_decision_id(one.decision), one) for one in given]

        def run(desk: Desk) -> list[api_types.RewardResult]:
            return [_reward_one(desk, found, one) for found, one in read]

        numbers = {found[0] for found, _ in read if found is not None}
        return api_types.RewardResults(await self._writer.submit(Call(run, bandits=numbers, events=len(given))))

    async def add_arm(self, name: str, arm: str) -> tuple[api_types.Changed, bool]:
        """POST /v1/bandits/{name}/arms."""
        return await self._change(name, lambda desk: desk.add_arm(desk.named(name), arm))

    async def change_arm(self, name: str, arm: str, change: api_types.ChangeArm) -> tuple[api_types.Changed, bool]:
        """PATCH /v1/bandits/{name}/arms/{arm}."""
        return await self._change(name, lambda desk: desk.change_arm(desk.named(name), arm, change))

    async def set_policy(self, name: str, asked: api_types.SetPolicy) -> tuple[api_types.Changed, bool]:
        """PUT /v1/bandits/{name}/policy."""
        changed = None
        for left in reversed(range(WARMINGS)):
            if changed is None:
                changed = await self._try_to_swap(name, asked, last=left == 0)
        assert changed is not None, "the last try does what the others leave undone"
        return changed

    async def _try_to_swap(
        self, name: str, asked: api_types.SetPolicy, last: bool
    ) -> tuple[api_types.Changed, bool] | None:
        """Warm the policy while decisions go on, then swap; None where arms came or went meanwhile."""
        copied = await self._copied(name)
        warming = await self._replay(lambda store: warmed(store, copied, asked))
        if warming is None:
            return api_types.Changed(copied.sequence), False

        def run(desk: Desk) -> tuple[api_types.Changed, bool] | None:
            state = desk.named(name)
            if not last and not warming.fits(state):
                return None
            changed = desk.set_policy(state, asked, warming)
            return api_types.Changed(state.sequence), changed

        result: tuple[api_types.Changed, bool] | None
        result = await self._writer.submit(Call(run, name=name, alone=True, change=True))
        return result

    async def _copied(self, name: str) -> State:
        call = Call(lambda desk: desk.named(name).copy(), name=name, change=True)
        state: State = await self._writer.submit(call)
        return state

    async def preview_policy(self, name: str, asked: api_types.PreviewPolicy) -> api_types.Preview:
        """POST /v1/bandits/{name}/policy/preview."""
        with self._previews.place():
            state = await self._copied(name)
            return await self._previews.run(lambda store: preview(store, state, asked))

    async def _replay(self, work: Callable[[Store], Result]) -> Result:
        """Do work that may read a whole log."""
        with self._replays.place():
            return await self._replays.run(work)

    async def _change(self, name: str, change: Callable[[Desk], bool]) -> tuple[api_types.Changed, bool]:
        def run(desk: Desk) -> tuple[api_types.Changed, bool]:
            changed = change(desk)
            return api_types.Changed(desk.named(name).sequence), changed

        result: tuple[api_types.Changed, bool] = await self._writer.submit(Call(run, name=name, change=True))
        return result

    async def delete(self, name: str, id: str | None, erase: bool) -> tuple[api_types.Deleted, bool]:  # noqa: A002
        """DELETE /v1/bandits/{name}."""

        def run(desk: Desk) -> tuple[int, bool]:
            number = find_log(desk.store, name, id)
            there = desk.number(name) == number
            if erase:
                desk.erase(number, name)
            elif there:
                desk.delete(desk.named(name))
            return number, erase or there

        before = None if id is None else read_public_id(id)
        bandits = () if before is None else (before,)
        number, changed = await self._writer.submit(Call(run, name=name, bandits=bandits, alone=True, change=True))
        return api_types.Deleted(name, public_id(number), log_kept=not erase), changed

    async def events(
        self,
        name: str,
        id: str | None,  # noqa: A002
        after: int,
        limit: int,
        kinds: Sequence[str] = (),
    ) -> api_types.Events:
        """GET /v1/bandits/{name}/events."""

        def ask(store: Store) -> api_types.Events:
            number = find_log(store, name, id)
            return api_types.Events(list(shown_events(store, number, store.events(number, after, limit, kinds))))

        return await self.read(ask)

    async def ready(self) -> None:
        """Raise an error unless the store takes writes.

        Anybody may ask, and a write is dear: a store that took one a moment ago, and failed at none since, is ready.
        """
        failures = self._writer.failures
        if self._ready_until > time.monotonic() and self._ready_failures == failures:
            return

        def probe(desk: Desk) -> None:
            desk.store.save_time(desk.clock.now())

        try:
            await asyncio.wait_for(self._writer.submit(Call(probe, alone=True, change=True)), READY_SECONDS)
        except (TimeoutError, Overloaded):
            raise StoreFailed("the store did not answer in time") from None
        self._ready_until, self._ready_failures = time.monotonic() + READY_FOR, failures

    async def stream(
        self, make: Callable[[Store, Callable[[], bool]], Iterator[bytes]], may_go_on: Callable[[], bool]
    ) -> AsyncIterator[bytes]:
        """Return pieces that a generator makes from a connection of its own, each in a thread of the exports.

        The generator is told whether its work is still wanted. A stream that may not go on ends with `Interrupted`:
        what was cut short must not look whole.
        """
        gone = threading.Event()

        def run() -> Generator[bytes, None, None]:
            with contextlib.closing(self._store.reader()) as store:
                yield from make(store, lambda: not (gone.is_set() or self.closing.is_set()))

        pieces = run()
        work: Future[bytes | None] | None = None
        try:
            while not self.closing.is_set() and may_go_on():
                work = self._exports.submit(next, pieces, None)
                piece = await asyncio.wrap_future(work)
                if piece is None:
                    return
                if piece:
                    yield piece
            raise Interrupted
        finally:
            gone.set()
            # Whoever listened may be gone in the middle of a statement: only the thread that runs it may close
            if work is not None:
                work.add_done_callback(lambda _: pieces.close())


def _ask(store: Store, ask: Callable[[Store], Result]) -> Result:
    try:
        return ask(store)
    except StoreFailed:
        store.rollback()
        raise


def _bandits(store: Store, deleted: bool, after: str, limit: int) -> tuple[list[BanditRow], bool]:
    """Return a page of bandits, and whether there may be more; a page ends at a name that callers can repeat."""
    found = store.bandits(deleted, after, limit)
    more = len(found) >= limit
    while more and not is_whole(found[-1].name):
        following = store.bandits(deleted, found[-1].name, 1)
        found += following
        more = bool(following)
    return found, more


def _reward_one(desk: Desk, found: tuple[int, int] | None, given: api_types.GivenReward) -> api_types.RewardResult:
    try:
        if found is None:
            raise Refused(404, f"there is no decision {given.decision!r}")
        desk.reward(*found, given.reward)
    except Refused as error:
        return api_types.RewardResult(given.decision, error.status, error.problem)
    return api_types.RewardResult(given.decision, 200)


def find_log(store: Store, name: str, id: str | None) -> int:  # noqa: A002
    """Return the number of a bandit whose log is asked for; `id` reaches those that were deleted."""
    if id is None:
        number = store.find(name)
    else:
        number = read_public_id(id)
        row = None if number is None else store.bandit(number)
        number = None if row is None or row.name != name else number
    if number is None:
        raise Refused(404, f"there is no bandit {name!r}" + (f" with the id {id[:100]!r}" if id is not None else ""))
    return number


def shown_events(store: Store, number: int, rows: list[Row]) -> Iterator[api_types.Event]:
    """Return rows as callers see them; a column's name is in the events that brought the arms."""
    names = store.arm_names(number)
    return (shown(row, names) for row in rows)
