"""The Kullback-Leibler divergence of Bernoulli laws and the upper confidence bound of KL-UCB."""

import math

from dynabandit.core.compilation import kernel

SMALLEST_LEVEL = 1e-30  # below, the bound is p: it is at most sqrt(level / 2) larger
LARGEST_LEVEL = 1000.0  # at this level the bound of every p is 1
NEAR_ONE = 0.5  # below, the exponential start value is not needed
ROUNDING = 1e-12  # below this level the excess is rounding error, and the start value is accurate enough
ROUNDS = 2  # enough for full precision (tests/core/test_bernoulli_kl.py)


@kernel
def negentropy(p: float) -> float:
    """Return p log p + (1 - p) log(1 - p), with 0 log 0 = 0.

    Examples
    --------
    >>> negentropy(0.0), negentropy(1.0), round(negentropy(0.5), 6)
    (0.0, 0.0, -0.693147)
    """
    if p <= 0.0 or p >= 1.0:
        return 0.0
    return p * math.log(p) + (1.0 - p) * math.log(1.0 - p)


@kernel
def kl(p: float, q: float) -> float:
    """Return kl(p, q) for p in [0, 1] and q in (0, 1), or p = q.

    Examples
    --------
    >>> kl(0.3, 0.3), kl(1.0, 1.0), round(kl(0.0, 0.5), 6)
    (0.0, 0.0, 0.693147)
    """
    result = 0.0
    if p != q:
        if p > 0.0:
            result += p * math.log(p / q)
        if p < 1.0:
            result += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return result


@kernel
def upper_bound(p: float, negentropy: float, level: float) -> float:
    """Return the largest q in [p, 1] with kl(p, q) <= level; `negentropy` is `negentropy(p)`.

    kl(p, .) is convex and increases from p on. Lower bounds of it (Bernstein's, Pinsker's and, near 1, an exponential
    one) each give a q that is too large. From the smallest of these, two rounds of Householder's method of order 3 find
    the root. The number of rounds is fixed, so that arms with equal data have bounds that are equal to the last bit.

    Examples
    --------
    >>> q = upper_bound(0.25, negentropy(0.25), 0.1)
    >>> round(q, 6), round(kl(0.25, q), 12)
    (0.467061, 0.1)
    """
    if p >= 1.0:
        return 1.0
    if level <= SMALLEST_LEVEL:
        return p
    level = min(level, LARGEST_LEVEL)
    skew = level * max(1.0 - 2.0 * p, 0.0) / 3.0
    q = p + min(skew + math.sqrt(skew * skew + 2.0 * level * p * (1.0 - p)), math.sqrt(0.5 * level))
    if q > NEAR_ONE:
        q = min(q, 1.0 - math.exp(-(level - negentropy) / (1.0 - p)))
    for _ in range(ROUNDS):
        if q <= p or q >= 1.0 or level < ROUNDING:
            return q
        r = 1.0 - q
        excess = negentropy - p * math.log(q) - (1.0 - p) * math.log(r) - level
        # With u = 1 / q and v = 1 / r, the derivatives are 1 / slope, p u^2 + (1 - p) v^2 and 2 (1 - p) v^3 - 2 p u^3
        slope = q * r / (q - p)
        product = 1.0 / (q * r)
        u, v = r * product, q * product
        low, high = p * u * u, (1.0 - p) * v * v
        newton = excess * slope
        bend = newton * slope * (low + high)
        q -= newton * (1.0 - 0.5 * bend) / (1.0 - bend + newton * newton * slope * (high * v - low * u) / 3.0)
        q = min(max(q, p), 1.0)
    return q
