"""The table of the histories that the live pages show, one of each bandit."""

from collections.abc import Iterable

from dynabandit.service.stores.base import Store
from dynabandit.service.stores.rows import Statements

SAVE = (
    "INSERT INTO histories (bandit, sequence, body) VALUES (?, ?, ?)"
    " ON CONFLICT (bandit) DO UPDATE SET sequence = excluded.sequence, body = excluded.body"
)
# At the end: a bandit may have been erased since its history was made
REMOVE_ERASED = "DELETE FROM histories WHERE bandit NOT IN (SELECT number FROM bandits WHERE deleted = 0)"


def saved_history(store: Store, bandit: int) -> str | None:
    """Return the saved history of a bandit."""
    found = store.rows("SELECT body FROM histories WHERE bandit = ?", (bandit,))
    return found[0][0] if found else None


def history_statements(histories: Iterable[tuple[int, int, str]]) -> Statements:
    """Return the statements that save histories: (bandit, sequence, JSON) each."""
    return [*((SAVE, row) for row in histories), (REMOVE_ERASED, ())]
