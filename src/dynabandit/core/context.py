"""Contexts: the features that a policy sees before a decision."""

from typing import NamedTuple

import numpy as np


class Context(NamedTuple):
    """The shape of the features of a step.

    Examples
    --------
    >>> Context(dimension=5, per_arm=True).rows(arms=3), Context(dimension=5, per_arm=False).rows(arms=3)
    (3, 1)
    """

    dimension: int
    per_arm: bool  # whether every arm has a feature vector of its own; else there is one vector for all arms

    def rows(self, arms: int) -> int:
        """Return the number of feature vectors of a step."""
        return arms if self.per_arm else 1


def empty_features(context: Context | None, arms: int, *steps: int) -> np.ndarray:
    """Return an array (*steps, rows, dimension) for the features of some steps; without a context, of one number each.

    Examples
    --------
    >>> empty_features(Context(dimension=5, per_arm=True), 3, 10).shape, empty_features(None, 3, 10).shape
    ((10, 3, 5), (1, 1, 1))
    """
    if context is None:
        return np.zeros((1,) * (len(steps) + 2))
    return np.zeros((*steps, context.rows(arms), context.dimension))
