"""What a decision chooses: the holdout or the policy, one arm or a ranking, and with which propensities."""

from collections.abc import Sequence

import numpy as np

from dynabandit.bandit import Bandit
from dynabandit.bandit.propensities import ColumnProbabilities
from dynabandit.service.domain.decision_details import DecisionDetails
from dynabandit.service.domain.holdout import Holdout, unit_of_step
from dynabandit.service.domain.steps import Steps


def columns_of_decision(
    bandit: Bandit, bandit_number: int, holdout: Holdout | None, asked: DecisionDetails, places: int
) -> Steps[tuple[list[int], bool]]:
    """Return the columns of the next decision in order, up to `places`, and whether the unit is in the holdout.

    Each place is a step.
    """
    of_holdout, left = None, asked.among
    if holdout is not None:
        unit = unit_of_step(bandit.step + 1) if asked.unit is None else asked.unit
        of_holdout = holdout.column(bandit, bandit_number, unit, asked.among)
    columns = list[int]()
    if of_holdout is not None:
        columns.append(of_holdout)
        available = bandit.available_columns(asked.among)
        left = available[available != of_holdout]
        if places == 1 or len(left) == 0:
            return columns, True
    for column in bandit.each_ranked_column(places - len(columns), asked.context, left):
        if columns:
            yield
        columns.append(column)
    return columns, of_holdout is not None


def place_propensities(
    bandit: Bandit,
    holdout: Holdout | None,
    asked: DecisionDetails,
    columns: Sequence[int],
    first: ColumnProbabilities | None,
) -> Steps[list[float] | None]:
    """Return the probability of each column of a ranking among those left, or None if it is not known exactly.

    `first` are those of the first place, from `first_propensities`. Each further place is a step.
    """
    if asked.propensities is not None and asked.among is not None:  # they were computed before
        return [asked.propensities[asked.among.index(columns[0])]]
    found: list[float] = []
    for place, column in enumerate(columns):
        probabilities = first
        if place > 0:
            yield
            available = bandit.available_columns(asked.among)
            left = available[~np.isin(available, columns[:place])]
            probabilities = bandit.exact_probabilities(asked.context, left)
        if probabilities is None:
            return None
        found.append(probabilities.of(column))
    if holdout is not None:
        found[0] = holdout.marginal(found[0], columns[0], bandit, asked.among)
    return found


def first_propensities(bandit: Bandit, holdout: Holdout | None, asked: DecisionDetails) -> ColumnProbabilities | None:
    """Return the probability with which the policy chooses each column first, or None if it is not known."""
    if asked.propensities is None or asked.among is None:
        return bandit.exact_probabilities(asked.context, asked.among)
    if holdout is not None:  # those that were computed before are of the policy and the holdout together
        return None
    return ColumnProbabilities(np.array(asked.among), np.array(asked.propensities))
