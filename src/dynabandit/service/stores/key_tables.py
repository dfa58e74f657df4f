"""The table of API keys."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from dynabandit.service.errors import StoreError
from dynabandit.service.stores.base import Store


class KeyRow(NamedTuple):
    """An API key; only a hash of its secret is stored. The last fields are columns that earlier releases lacked."""

    id: str
    role: str
    digest: str
    note: str
    created: float
    revoked: float | None
    namespace: str | None = None  # the only one whose bandits the key may use
    requests_per_second: float | None = None  # that decide or reward


def api_keys(store: Store) -> list[KeyRow]:
    """Return all API keys, also from tables that were not migrated yet and have fewer columns."""
    found = store.rows("SELECT * FROM keys ORDER BY created")
    return [KeyRow(*map(_legible, values)) for values in found]


def add_key(store: Store, key: KeyRow) -> None:
    """Save an API key; tables that were not migrated yet have no columns for the fields that are None."""
    given = {name: value for name, value in key._asdict().items() if value is not None}
    places = ", ".join("?" * len(given))
    _write_key(store, f"INSERT INTO keys ({', '.join(given)}) VALUES ({places})", list(given.values()))


def limit_key(store: Store, identity: str, requests_per_second: float | None) -> bool:
    """Set the rate limit of an API key, None for no limit; return whether the key exists."""
    if not store.rows("SELECT 1 FROM keys WHERE id = ?", (identity,)):
        return False
    _write_key(store, "UPDATE keys SET requests_per_second = ? WHERE id = ?", (requests_per_second, identity))
    return True


def _write_key(store: Store, statement: str, values: Sequence[Any]) -> None:
    try:
        store.write([(statement, values)])
    except StoreError as error:
        if any(name in str(error) for name in KeyRow._field_defaults):
            raise ValueError(
                "the store was written by an earlier release, whose keys have neither namespaces nor rate limits: "
                "start dynabandit serve once, which migrates the store"
            ) from None
        raise


def revoke_key(store: Store, identity: str, now: float) -> bool:
    """Revoke an API key; return whether it exists."""
    if not store.rows("SELECT 1 FROM keys WHERE id = ?", (identity,)):
        return False
    store.write([("UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL", (now, identity))])
    return True


def _legible(value: Any) -> Any:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
