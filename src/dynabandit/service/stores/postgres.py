"""PostgreSQL: many processes serve the same bandits, one at a time each."""

import contextlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

import psycopg

from dynabandit.errors import listed
from dynabandit.service.domain.events import COLUMNS, Row
from dynabandit.service.domain.names import to_bytes
from dynabandit.service.errors import Conflict, StoreFailed
from dynabandit.service.stores.base import Store

__all__ = ["PostgresStore"]

SCHEMA_VERSION = 1
SCHEMA_LOCK = 7_236_001  # advisory locks of bandits are 60-bit random numbers
# A process that is cut off in the middle of a transaction must not keep a bandit from the others for long. Its
# transaction is rolled back by the server, and what it sends later is refused: its session is gone.
SESSION = {
    "statement_timeout": "4s",
    "lock_timeout": "4s",
    "idle_in_transaction_session_timeout": "2s",
    "synchronous_commit": "on",
    "default_transaction_isolation": "'read committed'",
}
CONNECT = {"connect_timeout": 3, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3,
           "tcp_user_timeout": 5000}  # fmt: skip
SCHEMA = """
CREATE TABLE bandits (number BIGINT PRIMARY KEY, name BYTEA NOT NULL, deleted INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX bandits_name ON bandits (name) WHERE deleted = 0;
CREATE TABLE events (
    bandit BIGINT NOT NULL, sequence BIGINT NOT NULL, kind TEXT NOT NULL, step BIGINT, settles BIGINT,
    arm INTEGER, value DOUBLE PRECISION, time DOUBLE PRECISION NOT NULL, wall DOUBLE PRECISION NOT NULL, key TEXT,
    body TEXT, PRIMARY KEY (bandit, sequence));
CREATE UNIQUE INDEX events_step ON events (bandit, step) WHERE step IS NOT NULL;
CREATE UNIQUE INDEX events_settles ON events (bandit, settles) WHERE settles IS NOT NULL;
CREATE UNIQUE INDEX events_key ON events (bandit, key) WHERE key IS NOT NULL;
CREATE INDEX events_changes ON events (bandit, kind, sequence) WHERE body IS NOT NULL;
CREATE TABLE snapshots (
    bandit BIGINT NOT NULL, sequence BIGINT NOT NULL, state_hash TEXT NOT NULL, body TEXT,
    PRIMARY KEY (bandit, sequence));
CREATE TABLE clock (id INTEGER PRIMARY KEY, time DOUBLE PRECISION NOT NULL);
INSERT INTO clock VALUES (1, 0);
CREATE TABLE keys (
    id TEXT PRIMARY KEY, role TEXT NOT NULL, digest TEXT NOT NULL, note TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL, revoked DOUBLE PRECISION);
CREATE TABLE schema_version (version INTEGER NOT NULL);
"""
TABLES = re.findall(r"CREATE TABLE (\w+)", SCHEMA)


class PostgresStore(Store):
    """A store in a PostgreSQL database.

    Parameters
    ----------
    url
        Where the database is, ``postgresql://user@host/name``.
    """

    shared = True

    def __init__(self, url: str) -> None:
        self.url = url
        self.shown = re.sub("//.*@", "//", url.partition("?")[0])  # without a password
        try:
            psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise ValueError(f"store must be like postgresql://user@host/name, got {self.shown!r}: {error}") from None
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._inside = False  # a transaction that `begin` started

    def prepare_tables(self) -> None:
        self.rows("BEGIN")
        try:
            self.rows("SELECT pg_advisory_xact_lock(?)", (SCHEMA_LOCK,))
            if self.rows("SELECT to_regclass('schema_version')")[0][0] is None:
                self._check_empty()
                for part in SCHEMA.split(";"):
                    if part.strip():
                        self.rows(part)
                self.rows("INSERT INTO schema_version VALUES (?)", (SCHEMA_VERSION,))
            version = self.rows("SELECT version FROM schema_version")[0][0]
            self.rows("COMMIT")
        except (StoreFailed, ValueError):
            self.rollback()
            raise
        if version != SCHEMA_VERSION:
            raise ValueError(
                f"store {self.shown} has schema version {version}, but this release reads version {SCHEMA_VERSION}"
            )

    def _check_empty(self) -> None:
        taken = [name for name in TABLES if self.rows("SELECT to_regclass(?)", (name,))[0][0] is not None]
        if taken:
            raise ValueError(
                f"store {self.shown} must be a database of its own, but has tables of something else: {listed(taken)}"
            )

    def reader(self) -> "PostgresStore":
        return PostgresStore(self.url)

    def _open(self) -> "psycopg.Connection[tuple[Any, ...]]":
        if self._connection is None:
            connection = psycopg.connect(self.url, autocommit=True, **CONNECT)  # type: ignore[arg-type]
            for name, value in SESSION.items():
                connection.execute(f"SET {name} = {value if value[0] == chr(39) else repr(value)}".encode())
            self._connection = connection
        return self._connection

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            cursor = self._open().execute(statement.replace("?", "%s").encode(), values or None)
            return cursor.fetchall() if cursor.description is not None else []
        except (psycopg.errors.UniqueViolation, psycopg.errors.SerializationFailure) as error:
            raise Conflict(str(error)) from error
        except (psycopg.Error, OSError) as error:
            raise StoreFailed(f"store {self.shown}: {error}") from error

    def begin(self, bandits: Iterable[int]) -> None:
        """Take the lock of each bandit, always in the same order: two processes cannot wait for each other."""
        self.rows("BEGIN")
        self._inside = True
        for number in bandits:
            self.rows("SELECT pg_advisory_xact_lock(?)", (number,))

    def commit(
        self,
        rows: Sequence[Row],
        created: Sequence[tuple[int, str]] = (),
        deleted: Sequence[int] = (),
        erased: Sequence[int] = (),
    ) -> None:
        for number, name in created:
            self.rows("INSERT INTO bandits (number, name) VALUES (?, ?)", (number, to_bytes(name)))
        for number in deleted:
            self.rows("UPDATE bandits SET deleted = 1 WHERE number = ?", (number,))
        if rows:
            columns = list(zip(*rows, strict=True))
            self.rows(INSERT, [list(column) for column in columns])
        for number in erased:
            for statement, values in self.erasing(number):
                self.rows(statement, values)
        self.rows("COMMIT")
        self._inside = False

    def write(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> None:
        inside = self._inside
        if not inside:
            self.rows("BEGIN")
        try:
            for statement, values in statements:
                self.rows(statement, values)
            if not inside:
                self.rows("COMMIT")
        except StoreFailed:
            self.rollback()
            raise

    def rollback(self) -> None:
        """Close the connection: the server rolls back what was open."""
        connection, self._connection = self._connection, None
        self._inside = False
        if connection is not None:
            with contextlib.suppress(psycopg.Error, OSError):
                connection.close()

    def close(self) -> None:
        self.rollback()


TYPES = {"kind": "text", "key": "text", "body": "text", "arm": "int", "value": "float8", "time": "float8",
         "wall": "float8"}  # fmt: skip
INSERT = (
    f"INSERT INTO events ({', '.join(COLUMNS)}) SELECT * FROM unnest("
    + ", ".join(f"?::{TYPES.get(name, 'bigint')}[]" for name in COLUMNS)
    + ")"
)
