"""SQLite: one file, one process that serves it, every commit synced to the disk before it is answered."""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dynabandit.errors import listed
from dynabandit.service.domain.events import COLUMNS, Row
from dynabandit.service.domain.names import to_bytes
from dynabandit.service.errors import Conflict, StoreFailed
from dynabandit.service.stores.base import Store

try:
    import fcntl
except ImportError:  # Windows has none; there the primary key of the log is the only guard
    fcntl = None  # type: ignore[assignment]

__all__ = ["SqliteStore", "connect"]

BUSY_SECONDS = 2.0
SCHEMA_VERSION = 1
ROWS_A_STATEMENT = 500  # with eleven columns well under the limit of parameters
SCHEMA = """
CREATE TABLE bandits (number INTEGER PRIMARY KEY, name BLOB NOT NULL, deleted INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX bandits_name ON bandits (name) WHERE deleted = 0;
CREATE TABLE events (
    bandit INTEGER NOT NULL, sequence INTEGER NOT NULL, kind TEXT NOT NULL, step INTEGER, settles INTEGER,
    arm INTEGER, value REAL, time REAL NOT NULL, wall REAL NOT NULL, key TEXT, body TEXT,
    PRIMARY KEY (bandit, sequence)) WITHOUT ROWID;
CREATE UNIQUE INDEX events_step ON events (bandit, step) WHERE step IS NOT NULL;
CREATE UNIQUE INDEX events_settles ON events (bandit, settles) WHERE settles IS NOT NULL;
CREATE UNIQUE INDEX events_key ON events (bandit, key) WHERE key IS NOT NULL;
CREATE INDEX events_changes ON events (bandit, kind, sequence) WHERE body IS NOT NULL;
CREATE TABLE snapshots (
    bandit INTEGER NOT NULL, sequence INTEGER NOT NULL, state_hash TEXT NOT NULL, body TEXT,
    PRIMARY KEY (bandit, sequence));
CREATE TABLE clock (id INTEGER PRIMARY KEY, time REAL NOT NULL);
INSERT INTO clock VALUES (1, 0);
CREATE TABLE keys (
    id TEXT PRIMARY KEY, role TEXT NOT NULL, digest TEXT NOT NULL, note TEXT NOT NULL, created REAL NOT NULL,
    revoked REAL);
"""
TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"


def connect(path: str) -> Any:
    """Open a database with the standard library; every statement outside BEGIN commits by itself."""
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.text_factory = _text
    return connection


