"""The contest's bounds and challenges against their formulas, written out here once more, and SciPy's Beta law."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from dynabandit.core import largest_beta_draw
from dynabandit.core.draws import BELOW_ONE, beta
from dynabandit.core.largest_beta_draw import (  # fmt: skip
    LOSES,
    challenge,
    contested,
    first_bound,
    power_mass,
    prefixes,
    tail,
    tangent_mass,
    tangent_shortfall,
)
from dynabandit.core.special_functions import exp_negative
from dynabandit.core.streams import SCORE, stream, uniform_pair, words

SOURCE = stream(5)
SAFETY = 1.0 + 1e-9
SHAPES = [(1.0, 1.0), (1.0, 4.0), (2.0, 1.0), (2.0, 3.0), (8.0, 3.0), (30.0, 70.0), (0.3, 5.0), (3.0, 0.5), (0.6, 0.7)]


def slope_at(a: float, b: float, c: float) -> float:
    return (b - 1.0) / (1.0 - c) - (a - 1.0) / c


def points(a: float, b: float, count: int) -> list[float]:
    mean = a / (a + b)
    return [mean + (1.0 - mean) * share for share in np.linspace(0.02, 0.98, count).tolist()]


def first_of(a: float, b: float, mean: float, c: float) -> float:
    above = max(c - mean, 0.0)
    return SAFETY * exp_negative(-2.0 * (a + b + 1.0) * above**2)


def tangent_of(a: float, b: float, mean: float, c: float) -> float:
    n = a + b
    log_ratio = a * math.log(c / mean) + b * math.log((1.0 - c) / (1.0 - mean))
    height = math.sqrt(a * b / (2.0 * math.pi * n)) / (c * (1.0 - c)) * math.exp(log_ratio + 1.0 / (12.0 * n))
    return SAFETY * height * (1.0 - c) / max(slope_at(a, b, c) * (1.0 - c), 1.0)


def power_of(a: float, b: float, c: float) -> float:
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    return math.exp(min(max((a - 1.0) * math.log(c), 0.0) + b * math.log(1.0 - c) - math.log(b) - log_beta, 1.0))


def test_the_sixteen_bits_of_eight_arms_are_the_halves_of_four_words() -> None:
    for step, eighth in enumerate([0, 5, 123] * 8, start=1):
        four = words(SOURCE, SCORE, step, eighth, 128)
        halves = [half for word in four for half in divmod(word, 2**16)]
        assert list(prefixes(SOURCE, SCORE, step, eighth)) == halves


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_bounds_are_their_formulas(a: float, b: float) -> None:
    mean = a / (a + b)
    for c in points(a, b, 15):
        assert first_bound(a, b, mean, c) == pytest.approx(first_of(a, b, mean, c), rel=1e-14)
        assert power_mass(a, b, c) == pytest.approx(power_of(a, b, c), rel=1e-11)
        assert tail(a, b, c) == pytest.approx(stats.beta.sf(c, a, b), rel=1e-11)
        slope = slope_at(a, b, c)
        if a >= 1.0 <= b and slope > 0.0:
            mass = tangent_of(a, b, mean, c)
            assert tangent_mass(a, b, mean, c, slope) == pytest.approx(mass, rel=1e-11)
            integral = stats.beta.pdf(c, a, b) * -math.expm1(-slope * (1.0 - c)) / slope
            assert tangent_shortfall(a, b, c, slope) == pytest.approx(math.log(integral / mass), abs=1e-11)


def test_a_bound_below_the_mean_is_one_and_a_little_more() -> None:
    assert first_bound(3.0, 5.0, 0.375, 0.2) == SAFETY


# --- Which arms are open ------------------------------------------------------------------------------------


def open_up_to(a: float, b: float, c: float) -> float:
    """The largest U for which an arm is open, or -1 and 1 for none and all."""
    mean, n = a / (a + b), a + b
    first, above = first_of(a, b, mean, c), max(c - mean, 0.0)
    if first >= 0.6:
        return 1.0
    limit = 1.0 if first >= 0.25 else first
    reach = n * above + 1.0 - 2.0 * c
    if reach <= c or min(a, b) < 1.0:
        return limit
    x = 2.0 * above**2
    exp_x = 1.0 + x + x**2 / 2.0 + x**3 / 6.0 + x**4 * math.exp(2.0) / 24.0
    scale = SAFETY**2 * math.exp(1.0 / 24.0) / math.sqrt(2.0 * math.pi)
    root = scale * math.sqrt(a * (1.0 - mean)) * exp_x * first / reach
    if first >= 0.25 and root >= 0.25:  # from here on the mass may lead to a plain draw, whatever U is
        return 1.0
    return min(root, limit)


@pytest.mark.parametrize(("a", "b"), [*SHAPES, (1.5, 40.0), (400.0, 600.0), (0.5, 9.0), (9.0, 0.5), (1.0, 60.0)])
def test_an_arm_is_open_up_to_where_the_cheap_bounds_say(a: float, b: float) -> None:
    mean = a / (a + b)
    for c in points(a, b, 60):
        edge = open_up_to(a, b, c)
        if edge < 1e-140:  # its square is no number
            continue
        assert contested(a, b, mean, c, 65536.0 * edge * (1.0 - 1e-12))
        assert edge == 1.0 or not contested(a, b, mean, c, 65536.0 * edge * (1.0 + 1e-12))


# --- Challenges ---------------------------------------------------------------------------------------------


class Challenged:
    """A challenge by its definition; `way` says how it was settled."""

    def __init__(self, a: float, b: float, mean: float, c: float, prefix: float, step: int, arm: int) -> None:
        self.a, self.b, self.mean, self.c, self.key = a, b, mean, c, (SOURCE, SCORE, step, arm)
        self.slope = slope_at(a, b, c) if c > 0.0 else 0.0
        self.concave = a >= 1.0 <= b and self.slope > 0.0
        self.way, self.value = self.settled(prefix)

    def settled(self, prefix: float) -> tuple[str, float]:
        a, b, c = self.a, self.b, self.c
        first = first_of(a, b, self.mean, c)
        if first >= 0.6 or c <= 0.0:
            return self.plain()
        mass = tangent_of(a, b, self.mean, c) if self.concave else power_of(a, b, c)
        if first >= 0.25 and mass >= 0.25:
            return self.plain()
        if prefix / 2**16 >= mass:
            return "closed by 16 bits", LOSES
        low, v = uniform_pair(words(*self.key, 129))
        u = (prefix + low) / 2**16
        if u >= mass:
            return "closed by all bits", LOSES
        if first < 0.25 and mass > first:
            return ("closed by the tail", LOSES) if u >= stats.beta.sf(c, a, b) else self.conditional(v)
        w, _ = uniform_pair(words(*self.key, 130))
        x = self.proposed(v)
        # Of a uniform number below the mass, the share that the density itself has under g stays
        ratio = stats.beta.pdf(x, a, b) / self.bound_at(x) if self.concave else self.accepted(x)
        return ("proposed", x) if w < ratio else ("refused", LOSES)

    def plain(self) -> tuple[str, float]:
        x = beta(self.a, self.b, *self.key)
        return ("plain", x) if x >= self.c else ("plain, lost", LOSES)

    def conditional(self, v: float) -> tuple[str, float]:
        for attempt in range(130, 250):
            w, next_v = uniform_pair(words(*self.key, attempt))
            x = self.proposed(v)
            if w < self.accepted(x):
                return f"tail, {min(attempt - 129, 2)}", x
            v = next_v
        raise AssertionError

    def proposed(self, v: float) -> float:
        if self.concave:
            x = self.c - math.log(1.0 + v * math.expm1(-self.slope * (1.0 - self.c))) / self.slope
        else:
            x = 1.0 - (1.0 - self.c) * v ** (1.0 / self.b)
        return min(x, BELOW_ONE)

    def accepted(self, x: float) -> float:
        """f over g, where both are the same at c or, for a power, where its bound is tight."""
        a, b, c = self.a, self.b, self.c
        if not self.concave:
            return (x if a >= 1.0 else x / c) ** (a - 1.0)
        return (x / c) ** (a - 1.0) * ((1.0 - x) / (1.0 - c)) ** (b - 1.0) * math.exp(self.slope * (x - c))

    def bound_at(self, x: float) -> float:
        """The exponential density of mass `tangent_of` that proposes draws, cut off at 1."""
        share = self.slope / -math.expm1(-self.slope * (1.0 - self.c)) * math.exp(-self.slope * (x - self.c))
        return tangent_of(self.a, self.b, self.mean, self.c) * share


def challenges(a: float, b: float) -> Iterator[tuple[float, float, int]]:
    """Values of the favourite and sixteen bits that lead into every way of settling a challenge."""
    for place, c in enumerate(points(a, b, 24)):
        top = min(stats.beta.sf(c, a, b) * 1.5 + 2.0**-16, 1.0)
        for turn in range(12):
            yield c, float(int(65536 * top * turn / 12)), 100 * place + turn + 1


def ways_of(a: float, b: float, mean: float, arm: int) -> set[str]:
    """Hold challenges, compare each with its definition, and return how they were settled."""
    ways = set()
    for c, prefix, step in challenges(a, b):
        expected = Challenged(a, b, mean, c, prefix, step, arm)
        if mean != a / (a + b) and expected.way in ("proposed", "refused"):
            continue  # what is proposed rests on the right mean
        got = challenge(a, b, mean, c, prefix, SOURCE, SCORE, step, arm)
        assert got == pytest.approx(expected.value, rel=1e-9), (expected.way, a, b, c, prefix)
        ways.add(expected.way)
    return ways


def test_a_challenge_is_its_definition_in_every_way_of_settling_it() -> None:
    shapes = [*SHAPES, (1.2, 40.0), (1.0, 2.0), (0.5, 2.0), (1.5, 0.9), (1.0, 1.7), (1.1, 1.9)]
    ways = set().union(*(ways_of(a, b, a / (a + b), arm) for arm, (a, b) in enumerate(shapes)))
    assert ways == {
        "plain", "plain, lost", "closed by 16 bits", "closed by all bits", "proposed", "refused",
    }  # fmt: skip


def test_where_the_first_bound_is_the_smaller_one_the_tail_decides() -> None:
    # With the right mean no shapes are known where it is; a wrong one makes it small
    shapes = [
        (30.0, 70.0, 0.05),
        (2.0, 3.0, 0.01),
        (1.0, 4.0, 0.001),
        (0.3, 5.0, -2.0),
        (3.0, 0.5, -1.0),
        (1.5, 0.9, -1.0),
    ]
    ways = set().union(*(ways_of(a, b, mean, arm) for arm, (a, b, mean) in enumerate(shapes)))
    assert ways >= {"closed by the tail", "tail, 1", "tail, 2"}


def test_against_a_favourite_of_zero_every_draw_counts() -> None:
    assert challenge(0.5, 800.0, 0.5 / 800.5, 0.0, 65535.0, SOURCE, SCORE, 3, 1) == beta(
        0.5, 800.0, SOURCE, SCORE, 3, 1
    )


def test_the_numbers_that_are_part_of_every_result_were_never_changed() -> None:
    assert (largest_beta_draw.GROUP, largest_beta_draw.LOSES, largest_beta_draw.CHALLENGE) == (32, -1.0, 128)
    assert (largest_beta_draw.PLAIN, largest_beta_draw.HOPEFUL) == (0.25, 0.6)
