"""Statistical assertions about samples.

All samples are drawn from fixed seeds, so every test has the same result each time. `ERROR_RATE` is the probability
that a correct implementation fails a test with a newly chosen seed.
"""

from collections.abc import Callable

import numba
import numpy as np
import scipy

ERROR_RATE = 1e-4
INTERPRETED = bool(numba.config.DISABLE_JIT)
SHRINK = 20 if INTERPRETED else 1  # without compiled code, samples and paths are this much smaller


def size(full: int, least: int = 100) -> int:
    """Return the size of a sample that has `full` elements in compiled code."""
    return max(least, full // SHRINK)


def assert_law(sample: np.ndarray, cdf: Callable[[np.ndarray], np.ndarray]) -> None:
    """Kolmogorov-Smirnov test for numbers that were rounded to doubles.

    A distribution may have much of its mass below the smallest double, or closer to 1 than any double. The
    distribution function is therefore evaluated at the next double, which only makes the test more lenient.
    """
    values, counts = np.unique(sample, return_counts=True)
    assert np.isfinite(values).all()
    up_to = np.cumsum(counts) / sample.size
    below = up_to - counts / sample.size
    above = up_to - cdf(np.nextafter(values, np.inf))
    under = cdf(np.nextafter(values, -np.inf)) - below
    distance = max(above.max(), under.max())
    p_value = scipy.stats.kstwo.sf(distance, sample.size)
    assert p_value > ERROR_RATE, f"distance {distance:.4g} in {sample.size} draws has a p-value of {p_value:.2g}"


def assert_share(successes: int, trials: int, probability: float) -> None:
    """Binomial test."""
    p_value = scipy.stats.binomtest(int(successes), int(trials), probability).pvalue
    assert p_value > ERROR_RATE, f"{successes} of {trials} at {probability:.4g} has a p-value of {p_value:.2g}"


def assert_mean(sample: np.ndarray, mean: float) -> None:
    """Normal test of a mean, with the standard deviation of the sample."""
    z = (np.mean(sample) - mean) / (np.std(sample, ddof=1) / np.sqrt(np.size(sample)))
    p_value = 2 * scipy.stats.norm.sf(abs(z))
    assert p_value > ERROR_RATE, f"mean {np.mean(sample):.6g} against {mean:.6g} is {z:.2f} deviations away"


def assert_uncorrelated(left: np.ndarray, right: np.ndarray) -> None:
    """Pearson's test of no correlation."""
    p_value = scipy.stats.pearsonr(left, right).pvalue
    assert p_value > ERROR_RATE, f"correlation {np.corrcoef(left, right)[0, 1]:.4g}, p-value {p_value:.2g}"
