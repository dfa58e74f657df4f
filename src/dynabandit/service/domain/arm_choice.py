"""What a decision chooses: the holdout or the policy, one arm or a ranking, and with which propensities."""

from typing import NamedTuple

import numpy as np

from dynabandit.bandit import Bandit
from dynabandit.bandit.decision import ColumnProbabilities
from dynabandit.service.domain.decision_details import DecisionDetails
from dynabandit.service.domain.holdout import Holdout, unit_of_step
from dynabandit.service.domain.steps import Steps


class ArmChoice(NamedTuple):
    """The columns of the next decision in order, more than one if it is a ranking.

    `probabilities` has, for each place, the probability with which the policy chooses each of the columns left, or None
    if it is not known or was not computed. `vector` is that of the context, None if the policy was not asked.
    """

    columns: list[int]
    in_holdout: bool
    probabilities: list[ColumnProbabilities | None]
    vector: np.ndarray | None


def choose_arms(
    bandit: Bandit,
    bandit_number: int,
    holdout: Holdout | None,
    asked: DecisionDetails,
    places: int,
    *,
    propensity: bool,
) -> Steps[ArmChoice]:
    """Return the next decision, of up to `places` columns, and with `propensity` their probabilities.

    Each place is a step, together with its probabilities.
    """
    of_holdout, left = None, asked.among
    if holdout is not None:
        unit = unit_of_step(bandit.step + 1) if asked.unit is None else asked.unit
        of_holdout = holdout.column(bandit, bandit_number, unit, asked.among)
    columns, probabilities, vector = list[int](), list[ColumnProbabilities | None](), None
    if of_holdout is not None:
        columns.append(of_holdout)
        probabilities.append(bandit.exact_probabilities(asked.context, asked.among) if propensity else None)
        available = bandit.available_columns(asked.among)
        left = available[available != of_holdout]
        if places == 1 or len(left) == 0:
            return ArmChoice(columns, True, probabilities, vector)
    if columns:
        yield
    ranked = bandit.each_place(places - len(columns), asked.context, left, propensity=propensity)
    while (place := next(ranked, None)) is not None:
        columns.append(place.column)
        probabilities.append(place.probabilities)
        vector = place.vector
        if len(columns) < places:
            yield
    return ArmChoice(columns, of_holdout is not None, probabilities, vector)


def place_propensities(
    bandit: Bandit, holdout: Holdout | None, asked: DecisionDetails, choice: ArmChoice
) -> list[float] | None:
    """Return the probability of each column of a choice among those left, or None if it is not known exactly."""
    if asked.propensities is not None and asked.among is not None:  # they were computed before
        return [asked.propensities[asked.among.index(choice.columns[0])]]
    found: list[float] = []
    for column, probabilities in zip(choice.columns, choice.probabilities, strict=True):
        if probabilities is None:
            return None
        found.append(probabilities.of(column))
    if holdout is not None:
        found[0] = holdout.marginal(found[0], choice.columns[0], bandit, asked.among)
    return found


def first_probabilities(
    holdout: Holdout | None, asked: DecisionDetails, choice: ArmChoice
) -> ColumnProbabilities | None:
    """Return the probability with which the policy chooses each column first, or None if it is not known."""
    if asked.propensities is None or asked.among is None:
        return choice.probabilities[0]
    if holdout is not None:  # those that were computed before are of the policy and the holdout together
        return None
    order = np.argsort(asked.among)
    return ColumnProbabilities(np.array(asked.among)[order], np.array(asked.propensities)[order])
