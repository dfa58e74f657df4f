"""Draws equal their formulas to the last bit: all recorded results depend on them."""

import math

import numpy as np
import pytest
from scipy import stats

from dynabandit.core import draws, streams
from dynabandit.core.draws import (
    BELOW_ONE,
    beta,
    beta_odds,
    boosts,
    gamma,
    gamma_pair,
    is_accepted,
    is_accepted_by_bits,
    proposal,
    spare_words,
)
from dynabandit.core.philox import MASK, philox, word
from dynabandit.core.streams import SCORE, direction, normal_pair, stream, uniform_pair, words

SOURCE = stream(2**40 + 9, replication=3)
FOURS = [(1, 2 << 12, 3, 4 << 12), (MASK, 0, 1, MASK), (123456789, 987654321, 555555555, 4040404040)]
FOURS += [(7, 7, eighth * 2**29 + step, 7) for eighth in range(8) for step in (0, 1, 2**29 - 1)]  # all directions
PAIRS = [(1.0, 1.0), (1.0, 2.5), (1.5, 1.0), (0.4, 3.0), (3.0, 0.4), (0.4, 0.7), (40.0, 2.0)]


def unit(high: int, low: int) -> float:
    return (high * 2**20 + (low >> 12) + 0.5) / 2**52


def proposed(shape: float, normal: float) -> float:
    d = shape - 1.0 / 3.0
    root = 1.0 + normal / math.sqrt(9.0 * d)
    return d * (root * root * root)


def log_acceptance(shape: float, normal: float) -> float:
    """The logarithm of the probability that Marsaglia & Tsang's proposal is accepted."""
    d = shape - 1.0 / 3.0
    v = proposed(shape, normal) / d
    return 0.5 * normal * normal + d * (1.0 - v + math.log(v)) if v > 0.0 else -math.inf


def gammas(a: float, b: float, step: int, arm: int) -> tuple[float, float, int]:
    """Two gamma draws, for shapes below 1 increased by 1, and the number of attempts; without the quick test."""
    shapes = [shape if shape >= 1.0 else shape + 1.0 for shape in (a, b)]
    attempt = 0
    while True:
        four = words(SOURCE, SCORE, step, arm, 2 * attempt)
        normals = normal_pair(four)
        rest = uniform_pair(words(SOURCE, SCORE, step, arm, 2 * attempt + 1))
        uniforms = [(half + fraction) / 2**16 for half, fraction in zip(divmod(four[3], 2**16), rest, strict=True)]
        attempt += 1
        tests = zip(uniforms, shapes, normals, strict=True)
        if all(math.log(uniform) < log_acceptance(shape, normal) for uniform, shape, normal in tests):
            return proposed(shapes[0], normals[0]), proposed(shapes[1], normals[1]), attempt


ROLES = {
    "START": 1, "PATH": 2, "REWARD": 3, "SCORE": 4, "TIE": 5, "EXPLORE": 6, "EXPLORED_ARM": 7, "SECOND": 8,
    "FEATURES": 9, "DRAW_TREE": 10, "LEARN": 16,
    "DELAY": 32, "SHARE": 64, "REPLAY": 65,
}  # fmt: skip


@pytest.mark.parametrize("name", ROLES)
def test_the_number_of_a_role_is_unchanged(name: str) -> None:
    # Results, saved bandits and logs of the service depend on these numbers
    assert words(SOURCE, getattr(streams, name), 7, 5, 0) == philox(7, 5, 3, ROLES[name], 9, 2**8)


def test_every_role_is_listed_here() -> None:
    constants = {name: value for name, value in vars(streams).items() if name.isupper() and isinstance(value, int)}
    others = {"MASK", "LARGEST_STEP", "LARGEST_LIVE_STEP", "LARGEST_REPLICATION", "LARGEST_SEED", "BETWEEN_PLACES"}
    others |= {"EIGHTH_TURN", "BELOW_QUARTER"}
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
    expected = radius * math.cos(angle), radius * math.sin(angle)
    assert normal_pair(four) == pytest.approx(expected, rel=1e-12, abs=1e-14)
    assert direction.in_single(four[2]) == pytest.approx(direction(four[2]), abs=1e-14)  # type: ignore[attr-defined]


