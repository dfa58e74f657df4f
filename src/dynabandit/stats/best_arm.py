"""The probability of each arm that its mean reward is the largest."""

import numpy as np

from dynabandit.core.probability_of_largest import BETA, STUDENT, largest_probabilities


def best_of_shares(mean: np.ndarray, size: np.ndarray, prior: float = 1.0) -> np.ndarray:
    """Return the probability of being best if rewards are in [0, 1]; NaN for all arms if it is not known.

    The mean of an arm has the posterior Beta(prior + size * mean, prior + size * (1 - mean)). A reward in (0, 1) counts
    as a part of a success and a part of a failure; none vary more than zeros and ones with the same mean.

    Parameters
    ----------
    mean, size
        The estimated mean of each arm, NaN if nothing was observed, and how many rewards it is worth.
    prior
        Both shapes of the prior, 1 for a uniform one; 0 if mean and size are those of a posterior, prior included.

    Examples
    --------
    >>> best_of_shares(np.array([0.6, 0.5]), np.array([5.0, 4.0]), prior=0.0).round(4).tolist()
    [0.6286, 0.3714]
    """
    mean, size = np.nan_to_num(mean), np.nan_to_num(size)
    return _largest(BETA, prior + size * mean, prior + size * (1.0 - mean), np.zeros(len(mean)))


def best_of_means(mean: np.ndarray, size: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return the probability of being best for rewards without bounds; NaN for all arms if it is not known.

    The mean of an arm has Student's law around its estimate: with `size - 1` degrees of freedom, and the scale that
    follows from the variance of a reward. It is unknown unless every arm has more than one reward, and they vary.

    Examples
    --------
    >>> best_of_means(np.array([2.0, 1.0]), np.array([20.0, 20.0]), np.array([4.0, 4.0])).round(3).tolist()
    [0.934, 0.066]
    """
    if not np.all((size > 1.0) & (variance > 0.0)):
        return np.full(len(mean), np.nan)
    return _largest(STUDENT, mean, np.sqrt(variance / size), size - 1.0)


def _largest(family: int, *numbers: np.ndarray) -> np.ndarray:
    laws = np.column_stack(numbers).astype(float)
    if len(laws) == 0 or not np.isfinite(laws).all():
        return np.full(len(laws), np.nan)
    return largest_probabilities(family, laws)
