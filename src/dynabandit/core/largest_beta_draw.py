"""The largest of many Beta draws, without drawing them all.

Thompson sampling needs the arm with the largest draw and nothing else of the losers. Draw one favourite; call its
value c. Any other arm matters only if its draw X exceeds c, which for most arms is very unlikely. Each arm has one
uniform number U. With any bound p >= P(X > c), the event X > c can be made a part of the event U < p: an arm with
U >= p has lost, and needs no draw. Cheap bounds settle most arms, a tight one most of the rest; where U is below
all of them, X is drawn from its exact law beyond c. The law of the winner is that of drawing every arm.

Arms are called in groups of 32, the width of a GPU's warp, and c rises after each group. The first 16 bits of U,
which settle most arms, come eight to a call of the generator.

References
----------
Marchal & Arbel (2017), On the sub-Gaussianity of the Beta and Dirichlet distributions. ECP 22.
Devroye (1986), Non-uniform random variate generation, chapter VII, for log-concave densities.
"""

import math

from dynabandit.core.compilation import kernel
from dynabandit.core.draws import BELOW_ONE, beta
from dynabandit.core.special_functions import exp_negative, log_beta, stirling_error
from dynabandit.core.streams import Stream, uniform_pair, words

__all__ = ["GROUP", "LOSES", "challenge", "contested", "prefixes"]

GROUP = 32
LOSES = -1.0
CHALLENGE = 128  # attempts from here on are the contest's; a gamma draw needs a handful
PLAIN = 0.25  # where a bound is above this, a plain draw is cheaper than more tests
HOPEFUL = 0.6  # where the first bound is above this, a plain draw is cheaper than another bound
SAFETY = 1.0 + 1e-9  # more than what rounding can take from a bound
TO_UNIT_16 = 2.0**-16
TWO_PI = 2.0 * math.pi
EXP_REST = math.exp(2.0) / 24.0  # in the series of exp up to 2, this for 1/24 makes up for all that follows
TANGENT_SQUARED = (SAFETY * SAFETY * math.exp(1.0 / 24.0)) ** 2 / TWO_PI  # exp(1 / 12 n) is largest for n = 2
TAIL_PRECISION = 4e-15
TAIL_TERMS = 10_000


@kernel
def prefixes(source: Stream, role: int, step: int, eighth: int) -> tuple[float, ...]:
    """Return the first 16 bits of U of the eight arms from 8 * `eighth` on, as whole numbers."""
    w0, w1, w2, w3 = words(source, role, step, eighth, CHALLENGE)
    return (
        float(w0 >> 16), float(w0 & 65535), float(w1 >> 16), float(w1 & 65535),
        float(w2 >> 16), float(w2 & 65535), float(w3 >> 16), float(w3 & 65535),
    )  # fmt: skip


@kernel
def first_bound(a: float, b: float, mean: float, c: float) -> float:
    """Bound P(X > c): a Beta law is sub-Gaussian with variance 1 / (4 (a + b + 1))."""
    above = max(c - mean, 0.0)
    return SAFETY * exp_negative(-2.0 * (a + b + 1.0) * above * above)


@kernel
def contested(a: float, b: float, mean: float, c: float, prefix: float) -> bool:
    """Whether cheap bounds leave it open if X exceeds c; straight-line, so that a loop over it vectorises.

    The second one bounds `tangent_mass`: by Pinsker's inequality its exponential is below exp(-2 (a + b) (c - mean)^2),
    which is the first bound times exp(x). It closes what `challenge` would only compute the mass for, and lose. Where
    the first bound is PLAIN or more, that takes a mass below PLAIN. Squares save the root, and products the division.
    """
    first = first_bound(a, b, mean, c)
    u = prefix * TO_UNIT_16
    above = max(c - mean, 0.0)
    reach = (a + b) * above + 1.0 - 2.0 * c  # c (1 - c) times the slope of the tangent
    x = 2.0 * above * above
    exp_x = 1.0 + x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x * EXP_REST)))
    mass = TANGENT_SQUARED * a * (1.0 - mean) * (exp_x * first) * (exp_x * first)
    side = min(u, PLAIN if first >= PLAIN else 1.0) * reach
    open_ = (side * side <= mass) | (reach <= c) | (min(a, b) < 1.0) | (first >= HOPEFUL)
    return ((u < first) | (first >= PLAIN)) & open_


