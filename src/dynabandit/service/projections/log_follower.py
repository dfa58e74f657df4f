"""The log follower: a thread that reads new events of all bandits and prepares the data of the live pages."""

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from dynabandit.service.domain.names import legible
from dynabandit.service.errors import ReplayMismatchError, StoreError
from dynabandit.service.logging_setup import log
from dynabandit.service.projections.bandit_history import BanditHistory
from dynabandit.service.projections.live_page_data import bandit_page_data, compared_with, overview_entry
from dynabandit.service.service import Service
from dynabandit.service.stores import BanditRow, Store
from dynabandit.service.stores.histories import history_statements, saved_history
from dynabandit.service.stores.unit_table import count_units

MAX_BANDITS = 200  # on the overview page
BATCH_ROWS = 1_000  # rows per query
OPEN_PAGE_SECONDS, NO_PAGE_SECONDS = 0.4, 5.0  # between two queries, with and without an open page
TURN_SECONDS = 0.4  # of reading one log, before the next log is read and the page shows the progress
SAVE_EVERY = 50_000  # events
MAX_SAVED_ARMS = 1_000
MAX_UNITS = 100_000  # that are counted
LISTING_PAUSE = 20.0  # times the seconds that listing the bandits of all overview pages took, until it is done again


class PageData(NamedTuple):
    """The data of a page as JSON; the version increases with each change."""

    version: int
    content: bytes


class Overview(NamedTuple):
    """The overview page of all bandits or of those of a namespace, if wanted only of names that contain a text."""

    namespace: str | None = None
    search: str = ""


class BanditPage(NamedTuple):
    """The page of the bandit with this name, on which its arms are compared with a control arm."""

    name: str
    control: str | None = None


Page = BanditPage | Overview


def _bandits_on(page: Overview, store: Store) -> list[BanditRow]:
    """Return the first bandits by name of an overview page; upper and lower case are the same in a search."""
    text, found, after = page.search.casefold(), list[BanditRow](), ""
    size = BATCH_ROWS if text else MAX_BANDITS
    while len(found) < MAX_BANDITS:
        rows = store.bandits(after=after, limit=size, namespace=page.namespace)
        found += [row for row in rows if text in legible(row.name).casefold()]
        if len(rows) < size:
            break
        after = rows[-1].name
    return found[:MAX_BANDITS]


