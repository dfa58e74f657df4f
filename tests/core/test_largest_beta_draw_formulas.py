"""The bounds, envelopes and draws of the pruned argmax, against their formulas and SciPy's Beta law."""

import math
from collections.abc import Iterator
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import special, stats

from dynabandit.core import largest_beta_draw
from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.draws import TO_UNIT_16, beta_odds, from_log_odds, log_odds
from dynabandit.core.largest_beta_draw import (
    DIRECT_IF_BOTH,
    NOT_ABOVE,
    draw_above,
    is_below_by_stirling,
    log_exponential_share,
    log_probabilities,
    may_exceed,
    power_mass,
    sub_gaussian_bound,
    tangent_mass,
    uniform_prefixes,
)
from dynabandit.core.special_functions import exp_negative
from dynabandit.core.streams import SCORE, stream, uniform_pair, words

SOURCE = stream(5)
SAFETY = 1.0 + 1e-9
SHAPES = [
    (1.0, 1.0), (1.0, 4.0), (2.0, 1.0), (2.0, 3.0), (8.0, 3.0), (50.0, 9.0), (30.0, 70.0), (0.3, 5.0), (3.0, 0.5),
    (0.6, 0.7),
]  # fmt: skip


def slope_at(a: float, b: float, c: float) -> float:
    return (b - 1.0) / (1.0 - c) - (a - 1.0) / c


def odds_of(x: float) -> float:
    return x / (1.0 - x)


def is_concave(a: float, b: float, c: float) -> bool:
    return a >= 1.0 <= b and slope_at(a, b, c) > 0.0


def points(a: float, b: float, count: int) -> list[float]:
    mean = a / (a + b)
    return [mean + (1.0 - mean) * share for share in np.linspace(0.02, 0.98, count).tolist()]


def sub_gaussian(a: float, b: float, mean: float, c: float) -> float:
    above = max(c - mean, 0.0)
    return SAFETY * exp_negative(-2.0 * (a + b + 1.0) * above**2)


def tangent(a: float, b: float, mean: float, c: float) -> float:
    n = a + b
    log_ratio = a * math.log(c / mean) + b * math.log((1.0 - c) / (1.0 - mean))
    height = math.sqrt(a * b / (2.0 * math.pi * n)) / (c * (1.0 - c)) * math.exp(log_ratio + 1.0 / (12.0 * n))
    return SAFETY * height * (1.0 - c) / max(slope_at(a, b, c) * (1.0 - c), 1.0)


def power(a: float, b: float, c: float) -> float:
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    return math.exp(min(max((a - 1.0) * math.log(c), 0.0) + b * math.log(1.0 - c) - math.log(b) - log_beta, 1.0))


def test_the_prefixes_of_eight_arms_are_the_halves_of_four_words() -> None:
    for step, eighth in enumerate([0, 5, 123] * 8, start=1):
        four = words(SOURCE, SCORE, step, eighth, 128)
        halves = [half for word in four for half in divmod(word, 2**16)]
        assert list(uniform_prefixes(SOURCE, step, eighth)) == halves


@pytest.mark.parametrize(("a", "b"), [*SHAPES, (2e4, 3e4)])
def test_bounds_are_their_formulas_and_above_the_tail(a: float, b: float) -> None:
    mean = a / (a + b)
    for c in points(a, b, 25):
        exact = stats.beta.sf(c, a, b) * (1.0 - 1e-9)
        first = sub_gaussian_bound(a, b, mean, c)
        assert first == pytest.approx(sub_gaussian(a, b, mean, c), rel=1e-14)
        assert first >= exact or first < 1e-280  # where exp_negative underflows
        mass = power_mass(a, b, odds_of(c))
        assert mass == pytest.approx(power(a, b, c), rel=1e-11 * max(a + b, 100.0) / 100.0)
        assert mass >= exact
        slope = slope_at(a, b, c)
        if is_concave(a, b, c) and exact > 1e-280:
            mass = tangent(a, b, mean, c)
            assert tangent_mass(a, b, c, 1.0 - c, slope) == pytest.approx(mass, rel=1e-11)
            assert mass >= exact
            integral = stats.beta.pdf(c, a, b) * -math.expm1(-slope * (1.0 - c)) / slope
            error = 1e-11 * max(a + b, 100.0) / 100.0
            limit, share = math.log(integral / mass), log_exponential_share(slope * (1.0 - c))
            decided = [is_below_by_stirling(limit + off, share, a, b) for off in (-0.1, -error, error, 0.1)]
            assert decided == [True, True, False, False]


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.3), (2.0, 1.0), (1.5, 2.5)])
def test_the_errors_of_stirlings_formula_are_computed_only_if_their_bounds_do_not_decide(
    monkeypatch: pytest.MonkeyPatch, a: float, b: float
) -> None:
    limit = -0.7
    n = a + b
    most = limit - 1.0 / (12.0 * a) - 1.0 / (12.0 * b) + 1.0 / (360.0 * a * a * a) + 1.0 / (360.0 * b * b * b)
    least = limit - 1.0 / (12.0 * a) - 1.0 / (12.0 * b) - 1.0 / (360.0 * n * n * n)
    places = [least - 1.0, least - 1e-12, least, most - 1e-12, most, most + 1.0]
    for error, computed in ((1e300, [False, False]), (-1e300, [True, True])):
        monkeypatch.setattr(largest_beta_draw, "stirling_error", lambda x, error=error: error)
        decided = [is_below_by_stirling(one, limit, a, b) for one in places]
        assert decided == [True, True, *computed, False, False]


