"""Draws equal their formulas to the last bit: all recorded results depend on them."""

import math

import numpy as np
import pytest
from scipy import stats

from dynabandit.core import draws, streams
from dynabandit.core.draws import BELOW_ONE, beta, beta_odds, boosts, gamma, gamma_attempt, gamma_pair, spare_words
from dynabandit.core.philox import MASK, philox, word
from dynabandit.core.streams import SCORE, normal_pair, stream, uniform_pair, words

SOURCE = stream(2**40 + 9, replication=3)
FOURS = [(1, 2 << 12, 3, 4 << 12), (MASK, 0, 1, MASK), (123456789, 987654321, 555555555, 4040404040)]
PAIRS = [(1.0, 1.0), (1.0, 2.5), (1.5, 1.0), (0.4, 3.0), (3.0, 0.4), (0.4, 0.7), (40.0, 2.0)]


def unit(high: int, low: int) -> float:
    return (high * 2**20 + (low >> 12) + 0.5) / 2**52


def propose(shape: float, normal: float, uniform: float) -> float | None:
    """Marsaglia & Tsang's proposal by its exact condition; their quick test only saves logarithms."""
    d = shape - 1.0 / 3.0
    root = 1.0 + normal / math.sqrt(9.0 * d)
    v = root * root * root
    if root <= 0.0 or math.log(uniform) >= 0.5 * normal * normal + d * (1.0 - v + math.log(v)):
        return None
    return d * v


def gammas(a: float, b: float, step: int, arm: int) -> tuple[float, float, int]:
    """Two gamma draws, for shapes below 1 increased by 1, and the number of attempts."""
    found: list[float | None] = [None, None]
    shapes = [shape if shape >= 1.0 else shape + 1.0 for shape in (a, b)]
    attempt = 0
    while None in found:
        normals = normal_pair(words(SOURCE, SCORE, step, arm, 2 * attempt))
        uniforms = uniform_pair(words(SOURCE, SCORE, step, arm, 2 * attempt + 1))
        for side in range(2):
            if found[side] is None:
                found[side] = propose(shapes[side], normals[side], uniforms[side])
        attempt += 1
    x, y = found
    assert x is not None
    assert y is not None
    return x, y, attempt


ROLES = {
    "START": 1, "PATH": 2, "REWARD": 3, "SCORE": 4, "TIE": 5, "EXPLORE": 6, "EXPLORED_ARM": 7, "SECOND": 8,
    "FEATURES": 9, "LEARN": 16,
    "DELAY": 32, "SHARE": 64, "REPLAY": 65,
}  # fmt: skip


@pytest.mark.parametrize("name", ROLES)
def test_the_number_of_a_role_is_unchanged(name: str) -> None:
    # Results, saved bandits and logs of the service depend on these numbers
    assert words(SOURCE, getattr(streams, name), 7, 5, 0) == philox(7, 5, 3, ROLES[name], 9, 2**8)


def test_every_role_is_listed_here() -> None:
    constants = {name: value for name, value in vars(streams).items() if name.isupper() and isinstance(value, int)}
    others = {"MASK", "LARGEST_STEP", "LARGEST_LIVE_STEP", "LARGEST_REPLICATION", "LARGEST_SEED", "BETWEEN_PLACES"}
    assert set(constants) - others == set(ROLES)


def test_the_layout_of_a_key_is_unchanged() -> None:
    assert draws.BOOST == 255
    assert (streams.LARGEST_STEP, streams.LARGEST_LIVE_STEP) == (2**32 - 1, 2**48 - 1)
    for role, step, arm, attempt in [(1, 7, 5, 0), (4, 8, 6, 1), (65, MASK, 0, 130), (2, 1, MASK, 255)]:
        expected = philox(step, arm, 3, role + 256 * attempt, 9, 2**8)
        assert words(SOURCE, role, step, arm, attempt) == expected


@pytest.mark.parametrize("four", FOURS)
def test_a_pair_of_numbers_uses_all_four_words(four: tuple[int, int, int, int]) -> None:
    u, v = unit(four[0], four[1]), unit(four[2], four[3])
    assert uniform_pair(four) == (u, v)
    radius, angle = math.sqrt(-2.0 * math.log(u)), 2.0 * math.pi * (four[2] + 0.5) / 2**32
    assert normal_pair(four) == pytest.approx((radius * math.cos(angle), radius * math.sin(angle)), rel=1e-12)


def test_a_proposal_is_accepted_by_the_exact_condition() -> None:
    accepted = rejected = 0
    for shape in (1.0, 1.2, 2.0, 30.0):
        for normal in np.linspace(-5.0, 5.0, 81).tolist():
            for uniform in [*np.linspace(0.0123, 0.9987, 40).tolist(), 1e-9, 1.0 - 1e-9]:
                expected = propose(shape, normal, uniform)
                accepted, rejected = accepted + (expected is not None), rejected + (expected is None)
                assert gamma_attempt(shape, normal, uniform) == (-1.0 if expected is None else expected)
    assert min(accepted, rejected) > 1000