@kernel
def challenge(
    a: float, b: float, mean: float, c: float, prefix: float, source: Stream, role: int, step: int, arm: int
) -> float:
    """Return the draw X from Beta(a, b) where it is c or more, and `LOSES` where it is not.

    A function g >= f on (c, 1) with a known integral, `mass`, both bounds P(X > c) and proposes draws. While
    nothing was asked of U, a plain draw is possible too, and cheaper where the bounds are large. Once U < first is
    known, a mass above `first` is of no use, and the exact tail decides.
    """
    first = first_bound(a, b, mean, c)
    if first >= HOPEFUL or c <= 0.0:
        return plain(a, b, c, source, role, step, arm)
    slope = (b - 1.0) / (1.0 - c) - (a - 1.0) / c
    concave = a >= 1.0 and b >= 1.0 and slope > 0.0
    mass = tangent_mass(a, b, mean, c, slope) if concave else power_mass(a, b, c)
    if first >= PLAIN and mass >= PLAIN:
        return plain(a, b, c, source, role, step, arm)
    if prefix * TO_UNIT_16 >= mass:
        return LOSES
    low, v = uniform_pair(words(source, role, step, arm, CHALLENGE + 1))
    u = (prefix + low) * TO_UNIT_16
    if u >= mass:
        return LOSES
    wins = first < PLAIN and mass > first
    if wins and u >= tail(a, b, c):
        return LOSES
    log_short = tangent_shortfall(a, b, c, slope) if concave and not wins else 0.0
    attempt = CHALLENGE + 2
    while True:
        w, next_v = uniform_pair(words(source, role, step, arm, attempt))
        if concave:
            x = min(c - math.log1p(v * math.expm1(-slope * (1.0 - c))) / slope, BELOW_ONE)
            log_f = (a - 1.0) * math.log(x / c) + (b - 1.0) * math.log((1.0 - x) / (1.0 - c))
            log_accept = log_short + log_f + slope * (x - c)
        else:
            x = min(1.0 - (1.0 - c) * v ** (1.0 / b), BELOW_ONE)
            log_accept = (a - 1.0) * math.log(x if a >= 1.0 else x / c)
        if math.log(w) < log_accept:
            return x
        if not wins:  # U < mass proposed a draw beyond c; that some are rejected makes the rest exact
            return LOSES
        v = next_v
        attempt += 1


@kernel
def plain(a: float, b: float, c: float, source: Stream, role: int, step: int, arm: int) -> float:
    """Draw X without more ado."""
    x = beta(a, b, source, role, step, arm)
    return x if x >= c else LOSES


@kernel
def tangent_mass(a: float, b: float, mean: float, c: float, slope: float) -> float:
    """Bound the integral of g(x) = f(c) exp(-slope (x - c)), for a log-concave f that falls at c.

    Stirling's formula bounds f(c) from above without a gamma function, and 1 / max(room, 1) the share of the
    exponential density that lies in (c, 1).
    """
    n = a + b
    log_ratio = a * math.log(c / mean) + b * math.log((1.0 - c) / (1.0 - mean))
    height = math.sqrt(a * b / (TWO_PI * n)) / (c * (1.0 - c)) * math.exp(log_ratio + 1.0 / (12.0 * n))
    return SAFETY * height * (1.0 - c) / max(slope * (1.0 - c), 1.0)


@kernel
def tangent_shortfall(a: float, b: float, c: float, slope: float) -> float:
    """Return the logarithm of the integral of g over its bound `tangent_mass`."""
    n = a + b
    room = slope * (1.0 - c)
    error = stirling_error(a) + stirling_error(b) - stirling_error(n) + 1.0 / (12.0 * n)
    return math.log(-math.expm1(-room) * max(room, 1.0) / room / SAFETY) - error


@kernel
def power_mass(a: float, b: float, c: float) -> float:
    """Return the integral of g(x) = max(c^(a-1), 1) (1 - x)^(b-1) / B(a, b), for any a and b."""
    log_mass = max((a - 1.0) * math.log(c), 0.0) + b * math.log1p(-c) - math.log(b) - log_beta(a, b)
    return math.exp(min(log_mass, 1.0))  # any bound above 1 is as good as another


@kernel
def tail(a: float, b: float, c: float) -> float:
    """Return P(X > c) for X ~ Beta(a, b) with c above the mean, by Lentz's continued fraction.

    Examples
    --------
    >>> round(tail(2.0, 2.0, 0.5), 12)
    0.5
    """
    # The regularised incomplete Beta function I_x(p, q) at x = 1 - c, p = b, q = a
    x, p, q = 1.0 - c, b, a
    tiny = 1e-300
    numerator = 1.0
    denominator = 1.0 - (p + q) * x / (p + 1.0)
    denominator = 1.0 / (denominator if abs(denominator) > tiny else tiny)
    fraction = denominator
    for m in range(1, TAIL_TERMS):
        for odd in range(2):
            if odd == 0:
                term = m * (q - m) * x / ((p + 2.0 * m - 1.0) * (p + 2.0 * m))
            else:
                term = -(p + m) * (p + q + m) * x / ((p + 2.0 * m) * (p + 2.0 * m + 1.0))
            denominator = 1.0 + term * denominator
            denominator = 1.0 / (denominator if abs(denominator) > tiny else tiny)
            numerator = 1.0 + term / numerator
            numerator = numerator if abs(numerator) > tiny else tiny
            factor = denominator * numerator
            fraction *= factor
        if abs(factor - 1.0) < TAIL_PRECISION:
            break
    return math.exp(p * math.log(x) + q * math.log1p(-x) - log_beta(p, q)) * fraction / p
