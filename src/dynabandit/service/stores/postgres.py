"""PostgreSQL: many processes serve the same bandits; a lock per bandit orders their writes."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import psycopg

from dynabandit.service.domain.events import COLUMNS
from dynabandit.service.errors import StoreError
from dynabandit.service.stores.base import Events, Store
from dynabandit.service.stores.key_tables import Statements
from dynabandit.service.stores.schema import TABLES, VERSION, check_version, migration
from dynabandit.validation import listed

SCHEMA_LOCK = 7_236_001  # advisory locks of bandits are 60-bit random numbers
# A process that loses its connection within a transaction must not lock a bandit for long: the server rolls the
# transaction back and ends the session, so that whatever the process sends later is refused.
SESSION = {
    "statement_timeout": "4s",
    "lock_timeout": "4s",
    "idle_in_transaction_session_timeout": "2s",
    "synchronous_commit": "on",
    "default_transaction_isolation": "'read committed'",
}
CONNECT = {"connect_timeout": 3, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3,
           "tcp_user_timeout": 5000}  # fmt: skip


class PostgresStore(Store):
    """A store in a PostgreSQL database with a URL such as ``postgresql://user@host/name``."""

    shared = True
    version_statement = "SELECT version FROM schema_version"
    _errors = (psycopg.Error, OSError)
    _constraint_errors = (psycopg.errors.UniqueViolation, psycopg.errors.SerializationFailure)

    def __init__(self, url: str) -> None:
        self.url = url
        self.public_url = re.sub("//.*@", "//", url.partition("?")[0])
        try:
            psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise ValueError(
                f"store must be like postgresql://user@host/name, got {self.public_url!r}: {error}"
            ) from None

    def create_tables(self, migrate: bool = False) -> None:
        self.rows("BEGIN")
        try:
            self.rows("SELECT pg_advisory_xact_lock(?)", (SCHEMA_LOCK,))
            if self.rows("SELECT to_regclass('schema_version')")[0][0] is None:
                self._check_empty()
                self.rows("CREATE TABLE schema_version (version INTEGER NOT NULL)")
                self.rows("INSERT INTO schema_version VALUES (0)")
            version = self.rows(self.version_statement)[0][0]
            check_version(self.public_url, version)
            if version == 0 or (migrate and version < VERSION):
                for statement in migration("postgres", version):
                    self.rows(statement)
                self.rows("UPDATE schema_version SET version = ?", (VERSION,))
            self.rows("COMMIT")
        except (StoreError, ValueError):
            self.rollback()
            raise

    def _check_empty(self) -> None:
        taken = [name for name in TABLES if self.rows("SELECT to_regclass(?)", (name,))[0][0] is not None]
        if taken:
            others = listed(taken)
            raise ValueError(
                f"store {self.public_url} must be a database of its own, but has tables of something else: {others}"
            )

    def reader(self) -> "PostgresStore":
        return PostgresStore(self.url)

    def _open(self) -> Any:
        if self._connection is None:
            connection = psycopg.connect(self.url, autocommit=True, **CONNECT)  # type: ignore[arg-type]
            for name, value in SESSION.items():
                connection.execute(f"SET {name} = {value if value[0] == chr(39) else repr(value)}".encode())
            self._connection = connection
        return self._connection

    def _execute(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        cursor = self._open().execute(statement.replace("?", "%s").encode(), values or None)
        return cursor.fetchall() if cursor.description is not None else []

    def begin(self, bandits: Iterable[int]) -> None:
        """Lock each bandit. Callers pass them in ascending order, so two processes cannot wait for each other."""
        self.rows("BEGIN")
        self.is_inside = True
        for number in bandits:
            self.rows("SELECT pg_advisory_xact_lock(?)", (number,))

    def insert_statements(self, events: Events) -> Statements:
        return [(INSERT, [list(column) for column in zip(*events, strict=True)])] if events else []


TYPES = {"kind": "text", "key": "text", "body": "text", "arm": "int", "value": "float8", "time": "float8",
         "wall": "float8"}  # fmt: skip
INSERT = (
    f"INSERT INTO events ({', '.join(COLUMNS)}) SELECT * FROM unnest("
    + ", ".join(f"?::{TYPES.get(name, 'bigint')}[]" for name in COLUMNS)
    + ")"
)
