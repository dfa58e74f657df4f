"""The lift: by how much the decisions of a policy earn more than those of a holdout.

Each decision belongs to the holdout with a known probability, the share, independent of everything else. The estimate
uses nothing but that, so it holds for rewards that change over time and for a policy that learns: after each reward,
the terms of the two groups are unbiased for the mean rewards that this decision would have had in either group
(augmented inverse propensity weighting). The lift is the running mean of the differences, and its interval a confidence
sequence.
"""

import math
from typing import NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.stats.confidence_sequences import bounded_limit, has_enough_values, normal_limit
from dynabandit.stats.intervals import UNKNOWN, Estimate

LIFT_ALPHA = 0.04  # error rates of the interval of the lift and of that of the holdout's mean: 5 % together
HOLDOUT_ALPHA = 0.01
WARM_UP = 20.0  # rewards of each group, unbounded ones, that only predict later ones
FIRST_REPORT = 75.0  # effective number of rewards of each group, unbounded ones, before an interval is valid


class LiftSums(NamedTuple):
    """What the lift is computed from.

    `errors` are sums of squared errors, and `start` their values when the first interval was valid. `size` is the sum
    of the absolute rewards, and `squares` that of the squared rewards of a group: the effective number of rewards,
    size^2 / squares, is small while a few large ones make up most of the sum.
    """

    policy_count: float = 0.0
    policy_total: float = 0.0
    policy_size: float = 0.0
    policy_squares: float = 0.0
    holdout_count: float = 0.0
    holdout_total: float = 0.0
    holdout_size: float = 0.0
    holdout_squares: float = 0.0
    terms: float = 0.0
    policy_terms: float = 0.0
    holdout_terms: float = 0.0
    difference_errors: float = 0.0
    holdout_errors: float = 0.0
    difference_start: float = 0.0
    holdout_start: float = 0.0


class Lift(NamedTuple):
    """The mean rewards of both groups, and the lift, absolute and relative to the holdout.

    All intervals together hold at all times with a probability of 95 %: exactly for rewards in [0, 1], asymptotically
    for others. An end is NaN where nothing is known yet.
    """

    policy: float
    holdout: Estimate
    absolute: Estimate
    relative: Estimate


@kernel
def add_reward(sums: LiftSums, share: float, is_bounded: bool, reward: float, in_holdout: bool) -> LiftSums:
    """Return the sums after the reward of one more decision. Bounded rewards are in [0, 1].

    The prediction for each group is its mean so far, drawn towards the mean of all.
    """
    overall = (sums.policy_total + sums.holdout_total) / (sums.policy_count + sums.holdout_count + 1.0)
    for_policy = (sums.policy_total + overall) / (sums.policy_count + 1.0)
    for_holdout = (sums.holdout_total + overall) / (sums.holdout_count + 1.0)
    policy_error, holdout_error = 0.0, 0.0
    if in_holdout:
        holdout_error = (reward - for_holdout) / share
    else:
        policy_error = (reward - for_policy) / (1.0 - share)
    counts = 1.0 if is_bounded or min(sums.policy_count, sums.holdout_count) >= WARM_UP else 0.0
    in_policy, held_out = (0.0, 1.0) if in_holdout else (1.0, 0.0)
    difference_errors = sums.difference_errors + counts * (policy_error - holdout_error) ** 2
    holdout_errors = sums.holdout_errors + counts * holdout_error**2
    reported = has_interval(sums)
    return LiftSums(
        sums.policy_count + in_policy,
        sums.policy_total + in_policy * reward,
        sums.policy_size + in_policy * abs(reward),
        sums.policy_squares + in_policy * reward**2,
        sums.holdout_count + held_out,
        sums.holdout_total + held_out * reward,
        sums.holdout_size + held_out * abs(reward),
        sums.holdout_squares + held_out * reward**2,
        sums.terms + counts,
        sums.policy_terms + counts * (for_policy + policy_error),
        sums.holdout_terms + counts * (for_holdout + holdout_error),
        difference_errors,
        holdout_errors,
        sums.difference_start if reported else difference_errors,
        sums.holdout_start if reported else holdout_errors,
    )


@kernel
def has_interval(sums: LiftSums) -> bool:
    """Return whether both groups have enough rewards for the interval of unbounded ones."""
    return (
        min(sums.policy_count, sums.holdout_count) >= WARM_UP + FIRST_REPORT
        and has_enough_values(sums.policy_size, sums.policy_squares, FIRST_REPORT)
        and has_enough_values(sums.holdout_size, sums.holdout_squares, FIRST_REPORT)
    )


def estimate_lift(sums: LiftSums, share: float, is_bounded: bool) -> Lift:
    """Return the lift from the sums of `add_reward`.

    Examples
    --------
    >>> sums = LiftSums()
    >>> for step in range(4000):
    ...     in_holdout = step % 4 == 0
    ...     sums = add_reward(sums, 0.25, True, float(step % 10 < (2 if in_holdout else 6)), in_holdout)
    >>> found = estimate_lift(sums, 0.25, True)
    >>> print(found.absolute)
    0.3997 [0.3408, 0.4587]
    """
    policy = sums.policy_total / sums.policy_count if sums.policy_count > 0.0 else math.nan
    if sums.terms == 0.0 or sums.holdout_count == 0.0:
        return Lift(policy, UNKNOWN, UNKNOWN, UNKNOWN)
    n = sums.terms
    absolute = (sums.policy_terms - sums.holdout_terms) / n
    holdout = sums.holdout_terms / n
    if is_bounded:
        scale = 1.0 / min(share, 1.0 - share)
        half = bounded_limit(sums.difference_errors, scale, LIFT_ALPHA / 2.0) / n
        holdout_half = bounded_limit(sums.holdout_errors, 1.0 / share, HOLDOUT_ALPHA / 2.0) / n
        lift = Estimate(absolute, max(absolute - half, -1.0), min(absolute + half, 1.0))
        base = Estimate(holdout, max(holdout - holdout_half, 0.0), min(holdout + holdout_half, 1.0))
    elif has_interval(sums) and sums.difference_start > 0.0 and sums.holdout_start > 0.0:
        half = normal_limit(sums.difference_errors, sums.difference_start, LIFT_ALPHA) / n
        holdout_half = normal_limit(sums.holdout_errors, sums.holdout_start, HOLDOUT_ALPHA) / n
        lift = Estimate(absolute, absolute - half, absolute + half)
        base = Estimate(holdout, holdout - holdout_half, holdout + holdout_half)
    else:
        lift, base = Estimate(absolute, math.nan, math.nan), Estimate(holdout, math.nan, math.nan)
    return Lift(policy, base, lift, _divide(lift, base))


def _divide(lift: Estimate, base: Estimate) -> Estimate:
    """Return the lift relative to the mean of the holdout, which must be positive to be compared with."""
    value = lift.value / base.value if base.value > 0.0 else math.nan
    if not base.low > 0.0:
        return Estimate(value, math.nan, math.nan)
    low = lift.low / (base.high if lift.low > 0.0 else base.low)
    high = lift.high / (base.low if lift.high > 0.0 else base.high)
    return Estimate(value, low, high)
