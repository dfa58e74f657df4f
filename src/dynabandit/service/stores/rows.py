"""What stores return: bandits, snapshots, and what other processes have written."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from dynabandit.service.domain.events import EventRow, UnitRow

NEW_EVENTS_PAGE = 500

Statements = list[tuple[str, Sequence[Any]]]  # each with its values
BanditKey = tuple[int, str]  # number of a bandit, idempotency key
BanditUnit = tuple[int, str]  # number of a bandit, hash of a unit


class BanditRow(NamedTuple):
    """A bandit, deleted or not; the log of one that is `erasing` is being removed."""

    number: int
    name: str
    deleted: bool
    erasing: bool = False


class BeginResult(NamedTuple):
    """What `Store.begin` found: the new events of each bandit that exists, the idempotency keys in use, and the units.

    Of a bandit with many new events only the first `NEW_EVENTS_PAGE` are returned.
    """

    events: dict[int, list[EventRow]]
    used_keys: set[BanditKey]
    units: dict[BanditUnit, UnitRow]


class Snapshot(NamedTuple):
    """A saved state; of an old one only the hash is kept, and `body` is None. The hash begins with its version."""

    sequence: int
    state_hash: str
    body: str | None
