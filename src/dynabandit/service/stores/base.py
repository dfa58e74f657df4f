"""What all stores have in common: the SQL statements to read and write events, snapshots and keys."""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dynabandit.service.domain.decision_details import read_details
from dynabandit.service.domain.decision_ids import DecisionIds
from dynabandit.service.domain.events import (
    COLUMNS,
    DELETE,
    KINDS,
    LEARN,
    EventRow,
    HeldDecision,
    LoggedDecision,
    Settlement,
    UnitRow,
)
from dynabandit.service.domain.names import from_bytes, read_public_id, to_bytes
from dynabandit.service.errors import NotFoundError, ReplayMismatchError, StoreBusyError, StoreError, WriteConflictError
from dynabandit.service.stores.rows import BanditKey, BanditRow, BanditUnit, BeginResult, Snapshot, Statements
from dynabandit.service.stores.unit_table import unit_statements

PAGE = 5_000  # rows that are read at a time, so that memory does not grow with the log
ALL_COLUMNS = ", ".join(COLUMNS)
KEEP_SNAPSHOTS = 2
DELETED, ERASING = 1, 2  # in the column `deleted`
AFTER_SLASH = chr(ord("/") + 1)
REFERENCES = {  # to a bandit
    "histories": "bandit", "events": "bandit", "snapshots": "bandit", "unsigned_ids": "bandit", "units": "bandit",
    "alert_positions": "bandit", "refused_alerts": "bandit", "bandits": "number",
}  # fmt: skip

VALUES_PER_STATEMENT = 500

Events = Sequence[EventRow]