class LogFollower:
    """Keeps a history of each bandit, and the data of each open page.

    It reads the log through its own connection, so it sees what other replicas write, and neither decisions nor the
    event loop wait for it. Histories are saved through the writer now and then, so that a restart need not read whole
    logs again. They are a cache: when saving fails, nothing is lost but time. Only one of several replicas keeps the
    histories of bandits without an open page.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._thread = threading.Thread(target=self._run, name="dynabandit-log-follower", daemon=True)
        self._wake = threading.Event()
        self._stopping = False
        self._open_pages: Counter[Page] = Counter()  # written by the event loop only
        self._page_data: dict[Page, PageData] = {}
        self._version = 0
        self._histories: dict[int, BanditHistory] = {}
        self._last_sequence: dict[int, int] = {}  # in the store, when it was read last
        self._saved_sequence: dict[int, int] = {}
        self._entries: dict[int, tuple[tuple[int, int], dict[str, Any]]] = {}  # of the overview, by bandit
        self._unreadable: set[int] = set()
        self._listed: dict[Overview, dict[int, str]] = {}  # the numbers and names of the bandits of each page
        self._next_listing = 0.0
        self._shown: dict[Overview, Any] = {}  # what the data of a page were made of

    # Called in the event loop

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    async def stop(self) -> None:
        """Save the histories and end the thread."""
        self._stopping = True
        self._wake.set()
        await asyncio.to_thread(self._thread.join)

    @contextlib.contextmanager
    def following(self, page: Page) -> Iterator[None]:
        """Keep the data of a page up to date while the context is open."""
        self._open_pages[page] += 1
        if self._open_pages[page] == 1:  # what is left of an earlier page may be of a bandit that was erased since
            self._page_data.pop(page, None)
        self._wake.set()
        try:
            yield
        finally:
            self._open_pages[page] -= 1
            if not self._open_pages[page]:  # callers choose the texts of a page, so there may be any number of them
                del self._open_pages[page]

    def page_data(self, page: Page) -> PageData | None:
        """Return the latest data of a page, or None before the first."""
        return self._page_data.get(page)

    # Called in the follower's thread

    def _run(self) -> None:
        store = self._service.store.reader()
        while not self._stopping:
            self._wake.clear()
            more = False
            try:
                more = self._update(store)
            except StoreError:  # not available now; try again
                store.rollback()
            except Exception:  # the thread must survive any error
                log.exception("following the log failed")
            if not more:
                is_soon = self._pages() or not self._service.writer.is_prepared
                self._wake.wait(OPEN_PAGE_SECONDS if is_soon else NO_PAGE_SECONDS)
        self._save(
            [
                bandit_number
                for bandit_number, history in self._histories.items()
                if self._is_unsaved(bandit_number, history)
            ]
        )
        store.close()

    def _pages(self) -> set[Page]:
        return {page for page, count in list(self._open_pages.items()) if count > 0}

    def _is_unsaved(self, bandit_number: int, history: BanditHistory) -> bool:
        return history.sequence > self._saved_sequence.get(bandit_number, 0)

    def _update(self, store: Store) -> bool:
        """Read new events of every bandit, those with an open page first; return whether there are more.

        Nothing is read before the writer has migrated the tables, which also removes the histories of other releases.
        """
        if not self._service.writer.is_prepared:
            return False
        pages = self._pages()
        of_bandits = [page for page in pages if isinstance(page, BanditPage)]
        overviews = {page for page in pages if isinstance(page, Overview)}
        listed_on = self._list(overviews | {Overview()} if store.is_leader() else overviews, store)
        listed = {bandit_number for bandits in listed_on.values() for bandit_number in bandits}
        open_bandits: dict[int, list[BanditPage]] = {}
        for one in of_bandits:
            found = store.find(one.name)
            if found is None:
                self._publish(one, b"null")
            else:
                open_bandits.setdefault(found, []).append(one)
        more = False
        for bandit_number in [
            *open_bandits,
            *(bandit_number for bandit_number in listed if bandit_number not in open_bandits),
        ]:
            if bandit_number not in self._unreadable and not self._stopping:
                more |= self._catch_up(store, bandit_number, open_bandits.get(bandit_number, ()))
        self._discard_except({*listed, *open_bandits})
        for page in overviews:
            self._publish_overview(page, listed_on[page])
        return more

    def _list(self, pages: set[Overview], store: Store) -> dict[Overview, dict[int, str]]:
        """Return the bandits of overview pages.

        A search reads the names of all bandits, so with many of them or many searches it is repeated less often.
        """
        started = time.monotonic()
        is_due = started >= self._next_listing
        known = {} if is_due else self._listed
        self._listed = {
            page: known[page] if page in known else {row.number: row.name for row in _bandits_on(page, store)}
            for page in pages
        }
        if is_due:
            now = time.monotonic()
            self._next_listing = now + LISTING_PAUSE * (now - started)
        return self._listed

    def _discard_except(self, needed: set[int]) -> None:
        for bandit_number in self._histories.keys() - needed:
            del self._histories[bandit_number]
            self._entries.pop(bandit_number, None)
        for page in self._page_data.keys() - self._pages():
            self._page_data.pop(page, None)
        for overview in self._shown.keys() - self._page_data.keys():
            del self._shown[overview]

    def _catch_up(self, store: Store, bandit_number: int, pages: Sequence[BanditPage]) -> bool:
        """Read new events of one bandit, with these open pages, for a limited time; return whether there are more."""
        try:
            history = self._histories.get(bandit_number) or self._load(store, bandit_number)
            self._histories[bandit_number] = history
            self._last_sequence[bandit_number] = store.last_sequence(bandit_number)
            if not self._read(store, history, yield_time=not pages):
                self._histories[bandit_number] = history = self._restart(store, history)
            if pages:
                data = bandit_page_data(history, self._last_sequence[bandit_number], self._units(store, history))
            for page in pages:
                self._publish(page, msgspec.json.encode(compared_with(page.control, data, history)))
            if history.sequence - self._saved_sequence.get(bandit_number, 0) >= SAVE_EVERY:
                self._save([bandit_number])
            return history.sequence < self._last_sequence[bandit_number]
        except StoreError:
            raise
        except Exception:
            self._unreadable.add(bandit_number)
            log.exception("cannot read the log of a bandit", bandit=bandit_number)
            return False

    @staticmethod
    def _units(store: Store, history: BanditHistory) -> int | None:
        """Return how many units of a bandit keep their arm at the time of the latest event, up to a limit."""
        if history.sticky_for is None:
            return None
        return count_units(store, history.bandit_number, history.time - history.sticky_for, MAX_UNITS)

    def _read(self, store: Store, history: BanditHistory, yield_time: bool) -> bool:
        """Read new events for a limited time; return false where some are missing."""
        until = time.monotonic() + TURN_SECONDS
        last = self._last_sequence[history.bandit_number]
        while history.sequence < last and time.monotonic() < until and not self._stopping:
            started = time.perf_counter()
            for row in store.events(history.bandit_number, history.sequence, BATCH_ROWS):
                if row.sequence != history.sequence + 1:
                    return False
                history.apply(row)
            if yield_time:  # nobody waits for this bandit: leave half of the time to decisions
                self._wake.wait(time.perf_counter() - started)
        return True

    def _restart(self, store: Store, history: BanditHistory) -> BanditHistory:
        """Return a new history, because events that this one has not read were removed by a compaction."""
        new = BanditHistory.at_start(history.bandit_number, store)
        if new.sequence <= history.sequence:
            raise ReplayMismatchError(history.name, history.sequence + 1, "it is missing")
        return new

    def _load(self, store: Store, bandit_number: int) -> BanditHistory:
        saved = saved_history(store, bandit_number)
        if saved is not None:
            try:
                history = BanditHistory.from_json(bandit_number, saved, store)
                self._saved_sequence[bandit_number] = history.sequence
                return history
            except (KeyError, TypeError, ValueError):
                log.warning("cannot read a saved history; reading the log instead", bandit=bandit_number)
        return BanditHistory.at_start(bandit_number, store)

    def _save(self, bandit_numbers: list[int]) -> None:
        rows = []
        for bandit_number in bandit_numbers:
            history = self._histories[bandit_number]
            self._saved_sequence[bandit_number] = history.sequence
            if 0 < len(history.plays) <= MAX_SAVED_ARMS:
                rows.append((bandit_number, history.sequence, history.to_json()))
        if not rows:
            return
        try:
            self._service.write_from_thread(history_statements(rows), timeout=5)
        except Exception as error:
            log.warning("history was not saved", problem=str(error))

    def _publish_overview(self, page: Overview, listed: dict[int, str]) -> None:
        entries = [
            self._entry(self._histories[bandit_number]) for bandit_number in listed if bandit_number in self._histories
        ]
        progress = {one: self._entries[one][0] for one in listed if one in self._entries}
        shown = (listed, progress, self._unreadable & listed.keys())
        if page in self._page_data and self._shown.get(page) == shown:
            return
        self._shown[page] = shown
        unreadable = [legible(name) for bandit_number, name in listed.items() if bandit_number in self._unreadable]
        content = {"bandits": entries, "unreadable": unreadable, "more": len(listed) == MAX_BANDITS}
        self._publish(page, msgspec.json.encode(content))

    def _entry(self, history: BanditHistory) -> dict[str, Any]:
        progress = (history.sequence, self._last_sequence[history.bandit_number])
        cached = self._entries.get(history.bandit_number)
        if cached is None or cached[0] != progress:
            cached = (progress, overview_entry(history, progress[1]))
            self._entries[history.bandit_number] = cached
        return cached[1]

    def _publish(self, page: Page, content: bytes) -> None:
        before = self._page_data.get(page)
        if before is None or before.content != content:
            self._version += 1
            self._page_data[page] = PageData(self._version, content)
