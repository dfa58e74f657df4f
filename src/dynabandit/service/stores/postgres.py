"""PostgreSQL: many processes serve the same bandits; a lock per bandit orders their writes."""

import functools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import psycopg

from dynabandit.service.domain.events import COLUMNS, EventRow
from dynabandit.service.errors import StoreError, WriteConflictError
from dynabandit.service.stores.base import Events, Store
from dynabandit.service.stores.rows import NEW_EVENTS_PAGE, BanditKey, BanditUnit, BeginResult, Statements
from dynabandit.service.stores.schema import TABLES, VERSION, check_version, migration
from dynabandit.service.stores.unit_table import FIND, unit_row
from dynabandit.validation import listed

SCHEMA_LOCK = 7_236_001  # advisory locks of bandits are 60-bit random numbers
LEADER_LOCKS = {"histories": 7_236_002, "webhook": 7_236_003}  # by task
# A process that loses its connection within a transaction must not lock a bandit for long: the server rolls the
# transaction back and ends the session, so that whatever the process sends later is refused.
LIMITS = {"statement_timeout": "4s", "lock_timeout": "4s", "idle_in_transaction_session_timeout": "2s"}
SETTINGS = {
    "synchronous_commit": "on",
    "default_transaction_isolation": "'read committed'",
    "enable_seqscan": "off",  # plans that were made when a table was small must use its indexes, too
}
CONNECT = {"connect_timeout": 3, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3,
           "tcp_user_timeout": 5000}  # fmt: skip


