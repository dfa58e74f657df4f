"""A decision of a bandit, and the probabilities with which it could have chosen each arm."""

from typing import NamedTuple

import numpy as np


class ColumnProbabilities(NamedTuple):
    """The probability with which each of some columns is chosen; no other column is. The columns are in order."""

    columns: np.ndarray
    probabilities: np.ndarray

    def of(self, column: int) -> float:
        """Return the probability of a column."""
        place = int(self.columns.searchsorted(column))
        can_be_chosen = place < len(self.columns) and self.columns[place] == column
        return float(self.probabilities[place]) if can_be_chosen else 0.0


class Decision(NamedTuple):
    """The arm that a bandit chose, and what it computed to choose it.

    `column` is the place of the arm in the `names` of the bandit, `step` the number of the decision. The probability of
    each column that could be chosen is None if it is not known exactly or was not asked for; `vector` is that of the
    context, None without features.
    """

    arm: str
    column: int
    step: int
    probabilities: ColumnProbabilities | None
    vector: np.ndarray | None

    @property
    def propensity(self) -> float | None:
        """The probability with which the arm was chosen."""
        return None if self.probabilities is None else self.probabilities.of(self.column)
