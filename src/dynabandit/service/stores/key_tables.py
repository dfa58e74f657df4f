"""The tables of API keys and of the secret that signs decision ids."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from dynabandit.service.domain.decision_ids import DecisionIds
from dynabandit.service.errors import StoreError

Statements = list[tuple[str, Sequence[Any]]]  # each with its values


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


class KeyTables:
    """The part of a `Store` that reads and writes these tables."""

    _decision_ids: DecisionIds | None = None

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        raise NotImplementedError

    def write(self, statements: Statements) -> None:
        """Run statements in one transaction."""
        raise NotImplementedError

    def decision_ids(self) -> DecisionIds:
        """Return what makes and checks the ids of decisions; it is read once, and never changes."""
        if self._decision_ids is None:
            [(secret,)] = self.rows("SELECT value FROM signing_secret")
            unsigned = dict(self.rows("SELECT bandit, last_step FROM unsigned_ids"))
            self._decision_ids = DecisionIds(bytes(secret), unsigned)
        return self._decision_ids

    def api_keys(self) -> list[KeyRow]:
        """Return all API keys, also from tables that were not migrated yet and have fewer columns."""
        found = self.rows("SELECT * FROM keys ORDER BY created")
        return [KeyRow(*map(_legible, values)) for values in found]

    def add_key(self, key: KeyRow) -> None:
        """Save an API key; tables that were not migrated yet have no columns for the fields that are None."""
        given = {name: value for name, value in key._asdict().items() if value is not None}
        places = ", ".join("?" * len(given))
        self._write_key(f"INSERT INTO keys ({', '.join(given)}) VALUES ({places})", list(given.values()))

    def limit_key(self, identity: str, requests_per_second: float | None) -> bool:
        """Set the rate limit of an API key, None for no limit; return whether the key exists."""
        if not self.rows("SELECT 1 FROM keys WHERE id = ?", (identity,)):
            return False
        self._write_key("UPDATE keys SET requests_per_second = ? WHERE id = ?", (requests_per_second, identity))
        return True

    def _write_key(self, statement: str, values: Sequence[Any]) -> None:
        try:
            self.write([(statement, values)])
        except StoreError as error:
            if any(name in str(error) for name in KeyRow._field_defaults):
                raise ValueError(
                    "the store was written by an earlier release, whose keys have neither namespaces nor rate limits: "
                    "start dynabandit serve once, which migrates the store"
                ) from None
            raise

    def revoke_key(self, identity: str, now: float) -> bool:
        """Revoke an API key; return whether it exists."""
        if not self.rows("SELECT 1 FROM keys WHERE id = ?", (identity,)):
            return False
        self.write([("UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL", (now, identity))])
        return True


def _legible(value: Any) -> Any:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