def _text(content: bytes) -> str | bytes:
    """Return text, or bytes as they are where they are none: an error here would fail whatever was asked with them."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


class SqliteStore(Store):
    """A store in one SQLite file, in WAL mode with synchronous=FULL.

    Parameters
    ----------
    path
        The file; it is made where it is missing.
    connect
        Opens a connection; tests put a file layer of their own under SQLite here.
    errors, constraint_errors
        What that connection raises.
    settings
        Statements that every connection starts with.
    """

    shared = False
    changes = "events INDEXED BY events_changes"  # the planner would rather read the whole log in its order

    def __init__(
        self,
        path: str,
        connect: Callable[[str], Any] = connect,
        errors: tuple[type[Exception], ...] = (sqlite3.Error, OSError),
        constraint_errors: tuple[type[Exception], ...] = (sqlite3.IntegrityError,),
        settings: Sequence[str] = ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL"),
    ) -> None:
        self.url = f"sqlite:///{path}"
        self._path = path
        self._connect = connect
        self._errors = errors
        self._constraint_errors = constraint_errors
        self._settings = settings
        self._connection: Any = None
        self._known = False  # to be a store, and not a database of something else
        self._claim: int | None = None

    def prepare(self) -> None:
        self._claim_file()
        self.prepare_tables()

    def prepare_tables(self) -> None:
        version = self.rows("PRAGMA user_version")[0][0]
        if version == 0:
            statements = [part for part in SCHEMA.split(";") if part.strip()]
            self.write([(part, ()) for part in (*statements, f"PRAGMA user_version = {SCHEMA_VERSION}")])
        elif version != SCHEMA_VERSION:
            raise ValueError(
                f"store {self.url} has schema version {version}, but this release reads version {SCHEMA_VERSION}"
            )

    def _claim_file(self) -> None:
        """Hold a lock as long as the process lives: two processes would each serve their own state."""
        if self._claim is not None or fcntl is None:
            return
        try:
            claim = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreFailed(f"store {self.url} cannot be opened: {error.strerror}") from None
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(claim)
            raise StoreFailed(
                f"store {self.url} is served by another process; for several replicas use a postgresql:// store"
            ) from None
        self._claim = claim

    def reader(self) -> "SqliteStore":
        other = SqliteStore(self._path, self._connect, self._errors, self._constraint_errors, self._settings)
        other._known = self._known
        return other

    def _open(self) -> Any:
        if self._connection is None:
            connection = self._connect(self._path)
            if not self._known:
                self._check_ours(connection)
            for setting in self._settings:
                connection.execute(setting).fetchall()
            self._connection = connection
        return self._connection

    def _check_ours(self, connection: Any) -> None:
        """Leave a database of something else alone, before any setting is changed in it."""
        # In this order: where another process makes the tables now, they are not seen without their version
        tables = [name for (name,) in connection.execute(TABLES).fetchall()]
        version = connection.execute("PRAGMA user_version").fetchall()[0][0]
        if tables and (version == 0 or "events" not in tables):
            connection.close()
            raise ValueError(
                f"store {self.url} must be a file of its own, but is a database of something else, "
                f"with the tables {listed(tables)}"
            )
        self._known = True

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            found: list[tuple[Any, ...]] = self._open().execute(statement, values).fetchall()
        except self._constraint_errors as error:
            raise Conflict(str(error)) from error
        except self._errors as error:
            raise StoreFailed(f"store {self.url}: {error}") from error
        return found

    def begin(self, bandits: Iterable[int]) -> None:
        pass  # the claim on the file keeps all others out

    def commit(
        self,
        rows: Sequence[Row],
        created: Sequence[tuple[int, str]] = (),
        deleted: Sequence[int] = (),
        erased: Sequence[int] = (),
    ) -> None:
        statements: list[tuple[str, Sequence[Any]]] = [
            ("INSERT INTO bandits (number, name) VALUES (?, ?)", (number, to_bytes(name))) for number, name in created
        ]
        statements += [("UPDATE bandits SET deleted = 1 WHERE number = ?", (number,)) for number in deleted]
        for start in range(0, len(rows), ROWS_A_STATEMENT):
            some = rows[start : start + ROWS_A_STATEMENT]
            statements.append((_insert(len(some)), [value for row in some for value in row]))
        statements += [one for number in erased for one in self.erasing(number)]
        self.write(statements)

    def write(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> None:
        if len(statements) == 1:  # a transaction by itself, in one call that lets other threads run meanwhile
            self.rows(*statements[0])
            return
        if not statements:
            return
        self.rows("BEGIN IMMEDIATE")
        try:
            for statement, values in statements:
                self.rows(statement, values)
            self.rows("COMMIT")
        except StoreFailed:
            self._undo()
            raise

    def _undo(self) -> None:
        with contextlib.suppress(StoreFailed):
            self.rows("ROLLBACK")

    def rollback(self) -> None:
        """Close the connection: the next statement opens a fresh one, wherever the disk stands by then."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*self._errors):
                connection.close()

    def close(self) -> None:
        self.rollback()
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None


_inserts: dict[int, str] = {}


def _insert(rows: int) -> str:
    if rows not in _inserts:
        places = f"({', '.join('?' * len(COLUMNS))})"
        _inserts[rows] = f"INSERT INTO events ({', '.join(COLUMNS)}) VALUES {', '.join([places] * rows)}"
    return _inserts[rows]