class PostgresStore(Store):
    """A store in a PostgreSQL database with a URL such as ``postgresql://user@host/name``.

    Time limits that the URL sets, such as ``?connect_timeout=10&options=-c%20statement_timeout%3D10s``, take the place
    of those here.
    """

    shared = True
    version_statement = "SELECT version FROM schema_version"
    _has_prepared = False  # the statements of a commit, on this connection
    _is_leader = False  # this connection has the lock of the leader
    _errors = (psycopg.Error, OSError)
    _constraint_errors = (psycopg.errors.UniqueViolation, psycopg.errors.SerializationFailure)

    def __init__(self, url: str) -> None:
        self.url = url
        self.public_url = re.sub("//.*@", "//", url.partition("?")[0])
        try:
            given = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise ValueError(
                f"store must be like postgresql://user@host/name, got {self.public_url!r}: {error}"
            ) from None
        self._connect_limits = {name: value for name, value in CONNECT.items() if name not in given}
        limits = {name: value for name, value in LIMITS.items() if f"{name}=" not in str(given.get("options"))}
        self._session = {**limits, **SETTINGS}

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
            connection = psycopg.connect(self.url, autocommit=True, **self._connect_limits)  # type: ignore[arg-type]
            for name, value in self._session.items():
                connection.execute(f"SET {name} = {value if value[0] == chr(39) else repr(value)}".encode())
            self._connection, self._has_prepared, self._is_leader = connection, False, False
        return self._connection

    def _execute(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        cursor = self._open().execute(_encoded(statement), values or None)
        return cursor.fetchall() if cursor.description is not None else []

    def run(self, statements: Statements) -> list[list[tuple[Any, ...]]]:
        """Run statements in one round trip, as one message of PostgreSQL's simple protocol.

        Pipelines need one round trip, too, but no timeout of the server ends a transaction whose next message does not
        come, and the bandits of a process that stops there would stay locked.
        """
        text = "; ".join(statement for statement, _ in statements)
        try:
            cursor = psycopg.ClientCursor(self._open())
            if not self._has_prepared:
                cursor.execute(PREPARE.encode())
                self._has_prepared = True
            cursor.execute(_encoded(text), [value for _, values in statements for value in values])
            found = []
            for _ in statements:
                found.append(cursor.fetchall() if cursor.description is not None else [])
                cursor.nextset()
            return found
        except self._constraint_errors as error:
            raise WriteConflictError(str(error)) from error
        except self._errors as error:
            raise StoreError(f"store {self.public_url}: {error}") from error

    def begin(
        self, known: Mapping[int, int], keys: Collection[BanditKey] = (), units: Collection[BanditUnit] = ()
    ) -> BeginResult:
        """Lock each bandit, in ascending order so that two processes cannot wait for each other."""
        numbers = sorted(known)
        statements: Statements = [
            ("BEGIN", ()),
            ("EXECUTE lock_bandits (?)", [_array(numbers)]),
            # A statement of its own, because it must see what was committed while this process waited for a lock
            ("EXECUTE new_events (?, ?)", [_array(numbers), _array(known[number] for number in numbers)]),
        ]
        if keys:
            statements.append(("EXECUTE used_keys (?, ?)", [_array(column) for column in zip(*keys, strict=True)]))
        statements += [(FIND, unit) for unit in units]
        self.in_transaction = True
        _, _, found, *rest = self.run(statements)
        used, assigned = rest[: bool(keys)], rest[bool(keys) :]
        result = BeginResult(
            {},
            {(number, key) for number, key in used[0]} if used else set(),
            {unit: unit_row(rows[0]) for unit, rows in zip(units, assigned, strict=True) if rows},
        )
        for number, *event in found:
            events = result.events.setdefault(number, [])
            if event[0] is not None:  # a bandit without new events has one row
                events.append(EventRow._make(event))
        return result

    def try_to_begin(self, bandit: int) -> bool:
        self.in_transaction = True
        _, [(is_free,)] = self.run([("BEGIN", ()), ("SELECT pg_try_advisory_xact_lock(?)", (bandit,))])
        if not is_free:
            self.commit(())
        return bool(is_free)

    def is_leader(self, task: str = "histories") -> bool:
        if self._connection is None:  # the lock ended with the connection
            self._is_leader = False
        self._is_leader = self._is_leader or self.rows("SELECT pg_try_advisory_lock(?)", (LEADER_LOCKS[task],))[0][0]
        return self._is_leader

    def insert_statements(self, events: Events) -> Statements:
        return [(INSERT, [_array(column) for column in zip(*events, strict=True)])] if events else []


def _array(values: Iterable[float | str | None]) -> str:
    r"""Return an array as PostgreSQL reads it; psycopg would need most of the time of a commit for that.

    Examples
    --------
    >>> print(_array([1, None, 0.5]), _array(['a "b"', "NULL", "\\"]))
    {1,NULL,0.5} {"a \"b\"","NULL","\\"}
    """
    shown = ["NULL" if one is None else _quoted(one) if isinstance(one, str) else str(one) for one in values]
    return f"{{{','.join(shown)}}}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@functools.lru_cache(maxsize=1000)
def _encoded(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


TYPES = {"kind": "text", "key": "text", "body": "text", "arm": "int", "value": "float8", "time": "float8",
         "wall": "float8"}  # fmt: skip
ARRAYS = [f"{TYPES.get(name, 'bigint')}[]" for name in COLUMNS]
INSERT = f"EXECUTE insert_events ({', '.join('?' * len(COLUMNS))})"
# The statements of every commit, whose plans are made once per connection: because of (SELECT $1) the planner does not
# know the length of an array, and has no reason to plan again
PREPARE = f"""
PREPARE lock_bandits (bigint[]) AS SELECT pg_advisory_xact_lock(number) FROM unnest($1) AS number;
PREPARE new_events (bigint[], bigint[]) AS
    SELECT number, {", ".join(f"new.{name}" for name in COLUMNS)}
    FROM unnest((SELECT $1), (SELECT $2)) AS known (bandit, seen)
    CROSS JOIN LATERAL (SELECT number FROM bandits WHERE number = known.bandit AND deleted = 0 LIMIT 1) AS existing
    LEFT JOIN LATERAL (SELECT * FROM events WHERE bandit = known.bandit AND sequence > seen
        ORDER BY sequence LIMIT {NEW_EVENTS_PAGE}) AS new ON true
    ORDER BY number, new.sequence;
PREPARE used_keys (bigint[], text[]) AS
    SELECT asked.* FROM unnest((SELECT $1), (SELECT $2)) AS asked (bandit, key)
    CROSS JOIN LATERAL (SELECT 1 FROM events WHERE bandit = asked.bandit AND key = asked.key LIMIT 1) AS used;
PREPARE insert_events ({", ".join(ARRAYS)}) AS
    INSERT INTO events ({", ".join(COLUMNS)})
    SELECT * FROM unnest({", ".join(f"${place}" for place in range(1, len(COLUMNS) + 1))})
"""
