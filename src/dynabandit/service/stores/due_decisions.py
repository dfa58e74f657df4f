"""Which decisions of a log are due: older than an age, not settled yet; and the ages at which rewards came."""

from dynabandit.service.domain.events import REWARD
from dynabandit.service.stores.base import Store


def older_decisions(store: Store, bandit: int, after: int, limit: int, now: float, age: float) -> tuple[int, int]:
    """Return how many of the next `limit` decisions after a step are older than an age, and the last step of these."""
    found = store.rows(
        "SELECT count(*), max(step) FROM (SELECT step, time FROM events WHERE bandit = ? AND step > ?"
        " ORDER BY step LIMIT ?) AS following WHERE ? - time > ?",
        (bandit, after, limit, now, age),
    )
    count, last = found[0]
    return count, after if last is None else last


def next_decision_time(store: Store, bandit: int, after: int) -> float | None:
    """Return the time of the next decision after a step."""
    found = store.rows("SELECT time FROM events WHERE bandit = ? AND step > ? ORDER BY step LIMIT 1", (bandit, after))
    return found[0][0] if found else None


def open_decisions(store: Store, bandit: int, after: int, to: int) -> list[tuple[int, int]]:
    """Return (step, column) of the decisions after one step and up to another that are not settled, in order."""
    found = store.rows(
        "SELECT step, arm FROM events d WHERE bandit = ? AND step > ? AND step <= ? AND NOT EXISTS"
        " (SELECT 1 FROM events r WHERE r.bandit = d.bandit AND r.settles = d.step) ORDER BY step",
        (bandit, after, to),
    )
    return [(step, arm) for step, arm in found]


def reward_ages(store: Store, bandit: int, after: int, limit: int) -> list[tuple[int, float, float, float]]:
    """Return (sequence, reward, time of the decision, seconds since then) of the rewards after a sequence number."""
    found = store.rows(
        "SELECT r.sequence, r.value, d.time, r.time - d.time FROM events r JOIN events d ON d.bandit = r.bandit"
        " AND d.step = r.settles WHERE r.bandit = ? AND r.sequence > ? AND r.kind = ? ORDER BY r.sequence LIMIT ?",
        (bandit, after, REWARD, limit),
    )
    return [(sequence, value, decided, age) for sequence, value, decided, age in found]
