"""The table of units: the latest decision for each, found by a hash of the unit."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dynabandit.service.domain.events import UnitRow
from dynabandit.service.stores.rows import BanditUnit, Statements

if TYPE_CHECKING:  # whose commits write this table
    from dynabandit.service.stores.base import Store

FIND = "SELECT step, arm, time, propensity, holdout FROM units WHERE bandit = ? AND unit = ?"
FIND_SOME = "SELECT unit, step, arm, time, propensity, holdout FROM units WHERE bandit = ? AND unit IN ({})"
SAVE = (
    "INSERT INTO units (bandit, unit, step, arm, time, propensity, holdout) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT"
    " (bandit, unit) DO UPDATE SET step = excluded.step, arm = excluded.arm, time = excluded.time,"
    " propensity = excluded.propensity, holdout = excluded.holdout"
)
COUNT = "SELECT count(*) FROM (SELECT 1 FROM units WHERE bandit = ? AND time >= ? LIMIT ?) AS found"
REMOVE = (
    "DELETE FROM units WHERE bandit = ? AND unit IN"
    " (SELECT unit FROM units WHERE bandit = ? AND time < ? ORDER BY time LIMIT ?)"
)


def find_units(store: "Store", asked: Collection[BanditUnit]) -> dict[BanditUnit, UnitRow]:
    """Return the latest decision for each of some units that has one."""
    found: dict[BanditUnit, UnitRow] = {}
    for bandit in {bandit for bandit, _ in asked}:
        units = [unit for number, unit in asked if number == bandit]
        rows = store.rows_in(FIND_SOME, units, bandit)
        found |= {(bandit, unit): unit_row(values) for unit, *values in rows}
    return found


def count_units(store: "Store", bandit: int, since: float, limit: int) -> int:
    """Return for how many units, at most `limit`, the latest decision was made at or after a time."""
    [(count,)] = store.rows(COUNT, (bandit, since, limit))
    return int(count)


def remove_units(store: "Store", bandit: int, before: float, limit: int) -> None:
    """Remove units, at most `limit`, whose latest decision was made before a time."""
    store.write([(REMOVE, (bandit, bandit, before, limit))])


def unit_hash(unit: str) -> str:
    """Return what the table finds a unit by."""
    return hashlib.blake2b(unit.encode(), digest_size=16).hexdigest()


def unit_row(values: Sequence[Any]) -> UnitRow:
    """Return a row as `FIND` reads it."""
    step, arm, time, propensity, holdout = values
    return UnitRow(step, arm, time, propensity, bool(holdout))


def unit_statements(units: Mapping[BanditUnit, UnitRow]) -> Statements:
    """Return the statements that save the latest decisions for units."""
    return [
        (SAVE, (*unit, row.step, row.arm, row.time, row.propensity, int(row.holdout))) for unit, row in units.items()
    ]
