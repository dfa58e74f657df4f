"""Estimates with intervals, from sums that grow row by row."""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

__all__ = ["LEVEL", "Z", "Estimate", "Moments"]

LEVEL = 0.95
Z = NormalDist().inv_cdf(0.5 + LEVEL / 2.0)  # standard errors that an interval of this level reaches to each side


class Estimate(NamedTuple):
    """A value with its 95 % interval; the ends are NaN where the data cannot tell.

    Examples
    --------
    >>> print(Estimate(0.5, 0.4, 0.6))
    0.5000 [0.4000, 0.6000]
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{self.value:.4f} (interval unknown)"
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


class Moments:
    """The sums that a ratio of two totals needs for its interval; with denominators of 1 it is a mean."""

    def __init__(self) -> None:
        self.rows = 0
        self.sums = np.zeros(5)  # of n, d, n n, n d, d d

    def add(self, above: np.ndarray, below: np.ndarray) -> None:
        """Take in the numerators and denominators of some rows."""
        self.rows += len(above)
        self.sums += (above.sum(), below.sum(), above @ above, above @ below, below @ below)

    @property
    def effective_rows(self) -> float:
        """How many rows of equal weight would be worth as much (Kish)."""
        _, below, _, _, squares = self.sums.tolist()
        return below * below / squares if squares > 0.0 else 0.0

    @property
    def value(self) -> float:
        """The ratio; NaN where nothing had any weight."""
        return float(self.sums[0] / self.sums[1]) if self.sums[1] > 0.0 else math.nan

    def normal(self) -> Estimate:
        """Return the ratio with the interval of the delta method.

        The terms of a row, given all rows before it, have the value of that row's decision as their mean, so
        that they are uncorrelated: their squares estimate the variance of the sum, and too large a one under drift.
        """
        value = self.value
        _, below, above_squares, mixed, below_squares = self.sums.tolist()
        squares = above_squares - 2.0 * value * mixed + value * value * below_squares
        if not squares > 1e-12 * abs(above_squares) or self.rows < 2:
            return Estimate(value, math.nan, math.nan)
        reach = Z * math.sqrt(squares) / below
        return Estimate(value, value - reach, value + reach)

    def wilson(self) -> Estimate:
        """Return the ratio, of rewards in [0, 1], with Wilson's interval for as many rows as the weights are worth.

        No rewards in [0, 1] vary more than those that are 0 or 1 with the same mean.
        """
        size, value = self.effective_rows, self.value
        if size == 0.0:
            return Estimate(math.nan, math.nan, math.nan)
        centre = value + Z * Z / (2.0 * size)
        reach = Z * math.sqrt(value * (1.0 - value) / size + Z * Z / (4.0 * size * size))
        scale = 1.0 + Z * Z / size
        return Estimate(value, max(0.0, (centre - reach) / scale), min(1.0, (centre + reach) / scale))
