"""Ratios and rank correlations of means over replications, with bootstrap intervals.

The replications are the sample; policies on the same paths are paired.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dynabandit.extras import import_extra
from dynabandit.stats.intervals import LEVEL, Estimate, paired as pair

RESAMPLES = 999  # another seed moves an end by some 2 % of the width of the interval
BATCH_CELLS = 1 << 20  # of a resampled block, to stay under 10 MB
SEED = 20_180_101  # fixed, so that the same data always get the same verdict


def bootstrap(groups: list[np.ndarray], statistic: Callable[[list[np.ndarray]], Any]) -> Estimate:
    """Return a statistic with the percentile interval of its bootstrap over replications.

    Parameters
    ----------
    groups
        Arrays (columns, replications). The columns of a group are resampled together: they are paired.
    statistic
        Takes the resampled groups, (columns, ..., replications) each, and reduces the first and last axis.
    """
    stats = import_extra("scipy.stats", "lab")
    value = float(statistic(groups))
    if min(group.shape[1] for group in groups) < 2:
        return Estimate(value, math.nan, math.nan)
    cells = sum(group.size for group in groups)
    # SciPy also computes a standard error, which is unused here and warns where a resampled ratio is infinite
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


def ratio(first: np.ndarray, second: np.ndarray, *, paired: bool = True) -> Estimate:
    """Return mean(first) / mean(second).

    Examples
    --------
    >>> import numpy as np
    >>> from dynabandit.stats import bootstrap
    >>> second = np.array([10.0, 20.0, 30.0, 40.0])
    >>> bootstrap.ratio(second / 2, second)
    Estimate(value=0.5, low=0.5, high=0.5)
    """
    if paired:
        return bootstrap([pair(first, second)], lambda samples: _divide(*samples[0].mean(axis=-1)))
    return bootstrap(
        [np.stack([first]), np.stack([second])],
        lambda samples: _divide(samples[0][0].mean(axis=-1), samples[1][0].mean(axis=-1)),
    )


def spread_ratio(first: np.ndarray, second: np.ndarray) -> Estimate:
    """Return the ratio of the standard deviations over replications, paired."""
    return bootstrap([pair(first, second)], lambda samples: _divide(*samples[0].std(axis=-1, ddof=1)))


def sensitivity(samples: Sequence[np.ndarray]) -> Estimate:
    """Return the largest mean over the smallest, paired.

    The two samples are chosen once, before resampling. Choosing again in each resample would bias the ratio
    upwards, and the interval could miss the value it belongs to.
    """
    return ratio(*_extremes(samples))


def relative_sensitivity(samples: Sequence[np.ndarray], others: Sequence[Sequence[np.ndarray]]) -> Estimate:
    """Return the sensitivity of `samples` divided by the largest sensitivity among `others`, all paired."""
    pairs = [_extremes(other) for other in others]
    most = pairs[int(np.argmax([_divide(high.mean(), low.mean()) for high, low in pairs]))]

    def statistic(resampled: list[np.ndarray]) -> np.ndarray:
        high, low, other_high, other_low = resampled[0].mean(axis=-1)
        return _divide(_divide(high, low), _divide(other_high, other_low))

    return bootstrap([pair(*_extremes(samples), *most)], statistic)


def rank_correlation(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> Estimate:
    """Return Spearman's correlation between the means of `first` and those of `second`, not paired."""
    rankdata = import_extra("scipy.stats", "lab").rankdata

    def statistic(samples: list[np.ndarray]) -> np.ndarray:
        ranks = [rankdata(one.mean(axis=-1), axis=0) for one in samples]
        left, right = (one - one.mean(axis=0) for one in ranks)
        return _divide((left * right).sum(axis=0), np.sqrt((left**2).sum(axis=0) * (right**2).sum(axis=0)))

    return bootstrap([pair(*first), pair(*second)], statistic)


def smallest_mean(samples: Sequence[np.ndarray]) -> int:
    """Return the index of the sample with the smallest mean."""
    return int(np.argmin([sample.mean() for sample in samples]))


def largest_mean(samples: Sequence[np.ndarray]) -> int:
    """Return the index of the sample with the largest mean."""
    return int(np.argmax([sample.mean() for sample in samples]))


def _extremes(samples: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return samples[largest_mean(samples)], samples[smallest_mean(samples)]


def _divide(above: Any, below: Any) -> Any:
    """Divide; 0 / 0 is 1, since two policies without regret are equally good."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((above == 0.0) & (below == 0.0), 1.0, np.divide(above, below))