@pytest.mark.parametrize("shape", [1.0, 2.0, 30.0])
def test_a_proposal_of_zero_is_rejected(shape: float) -> None:
    for uniform in (1e-9, 0.5, 1.0 - 1e-9):
        assert gamma_attempt(shape, -math.sqrt(9.0 * (shape - 1.0 / 3.0)), uniform) == -1.0


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_beta_and_gamma_draws_are_their_formulas_to_the_last_bit(a: float, b: float) -> None:
    longest = 0
    for step in range(1, 121):
        x, y, attempts = gammas(a, b, step, 2)
        longest = max(longest, attempts)
        assert gamma_pair(a, b, SOURCE, SCORE, step, 2) == (x, y)
        u, v = uniform_pair(words(SOURCE, SCORE, step, 2, 255))
        boost_a = math.log(u) / a if a < 1.0 else 0.0
        boost_b = math.log(v) / b if b < 1.0 else 0.0
        assert boosts(a, b, SOURCE, SCORE, step, 2) == (boost_a, boost_b)
        assert gamma(a, SOURCE, SCORE, step, 2) == x * math.exp(boost_a)
        odds = ratio(x, y, boost_a, boost_b, plain=a >= 1.0 <= b)
        assert beta_odds(a, b, SOURCE, SCORE, step, 2) == odds
        assert beta(a, b, SOURCE, SCORE, step, 2) == odds / (1.0 + odds)
    assert longest >= 2  # some first proposals were rejected


def test_every_attempt_uses_different_words(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def recorded(*key: int) -> tuple[int, int, int, int]:
        asked.append(key[-1])
        return words(*key)  # type: ignore[arg-type]

    monkeypatch.setattr(draws, "words", recorded)
    monkeypatch.setattr(draws, "gamma_attempt", lambda *given: 1.0 if len(asked) == 6 else -1.0)
    assert gamma_pair(1.0, 1.0, SOURCE, SCORE, 1, 0) == (1.0, 1.0)
    assert asked == [0, 1, 2, 3, 4, 5]


def ratio(x: float, y: float, boost_a: float, boost_b: float, *, plain: bool) -> float:
    return x / y if plain else math.exp((math.log(x) + boost_a) - (math.log(y) + boost_b))


@pytest.mark.parametrize(("mean", "parts"), [(0.0, []), (0.5, [0.5]), (16.0, [16.0]), (40.0, [16.0, 16.0, 8.0])])
def test_a_poisson_draw_is_the_sum_of_quantiles_of_its_parts(mean: float, parts: list[float]) -> None:
    for step in range(1, 41):
        units = [uniform_pair(words(SOURCE, SCORE, step, 3, attempt))[0] for attempt in range(len(parts))]
        expected = sum(stats.poisson.ppf(u, part) for u, part in zip(units, parts, strict=True))
        assert draws.poisson(mean, SOURCE, SCORE, step, 3) == expected


def test_the_largest_draw_is_the_largest_double_below_one() -> None:
    assert np.nextafter(1.0, 0.0) == BELOW_ONE
    assert beta(1e300, 1.0, SOURCE, SCORE, 1, 0) == BELOW_ONE
    assert beta(1.0, 0.0, SOURCE, SCORE, 1, 0) == BELOW_ONE
    assert beta_odds(1e300, 1.0, SOURCE, SCORE, 1, 0) == 1e37


@pytest.mark.parametrize("limit", [600.0, 50.0])
def test_the_scale_of_odds_continues_the_exponential_function_linearly(limit: float) -> None:
    to_odds, back = draws.make_odds_scale(limit)
    numbers = [-1e13, -1e4, -limit - 2.0, -limit, -1.5, 0.0, 3.0, limit, limit + 0.5, 1e4, 1e13]
    odds = [to_odds(number) for number in numbers]
    assert odds == sorted(set(odds))
    for number, found in zip(numbers, odds, strict=True):
        beyond = max(abs(number) - limit, 0.0)
        size = math.exp(min(abs(number), limit)) * (1.0 + beyond)
        assert found == pytest.approx(size if number > 0.0 else 1.0 / size, rel=1e-14)
        assert back(found) == pytest.approx(number, rel=1e-13, abs=1e-13)
    assert (draws.from_log_odds(600.5), draws.from_log_odds.in_single(50.5)) == (  # type: ignore[attr-defined]
        1.5 * math.exp(600.0), 1.5 * math.exp(50.0),
    )  # fmt: skip


def test_shapes_of_zero_are_replaced_by_a_small_number() -> None:
    assert draws.not_empty((0.0, 0.0)) == (1e-12, 1e-12)
    assert draws.not_empty((2.0, 0.5)) == (2.0, 0.5)


def test_single_precision_makes_uniform_numbers_from_unused_words() -> None:
    assert spare_words((1, 2, 3, 4), SOURCE, SCORE, 1, 0, 1) == (2, word(0), 4, word(0))