def test_the_bound_at_or_below_the_mean_leads_to_a_direct_draw() -> None:
    assert sub_gaussian_bound(3.0, 5.0, 0.375, 0.2) == SAFETY
    drawn = draw_above(0.5, 800.0, 0.5 / 800.5, 0.0, 65535.0, SOURCE, 3, 1)
    assert drawn == beta_odds(0.5, 800.0, SOURCE, SCORE, 3, 1)


def test_a_draw_that_equals_the_threshold_is_returned() -> None:
    for step in range(1, 9):
        best = beta_odds(3.0, 5.0, SOURCE, SCORE, step, 1)
        above = [draw_above(3.0, 5.0, 0.375, c, 0.0, SOURCE, step, 1) for c in (best, math.nextafter(best, math.inf))]
        if best < 0.375 / 0.625:  # below the mean every draw is direct
            assert above == [best, NOT_ABOVE]


@pytest.mark.parametrize("best", [1e-290, 1e-20, 0.3, 1.0, 7.0, 1e20, 1e259, 1e262, 1e270])
def test_the_logarithms_of_a_probability_and_its_complement_follow_from_the_odds(best: float) -> None:
    log_c, log_rest = log_probabilities(best)
    scaled = log_odds(best)
    if abs(scaled) < 600.0:
        with localcontext(prec=60):
            odds = Decimal(best)
            expected = (odds / (1 + odds)).ln(), (1 / (1 + odds)).ln()
        assert (log_c, log_rest) == pytest.approx([float(one) for one in expected], rel=1e-14)
    else:
        expected_pair = (scaled, 0.0) if scaled < 0.0 else (0.0, -scaled)
        assert (log_c, log_rest) == pytest.approx(expected_pair, rel=1e-14, abs=1e-200)


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.05), (2.0, 0.01), (0.5, 0.02), (0.05, 0.05)])
@pytest.mark.parametrize("log_best", [60.0, 300.0, 800.0])
def test_draws_are_compared_with_a_threshold_that_no_double_tells_from_one(a: float, b: float, log_best: float) -> None:
    best, drawn = from_log_odds(log_best), []
    for step in range(1, 2001):
        prefix = uniform_prefixes(SOURCE, step, 0)[0]
        found = draw_above(a, b, a / (a + b), best, prefix, SOURCE, step, 0)
        if found != NOT_ABOVE:
            drawn.append(log_odds(found))
    tail = math.exp(-b * log_best - math.log(b) - special.betaln(a, b))  # the density at 1 is (1 - x)^(b - 1) / B
    assert min(drawn, default=log_best) >= log_best
    assert len(set(drawn)) == len(drawn)
    assert stats.binomtest(len(drawn), 2000, tail).pvalue > 1e-6
    if len(drawn) > 10:  # beyond the threshold the log-odds have an exponential law
        assert stats.kstest(np.array(drawn) - log_best, stats.expon(scale=1.0 / b).cdf).pvalue > 1e-6


def test_a_proposal_that_is_rounded_to_one_leaves_a_small_share_of_the_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shares = []
    for exponent in range(10):
        best = 1e5 * 2.0**exponent
        pairs = iter([(0.0, 1.0), (1e-300, 0.5)])  # U = 0 and the largest proposal, which is accepted
        monkeypatch.setattr(largest_beta_draw, "uniform_pair", lambda _, pairs=pairs: next(pairs))
        shares.append((1.0 + best) / draw_above(2.0, 2.0, 0.5, best, 0.0, SOURCE, 1, 0))
    assert min(shares) == pytest.approx(2.0**-53, rel=1e-4, abs=0.0)


