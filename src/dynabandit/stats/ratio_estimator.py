"""The ratio of two totals with an interval, from sums that are updated row by row."""

import math

import numpy as np

from dynabandit.stats.intervals import UNKNOWN, Estimate, normal, wilson


class RatioEstimator:
    """Estimates sum(numerators) / sum(denominators); with denominators of 1 it is a mean.

    Examples
    --------
    >>> import numpy as np
    >>> estimator = RatioEstimator()
    >>> estimator.add(np.array([1.0, 0.0, 1.0, 1.0]), np.ones(4))
    >>> print(estimator.wilson())
    0.7500 [0.3006, 0.9544]
    """

    def __init__(self) -> None:
        self.rows = 0
        self.sums = np.zeros(5)  # of n, d, n n, n d, d d

    def add(self, numerators: np.ndarray, denominators: np.ndarray) -> None:
        """Add the terms of some rows."""
        self.rows += len(numerators)
        products = numerators @ numerators, numerators @ denominators, denominators @ denominators
        self.sums += (numerators.sum(), denominators.sum(), *products)

    @property
    def effective_rows(self) -> float:
        """The effective sample size (Kish): the number of rows of equal weight with the same precision."""
        _, total, _, _, squares = self.sums.tolist()
        return total * total / squares if squares > 0.0 else 0.0

    @property
    def value(self) -> float:
        """The ratio; NaN where the denominators are 0."""
        return float(self.sums[0] / self.sums[1]) if self.sums[1] > 0.0 else math.nan

    def normal(self) -> Estimate:
        """Return the ratio with the interval of the delta method.

        Given all rows before it, the expected term of a row is the value of that row's decision, so the errors of
        the terms are uncorrelated: their squares estimate the variance of the sum, and overestimate it under drift.
        """
        value = self.value
        _, total, squares, mixed, total_squares = self.sums.tolist()
        residual = squares - 2.0 * value * mixed + value * value * total_squares
        if not residual > 1e-12 * abs(squares) or self.rows < 2:
            return Estimate(value, math.nan, math.nan)
        return Estimate(value, *normal(value, math.sqrt(residual) / total))

    def wilson(self) -> Estimate:
        """Return the ratio, a weighted mean of rewards in [0, 1], with Wilson's interval at the effective size."""
        if self.effective_rows == 0.0:
            return UNKNOWN
        return Estimate(self.value, *wilson(self.value, self.effective_rows))
