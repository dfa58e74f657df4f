"""Which arm is best: the probability of each arm, and its uplift over a control arm, for the live page."""

import math
from collections.abc import Mapping

import numpy as np

from dynabandit.policies.belief import Belief
from dynabandit.service.projections.bandit_history import BanditHistory
from dynabandit.stats.best_arm import best_of_means, best_of_shares
from dynabandit.stats.intervals import Estimate, difference_of_estimates, normal, ratio_of_estimates, wilson

MAX_COMPARED = 200  # arms


def probabilities_of_best(history: BanditHistory, beliefs: Mapping[int, Belief]) -> dict[int, float]:
    """Return the probability of each arm that can be chosen that its mean is the largest, by column.

    It is unknown, and the result empty, if the policy decides by the context, with more than `MAX_COMPARED` arms, and
    where `stats.best_arm` does not know it. `beliefs` has those of all arms unless there are too many.
    """
    bandit = history.bandit
    columns = [column for name, column in history.columns.items() if not bandit.paused(name)]
    if history.is_contextual or not columns or len(history.columns) > MAX_COMPARED:
        return {}
    mean, size, variance = (
        np.array([getattr(beliefs[column], field) for column in columns])
        for field in ("mean", "effective_size", "variance")
    )
    if history.is_bounded:
        prior = 1.0 if bandit.policy.functions.posterior is None else 0.0
        found = best_of_shares(mean, size, prior)
    else:
        found = best_of_means(mean, size, variance)
    return {} if math.isnan(found[0]) else dict(zip(columns, found.tolist(), strict=True))


def uplifts(history: BanditHistory, control: str, columns: list[int]) -> list[dict[str, Estimate] | None] | None:
    """Return the difference of the mean of each column to that of a control arm, absolute and relative to it.

    The element of an arm whose mean is not known is None, as is that of the control arm. Without such a control arm, or
    if the policy decides by the context, the result is None.
    """
    compared_with = history.columns.get(control)
    if compared_with is None or history.is_contextual:
        return None
    base = _mean(history, compared_with)
    found: list[dict[str, Estimate] | None] = []
    for column in columns:
        one = _mean(history, column)
        if column == compared_with or math.isnan(one.value) or math.isnan(base.value):
            found.append(None)
        else:
            ratio = ratio_of_estimates(one, base)
            relative = Estimate(*(number - 1.0 for number in ratio))
            found.append({"absolute": difference_of_estimates(one, base), "relative": relative})
    return found


def _mean(history: BanditHistory, column: int) -> Estimate:
    """Return the policy's estimate of the mean of an arm; its interval counts rewards by the effective size."""
    mean, variance, _, size = history.belief(column)
    if math.isnan(mean):
        return Estimate(math.nan, math.nan, math.nan)
    if history.is_bounded:
        return Estimate(mean, *wilson(mean, size))
    error = math.sqrt(variance / size) if variance > 0.0 and size > 1.0 else math.nan
    return Estimate(mean, *normal(mean, error))
