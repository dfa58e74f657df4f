"""The largest of many Beta draws without drawing them all: the pruned argmax of Thompson sampling.

One arm, the incumbent, is drawn first; its value is the threshold c. Another arm matters only if its draw X exceeds c.
Draws are compared by their odds (`core.draws`); c and 1 - c follow from the odds without cancellation.
Each arm has one uniform number U. For any bound p >= P(X > c) the event X > c can be made a subset of U < p, so an arm
with U >= p is pruned without a draw. If U is below all bounds, rejection sampling decides whether X exceeds c and draws
it from its law above c. The law of the winner is the same as if every arm were drawn; docs/pruned-thompson.md has the
derivation.

Arms are tested in groups of 32, the width of a GPU warp, and c is raised after each group. The first 16 bits of U,
which decide most arms, come from one call of the generator for eight arms.

References
----------
Marchal & Arbel (2017), On the sub-Gaussianity of the Beta and Dirichlet distributions. ECP 22.
Devroye (1986), Non-uniform random variate generation, chapter VII, for log-concave densities.
"""

import math

from dynabandit.core.compilation import kernel
from dynabandit.core.draws import TO_UNIT_16, beta_odds, from_log_odds, log_odds, probability
from dynabandit.core.special_functions import exp_negative, log_beta, stirling_error
from dynabandit.core.streams import SCORE, Stream, uniform_pair, words

GROUP = 32
NOT_ABOVE = -1.0
FIRST_ATTEMPT = 128  # counters from here on are for U and its proposals; a gamma draw needs only the first few
DIRECT_IF_BOTH = 0.25  # if both bounds reach this, a direct draw costs less than rejection sampling
DIRECT_IF_FIRST = 0.6  # if the first bound reaches this, a direct draw costs less than computing the second
SAFETY = 1.0 + 1e-9  # larger than the rounding error of a bound
SMALLEST_REST = 2.0**-53  # of the interval (c, 1): a proposal nearer to 1 is rounded down
TWO_PI = 2.0 * math.pi
EXP_REST = math.exp(2.0) / 24.0  # replaces 1/24 in the series of exp(x), x <= 2, and bounds all later terms
TANGENT_SQUARED = (SAFETY * SAFETY * math.exp(1.0 / 24.0)) ** 2 / TWO_PI  # exp(1 / (12 n)) is largest for n = 2


@kernel
def uniform_prefixes(source: Stream, step: int, eighth: int) -> tuple[float, ...]:
    """Return the first 16 bits of U, as whole numbers, for the eight arms from 8 * `eighth` on."""
    w0, w1, w2, w3 = words(source, SCORE, step, eighth, FIRST_ATTEMPT)
    return (
        float(w0 >> 16), float(w0 & 65535), float(w1 >> 16), float(w1 & 65535),
        float(w2 >> 16), float(w2 & 65535), float(w3 >> 16), float(w3 & 65535),
    )  # fmt: skip


@kernel
def sub_gaussian_bound(a: float, b: float, mean: float, c: float) -> float:
    """Bound P(X > c): Beta(a, b) is sub-Gaussian with variance proxy 1 / (4 (a + b + 1))."""
    above = max(c - mean, 0.0)
    return SAFETY * exp_negative(-2.0 * (a + b + 1.0) * above * above)


@kernel
def may_exceed(a: float, b: float, mean: float, c: float, prefix: float) -> bool:
    """Whether two cheap bounds leave it open if X exceeds c; without branches, so that a loop over arms vectorises.

    The second bound is above `tangent_mass`: by Pinsker's inequality the exponential there is at most
    exp(-2 (a + b) (c - mean)^2), which is the first bound times exp(x). It prunes only arms that `draw_above` would
    prune after computing the mass. If the first bound is DIRECT_IF_BOTH or more, that requires a mass below
    DIRECT_IF_BOTH. Both sides are squared to save the root, and multiplied out to save the division.
    """
    first = sub_gaussian_bound(a, b, mean, c)
    u = prefix * TO_UNIT_16
    above = max(c - mean, 0.0)
    scaled_slope = (a + b) * above + 1.0 - 2.0 * c  # c (1 - c) times the slope of the tangent
    x = 2.0 * above * above
    exp_x = 1.0 + x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x * EXP_REST)))
    mass = TANGENT_SQUARED * a * (1.0 - mean) * (exp_x * first) * (exp_x * first)
    side = min(u, DIRECT_IF_BOTH if first >= DIRECT_IF_BOTH else 1.0) * scaled_slope
    second_open = (side * side <= mass) | (scaled_slope <= c) | (min(a, b) < 1.0) | (first >= DIRECT_IF_FIRST)
    return ((u < first) | (first >= DIRECT_IF_BOTH)) & second_open