@kernel
def largest_ratio(shapes: np.ndarray, shares: np.ndarray) -> float:
    """Return the largest mass / first with first < DIRECT_IF_BOTH on a grid."""
    largest = 0.0
    for a in shapes:
        for b in shapes:
            mean = a / (a + b)
            for share in shares:
                c = mean + (1.0 - mean) * share
                first = sub_gaussian_bound(a, b, mean, c)
                if mean < c < 1.0 and 1e-250 < first < DIRECT_IF_BOTH:
                    slope = (b - 1.0) / (1.0 - c) - (a - 1.0) / c
                    concave = a >= 1.0 and b >= 1.0 and slope > 0.0
                    mass = tangent_mass(a, b, c, 1.0 - c, slope) if concave else power_mass(a, b, c / (1.0 - c))
                    largest = max(largest, mass / first)
    return largest


def test_the_mass_is_at_most_the_first_bound_wherever_the_first_bound_prunes(scale: int) -> None:
    """`draw_above` relies on it: without it U < mass would not imply U < first. Its supremum is 0.67 (see the docs)."""
    count = 5 * scale
    shapes = np.concatenate([np.logspace(-12, 6, count + 1), np.linspace(0.9, 3.0, count), [1.0]])
    shares = np.concatenate([np.linspace(0.0, 1.0, count), 1.0 - np.logspace(-12, 0, count)])
    assert 0.3 < compiled(largest_ratio)(shapes, shares) < 0.6698


# --- Which arms are pruned ----------------------------------------------------------------------------------


def largest_open_u(a: float, b: float, c: float) -> float:
    """The largest U with which an arm is not pruned; 1 if none is."""
    mean, n = a / (a + b), a + b
    first, above = sub_gaussian(a, b, mean, c), max(c - mean, 0.0)
    if first >= 0.6:
        return 1.0
    limit = 1.0 if first >= 0.25 else first
    scaled_slope = n * above + 1.0 - 2.0 * c
    if scaled_slope <= c or min(a, b) < 1.0:
        return limit
    x = 2.0 * above**2
    exp_x = 1.0 + x + x**2 / 2.0 + x**3 / 6.0 + x**4 * math.exp(2.0) / 24.0
    scale = SAFETY**2 * math.exp(1.0 / 24.0) / math.sqrt(2.0 * math.pi)
    root = scale * math.sqrt(a * (1.0 - mean)) * exp_x * first / scaled_slope
    if first >= 0.25 and root >= 0.25:  # the mass may be large enough for a direct draw, whatever U is
        return 1.0
    return min(root, limit)


@pytest.mark.parametrize(("a", "b"), [*SHAPES, (1.5, 40.0), (400.0, 600.0), (0.5, 9.0), (9.0, 0.5), (1.0, 60.0)])
def test_an_arm_is_pruned_exactly_where_the_cheap_bounds_are_at_most_u(a: float, b: float) -> None:
    mean = a / (a + b)
    for c in points(a, b, 60):
        edge = largest_open_u(a, b, c)
        if edge < 1e-140:  # its square underflows
            continue
        assert may_exceed(a, b, mean, c, 65536.0 * edge * (1.0 - 1e-12))
        assert edge == 1.0 or not may_exceed(a, b, mean, c, 65536.0 * edge * (1.0 + 1e-12))


@settings(max_examples=400)
@given(*[st.floats(-2.0, 6.0).map(lambda exponent: 10.0**exponent)] * 2, st.floats(0.0, 1.0), st.integers(0, 65535))
def test_the_second_bound_prunes_only_arms_that_are_not_above(a: float, b: float, share: float, prefix: int) -> None:
    mean = a / (a + b)
    c = min(max(mean + share * (1.0 - mean), 1e-12), 1.0 - 1e-12)
    first = sub_gaussian_bound(a, b, mean, c)
    if first >= DIRECT_IF_BOTH or prefix * TO_UNIT_16 < first:  # the first bound does not prune
        drawn = draw_above(a, b, mean, odds_of(c), float(prefix), stream(1), prefix + 1, 0)
        assert may_exceed(a, b, mean, c, float(prefix)) or drawn == NOT_ABOVE


