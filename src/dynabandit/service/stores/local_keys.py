"""The decisions of local deciders in a log, by their keys."""

from collections.abc import Iterator, Sequence

from dynabandit.service.domain.events import DECISION
from dynabandit.service.stores.base import PAGE, Store

ANY_LOCAL_KEY = "%\t%"


def steps_of(store: Store, bandit: int, keys: Sequence[str]) -> dict[str, int]:
    """Return the steps of the decisions with some keys, by key."""
    return dict(store.rows_in("SELECT key, step FROM events WHERE bandit = ? AND key IN ({})", keys, bandit))


def local_bodies(store: Store, bandit: int, after: int) -> Iterator[str]:
    """Return the bodies of all local decisions after a sequence number."""
    while page := store.rows(
        "SELECT sequence, body FROM events WHERE bandit = ? AND sequence > ? AND kind = ? AND key LIKE ?"
        " ORDER BY sequence LIMIT ?",
        (bandit, after, DECISION, ANY_LOCAL_KEY, PAGE),
    ):
        yield from (body for _, body in page)
        after = page[-1][0]