@kernel
def draw_above(
    a: float, b: float, mean: float, best: float, prefix: float, source: Stream, step: int, arm: int
) -> float:
    """Return the odds of the draw X from Beta(a, b) if they are at least `best`, the odds of c, else `NOT_ABOVE`.

    An envelope g >= f on (c, 1) whose integral is at most `mass` both bounds P(X > c) and proposes draws: with
    probability `mass`, which is U < mass, a point x is proposed, and accepted with the probability that leaves the
    density f. A direct draw is possible as long as U has not been used. For smaller bounds `may_exceed` has used
    U < first; mass <= first then (docs/pruned-thompson.md), so that U < mass implies it.
    """
    c = probability(best)
    rest = 1.0 / (1.0 + best)
    first = sub_gaussian_bound(a, b, mean, c)
    if first >= DIRECT_IF_FIRST:
        return direct_draw(a, b, best, source, step, arm)
    slope = (b - 1.0) / rest - (a - 1.0) / c
    concave = a >= 1.0 and b >= 1.0 and slope > 0.0
    mass = tangent_mass(a, b, c, rest, slope) if concave else power_mass(a, b, best)
    if first >= DIRECT_IF_BOTH and mass >= DIRECT_IF_BOTH:
        return direct_draw(a, b, best, source, step, arm)
    if prefix * TO_UNIT_16 >= mass:
        return NOT_ABOVE
    low, v = uniform_pair(words(source, SCORE, step, arm, FIRST_ATTEMPT + 1))
    if (prefix + low) * TO_UNIT_16 >= mass:
        return NOT_ABOVE
    w, _ = uniform_pair(words(source, SCORE, step, arm, FIRST_ATTEMPT + 2))
    if concave:
        above = -math.log1p(v * math.expm1(-slope * rest)) / slope
        x = c + above
        x_rest = max(rest - above, SMALLEST_REST * rest)
        odds = x / x_rest
        log_f = (a - 1.0) * math.log(x / c) + (b - 1.0) * math.log(x_rest / rest)
        log_accept = log_exponential_share(slope * rest) + log_f + slope * above
        return odds if is_below_by_stirling(math.log(w), log_accept, a, b) else NOT_ABOVE
    log_c, log_rest = log_probabilities(best)
    log_x_rest = log_rest + math.log(v) / b  # 1 - x = (1 - c) v^(1/b)
    log_x = math.log(-math.expm1(log_x_rest))
    odds = from_log_odds(log_x - log_x_rest)
    log_accept = (a - 1.0) * (log_x if a >= 1.0 else log_x - log_c)
    return odds if math.log(w) < log_accept else NOT_ABOVE


@kernel
def direct_draw(a: float, b: float, best: float, source: Stream, step: int, arm: int) -> float:
    """Draw X and compare its odds with those of c."""
    odds = beta_odds(a, b, source, SCORE, step, arm)
    return odds if odds >= best else NOT_ABOVE


@kernel
def log_probabilities(odds: float) -> tuple[float, float]:
    """Return log(c) and log(1 - c) for the odds of c."""
    of_odds = log_odds(odds)
    smaller = math.log1p(math.exp(-abs(of_odds)))
    return min(of_odds, 0.0) - smaller, min(-of_odds, 0.0) - smaller


@kernel
def tangent_mass(a: float, b: float, c: float, rest: float, slope: float) -> float:
    """Bound the integral over (c, 1) of g(x) = f(c) exp(-slope (x - c)), for a log-concave f that falls at c.

    `rest` is 1 - c.

    Stirling's formula bounds f(c) without a gamma function, and the share of the exponential law in (c, 1) is at most
    min(slope (1 - c), 1).
    """
    n = a + b
    log_ratio = a * math.log(c * n / a) + b * math.log(rest * n / b)
    height = math.sqrt(a * b / (TWO_PI * n)) / (c * rest) * math.exp(log_ratio + 1.0 / (12.0 * n))
    return SAFETY * height * rest / max(slope * rest, 1.0)


@kernel
def log_exponential_share(width: float) -> float:
    """Return the logarithm of the share of the exponential law in (c, 1) over its bound in `tangent_mass`."""
    return math.log(-math.expm1(-width) * max(width, 1.0) / width / SAFETY)


@kernel
def is_below_by_stirling(number: float, limit: float, a: float, b: float) -> bool:
    """Whether `number` is below `limit` plus the logarithm of f(c) over the value that `tangent_mass` has for it.

    That is -(e(a) + e(b) - e(n) + 1 / (12 n)) with the errors e of Stirling's formula and n = a + b. Its series gives
    bounds: e(x) is between 1 / (12 x) - 1 / (360 x^3) and 1 / (12 x). They nearly always decide.
    """
    n = a + b
    least = limit - 1.0 / (12.0 * a) - 1.0 / (12.0 * b) - 1.0 / (360.0 * n * n * n)
    most = limit - 1.0 / (12.0 * a) - 1.0 / (12.0 * b) + 1.0 / (360.0 * a * a * a) + 1.0 / (360.0 * b * b * b)
    if number < least or number >= most:
        return number < least
    return number < limit - (stirling_error(a) + stirling_error(b) - stirling_error(n) + 1.0 / (12.0 * n))


@kernel
def power_mass(a: float, b: float, odds: float) -> float:
    """Return the integral over (c, 1) of g(x) = max(c^(a-1), 1) (1 - x)^(b-1) / B(a, b), for any a, b and odds of c."""
    log_c, log_rest = log_probabilities(odds)
    log_mass = max((a - 1.0) * log_c, 0.0) + b * log_rest - math.log(b) - log_beta(a, b)
    return math.exp(min(log_mass, 1.0))  # all bounds above 1 are equivalent
