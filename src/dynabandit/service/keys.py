"""API keys: shown once, stored as a hash, compared in constant time."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable

from dynabandit.service.domain.names import clean_name
from dynabandit.service.monitoring_types import MAX_METRIC_NAME
from dynabandit.service.rate_limits import check_rate, is_rate
from dynabandit.service.stores import KeyRow
from dynabandit.validation import unknown

# The permissions of each role; an endpoint needs one, which is named like the least role that has it. Web pages publish
# their keys, so the role `page` lacks the permission `decide`: for calls that tell the service which arm was played, or
# that name a decision by an id without a signature
ROLES: dict[str, frozenset[str]] = {
    "page": frozenset({"page"}),
    "decide": frozenset({"page", "decide"}),
    "read": frozenset({"read"}),
    "admin": frozenset({"page", "decide", "read", "admin"}),
}
RATE_LIMITED = ROLES["decide"]  # permissions of the requests that count for the rate limit of a key
NO_DIGEST = "0" * 64  # compared with an unknown key, which then takes as long as a known one


def digest(secret: str) -> str:
    """Return the hash that is stored. A secret has 256 random bits, so a slow hash would add nothing."""
    return hashlib.sha256(secret.encode()).hexdigest()


def new_key(
    role: str,
    note: str = "",
    namespace: str | None = None,
    requests_per_second: float | None = None,
    sends_rewards: bool = True,
    metrics: Iterable[str] = (),
) -> tuple[str, KeyRow]:
    """Return a new key and the row that stores it. With a namespace, it may only use the bandits in it.

    The last two parameters are those of a key with the role `page`; see `KeyRow`.

    Examples
    --------
    >>> key, row = new_key("decide")
    >>> key.startswith("dyna_" + row.id), key in str(row)
    (True, False)
    """
    if role not in ROLES:
        raise unknown("role", role, ROLES)
    if namespace is not None:
        namespace = clean_name(namespace, "namespace")
        if "/" in namespace:
            raise ValueError(f"namespace must not contain a slash, got {namespace!r}")
    check_rate(requests_per_second)
    identity, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    row = KeyRow(identity, role, digest(secret), note, time.time(), None, namespace, requests_per_second)
    row = allowed(row, sends_rewards, metrics)
    return f"dyna_{identity}_{secret}", row


def allowed(row: KeyRow, sends_rewards: bool, metrics: Iterable[str]) -> KeyRow:
    """Return a key that may send rewards or not, and these metrics; only keys with the role `page` cannot send all."""
    row = row._replace(sends_rewards=sends_rewards, metrics=tuple(dict.fromkeys(metrics)))
    if row.role != "page" and not (sends_rewards and not row.metrics):
        raise ValueError(f"only for the role page can rewards be refused and metrics be named, got the role {row.role}")
    for metric in row.metrics:
        if not metric.isprintable():
            raise ValueError(f"a metric must have printable characters, got {metric!r}")
        if not 1 <= len(metric) <= MAX_METRIC_NAME:
            raise ValueError(f"a metric must have 1 to {MAX_METRIC_NAME} characters, got {len(metric)}")
    return row


class Keyring:
    """The keys that are valid now."""

    def __init__(self, rows: Iterable[KeyRow] = ()) -> None:
        self.replace(rows)

    def replace(self, rows: Iterable[KeyRow]) -> None:
        """Replace all keys by those of the store; one with a damaged role or rate limit is not valid."""
        valid = (row for row in rows if row.revoked is None and row.role in ROLES)
        self._rows = {row.id: row for row in valid if is_rate(row.requests_per_second)}

    def find(self, authorization: str | None) -> KeyRow | None:
        """Return the key in an Authorization header, or None."""
        scheme, _, key = (authorization or "").partition(" ")
        prefix, _, rest = key.strip().partition("_")
        identity, _, secret = rest.partition("_")
        row = self._rows.get(identity)
        is_same = hmac.compare_digest(digest(secret), NO_DIGEST if row is None else row.digest)
        if not is_same or row is None or prefix != "dyna" or scheme.lower() != "bearer":
            return None
        return row