class Store:
    """A store. One thread writes; `reader` gives another thread its own connection.

    A commit is durable when `commit` returns; requests are answered after that.
    """

    url: str
    public_url: str  # without a password
    shared: bool  # whether other processes may write to the same bandits
    changes_from = "events"  # the FROM clause of a search for the few changes among many decisions
    begin_statement = "BEGIN"
    version_statement: str  # returns the version of the tables
    _errors: tuple[type[Exception], ...]  # what the connection raises
    _constraint_errors: tuple[type[Exception], ...]  # those that mean that another process was first
    _connection: Any = None
    _decision_ids: DecisionIds | None = None
    in_transaction = False  # a transaction that `begin` started

    def prepare(self) -> None:
        """Prepare the store to be served: create or migrate its tables; claim it if only one process may serve it."""
        self.create_tables(migrate=True)

    def create_tables(self, migrate: bool = False) -> None:
        """Create the tables if there are none, or check their version; only `migrate` brings old ones up to date.

        Commands that run beside a service, or check a store before an upgrade, must leave the version alone.
        """
        raise NotImplementedError

    def reader(self) -> "Store":
        """Return a store with its own connection, to read from."""
        raise NotImplementedError

    def begin(
        self, known: Mapping[int, int], keys: Collection[BanditKey] = (), units: Collection[BanditUnit] = ()
    ) -> BeginResult:
        """Start a transaction that keeps other processes from writing to some bandits; return what is new.

        `known` has, for each bandit, the sequence number after which events are returned.
        """
        raise NotImplementedError

    def try_to_begin(self, bandit: int) -> bool:
        """Start a transaction like `begin`, unless another process is writing to the bandit; return whether it did."""
        self.begin({bandit: 0})
        return True

    def is_leader(self, task: str = "histories") -> bool:
        """Whether this process does a task that only one need do; the others take its place when it ends."""
        return True

    def _execute(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def insert_statements(self, events: Events) -> Statements:
        """Return the statements that add events to the log."""
        raise NotImplementedError

    # The same for every store

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows; text that is not valid UTF-8 is returned as bytes."""
        try:
            return self._execute(statement, values)
        except self._constraint_errors as error:
            raise WriteConflictError(str(error)) from error
        except self._errors as error:
            if self._is_busy(error):
                raise StoreBusyError(f"store {self.public_url}: {error}") from error
            raise StoreError(f"store {self.public_url}: {error}") from error

    def rows_in(self, statement: str, values: Sequence[Any], *before: Any) -> list[tuple[Any, ...]]:
        """Run a statement that ends with ``IN ({})`` for some `values` at a time, and return the rows of all."""
        found = []
        for start in range(0, len(values), VALUES_PER_STATEMENT):
            some = values[start : start + VALUES_PER_STATEMENT]
            found += self.rows(statement.format(", ".join("?" * len(some))), (*before, *some))
        return found

    def _is_busy(self, error: Exception) -> bool:
        """Whether an error means that another program has locked the store."""
        return False

    def write(self, statements: Statements) -> None:
        """Run statements in one transaction, or in the one that `begin` started."""
        if len(statements) == 1 and not self.in_transaction:  # a transaction by itself
            self.rows(*statements[0])
            return
        if not self.in_transaction:
            statements = [(self.begin_statement, ()), *statements, ("COMMIT", ())]
        try:
            self.run(statements)
        except StoreError:
            self.rollback()
            raise

    def run(self, statements: Statements) -> list[list[tuple[Any, ...]]]:
        """Run statements one after the other, as fast as the store can, and return the rows of each."""
        return [self.rows(statement, values) for statement, values in statements]

    def commit(
        self,
        events: Events,
        created: Sequence[tuple[int, str]] = (),
        deleted: Sequence[int] = (),
        erased: Sequence[int] = (),
        erasing: Sequence[int] = (),
        units: Mapping[BanditUnit, UnitRow] = {},
    ) -> None:
        """Add events to the log and remove erased bandits in one transaction, and return when that is durable.

        `units` are those with a new latest decision.

        Of bandits that are `erasing` the events are left, marked by their row: they are too many for one transaction.
        """
        statements: Statements = [
            ("INSERT INTO bandits (number, name) VALUES (?, ?)", (number, to_bytes(name))) for number, name in created
        ]
        marked = [(DELETED, number) for number in deleted] + [(ERASING, number) for number in erasing]
        statements += [("UPDATE bandits SET deleted = ? WHERE number = ?", mark) for mark in marked]
        statements += self.insert_statements(events)
        statements += unit_statements(units)
        statements += [
            (f"DELETE FROM {table} WHERE {column} = ?", (number,))
            for number in (*erased, *erasing)
            for table, column in REFERENCES.items()
            if number in erased or table not in ("events", "bandits")
        ]
        self.write([*statements, ("COMMIT", ())] if self.in_transaction else statements)
        self.in_transaction = False

    def rollback(self) -> None:
        """Close the connection, which rolls back what `begin` started; the next statement opens a new one."""
        connection, self._connection, self.in_transaction = self._connection, None, False
        if connection is not None:
            with contextlib.suppress(*self._errors):
                connection.close()

    def close(self) -> None:
        """Close the connection."""
        self.rollback()

    def find(self, name: str) -> int | None:
        """Return the number of the bandit with this name, if it exists."""
        found = self.rows("SELECT number FROM bandits WHERE name = ? AND deleted = 0", (to_bytes(name),))
        return found[0][0] if found else None

    def bandit(self, number: int) -> BanditRow | None:
        """Return a bandit by its number."""
        found = self.rows("SELECT number, name, deleted FROM bandits WHERE number = ?", (number,))
        return _bandit(found[0]) if found else None

    def find_log(self, name: str, identity: str | None, erasing: bool = False) -> int:
        """Return the number of the bandit whose log is asked for; with its id also of one that was deleted.

        A log that is being erased is found only with `erasing`.
        """
        if identity is None:
            number = self.find(name)
        else:
            number = read_public_id(identity)
            row = None if number is None else self.bandit(number)
            number = None if row is None or row.name != name or (row.erasing and not erasing) else number
        if number is None:
            with_id = f" with the id {identity[:100]!r}" if identity is not None else ""
            raise NotFoundError(f"there is no bandit {name!r}{with_id}")
        return number

    def name_of(self, number: int) -> str:
        """Return the name of a bandit, deleted or not; empty if it was erased."""
        found = self.bandit(number)
        return "" if found is None else found.name

    def alive(self, numbers: Iterable[int]) -> set[int]:
        """Return the bandits among `numbers` that exist and were not deleted."""
        asked = list(numbers)
        if not asked:
            return set()
        places = ", ".join("?" * len(asked))
        found = self.rows(f"SELECT number FROM bandits WHERE deleted = 0 AND number IN ({places})", asked)
        return {number for (number,) in found}

    def bandits(
        self, deleted: bool = False, after: str = "", limit: int = PAGE, namespace: str | None = None
    ) -> list[BanditRow]:
        """Return a page of the bandits, or of the deleted bandits, of one namespace or of all, ordered by name.

        A page ends between two names: many deleted bandits may have the same name.
        """
        columns = "SELECT number, name, deleted FROM bandits WHERE deleted = ?"
        within, values = "", [int(deleted), to_bytes(after)]
        if namespace is not None:
            within = " AND name >= ? AND name < ?"
            values += [to_bytes(f"{namespace}/"), to_bytes(f"{namespace}{AFTER_SLASH}")]
        found = self.rows(f"{columns} AND name > ?{within} ORDER BY name, number LIMIT ?", [*values, limit])
        if deleted and len(found) == limit:
            number, name, _ = found[-1]
            found += self.rows(f"{columns} AND name = ? AND number > ? ORDER BY number", (1, name, number))
        return [_bandit(values) for values in found]

    def all_bandits(self, deleted: bool = False) -> Iterator[BanditRow]:
        """Return all bandits, or all deleted bandits, ordered by name and read page by page."""
        after = ""
        while page := self.bandits(deleted, after):
            yield from page
            after = page[-1].name

    def events(self, bandit: int, after: int, limit: int = PAGE, kinds: Sequence[str] = ()) -> list[EventRow]:
        """Return events of a bandit after a sequence number, of all kinds or of some."""
        if kinds and set(kinds) <= set(KINDS["change"]):
            return self._changes(bandit, after, limit, kinds)
        some = f" AND kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
        return self._logged(
            f"SELECT {ALL_COLUMNS} FROM events WHERE bandit = ? AND sequence > ?{some} ORDER BY sequence LIMIT ?",
            (bandit, after, *kinds, limit),
        )

    def _changes(self, bandit: int, after: int, limit: int, kinds: Sequence[str]) -> list[EventRow]:
        """Return changes without reading the events between them. A deletion has no body, but is the last event."""
        places = ", ".join("?" * len(kinds))
        return self._logged(
            f"SELECT {ALL_COLUMNS} FROM {self.changes_from} WHERE bandit = ? AND kind IN ({places})"
            f" AND sequence > ? AND body IS NOT NULL AND step IS NULL UNION ALL SELECT {ALL_COLUMNS} FROM events"
            " WHERE bandit = ? AND sequence = (SELECT max(sequence) FROM events WHERE bandit = ?) AND sequence > ?"
            " AND kind = ? ORDER BY sequence LIMIT ?",
            (bandit, *kinds, after, bandit, bandit, after, DELETE if DELETE in kinds else "", limit),
        )

    def _logged(self, statement: str, values: Sequence[Any]) -> list[EventRow]:
        """Return events, or raise `ReplayMismatchError` at the first one with damaged text."""
        events = [EventRow._make(found) for found in self.rows(statement, values)]
        for event in events:
            if bytes in map(type, event):
                problem = "it holds text that is not UTF-8"
                raise ReplayMismatchError(self.name_of(event.bandit), event.sequence, problem)
        return events

    def last_sequence(self, bandit: int) -> int:
        """Return the sequence number of the latest event."""
        found = self.rows("SELECT max(sequence) FROM events WHERE bandit = ?", (bandit,))
        return found[0][0] or 0

    def start_of_log(self, bandit: int) -> str | None:
        """Return the body of event 0, with which a compacted log starts."""
        found = self.rows("SELECT body FROM events WHERE bandit = ? AND sequence = 0", (bandit,))
        return found[0][0] if found else None

    def log(self, bandit: int, after: int = 0, kinds: Sequence[str] = (), page: int = PAGE) -> Iterator[EventRow]:
        """Return all events of a bandit after a sequence number, of all kinds or of some, read page by page."""
        while found := self.events(bandit, after, page, kinds):
            yield from found
            if len(found) < page:
                return
            after = found[-1].sequence

    def settlement_pages(self, bandit: int, after: int, before: int) -> Iterator[list[Settlement]]:
        """Return pages of the events of the kinds reward, close and learn between two sequence numbers."""
        while page := self.rows(
            f"SELECT {', '.join(Settlement._fields)} FROM events WHERE bandit = ? AND sequence > ? AND sequence < ?"
            " AND (settles IS NOT NULL OR kind = ?) ORDER BY sequence LIMIT ?",
            (bandit, after, before, LEARN, PAGE),
        ):
            yield list(map(Settlement._make, page))
            after = page[-1][Settlement._fields.index("sequence")]

    def held_decisions(self, bandit: int, after: int, to: int, before: int) -> list[HeldDecision]:
        """Return the decisions after one step and up to another, with their rewards before a sequence number."""
        found = self.rows(
            "SELECT d.step, d.arm, r.value, r.arm FROM events d LEFT JOIN events r ON r.bandit = d.bandit"
            " AND r.settles = d.step AND r.sequence < ? WHERE d.bandit = ? AND d.step > ? AND d.step <= ?"
            " ORDER BY d.step",
            (before, bandit, after, to),
        )
        return [HeldDecision._make(values) for values in found]

    def decision_ids(self) -> DecisionIds:
        """Return what makes and checks the ids of decisions; it is read once, and never changes."""
        if self._decision_ids is None:
            [(secret,)] = self.rows("SELECT value FROM signing_secret")
            unsigned = dict(self.rows("SELECT bandit, last_step FROM unsigned_ids"))
            self._decision_ids = DecisionIds(bytes(secret), unsigned)
        return self._decision_ids

    def decision(self, bandit: int, step: int) -> LoggedDecision | None:
        """Return a decision with its reward."""
        return self.decisions(bandit, [step]).get(step)

    def decisions(self, bandit: int, steps: Sequence[int]) -> dict[int, LoggedDecision]:
        """Return those of some decisions that are in the log, with their rewards, by step."""
        deciding = "SELECT step, arm, time, body FROM events WHERE bandit = ? AND step IN ({})"
        settling = "SELECT settles, kind, value, arm FROM events WHERE bandit = ? AND settles IN ({})"
        found = {row[0]: row[1:] for row in self.rows_in(deciding, steps, bandit)}
        settled = {row[0]: row[1:] for row in self.rows_in(settling, list(found), bandit)}
        decisions = {}
        for step, (arm, time, body) in found.items():
            kind, value, taken = settled.get(step, (None, None, None))
            decisions[step] = LoggedDecision(arm, time, kind, value, body, taken)
        return decisions

    def decision_bodies(self, bandit: int, steps: Sequence[int]) -> dict[int, str | None]:
        """Return the bodies of the decisions of some steps."""
        return dict(self.rows_in("SELECT step, body FROM events WHERE bandit = ? AND step IN ({})", steps, bandit))

    def outcomes(self, bandit: int, first: int, last: int) -> dict[int, tuple[str, float | None, int]]:
        """Return (kind, reward, rewarded arm) of the settled decisions from one step to another, by step."""
        found = self.rows(
            "SELECT settles, kind, value, arm FROM events WHERE bandit = ? AND settles >= ? AND settles <= ?",
            (bandit, first, last),
        )
        return {step: (kind, value, arm) for step, kind, value, arm in found}

    def keyed(self, bandit: int, key: str) -> list[EventRow]:
        """Return the decisions of an idempotency key, in order."""
        found = self._logged(f"SELECT {ALL_COLUMNS} FROM events WHERE bandit = ? AND key = ?", (bandit, key))
        count = read_details(found[0].body).count if found else 0
        return found if count <= 1 else self.events(bandit, found[0].sequence - 1, count)

    def snapshot(self, bandit: int, sequence: int = 0) -> Snapshot | None:
        """Return the latest snapshot that has a body, if it is at least as recent as an event."""
        found = self.rows(
            "SELECT sequence, state_hash, body FROM snapshots WHERE bandit = ? AND sequence >= ? AND body IS NOT NULL"
            " ORDER BY sequence DESC LIMIT 1",
            (bandit, sequence),
        )
        return Snapshot._make(found[0]) if found else None

    def snapshot_hashes(self, bandit: int) -> dict[int, str]:
        """Return the hashes of all snapshots, by sequence number."""
        return dict(self.rows("SELECT sequence, state_hash FROM snapshots WHERE bandit = ?", (bandit,)))

    def save_snapshot(self, bandit: int, snapshot: Snapshot) -> None:
        """Save a snapshot, and drop the bodies of old ones."""
        self.save_snapshots({bandit: snapshot})

    def save_snapshots(self, snapshots: Mapping[int, Snapshot]) -> None:
        """Save a snapshot of each of some bandits in one transaction, and drop the bodies of old ones."""
        insert = (
            "INSERT INTO snapshots (bandit, sequence, state_hash, body) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (bandit, sequence) DO UPDATE SET state_hash = excluded.state_hash, body = excluded.body"
        )
        drop = (
            "UPDATE snapshots SET body = NULL WHERE bandit = ? AND body IS NOT NULL AND sequence NOT IN"
            " (SELECT sequence FROM snapshots WHERE bandit = ? ORDER BY sequence DESC LIMIT ?)"
        )
        statements: Statements = []
        for bandit, snapshot in snapshots.items():
            statements += [(insert, (bandit, *snapshot)), (drop, (bandit, bandit, KEEP_SNAPSHOTS))]
        if statements:
            self.write(statements)

    def latest_time(self) -> float:
        """Return the latest saved time of the service's clock."""
        found = self.rows("SELECT max(time) FROM clock")
        return float(found[0][0] or 0.0)

    def save_time(self, now: float) -> None:
        """Save the time of the service's clock; it never goes back."""
        self.write([("UPDATE clock SET time = CASE WHEN time > ? THEN time ELSE ? END WHERE id = 1", (now, now))])


def _bandit(values: Sequence[Any]) -> BanditRow:
    number, name, deleted = values
    return BanditRow(number, from_bytes(bytes(name)), bool(deleted), deleted == ERASING)
