"""Estimates with 95 % intervals. The replications are the sample; policies on the same paths are paired."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dynabandit.errors import extra

__all__ = [
    "LEVEL",
    "Estimate",
    "band",
    "best",
    "bootstrap",
    "difference",
    "mean",
    "order_agreement",
    "ratio",
    "relative_sensitivity",
    "sensitivity",
    "share",
    "spread_ratio",
    "worst",
]

LEVEL = 0.95
RESAMPLES = 999  # another seed moves an end by some 2 % of the width of the interval
BATCH_CELLS = 1 << 20  # of a resampled block, to stay under 10 MB
SEED = 20_180_101  # the resampling is part of the rule: the same data always get the same verdict


class Estimate(NamedTuple):
    """A value with its 95 % interval; the ends are NaN where the data cannot tell."""

    value: float
    low: float
    high: float


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
    centre, low, high = band(np.asarray(sample, dtype=float)[:, None])
    return Estimate(float(centre[0]), float(low[0]), float(high[0]))


def band(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, low and high end of Student's interval for each column of replications x times."""
    stats = extra("scipy.stats", "lab")
    centre = samples.mean(axis=0)
    if len(samples) < 2:
        unknown = np.full_like(centre, math.nan)
        return centre, unknown, unknown
    error = stats.sem(samples, axis=0)
    # Where all replications agree the interval is a point, which SciPy's t law with scale 0 does not give
    low, high = stats.t.interval(LEVEL, len(samples) - 1, loc=centre, scale=np.where(error > 0.0, error, 1.0))
    return centre, np.where(error > 0.0, low, centre), np.where(error > 0.0, high, centre)


def difference(first: np.ndarray, second: np.ndarray) -> Estimate:
    """Return mean(first - second), paired, with Student's interval."""
    return mean(_paired(first, second)[0] - second)


def ratio(first: np.ndarray, second: np.ndarray, *, paired: bool = True) -> Estimate:
    """Return mean(first) / mean(second) with a bootstrap interval.

    Examples
    --------
    >>> import numpy as np
    >>> from dynabandit.stats import intervals
    >>> second = np.array([10.0, 20.0, 30.0, 40.0])
    >>> intervals.ratio(second / 2, second)
    Estimate(value=0.5, low=0.5, high=0.5)
    """
    if paired:
        return bootstrap([_paired(first, second)], lambda samples: _divide(*samples[0].mean(axis=-1)))
    return bootstrap(
        [np.stack([first]), np.stack([second])],
        lambda samples: _divide(samples[0][0].mean(axis=-1), samples[1][0].mean(axis=-1)),
    )


def spread_ratio(first: np.ndarray, second: np.ndarray) -> Estimate:
    """Return the ratio of the standard deviations over replications, paired, with a bootstrap interval."""
    return bootstrap([_paired(first, second)], lambda samples: _divide(*samples[0].std(axis=-1, ddof=1)))


def sensitivity(samples: Sequence[np.ndarray]) -> Estimate:
    """Return the largest mean over the smallest, paired; the two are chosen first and then resampled.

    Choosing anew in each resample would add noise in one direction only, and the interval would not hold the
    value it belongs to.
    """
    return ratio(*_extremes(samples))


def relative_sensitivity(samples: Sequence[np.ndarray], others: Sequence[Sequence[np.ndarray]]) -> Estimate:
    """Return the sensitivity of `samples` over the largest sensitivity among `others`, all paired."""
    pairs = [_extremes(other) for other in others]
    most = pairs[int(np.argmax([_divide(high.mean(), low.mean()) for high, low in pairs]))]

    def statistic(resampled: list[np.ndarray]) -> np.ndarray:
        high, low, other_high, other_low = resampled[0].mean(axis=-1)
        return _divide(_divide(high, low), _divide(other_high, other_low))

    return bootstrap([_paired(*_extremes(samples), *most)], statistic)


def order_agreement(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> Estimate:
    """Return Spearman's correlation between the means of `first` and those of `second`, not paired."""
    rankdata = extra("scipy.stats", "lab").rankdata

    def statistic(samples: list[np.ndarray]) -> np.ndarray:
        ranks = [rankdata(one.mean(axis=-1), axis=0) for one in samples]
        left, right = (one - one.mean(axis=0) for one in ranks)
        return _divide((left * right).sum(axis=0), np.sqrt((left**2).sum(axis=0) * (right**2).sum(axis=0)))

    return bootstrap([_paired(*first), _paired(*second)], statistic)


def share(successes: float, trials: int, *, method: str = "wilson") -> Estimate:
    """Return successes / trials with a binomial interval, of Wilson or (``"exact"``) of Clopper and Pearson.

    A sum of shares, which need not be a whole number, is rounded to the nearest count.
    """
    test = extra("scipy.stats", "lab").binomtest(round(successes), trials)
    low, high = test.proportion_ci(LEVEL, method=method)
    return Estimate(successes / trials, float(low), float(high))


def bootstrap(groups: list[np.ndarray], statistic: Callable[[list[np.ndarray]], Any]) -> Estimate:
    """Return a statistic of resampled replications with SciPy's percentile interval.

    Parameters
    ----------
    groups
        Arrays (columns, replications). The columns of a group are resampled together: they are paired.
    statistic
        Takes the resampled groups, (columns, ..., replications) each, and reduces the first and last axis.
    """
    stats = extra("scipy.stats", "lab")
    value = float(statistic(groups))
    if min(group.shape[1] for group in groups) < 2:
        return Estimate(value, math.nan, math.nan)
    cells = sum(group.size for group in groups)
    # A ratio is infinite in a resample that picked no regret; SciPy's standard error, not used here, warns of it
    with np.errstate(invalid="ignore"):
        found = stats.bootstrap(
            [np.arange(group.shape[1]) for group in groups],
            lambda *picks, axis: statistic([group[:, pick] for group, pick in zip(groups, picks, strict=True)]),
            n_resamples=RESAMPLES,
            batch=max(1, BATCH_CELLS // cells),
            vectorized=True,
            confidence_level=LEVEL,
            method="percentile",
            rng=np.random.default_rng(SEED),
        )
    low, high = found.confidence_interval
    return Estimate(value, float(low), float(high))


def best(samples: Sequence[np.ndarray]) -> int:
    """Return the index of the sample with the smallest mean."""
    return int(np.argmin([sample.mean() for sample in samples]))


def worst(samples: Sequence[np.ndarray]) -> int:
    """Return the index of the sample with the largest mean."""
    return int(np.argmax([sample.mean() for sample in samples]))


def _paired(*samples: np.ndarray) -> np.ndarray:
    sizes = {len(sample) for sample in samples}
    if len(sizes) > 1:
        raise ValueError(f"paired samples must have equally many replications, got {sorted(sizes)}")
    return np.stack(samples).astype(float)


def _extremes(samples: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return samples[worst(samples)], samples[best(samples)]


def _divide(above: Any, below: Any) -> Any:
    """Divide; 1 where both are 0, since two policies without regret are equally good."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((above == 0.0) & (below == 0.0), 1.0, np.divide(above, below))
