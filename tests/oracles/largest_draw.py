"""The probability of each arm that its draw is the largest, by summing over a fine grid of log-odds."""

import numpy as np
from scipy import special

POINTS = 40_001


def probabilities(a: np.ndarray, b: np.ndarray, *, optimistic: bool = False) -> np.ndarray:
    """Return P(i has the largest draw): the sum of its probability of each interval times that of all others below.

    An optimistic draw is at least the mean, so that two equal arms can tie; each one then has half of the probability.
    """
    means = np.log(a / b)
    width = 40.0 * np.sqrt(1.0 / a + 1.0 / b) + 40.0 / np.minimum(a, b)
    low, high = max(-600.0, (means - width).min()), min(600.0, (means + width).max())
    t = np.sort(np.concatenate([np.linspace(low, high, POINTS), np.nextafter(means, -np.inf), means]))
    x, y = special.expit(t), special.expit(-t)
    below = np.array([np.where(t < m, special.betainc(p, q, x), special.betaincc(q, p, y))
                      for p, q, m in zip(a, b, means, strict=True)])  # fmt: skip
    if optimistic:
        below[t < means[:, np.newaxis]] = 0.0
    middle = np.maximum(0.5 * (below[:, 1:] + below[:, :-1]), 1e-300)
    others = np.exp(np.log(middle).sum(axis=0) - np.log(middle))
    found = (np.diff(below, axis=1) * others).sum(axis=1)
    return np.asarray(found / found.sum())
