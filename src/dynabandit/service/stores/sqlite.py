"""SQLite: one file, served by one process; every commit is synced to the disk before it is answered."""

import contextlib
import functools
import os
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from dynabandit.service.domain.events import COLUMNS
from dynabandit.service.errors import StoreError
from dynabandit.service.logging_setup import log
from dynabandit.service.stores.base import Events, Store
from dynabandit.service.stores.rows import BanditKey, BanditUnit, BeginResult, Statements
from dynabandit.service.stores.schema import VERSION, check_version, migration
from dynabandit.validation import listed

try:
    import fcntl
except ImportError:  # not on Windows; there only the primary key of the events keeps two processes apart
    fcntl = None  # type: ignore[assignment]

BUSY_SECONDS = 2.0
ROWS_PER_STATEMENT = 500  # with eleven columns each, well under the limit of parameters
TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"


def connect(path: str) -> Any:
    """Open a database with the standard library; every statement outside BEGIN commits by itself.

    A new file can be read by its owner only, and SQLite gives -wal and -shm the same mode. On a read-only medium SQLite
    cannot make these two, so the database is opened as one that nobody changes.
    """
    with contextlib.suppress(OSError):  # it exists, or SQLite will say why it cannot be made
        os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        return _connect(path)
    except sqlite3.OperationalError as error:
        if not _is_read_only(path, error):
            raise
    return _connect(f"file://{quote(os.fsencode(os.path.abspath(path)))}?mode=ro&immutable=1", uri=True)


def _connect(address: str, uri: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(address, BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=uri)
    connection.text_factory = _text
    try:
        connection.execute("SELECT name FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _is_read_only(path: str, error: sqlite3.OperationalError) -> bool:
    """Whether a database can only be read, and has no changes beside it that would be missing then."""
    if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
        return False
    if not os.path.exists(path) or os.access(os.path.dirname(os.path.realpath(path)), os.W_OK):
        return False
    wal = f"{os.path.realpath(path)}-wal"
    if os.path.exists(wal) and os.path.getsize(wal):
        raise StoreError(f"store sqlite:///{path} is read-only, but {wal} has changes: copy both to a writable folder")
    return True


def _text(content: bytes) -> str | bytes:
    """Return text, or the bytes themselves if they are not UTF-8: an error here would fail the whole statement."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


class SqliteStore(Store):
    """A store in one SQLite file, which is created if it does not exist; in WAL mode with synchronous=FULL.

    Tests put their own file layer under SQLite with another `connect`, the errors that its connections raise, and the
    settings that each connection begins with.
    """

    shared = False  # a lock on the file keeps other processes out
    begin_statement = "BEGIN IMMEDIATE"
    version_statement = "PRAGMA user_version"
    changes_from = "events INDEXED BY events_changes"  # otherwise the planner reads the whole log in order

    def __init__(
        self,
        path: str,
        connect: Callable[[str], Any] = connect,
        errors: tuple[type[Exception], ...] = (sqlite3.Error, OSError),
        constraint_errors: tuple[type[Exception], ...] = (sqlite3.IntegrityError,),
        settings: Sequence[str] = ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL"),
    ) -> None:
        self.url = self.public_url = f"sqlite:///{path}"
        self._path = path
        self._connect = connect
        self._errors = errors
        self._constraint_errors = constraint_errors
        self._settings = settings
        self._checked = False  # that the file is a store, and not some other database
        self._lock: int | None = None

    def prepare(self) -> None:
        self._lock_file()
        self.create_tables(migrate=True)
        path = os.path.realpath(self._path)
        if os.path.exists(path) and os.stat(path).st_mode & 0o077:
            log.warning("other users of this machine may read the store", file=path, remedy=f"chmod 600 {path}*")

    def create_tables(self, migrate: bool = False) -> None:
        version = self.rows(self.version_statement)[0][0]
        check_version(self.url, version)
        if version == 0 or (migrate and version < VERSION):
            statements = [*migration("sqlite", version), f"PRAGMA user_version = {VERSION}"]
            self.write([(statement, ()) for statement in statements])

    def _lock_file(self) -> None:
        """Hold a lock while the process lives: two processes would decide on different states."""
        if self._lock is not None or fcntl is None:
            return
        path = os.path.realpath(self._path)  # the path may be a symbolic link
        try:
            lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError(f"store {self.url} cannot be opened: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise StoreError(
                f"store {self.url} is served by another process; for several replicas use a postgresql:// store"
            ) from None
        self._lock = lock

    def begin(
        self, known: Mapping[int, int], keys: Collection[BanditKey] = (), units: Collection[BanditUnit] = ()
    ) -> BeginResult:
        """Lock the file. Only one process serves it, which knows all events, so nothing is new."""
        self.rows(self.begin_statement)
        self.in_transaction = True
        return BeginResult({}, set(), {})

    def reader(self) -> "SqliteStore":
        other = SqliteStore(self._path, self._connect, self._errors, self._constraint_errors, self._settings)
        other._checked = self._checked
        return other

    def _open(self) -> Any:
        if self._connection is None:
            if not self._checked:
                self._check_has_one_name()
            connection = self._connect(self._path)
            if not self._checked:
                self._check_is_store(connection)
            for setting in self._settings:
                connection.execute(setting).fetchall()
            self._connection = connection
        return self._connection

    def _check_has_one_name(self) -> None:
        """Refuse a file with several hard links: SQLite keeps the latest commits beside the name that it was given."""
        path = os.path.realpath(self._path)
        if os.path.exists(path) and os.stat(path).st_nlink > 1 and os.access(path, os.W_OK):
            raise ValueError(
                f"store {self.url} must be a file with one name, but has {os.stat(path).st_nlink} hard links: commits "
                "in the -wal file of another name would be missing; keep the name under which it was served, and "
                "remove the others or replace them with copies"
            )

    def _check_is_store(self, connection: Any) -> None:
        """Refuse the database of another program, before any setting is changed in it."""
        # In this order, because another process may be creating the tables, and their version, right now
        tables = [name for (name,) in connection.execute(TABLES).fetchall()]
        version = connection.execute("PRAGMA user_version").fetchall()[0][0]
        if tables and (version == 0 or "events" not in tables):
            connection.close()
            raise ValueError(
                f"store {self.url} must be a file of its own, but is a database of something else, "
                f"with the tables {listed(tables)}"
            )
        self._checked = True

    def _execute(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._open().execute(statement, values).fetchall()
        return found

    def _is_busy(self, error: Exception) -> bool:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY  # the rest is the extended code

    def insert_statements(self, events: Events) -> Statements:
        starts = range(0, len(events), ROWS_PER_STATEMENT)
        pieces = [events[start : start + ROWS_PER_STATEMENT] for start in starts]
        return [(_insert(len(piece)), [value for event in piece for value in event]) for piece in pieces]

    def close(self) -> None:
        self.rollback()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@functools.cache
def _insert(rows: int) -> str:
    places = f"({', '.join('?' * len(COLUMNS))})"
    return f"INSERT INTO events ({', '.join(COLUMNS)}) VALUES {', '.join([places] * rows)}"