def test_a_proposal_is_accepted_by_the_exact_condition() -> None:
    accepted = rejected = 0
    for shape in (1.0, 1.2, 2.0, 30.0):
        for normal in np.linspace(-5.0, 5.0, 81).tolist():
            assert proposal(shape - 1.0 / 3.0, normal) == proposed(shape, normal)
            for uniform in [*np.linspace(0.0123, 0.9987, 40).tolist(), 1e-9, 1.0 - 1e-9]:
                expected = math.log(uniform) < log_acceptance(shape, normal)
                accepted, rejected = accepted + expected, rejected + (not expected)
                assert is_accepted(shape - 1.0 / 3.0, normal, uniform) == expected
    assert min(accepted, rejected) > 1000


@pytest.mark.parametrize("shape", [1.0, 2.0, 30.0])
def test_a_proposal_of_zero_is_rejected(shape: float) -> None:
    for uniform in (1e-9, 0.5, 1.0 - 1e-9):
        assert not is_accepted(shape - 1.0 / 3.0, -math.sqrt(9.0 * (shape - 1.0 / 3.0)), uniform)


@pytest.mark.parametrize("shape", [1.0, 1.05, 1.2, 2.0, 7.0, 300.0, 1e4])
def test_sixteen_bits_accept_only_what_every_uniform_number_with_these_bits_accepts(shape: float) -> None:
    d, quick = shape - 1.0 / 3.0, 0
    roots = np.concatenate([np.linspace(-1.0, 2.0, 2001), np.linspace(-0.89, -0.87, 200)])
    for normal in (roots * 3.0 * math.sqrt(d)).tolist():
        for bits in range(0, 65536, 1489):
            if is_accepted_by_bits(d, normal, float(bits)):
                quick += 1
                assert math.log((bits + 1) / 2**16) < log_acceptance(shape, normal) + 1e-15 * shape
        assert not is_accepted_by_bits(d, normal, 65535.0) or normal == 0.0
    assert quick > 1000
    assert is_accepted_by_bits(d, 1.0, 60000.0)


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
        alone, _, _ = gammas(a, 1.0, step, 2)
        assert gamma(a, SOURCE, SCORE, step, 2) == alone * math.exp(boost_a)
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
    monkeypatch.setattr(draws, "is_accepted_by_bits", lambda *given: False)
    monkeypatch.setattr(draws, "is_accepted", lambda *given: len(asked) == 6)
    normals = normal_pair(words(SOURCE, SCORE, 1, 0, 4))
    assert gamma_pair(1.0, 1.0, SOURCE, SCORE, 1, 0) == (proposed(1.0, normals[0]), proposed(1.0, normals[1]))
    assert asked == [0, 1, 2, 3, 4, 5]


def test_a_uniform_number_consists_of_16_bits_of_the_first_words_and_of_further_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uniforms: list[float] = []

    def record(d: float, normal: float, uniform: float) -> bool:
        uniforms.append(uniform)
        return True

    monkeypatch.setattr(draws, "is_accepted_by_bits", lambda *given: False)
    monkeypatch.setattr(draws, "is_accepted", record)
    for step in range(1, 11):
        gamma_pair(1.0, 2.5, SOURCE, SCORE, step, 0)
        halves = divmod(words(SOURCE, SCORE, step, 0, 0)[3], 2**16)
        rest = uniform_pair(words(SOURCE, SCORE, step, 0, 1))
        assert uniforms[-2:] == [(half + fraction) / 2**16 for half, fraction in zip(halves, rest, strict=True)]


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
    four = 1, 0x12345678, 3, 4
    assert spare_words(four, SOURCE, SCORE, 1, 0, 1) == (0x12340000, word(0), 0x56780000, word(0))
