"""The table of the alerts that the webhook has accepted: the last one of each bandit."""

from collections.abc import Sequence
from typing import Any

from dynabandit.service.domain.events import ALERT, COLUMNS, EventRow
from dynabandit.service.stores.base import Store

MAX_ALERTS = 100  # that are read at a time
NEXT_ALERTS = (
    f"SELECT {', '.join(f'e.{column}' for column in COLUMNS)} FROM bandits b JOIN events e ON e.bandit = b.number"
    " AND e.kind = ? AND e.body IS NOT NULL LEFT JOIN alert_positions p ON p.bandit = b.number"
    " WHERE e.sequence > coalesce(p.sequence, 0) ORDER BY e.wall, e.bandit, e.sequence LIMIT ?"
)


def next_alerts(store: Store) -> list[EventRow]:
    """Return the oldest alerts that were not accepted yet, of all bandits whose logs exist."""
    return [EventRow._make(found) for found in store.rows(NEXT_ALERTS, (ALERT, MAX_ALERTS))]


def save_position(bandit: int, sequence: int) -> tuple[str, Sequence[Any]]:
    """Return the statement that notes the last alert of a bandit that was accepted."""
    statement = (
        "INSERT INTO alert_positions (bandit, sequence) VALUES (?, ?)"
        " ON CONFLICT (bandit) DO UPDATE SET sequence = excluded.sequence"
    )
    return statement, (bandit, sequence)
