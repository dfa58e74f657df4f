"""Gamma, Beta and Poisson draws from counter-based streams, for all positive shapes.

Policies compare Beta draws by their odds x / (1 - x). Doubles near 1 are 1e-16 apart, so that most draws of a posterior
with a small second shape would be the same double, and arms would tie; odds have the same relative resolution at both
ends.

References
----------
Marsaglia & Tsang (2000), A simple method for generating gamma variables. ACM TOMS 26(3).
"""

import math
from collections.abc import Callable

from dynabandit.core.compilation import kernel
from dynabandit.core.philox import word
from dynabandit.core.streams import Stream, normal_pair, uniform_pair, words

SMALLEST_SHAPE = 1e-12  # replaces 0: a draw from Beta(0, 0), a posterior without data, is then 0 or 1 with equal chance
BELOW_ONE = 1.0 - 2.0**-53  # the largest Beta draw
SMALL_ODDS = 1e-20  # odds below are the probability itself, up to rounding
LARGEST_ODDS = 1e37  # of a draw whose shapes are both 1 or more; also a float32
QUICK = 0.0221  # of the quick test of acceptance; see `is_accepted_by_bits`
TO_UNIT_16 = 2.0**-16
ATTEMPTS = 64  # of a rejection sampler, which accepts nine proposals of ten: the counters of `words` are below 256
LARGEST_MEAN = 1e7  # of a Poisson draw, whose time grows with the mean
POISSON_PART = 16.0  # exp(-16) is far above the smallest float32
BOOST = 255  # the attempt number that is reserved for the boost of small shapes


@kernel
def gamma(shape: float, source: Stream, role: int, step: int, arm: int) -> float:
    """Draw from the gamma law with shape `shape` and scale 1.

    Examples
    --------
    >>> from dynabandit.core.streams import SCORE, stream
    >>> gamma(2.5, stream(1), SCORE, step=1, arm=0) > 0.0
    True
    """
    first, _ = gamma_pair(max(shape, SMALLEST_SHAPE), 1.0, source, role, step, arm)
    if shape >= 1.0:
        return first
    boost, _ = boosts(shape, 1.0, source, role, step, arm)
    return first * math.exp(boost)


@kernel
def beta(a: float, b: float, source: Stream, role: int, step: int, arm: int) -> float:
    """Draw from the Beta(a, b) law; a policy that compares draws should compare `beta_odds`.

    Examples
    --------
    >>> from dynabandit.core.streams import SCORE, stream
    >>> 0.0 < beta(2.0, 2.0, stream(1), SCORE, step=1, arm=0) < 1.0
    True
    """
    odds = beta_odds(a, b, source, role, step, arm)
    if odds < SMALL_ODDS:
        return math.exp(log_odds(odds))
    drawn = probability(odds)
    return BELOW_ONE if drawn > BELOW_ONE else drawn  # NaN stays NaN


@kernel
def beta_odds(a: float, b: float, source: Stream, role: int, step: int, arm: int) -> float:
    """Return the odds of a draw from the Beta(a, b) law, the ratio of two gamma draws.

    If a shape is below 1, the gamma draws and their ratio may underflow or overflow, so the logarithm of the ratio is
    computed.

    Examples
    --------
    >>> from dynabandit.core.streams import SCORE, stream
    >>> odds = beta_odds(2.0, 2.0, stream(1), SCORE, step=1, arm=0)
    >>> odds / (1.0 + odds) == beta(2.0, 2.0, stream(1), SCORE, step=1, arm=0)
    True
    """
    x, y = gamma_pair(a, b, source, role, step, arm)
    if a >= 1.0 and b >= 1.0:
        odds = x / y
        return LARGEST_ODDS if odds > LARGEST_ODDS else odds  # NaN stays NaN
    boost_a, boost_b = boosts(a, b, source, role, step, arm)
    return from_log_odds((math.log(x) + boost_a) - (math.log(y) + boost_b))


@kernel
def probability(odds: float) -> float:
    """Return odds / (1 + odds)."""
    return odds / (1.0 + odds)


def make_odds_scale(limit: float) -> tuple[Callable[[float], float], Callable[[float], float]]:
    """Return two functions: from log-odds to odds, and back.

    Log-odds beyond `limit`, whose odds would soon overflow or underflow, continue the scale linearly: what is larger
    stays larger.
    """
    largest, smallest = math.exp(limit), math.exp(-limit)

    @kernel
    def from_log_odds(log_odds: float) -> float:
        if log_odds > limit:
            return largest * (log_odds - limit + 1.0)
        if log_odds < -limit:
            return smallest / (-log_odds - limit + 1.0)
        return math.exp(log_odds)

    @kernel
    def log_odds(odds: float) -> float:
        if odds > largest:
            return odds / largest - 1.0 + limit
        if odds < smallest:
            return 1.0 - smallest / odds - limit
        return math.log(odds)

    return from_log_odds, log_odds


from_log_odds, log_odds = make_odds_scale(600.0)
from_log_odds.in_single, log_odds.in_single = make_odds_scale(50.0)  # type: ignore[attr-defined]


@kernel
def not_empty(shapes: tuple[float, float]) -> tuple[float, float]:
    """Return the shapes of a Beta posterior, with 0 (no data) replaced by a small positive number."""
    return max(shapes[0], SMALLEST_SHAPE), max(shapes[1], SMALLEST_SHAPE)


