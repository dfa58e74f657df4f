"""API keys: shown once, stored as a hash, compared in constant time."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable

from dynabandit.errors import unknown
from dynabandit.service.stores import KeyRow

__all__ = ["ROLES", "Keyring", "new_key"]

# What each role may do; a call names the one permission that it needs
ROLES: dict[str, frozenset[str]] = {
    "decide": frozenset({"decide"}),
    "read": frozenset({"read"}),
    "admin": frozenset({"decide", "read", "admin"}),
}
NOBODY = "0" * 64  # what an unknown key is compared with, so that it takes as long as a known one


def digest(secret: str) -> str:
    """Return the hash that is stored. A secret has 256 random bits: no slow hash could make it harder to guess."""
    return hashlib.sha256(secret.encode()).hexdigest()


def new_key(role: str, note: str = "") -> tuple[str, KeyRow]:
    """Return a new key and the row that stores it.

    Examples
    --------
    >>> key, row = new_key("decide")
    >>> key.startswith("dyna_" + row.id), key in str(row)
    (True, False)
    """
    if role not in ROLES:
        raise unknown("role", role, ROLES)
    identity, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    return f"dyna_{identity}_{secret}", KeyRow(identity, role, digest(secret), note, time.time(), None)


class Keyring:
    """The keys that hold now."""

    def __init__(self, rows: Iterable[KeyRow] = ()) -> None:
        self.replace(rows)

    def replace(self, rows: Iterable[KeyRow]) -> None:
        """Take in the keys of the store; one whose role was damaged opens nothing."""
        self._rows = {row.id: row for row in rows if row.revoked is None and row.role in ROLES}

    def holder(self, authorization: str | None) -> KeyRow | None:
        """Return the key that an Authorization header shows, or None."""
        scheme, _, key = (authorization or "").partition(" ")
        prefix, _, rest = key.strip().partition("_")
        identity, _, secret = rest.partition("_")
        row = self._rows.get(identity)
        same = hmac.compare_digest(digest(secret), NOBODY if row is None else row.digest)
        if not same or row is None or prefix != "dyna" or scheme.lower() != "bearer":
            return None
        return row
