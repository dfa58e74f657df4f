"""What another policy would have earned in the place of the one that decided, from the decisions of the latter.

The other policy chooses at the same time, with random numbers of its own. A reward tells something about it if both
choices are the same. If q is the probability with which the policy chooses what the other one chose, the weight of a
reward is 1 / q then, and 0 otherwise: weighted rewards are unbiased for the reward of the other policy. Predictions,
the mean reward so far, reduce the variance (augmented inverse propensity weighting).

Where q is small, nothing can be said: these decisions are left out, for both policies. Whether a decision is left out
does not depend on the choice of the policy, so this causes no bias for the decisions that are compared.
"""

import math
from typing import NamedTuple

from dynabandit.stats.confidence_sequences import bounded_limit, normal_limit
from dynabandit.stats.intervals import UNKNOWN, Estimate

MIN_PROPENSITY = 0.05  # with which the policy must choose what the other one chose
ALPHA = 0.05  # error rate of each interval
MIN_EQUAL, MIN_DIFFERENT = 100, 20  # rewards of equal and of different choices before unbounded ones have an interval


class ComparisonSums(NamedTuple):
    """What the comparison is computed from: sums over the rewards of decisions that can be compared, and the others."""

    rewards: int = 0
    equal: int = 0  # of decisions at which both chose the same
    uncovered: int = 0  # rewards of decisions at which the policy rarely or never chooses what the other one chose
    unknown: int = 0  # rewards of decisions without a known propensity
    difference: float = 0.0  # expected number of decisions, of those compared, at which the two differ
    total: float = 0.0
    other_total: float = 0.0
    other_errors: float = 0.0  # sums of squared errors, and their values when the first interval was valid
    difference_errors: float = 0.0
    other_start: float = 0.0
    difference_start: float = 0.0


class Comparison(NamedTuple):
    """The mean rewards of both policies and their difference, other minus policy, on the decisions that are compared.

    Each interval holds at all times with a probability of 95 %: exactly for rewards in [0, 1], asymptotically for
    others. An end is NaN where nothing is known yet.
    """

    policy: float
    other: Estimate
    difference: Estimate


def add_reward(sums: ComparisonSums, propensity: float | None, is_equal: bool, reward: float) -> ComparisonSums:
    """Return the sums after one more reward.

    `propensity` is the probability with which the policy chooses what the other one chose; None if it is not known.
    """
    if propensity is None:
        return sums._replace(unknown=sums.unknown + 1)
    if propensity < MIN_PROPENSITY:
        return sums._replace(uncovered=sums.uncovered + 1)
    prediction = sums.total / sums.rewards if sums.rewards else 0.0
    weight = is_equal / propensity
    error = weight * (reward - prediction)
    difference_error = (weight - 1.0) * (reward - prediction)
    is_reported = _has_interval(sums)
    other_errors = sums.other_errors + error**2
    difference_errors = sums.difference_errors + difference_error**2
    return sums._replace(
        rewards=sums.rewards + 1,
        equal=sums.equal + is_equal,
        difference=sums.difference + max(0.0, 1.0 - propensity),
        total=sums.total + reward,
        other_total=sums.other_total + prediction + error,
        other_errors=other_errors,
        difference_errors=difference_errors,
        other_start=sums.other_start if is_reported else other_errors,
        difference_start=sums.difference_start if is_reported else difference_errors,
    )


def _has_interval(sums: ComparisonSums) -> bool:
    """Return whether there are enough rewards for the interval of unbounded ones."""
    return sums.equal >= MIN_EQUAL and sums.rewards - sums.equal >= MIN_DIFFERENT


def is_covered(sums: ComparisonSums) -> bool:
    """Return whether at least half of the decisions at which both policies differ can be compared."""
    return sums.rewards > 0 and sums.uncovered <= sums.difference


def compare_policies(sums: ComparisonSums, is_bounded: bool) -> Comparison:
    """Return the comparison from the sums of `add_reward`. Bounded rewards are in [0, 1].

    Examples
    --------
    >>> sums = ComparisonSums()
    >>> for step in range(4000):  # the other policy always takes the better one of two arms
    ...     is_equal = step % 2 == 0
    ...     sums = add_reward(sums, 0.5, is_equal, float(step % 10 < 8 if is_equal else step % 10 < 4))
    >>> found = compare_policies(sums, is_bounded=True)
    >>> round(found.policy, 4), str(found.difference)
    (0.6, '0.2004 [0.1505, 0.2503]')
    """
    n = sums.rewards
    if n == 0:
        return Comparison(math.nan, UNKNOWN, UNKNOWN)
    other, difference = sums.other_total / n, (sums.other_total - sums.total) / n
    if is_bounded:
        scale = 1.0 / MIN_PROPENSITY
        half = bounded_limit(sums.other_errors, scale, ALPHA / 2.0) / n
        difference_half = bounded_limit(sums.difference_errors, scale, ALPHA / 2.0) / n
    elif _has_interval(sums) and sums.other_start > 0.0 and sums.difference_start > 0.0:
        half = normal_limit(sums.other_errors, sums.other_start, ALPHA) / n
        difference_half = normal_limit(sums.difference_errors, sums.difference_start, ALPHA) / n
    else:
        half = difference_half = math.nan
    low, high, least = (0.0, 1.0, -1.0) if is_bounded else (-math.inf, math.inf, -math.inf)
    return Comparison(
        sums.total / n,
        Estimate(other, max(other - half, low), min(other + half, high)),
        Estimate(difference, max(difference - difference_half, least), min(difference + difference_half, high)),
    )
