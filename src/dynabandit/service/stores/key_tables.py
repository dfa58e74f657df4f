"""The table of API keys."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from dynabandit.service.errors import StoreError
from dynabandit.service.stores.base import Store


class KeyRow(NamedTuple):
    """An API key; only a hash of its secret is stored. `COLUMNS` are those of its table.

    The column of the role also has what a key with the role `page` may send, if that is not the default; earlier
    releases do not know such a role, and refuse the key.
    """

    id: str
    role: str
    digest: str
    note: str
    created: float
    revoked: float | None
    namespace: str | None = None  # the only one whose bandits the key may use
    requests_per_second: float | None = None  # decisions, rewards and metrics
    sends_rewards: bool = True  # all other roles may send rewards and all metrics
    metrics: tuple[str, ...] = ()


COLUMNS = KeyRow._fields[:-2]
NEWER_COLUMNS = ("namespace", "requests_per_second")  # which earlier releases lacked


class _Rights(msgspec.Struct, forbid_unknown_fields=True):
    """What a key with the role `page` may send, as the column of its role has it after the role."""

    rewards: bool
    metrics: tuple[str, ...]


def api_keys(store: Store) -> list[KeyRow]:
    """Return all API keys, also from tables that were not migrated yet and have fewer columns."""
    found = store.rows("SELECT * FROM keys ORDER BY created")
    return [_with_rights(KeyRow(*map(_legible, values))) for values in found]


def add_key(store: Store, key: KeyRow) -> None:
    """Save an API key; tables that were not migrated yet have no columns for the fields that are None."""
    row = zip(COLUMNS, key._replace(role=_role_text(key)), strict=False)
    given = {name: value for name, value in row if value is not None}
    places = ", ".join("?" * len(given))
    _write_key(store, f"INSERT INTO keys ({', '.join(given)}) VALUES ({places})", list(given.values()))


def limit_key(store: Store, identity: str, requests_per_second: float | None) -> bool:
    """Set the rate limit of an API key, None for no limit; return whether the key exists."""
    if not store.rows("SELECT 1 FROM keys WHERE id = ?", (identity,)):
        return False
    _write_key(store, "UPDATE keys SET requests_per_second = ? WHERE id = ?", (requests_per_second, identity))
    return True


def allow_key(store: Store, key: KeyRow) -> None:
    """Save what a key with the role `page` may send."""
    _write_key(store, "UPDATE keys SET role = ? WHERE id = ?", (_role_text(key), key.id))


def _role_text(key: KeyRow) -> str:
    """Return the role of a key, and what it may send if that is not the default, as its column has them."""
    if key.sends_rewards and not key.metrics:
        return key.role
    return f"{key.role} {msgspec.json.encode(_Rights(key.sends_rewards, key.metrics)).decode()}"


def _with_rights(key: KeyRow) -> KeyRow:
    """Return a key whose role is the text of its column; a damaged text is left, and is no role."""
    role, _, text = key.role.partition(" ")
    if role != "page" or not text:
        return key
    try:
        rights = msgspec.json.decode(text, type=_Rights)
    except msgspec.DecodeError:
        return key
    return key._replace(role=role, sends_rewards=rights.rewards, metrics=rights.metrics)


def _write_key(store: Store, statement: str, values: Sequence[Any]) -> None:
    try:
        store.write([(statement, values)])
    except StoreError as error:
        if any(name in str(error) for name in NEWER_COLUMNS):
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
