"""Stores: where events, snapshots and keys are kept. SQLite for one process, PostgreSQL for several."""

from pathlib import Path

from dynabandit.extras import import_extra
from dynabandit.service.stores.base import Store
from dynabandit.service.stores.key_tables import KeyRow
from dynabandit.service.stores.rows import NEW_EVENTS_PAGE, BanditKey, BanditRow, Snapshot, Statements
from dynabandit.service.stores.sqlite import SqliteStore

__all__ = [
    "NEW_EVENTS_PAGE",
    "BanditKey",
    "BanditRow",
    "KeyRow",
    "Snapshot",
    "SqliteStore",
    "Statements",
    "Store",
    "open_store",
]


def open_store(url: str) -> Store:
    """Return the store behind a URL such as ``sqlite:///dynabandit.db`` or ``postgresql://host/name``."""
    if url.startswith("sqlite:///"):
        path = url.removeprefix("sqlite:///")
        if not path or path == ":memory:":
            raise ValueError(f"store must name a file, such as sqlite:///dynabandit.db, got {url!r}")
        if Path(path).is_dir():
            raise ValueError(f"store must name a file, such as sqlite:///dynabandit.db, got the folder {path}")
        return SqliteStore(path)
    if url.startswith(("postgresql://", "postgres://")):
        import_extra("psycopg", "postgres")
        from dynabandit.service.stores.postgres import PostgresStore

        return PostgresStore(url)
    raise ValueError(f"store must start with sqlite:/// or postgresql://, such as sqlite:///dynabandit.db, got {url!r}")
