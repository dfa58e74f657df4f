"""Confidence sequences: intervals that hold at all times together, however often somebody looks at them.

Both boundaries limit a sum S of terms with mean 0, given the sum of their squares, V. Nothing is assumed about how the
distributions of the terms change over time.
"""

import math

from dynabandit.core.compilation import kernel

# Bets of the mixture, as fractions of the largest one that is possible: one of them is nearly the best one for sums of
# squares from 1 to 10^8 times the squared scale
BETS = tuple(0.8 * 0.5**k for k in range(12))
PENALTIES = tuple(math.log1p(-bet) + bet for bet in BETS)  # per squared term
BISECTIONS = 30


@kernel
def bounded_log_evidence(total: float, squares: float, scale: float) -> float:
    """Return the log evidence that the mean of the terms is positive: it rarely exceeds log(1 / alpha) if it is not.

    The probability that it ever does is at most alpha. Each term must be at least -`scale`, and `squares` may be taken
    around any predictions within that range. This is a mixture of the supermartingales of Fan, Grama and Liu (2015), as
    in Howard, Ramdas, McAuliffe and Sekhon (2021), section 4.

    Examples
    --------
    >>> round(bounded_log_evidence(40.0, 100.0, 1.0), 2)
    3.69
    """
    unit_total, unit_squares = total / scale, squares / scale**2
    largest = -math.inf
    for k in range(len(BETS)):
        largest = max(largest, BETS[k] * unit_total + PENALTIES[k] * unit_squares)
    mixed = 0.0
    for k in range(len(BETS)):
        mixed += math.exp(BETS[k] * unit_total + PENALTIES[k] * unit_squares - largest)
    return largest + math.log(mixed / len(BETS))


@kernel
def bounded_limit(squares: float, scale: float, alpha: float) -> float:
    """Return the sum that is exceeded at any time with probability at most alpha; each term is at least -`scale`.

    Examples
    --------
    >>> round(bounded_limit(100.0, 1.0, 0.025), 2)
    40.0
    """
    threshold = math.log(1.0 / alpha)
    low, high = 0.0, scale
    while bounded_log_evidence(high, squares, scale) < threshold:
        low, high = high, 2.0 * high
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        if bounded_log_evidence(middle, squares, scale) < threshold:
            low = middle
        else:
            high = middle
    return high


@kernel
def normal_limit(squares: float, start: float, alpha: float) -> float:
    """Return the absolute value that a sum exceeds at any time with probability of about alpha at most.

    This is the normal mixture of Robbins (1970) with an estimated variance, which is valid asymptotically
    (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, 2024). `start` is the value of `squares` when the monitoring
    begins; the limit is narrowest at about eight times that.

    Examples
    --------
    >>> round(normal_limit(100.0, 10.0, 0.05), 2)
    30.38
    """
    sum_of_both = squares + start
    return math.sqrt(sum_of_both * math.log(sum_of_both / (start * alpha * alpha)))


@kernel
def has_enough_values(size: float, squares: float, enough: float) -> bool:
    """Return whether enough values without a range are known, and not a few large ones make up most of their sum.

    `size` is the sum of their absolute values, `squares` that of their squares, and size^2 / squares their effective
    number, which must exceed `enough`.

    Examples
    --------
    >>> has_enough_values(76.0, 76.0, 75.0), has_enough_values(176.0, 76.0 + 100.0**2, 75.0)
    (True, False)
    """
    return size**2 > enough * squares
