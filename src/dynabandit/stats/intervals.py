"""Estimates with 95 % confidence intervals."""

import math
from typing import NamedTuple, TypeVar

import numpy as np

from dynabandit.extras import import_extra

LEVEL = 0.95
Z = 1.959963984540054  # normal quantile of (1 + LEVEL) / 2

Number = TypeVar("Number", float, np.ndarray)


class Estimate(NamedTuple):
    """A value with its 95 % interval; the ends are NaN where there are too few data.

    Examples
    --------
    >>> print(Estimate(0.5, 0.4, 0.6))
    0.5000 [0.4000, 0.6000]
    """

    value: float  # the estimate
    low: float  # the lower end of the interval
    high: float  # the upper end of the interval

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{self.value:.4f} (interval unknown)"
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


UNKNOWN = Estimate(math.nan, math.nan, math.nan)


def normal(value: Number, error: Number) -> tuple[Number, Number]:
    """Return the ends of the normal interval of a value with this standard error.

    Examples
    --------
    >>> [round(end, 2) for end in normal(1.0, 0.5)]
    [0.02, 1.98]
    """
    return value - Z * error, value + Z * error


def t_quantile(freedom: int, comparisons: int = 1) -> float:
    """Return the quantile of Student's interval with `freedom` degrees of freedom.

    With several comparisons, intervals of this width hold for all of them at once (Bonferroni).

    Examples
    --------
    >>> round(t_quantile(19), 3), round(t_quantile(19, comparisons=10), 3)
    (2.093, 3.174)
    """
    return float(import_extra("scipy.stats", "lab").t.ppf(1.0 - (1.0 - LEVEL) / 2.0 / comparisons, freedom))


def mean(sample: np.ndarray) -> Estimate:
    """Return the mean with Student's interval.

    Examples
    --------
    >>> import numpy as np
    >>> from dynabandit.stats import intervals
    >>> estimate = intervals.mean(np.array([1.0, 2.0, 3.0]))
    >>> round(estimate.low, 2), round(estimate.high, 2)
    (-0.48, 4.48)
    """
    centre, low, high = student_band(np.asarray(sample, dtype=float)[:, None])
    return Estimate(float(centre[0]), float(low[0]), float(high[0]))


def student_band(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean and the ends of Student's interval for each column of replications x times."""
    stats = import_extra("scipy.stats", "lab")
    centre = samples.mean(axis=0)
    if len(samples) < 2:
        unknown = np.full_like(centre, math.nan)
        return centre, unknown, unknown
    error = stats.sem(samples, axis=0)
    # Where all replications agree the interval is a point; SciPy returns NaN for a scale of 0
    low, high = stats.t.interval(LEVEL, len(samples) - 1, loc=centre, scale=np.where(error > 0.0, error, 1.0))
    return centre, np.where(error > 0.0, low, centre), np.where(error > 0.0, high, centre)


def difference(first: np.ndarray, second: np.ndarray) -> Estimate:
    """Return mean(first - second), paired, with Student's interval."""
    one, two = paired(first, second)
    return mean(one - two)


def paired(*samples: np.ndarray) -> np.ndarray:
    """Return samples of equally many replications as one array, (samples, replications)."""
    sizes = {len(sample) for sample in samples}
    if len(sizes) > 1:
        raise ValueError(f"paired samples must have equally many replications, got {sorted(sizes)}")
    return np.stack(samples).astype(float)


def wilson(share: float, size: float) -> tuple[float, float]:
    """Return the ends of Wilson's interval of a share among `size` observations, which need not be a whole number.

    It is valid for means of values in [0, 1] too: none vary more than zeros and ones with the same mean.

    Examples
    --------
    >>> [round(end, 3) for end in wilson(0.5, 20)]
    [0.299, 0.701]
    """
    scale = 2.0 * (size + Z**2)
    centre = (2.0 * size * share + Z**2) / scale
    half = Z / scale * math.sqrt(4.0 * size * share * (1.0 - share) + Z**2)
    return 0.0 if share <= 0.0 else centre - half, 1.0 if share >= 1.0 else centre + half


def difference_of_estimates(first: Estimate, second: Estimate) -> Estimate:
    """Return the difference of two independent estimates, with an interval from theirs.

    Each end combines the distances of the estimates from the ends of their own intervals. From Wilson's intervals of
    two shares this makes Newcombe's interval of their difference, from normal intervals the normal one (Zou and
    Donner, "Construction of confidence limits about effect measures", 2008).

    Examples
    --------
    >>> print(difference_of_estimates(Estimate(0.8, *wilson(0.8, 70)), Estimate(0.6, *wilson(0.6, 80))))
    0.2000 [0.0524, 0.3339]
    """
    down = math.hypot(first.value - first.low, second.high - second.value)
    up = math.hypot(first.high - first.value, second.value - second.low)
    value = first.value - second.value
    return Estimate(value, value - down, value + up)


def ratio_of_estimates(first: Estimate, second: Estimate) -> Estimate:
    """Return the ratio of two independent estimates: `difference_of_estimates` of their logarithms.

    It is NaN unless the second estimate is above 0, and its ends are NaN where an end of either interval is not.

    Examples
    --------
    >>> print(ratio_of_estimates(Estimate(0.8, *wilson(0.8, 70)), Estimate(0.6, *wilson(0.6, 80))))
    1.3333 [1.0784, 1.6640]
    """
    if not second.value > 0.0:
        return UNKNOWN
    ratio = first.value / second.value
    if not (first.low > 0.0 and second.low > 0.0):
        return Estimate(ratio, math.nan, math.nan)
    logarithms = [Estimate(*(math.log(number) for number in one)) for one in (first, second)]
    low, high = (math.exp(end) for end in difference_of_estimates(*logarithms)[1:])
    return Estimate(ratio, low, high)


def clopper_pearson(successes: int, trials: int) -> Estimate:
    """Return the share of successes with the exact binomial interval of Clopper and Pearson."""
    low, high = import_extra("scipy.stats", "lab").binomtest(successes, trials).proportion_ci(LEVEL, method="exact")
    return Estimate(successes / trials, float(low), float(high))


def agresti_coull(share: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of Agresti and Coull's interval of shares; NaN counts as no observations.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = agresti_coull(np.array([0.5, 0.0]), np.array([100.0, 0.0]))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.4, 0.01], [0.6, 0.99])
    """
    share, size = np.nan_to_num(share), np.nan_to_num(size)
    centre = (share * size + 2.0) / (size + 4.0)
    low, high = normal(centre, np.sqrt(centre * (1.0 - centre) / (size + 4.0)))
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


def binomial_total(
    total: np.ndarray, variance: np.ndarray, count: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return low end, estimate and high end of the total of `count` future rewards in [0, 1].

    `variance` is that of the estimated total; the rewards themselves add count p (1 - p) at most.
    """
    p = np.clip(total / np.maximum(count, 1), 0.0, 1.0)
    low, high = normal(total, np.sqrt(variance + count * p * (1.0 - p)))
    return np.maximum(low, 0.0), total, np.minimum(high, count)