@kernel
def gamma_pair(a: float, b: float, source: Stream, role: int, step: int, arm: int) -> tuple[float, float]:
    """Draw two gamma numbers at once; a shape below 1 is increased by 1, and `boosts` corrects the draw.

    Both proposals of an attempt are accepted, or neither. The normal numbers leave one of the four words, which has the
    first 16 bits of the two uniform numbers. They decide nearly always, so that one call of the generator is enough.

    If a shape is negative or NaN, both numbers are NaN.
    """
    shape_a = (a if a >= 1.0 else a + 1.0) - 1.0 / 3.0
    shape_b = (b if b >= 1.0 else b + 1.0) - 1.0 / 3.0
    if not (a >= 0.0 and b >= 0.0):
        return math.nan, math.nan
    for attempt in range(ATTEMPTS):
        four = words(source, role, step, arm, 2 * attempt)
        normal_a, normal_b = normal_pair(four)
        bits_a, bits_b = float(four[3] >> 16), float(four[3] & 65535)
        if is_accepted_by_bits(shape_a, normal_a, bits_a) and is_accepted_by_bits(shape_b, normal_b, bits_b):
            return proposal(shape_a, normal_a), proposal(shape_b, normal_b)
        u, v = uniform_pair(more_words(four, source, role, step, arm, 2 * attempt + 1))
        if is_accepted(shape_a, normal_a, (bits_a + u) * TO_UNIT_16) and is_accepted(
            shape_b, normal_b, (bits_b + v) * TO_UNIT_16
        ):
            return proposal(shape_a, normal_a), proposal(shape_b, normal_b)
    return math.nan, math.nan


@kernel
def proposal(d: float, normal: float) -> float:
    """Return the proposal of Marsaglia & Tsang's method for a gamma draw with shape d + 1/3 >= 1."""
    cube_root = 1.0 + normal / math.sqrt(9.0 * d)
    return d * (cube_root * cube_root * cube_root)


@kernel
def is_accepted(d: float, normal: float, uniform: float) -> bool:
    """Whether a proposal is accepted."""
    v = proposal(d, normal) / d
    return v > 0.0 and math.log(uniform) < 0.5 * normal * normal + d * (1.0 - v + math.log(v))


@kernel
def is_accepted_by_bits(d: float, normal: float, bits: float) -> bool:
    """Whether a proposal is accepted with every uniform number that has these first 16 bits.

    The probability of acceptance is at least 1 - QUICK / d * normal^4 for d >= 2/3. This has the constant of Marsaglia
    & Tsang, 0.0331, for d = 2/3, where acceptance is least probable; they use it for all shapes.
    """
    square = normal * normal
    return QUICK * square * square <= d * (1.0 - (bits + 1.0) * TO_UNIT_16)


@kernel
def more_words(
    four: tuple[int, int, int, int], source: Stream, role: int, step: int, arm: int, attempt: int
) -> tuple[int, int, int, int]:
    """Return four more words for an attempt that `four` did not decide."""
    return words(source, role, step, arm, attempt)


@kernel
def spare_words(
    four: tuple[int, int, int, int], source: Stream, role: int, step: int, arm: int, attempt: int
) -> tuple[int, int, int, int]:
    """Return the halves of a word that `normal_pair` does not need for a float32, which has 24 bits, and zeros."""
    return word(four[1] >> 16 << 16), word(0), word(four[1] << 16), word(0)


more_words.in_single = spare_words  # type: ignore[attr-defined]


@kernel
def boosts(a: float, b: float, source: Stream, role: int, step: int, arm: int) -> tuple[float, float]:
    """Return log(u) / shape for each shape below 1, else 0: gamma(shape) = gamma(shape + 1) u^(1 / shape)."""
    u, v = uniform_pair(words(source, role, step, arm, BOOST))
    boost_a = 0.0 if a >= 1.0 else math.log(u) / max(a, SMALLEST_SHAPE)
    boost_b = 0.0 if b >= 1.0 else math.log(v) / max(b, SMALLEST_SHAPE)
    return boost_a, boost_b


@kernel
def poisson(mean: float, source: Stream, role: int, step: int, arm: int) -> float:
    """Draw from the Poisson law with a mean of at least 0, as a sum of Poisson numbers with means of at most 16.

    Each of them inverts the distribution function at one uniform number. The time grows with the mean: beyond 10
    million the number is NaN, as for a mean that is negative or NaN.

    Examples
    --------
    >>> from dynabandit.core.streams import REWARD, stream
    >>> poisson(0.0, stream(1), REWARD, step=1, arm=0), poisson(100.0, stream(1), REWARD, step=1, arm=0) > 50.0
    (0.0, True)
    """
    if not 0.0 <= mean <= LARGEST_MEAN:
        return math.nan
    total = 0.0
    rest = mean
    attempt = 0
    while rest > 0.0:
        part = min(rest, POISSON_PART)
        u, _ = uniform_pair(words(source, role, step, arm, attempt))
        probability = math.exp(-part)
        count = 0.0
        while u >= probability and probability > 0.0:
            u -= probability
            count += 1.0
            probability *= part / count
        total += count
        rest -= part
        attempt += 1
    return total
