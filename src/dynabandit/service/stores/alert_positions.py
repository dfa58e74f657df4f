"""The tables of the alerts that the webhook has sent: the last one of each bandit, and those that were refused."""

from collections.abc import Sequence

from dynabandit.service.domain.events import ALERT
from dynabandit.service.stores.base import ERASING, Store
from dynabandit.service.stores.rows import Statements

MAX_REFUSED = 1_000  # that are kept, of all bandits
FIRST_WAITING = (
    "SELECT bandit, sequence FROM (SELECT b.number AS bandit, (SELECT min(events.sequence) FROM {changes}"
    " WHERE events.bandit = b.number AND events.kind = ? AND events.body IS NOT NULL AND events.step IS NULL"
    " AND events.sequence > coalesce(p.sequence, 0)) AS sequence FROM bandits b"
    " LEFT JOIN alert_positions p ON p.bandit = b.number WHERE b.deleted < ?) AS found WHERE sequence IS NOT NULL"
)


def first_waiting(store: Store) -> dict[int, int]:
    """Return the first alert that was not sent yet, by bandit, of all bandits whose logs exist."""
    return dict(store.rows(FIRST_WAITING.format(changes=store.changes_from), (ALERT, ERASING)))


def save_position(bandit: int, sequence: int) -> tuple[str, Sequence[int]]:
    """Return the statement that notes the last alert of a bandit that was sent."""
    statement = (
        "INSERT INTO alert_positions (bandit, sequence) VALUES (?, ?)"
        " ON CONFLICT (bandit) DO UPDATE SET sequence = excluded.sequence"
    )
    return statement, (bandit, sequence)


def save_refusal(bandit: int, sequence: int, status: int, wall: float) -> Statements:
    """Return the statements that note an alert that was refused for good, and forget the oldest such ones."""
    insert = (
        "INSERT INTO refused_alerts (bandit, sequence, status, wall) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (bandit, sequence) DO NOTHING"
    )
    drop = (
        "DELETE FROM refused_alerts WHERE (bandit, sequence) NOT IN (SELECT bandit, sequence FROM refused_alerts"
        " ORDER BY wall DESC, bandit, sequence LIMIT ?)"
    )
    return [(insert, (bandit, sequence, status, wall)), (drop, (MAX_REFUSED,))]


def refused_alerts(store: Store, bandit: int) -> dict[int, int]:
    """Return the statuses with which alerts of a bandit were refused, by the sequence number of the alert."""
    return dict(store.rows("SELECT sequence, status FROM refused_alerts WHERE bandit = ?", (bandit,)))