@pytest.mark.parametrize(("a", "b"), [(2.0, 8.0), (8.0, 3.0), (30.0, 4.0), (900.0, 1100.0)])
def test_the_second_bound_prunes_many_arms_that_the_first_leaves_open(a: float, b: float) -> None:
    mean = a / (a + b)
    spread = (mean * (1.0 - mean) / (a + b)) ** 0.5
    pruned = 0
    for c in np.minimum(mean + spread * np.linspace(0.5, 4.0, 20), 0.999).tolist():
        first = sub_gaussian_bound(a, b, mean, c)
        for step in range(1, 51):
            prefix = float(step * 40503 % 65536)
            if (first >= DIRECT_IF_BOTH or prefix * TO_UNIT_16 < first) and not may_exceed(a, b, mean, c, prefix):
                pruned += 1
                assert draw_above(a, b, mean, odds_of(c), prefix, SOURCE, step, 0) == NOT_ABOVE
    assert pruned > 50


# --- Draws above c ------------------------------------------------------------------------------------------


class ExpectedDraw:
    """A draw above c by its definition; `path` says how it was decided."""

    def __init__(self, a: float, b: float, c: float, prefix: float, step: int, arm: int) -> None:
        self.a, self.b, self.mean, self.c, self.key = a, b, a / (a + b), c, (SOURCE, SCORE, step, arm)
        self.slope = slope_at(a, b, c)
        self.concave = is_concave(a, b, c)
        self.path, self.value = self.decide(prefix)

    def decide(self, prefix: float) -> tuple[str, float]:
        a, b, c = self.a, self.b, self.c
        first = sub_gaussian(a, b, self.mean, c)
        if first >= 0.6:
            return self.direct()
        mass = tangent(a, b, self.mean, c) if self.concave else power(a, b, c)
        if first >= 0.25 and mass >= 0.25:
            return self.direct()
        if prefix / 2**16 >= mass:
            return "pruned by 16 bits", NOT_ABOVE
        low, v = uniform_pair(words(*self.key, 129))
        if (prefix + low) / 2**16 >= mass:
            return "pruned by all bits", NOT_ABOVE
        w, _ = uniform_pair(words(*self.key, 130))
        x = self.proposal(v)
        # Accepted with probability f / g, where g has the integral `mass`
        ratio = stats.beta.pdf(x, a, b) / self.envelope(x) if self.concave else (x if a >= 1.0 else x / c) ** (a - 1.0)
        return ("accepted", odds_of(x)) if w < ratio else ("rejected", NOT_ABOVE)

    def direct(self) -> tuple[str, float]:
        odds = beta_odds(self.a, self.b, *self.key)
        return ("direct", odds) if odds >= odds_of(self.c) else ("direct, below", NOT_ABOVE)

    def proposal(self, v: float) -> float:
        if self.concave:
            return self.c - math.log(1.0 + v * math.expm1(-self.slope * (1.0 - self.c))) / self.slope
        return 1.0 - (1.0 - self.c) * v ** (1.0 / self.b)

    def envelope(self, x: float) -> float:
        """The truncated exponential density on (c, 1), scaled to the mass `tangent`."""
        share = self.slope / -math.expm1(-self.slope * (1.0 - self.c)) * math.exp(-self.slope * (x - self.c))
        return tangent(self.a, self.b, self.mean, self.c) * share


def thresholds(a: float, b: float) -> Iterator[tuple[float, float, int]]:
    """Yield thresholds, prefixes and steps that lead into every path."""
    for place, c in enumerate(points(a, b, 24)):
        top = min(stats.beta.sf(c, a, b) * 1.5 + 2.0**-16, 1.0)
        for turn in range(12):
            yield c, float(int(65536 * top * turn / 12)), 100 * place + turn + 1


def test_a_draw_above_c_is_its_definition_on_every_path() -> None:
    shapes = [*SHAPES, (1.2, 40.0), (1.0, 2.0), (0.5, 2.0), (1.5, 0.9), (1.0, 1.7), (1.1, 1.9)]
    paths = set()
    for arm, (a, b) in enumerate(shapes):
        for c, prefix, step in thresholds(a, b):
            expected = ExpectedDraw(a, b, c, prefix, step, arm)
            drawn = draw_above(a, b, a / (a + b), odds_of(c), prefix, SOURCE, step, arm)
            assert drawn == pytest.approx(expected.value, rel=1e-8), (expected.path, a, b, c, prefix)
            paths.add(expected.path)
    assert paths == {
        "direct", "direct, below", "pruned by 16 bits", "pruned by all bits", "accepted", "rejected",
    }  # fmt: skip


def test_the_constants_that_are_part_of_every_result_are_unchanged() -> None:
    constants = largest_beta_draw
    assert (constants.GROUP, constants.NOT_ABOVE, constants.FIRST_ATTEMPT) == (32, -1.0, 128)
    assert (constants.DIRECT_IF_BOTH, constants.DIRECT_IF_FIRST) == (0.25, 0.6)
