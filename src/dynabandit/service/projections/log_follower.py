"""The watcher: a thread that follows the logs for the pages, beside the service and in its own time."""

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import structlog

from dynabandit.service.domain.names import legible
from dynabandit.service.errors import StoreError
from dynabandit.service.projections.history import History
from dynabandit.service.service import Service
from dynabandit.service.stores import Store
from dynabandit.service.web.views import bandit_view, overview_entry

__all__ = ["OVERVIEW", "Watcher"]

OVERVIEW = ""  # no bandit has this name
MOST_BANDITS = 200  # in the list of all
PAGE = 1_000  # rows that are read at a time
WATCHED_SECONDS, IDLE_SECONDS = 0.4, 5.0  # between two looks at the store
SLICE_SECONDS = 0.4  # of reading one long log, before the others have their turn and it is shown how far it is
SAVE_EVERY = 50_000  # events
MOST_SAVED_ARMS = 1_000

log = structlog.get_logger("dynabandit.service")


class Watcher:
    """Keeps a history of each bandit, and what the pages that are open show of it.

    It reads the log through a connection of its own, so it sees what other processes write, and neither a decision
    nor the event loop waits for it. Views are made in its thread: a page's stream only sends bytes. Now and then it
    hands a history to the writer to be saved, so that a restart does not read the whole log again; where that
    fails nothing is lost but time.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._thread = threading.Thread(target=self._work, name="dynabandit-watcher", daemon=True)
        self._wake = threading.Event()
        self._stopping = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watched: Counter[str] = Counter()  # name -> open pages; only the event loop writes to it
        self._views: dict[str, tuple[int, bytes]] = {}  # name -> version, JSON
        self._versions = 0
        self._histories: dict[int, History] = {}
        self._ends: dict[int, int] = {}  # the last sequence number that was seen in the store
        self._saved: dict[int, int] = {}
        self._entries: dict[int, tuple[tuple[int, int], dict[str, Any]]] = {}
        self._broken: set[int] = set()

    # In the event loop's thread

    def start(self) -> None:
        """Start; call it in a running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def stop(self) -> None:
        """Save what was read, and end."""
        self._stopping = True
        self._wake.set()
        await asyncio.to_thread(self._thread.join)

    @contextlib.contextmanager
    def watching(self, name: str) -> Iterator[None]:
        """Keep the view of a bandit, or of all, up to date."""
        self._watched[name] += 1
        self._wake.set()
        try:
            yield
        finally:
            self._watched[name] -= 1

    def view(self, name: str) -> tuple[int, bytes] | None:
        """Return the view of a bandit with a number that grows whenever it changes."""
        return self._views.get(name)

    # In the watcher's thread

    def _work(self) -> None:
        store = self._service.reader()
        while not self._stopping:
            self._wake.clear()
            more = False
            try:
                more = self._look(store)
            except StoreError:  # not there now; it is asked again
                store.rollback()
            except Exception:  # this thread must outlive whatever goes wrong
                log.exception("watching failed")
            if not more:
                self._wake.wait(WATCHED_SECONDS if self._names() else IDLE_SECONDS)
        self._save([number for number, one in self._histories.items() if one.sequence > self._saved.get(number, 0)])
        store.close()

    def _names(self) -> set[str]:
        return {name for name, count in list(self._watched.items()) if count > 0}

    def _look(self, store: Store) -> bool:
        """Take in what is new of every bandit, those that are watched first; return whether there is more."""
        names = self._names()
        rows = store.bandits(limit=MOST_BANDITS)
        listed = {row.number: row.name for row in rows}
        watched = {number: name for name in names if name and (number := store.find(name)) is not None}
        more = False
        for number in [*watched, *(one for one in listed if one not in watched)]:
            if number not in self._broken and not self._stopping:
                more |= self._catch_up(store, number, watched.get(number))
        for name in names:
            if name != OVERVIEW and name not in watched.values():
                self._publish(name, b"null")
        self._forget({*listed, *watched})
        if OVERVIEW in names:
            self._show_all(listed, more=len(rows) == MOST_BANDITS)
        return more

    def _forget(self, there: set[int]) -> None:
        for number in [number for number in self._histories if number not in there]:
            del self._histories[number]
            self._entries.pop(number, None)
        shown = self._names()
        for name in [name for name in self._views if name not in shown]:
            del self._views[name]

    def _catch_up(self, store: Store, number: int, watched: str | None) -> bool:
        """Take in what is new of one bandit, for a while; return whether there is more."""
        try:
            history = self._histories.get(number) or self._load(store, number)
            self._histories[number] = history
            self._ends[number] = store.last_sequence(number)
            self._read(store, history, patient=watched is None)
            if watched is not None:
                self._show(history, watched)
            if history.sequence - self._saved.get(number, 0) >= SAVE_EVERY:
                self._save([number])
            return history.sequence < self._ends[number]
        except StoreError:
            raise
        except Exception:
            self._broken.add(number)
            log.exception("no history", bandit=number)
            return False

    def _read(self, store: Store, history: History, patient: bool) -> None:
        until = time.monotonic() + SLICE_SECONDS
        while history.sequence < self._ends[history.number] and time.monotonic() < until and not self._stopping:
            started = time.perf_counter()
            for row in store.events(history.number, history.sequence, PAGE):
                history.apply(row)
            if patient:  # nobody waits for it: leave half of the time to those that decide
                self._wake.wait(time.perf_counter() - started)

    def _load(self, store: Store, number: int) -> History:
        found = None
        with contextlib.suppress(StoreError):  # the table is made when the first history is saved
            found = store.history(number)
        if found is not None:
            try:
                history = History.from_json(number, found, store.rewards_before)
                self._saved[number] = history.sequence
                return history
            except (KeyError, TypeError, ValueError):
                log.warning("a saved history cannot be read; the log is", bandit=number)
        return History(number, store.rewards_before)

    def _save(self, numbers: list[int]) -> None:
        loop = self._loop
        rows = []
        for number in numbers:
            history = self._histories[number]
            self._saved[number] = history.sequence
            if 0 < len(history.plays) <= MOST_SAVED_ARMS:
                rows.append((number, history.sequence, history.to_json()))
        if loop is None or not rows:
            return
        try:
            asyncio.run_coroutine_threadsafe(self._service.write(Store.history_statements(rows)), loop).result(
                timeout=5
            )
        except Exception as error:
            log.warning("history was not saved", problem=str(error))

    # Views

    def _show(self, history: History, name: str) -> None:
        self._publish(name, msgspec.json.encode(bandit_view(history, self._ends[history.number])))

    def _show_all(self, listed: dict[int, str], more: bool) -> None:
        entries = [self._entry(self._histories[one]) for one in listed if one in self._histories]
        broken = [legible(name) for number, name in listed.items() if number in self._broken]
        self._publish(OVERVIEW, msgspec.json.encode({"bandits": entries, "broken": broken, "more": more}))

    def _entry(self, history: History) -> dict[str, Any]:
        stand = (history.sequence, self._ends[history.number])
        before = self._entries.get(history.number)
        if before is None or before[0] != stand:
            before = (stand, overview_entry(history, stand[1]))
            self._entries[history.number] = before
        return before[1]

    def _publish(self, name: str, content: bytes) -> None:
        before = self._views.get(name)
        if before is None or before[1] != content:
            self._versions += 1
            self._views[name] = (self._versions, content)
