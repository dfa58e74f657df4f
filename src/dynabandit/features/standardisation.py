"""Standardised numbers: centred by the mean of the values so far and divided by their standard deviation."""

import math

FURTHEST = 5.0  # standard deviations
ROUNDING = 1e-24  # a variance below this share of the squared mean is that of rounding errors


class RunningMoments:
    """Mean and variance of the values so far, older ones with a smaller weight.

    Examples
    --------
    >>> moments = RunningMoments()
    >>> for value in (1.0, 2.0, 3.0):
    ...     moments.observe(value, forgetting=1.0)
    >>> moments.mean, moments.standardised(3.0) == math.sqrt(1.5)
    (2.0, True)
    """

    __slots__ = ("mean", "squares", "weight")

    def __init__(self, weight: float = 0.0, mean: float = 0.0, squares: float = 0.0) -> None:
        self.weight, self.mean, self.squares = weight, mean, squares

    def observe(self, value: float, forgetting: float) -> None:
        """Add a value, after multiplying the weights of earlier ones by `forgetting`."""
        self.weight = forgetting * self.weight + 1.0
        error = value - self.mean
        self.mean += error / self.weight
        self.squares = forgetting * self.squares + error * (value - self.mean)

    @property
    def has_variance(self) -> bool:
        """Whether the values differ by more than rounding errors."""
        return self.squares > ROUNDING * self.weight * self.mean * self.mean

    def standardised(self, value: float) -> float:
        """Return how many standard deviations a value is above the mean, at most 5; 0 without a variance."""
        if not self.has_variance:
            return 0.0
        scaled = (value - self.mean) / math.sqrt(self.squares / self.weight)
        return min(max(scaled, -FURTHEST), FURTHEST)

    def to_json(self) -> list[float]:
        """Return the three numbers of the state."""
        return [self.weight, self.mean, self.squares]
