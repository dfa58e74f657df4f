"""The holdout: a fixed share of the units, to which the policy does not apply."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynabandit.bandit import Bandit

HASH_BYTES = 8


class Holdout(NamedTuple):
    """The share of the units in the holdout and the arm that they get; without one, all arms get equal parts."""

    share: float
    control: str | None = None

    def column(self, bandit: Bandit, bandit_number: int, unit: str, among: Sequence[int] | None = None) -> int | None:
        """Return the column that a unit of the holdout gets, or None if the policy decides.

        Both depend only on the number of the bandit, the unit and the arms that can be chosen. If the control arm
        cannot be chosen, the policy decides.
        """
        group, place = _hashes(bandit_number, unit)
        if group >= self.share:
            return None
        columns = self._columns(bandit, among)
        return int(columns[int(place * len(columns))]) if len(columns) else None

    def _columns(self, bandit: Bandit, among: Sequence[int] | None) -> np.ndarray:
        """Return the columns that units of the holdout can get now: that of the control arm, or all."""
        columns = bandit.available_columns(among)
        if self.control is None:
            return columns
        control = bandit.column(self.control) if self.control in bandit.active else -1
        return columns[columns == control]

    def is_possible(self, bandit: Bandit, among: Sequence[int] | None = None) -> bool:
        """Return whether there is a holdout now: its arm, or any arm, can be chosen."""
        return len(self._columns(bandit, among)) > 0

    def marginal(self, probability: float, column: int, bandit: Bandit, among: Sequence[int] | None = None) -> float:
        """Return the probability of a column over all units, given the probability with which the policy chooses it."""
        columns = self._columns(bandit, among)
        if len(columns) == 0:
            return probability  # there is no holdout while its arm cannot be chosen
        within = float((columns == column).sum() / len(columns))
        return self.share * within + (1.0 - self.share) * probability


def unit_of_step(step: int) -> str:
    """Return what is hashed in place of a unit for a decision without one."""
    return f"\0step {step}"


def _hashes(bandit_number: int, unit: str) -> tuple[float, float]:
    """Return two independent numbers in [0, 1), functions of the bandit and the unit.

    Examples
    --------
    >>> [round(one, 3) for one in _hashes(33, "user-17")] == [round(one, 3) for one in _hashes(33, "user-17")]
    True
    """
    key = bandit_number.to_bytes(HASH_BYTES, "little")
    digest = hashlib.blake2b(unit.encode(), digest_size=2 * HASH_BYTES, key=key).digest()
    first, second = (int.from_bytes(part, "little") >> 11 for part in (digest[:HASH_BYTES], digest[HASH_BYTES:]))
    return first * 2.0**-53, second * 2.0**-53
