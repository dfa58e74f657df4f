import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from dynabandit.core import streams
from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.philox import MASK, philox
from dynabandit.core.streams import PATH, REWARD, Stream, normal_pair, stream, uniform, uniform_pair, words
from tools.laws import assert_law, assert_mean, assert_uncorrelated, size

ROLES = [streams.START, streams.PATH, streams.REWARD, streams.SCORE, streams.TIE, streams.EXPLORE]
ROLES += [streams.EXPLORED_ARM, streams.SECOND, streams.DELAY, streams.SHARE, streams.REPLAY]
KEYS = st.tuples(
    st.integers(0, MASK),
    st.sampled_from(ROLES),
    st.integers(0, streams.LARGEST_LIVE_STEP),
    st.integers(0, MASK),
    st.integers(0, 255),
)


@kernel
def fill(out: np.ndarray, seed: int, replication: int, role: int, step: int, arm: int, part: int) -> None:
    """Draw pairs of uniform and of normal numbers along one part of the key."""
    for i in range(len(out)):
        source = Stream(seed + i * (part == 0), 0, replication + i * (part == 1))
        four = words(source, role + i * (part == 2), step + i * (part == 3), arm + i * (part == 4), 0)
        out[i, 0], out[i, 1] = uniform_pair(four)
        out[i, 2], out[i, 3] = normal_pair(four)


PARTS = ["seed", "replication", "role", "step", "arm"]
COMPILED = compiled(fill)


def draws(part: str, count: int) -> np.ndarray:
    out = np.empty((count, 4))
    COMPILED(out, 11, 12, PATH, 13, 14, PARTS.index(part))
    return out


def test_roles_have_the_numbers_of_earlier_releases_and_are_below_256() -> None:
    assert ROLES == [1, 2, 3, 4, 5, 6, 7, 8, 32, 64, 65]


def test_a_key_has_a_word_for_a_simulated_step_and_48_bits_for_a_live_one() -> None:
    assert streams.LARGEST_STEP == streams.LARGEST_REPLICATION == MASK == 0xFFFFFFFF
    assert streams.LARGEST_LIVE_STEP == 0xFFFF_FFFFFFFF


@given(KEYS, KEYS, st.integers(0, 2**64 - 1))
def test_different_keys_of_a_seed_never_share_their_words(
    left: tuple[int, ...], right: tuple[int, ...], seed: int
) -> None:
    # Philox is a bijection of the counter, so this holds for all keys, not just with high probability
    first = words(stream(seed, left[0]), *left[1:])
    second = words(stream(seed, right[0]), *right[1:])
    assert (first == second) == (left == right)


@pytest.mark.parametrize("high", [1, 2, 2**16 - 1])
def test_steps_with_the_same_lowest_word_have_different_random_numbers(high: int) -> None:
    four = words(stream(1), REWARD, 5, 0, 3)
    assert four != words(stream(1), REWARD, 5 + (high << 32), 0, 3)
    assert words(stream(1), REWARD, 5 + (high << 32), 0, 3) == philox(5, 0, 0, REWARD + (3 << 8) + (high << 16), 1, 0)


@pytest.mark.parametrize("bit", [0, 31, 32, 63])
def test_a_draw_depends_on_every_word_of_the_seed(bit: int) -> None:
    assert uniform(stream(0), REWARD, 1, 0) != uniform(stream(1 << bit), REWARD, 1, 0)


@pytest.mark.parametrize("part", PARTS)
def test_a_neighbouring_key_gives_an_independent_draw(part: str) -> None:
    count = 250 if part == "role" else size(50_000)
    sample = draws(part, count)
    for column in range(4):
        assert len(np.unique(sample[:, column])) == count
        assert_uncorrelated(sample[:-1, column], sample[1:, column])
        assert_uncorrelated(np.abs(sample[:-1, column] - 0.5), np.abs(sample[1:, column] - 0.5))


@pytest.mark.parametrize("part", PARTS)
def test_draws_along_every_part_of_the_key_have_their_laws(part: str) -> None:
    sample = draws(part, 250 if part == "role" else size(50_000))
    for column, law in enumerate((stats.uniform, stats.uniform, stats.norm, stats.norm)):
        assert_law(sample[:, column], law.cdf)


def test_normal_numbers_have_the_moments_of_their_law() -> None:
    for normal in draws("step", size(200_000, least=10_000))[:, 2:].T:
        for power, moment in enumerate((0.0, 1.0, 0.0, 3.0), start=1):
            assert_mean(normal**power, moment)


@pytest.mark.parametrize("columns", [(0, 1), (2, 3)], ids=["uniform", "normal"])
def test_the_two_numbers_of_a_pair_are_independent(columns: tuple[int, int]) -> None:
    left, right = draws("step", size(50_000))[:, columns].T
    assert_uncorrelated(left, right)
    assert_uncorrelated(left**2, right**2)


def test_uniform_is_the_first_of_a_pair() -> None:
    source = stream(3, replication=2)
    assert uniform(source, REWARD, 7, 1) == uniform_pair(words(source, REWARD, 7, 1, 0))[0]


def test_uniform_numbers_are_inside_the_open_interval() -> None:
    assert 0.0 < streams.unit(0, 0) < 1e-15
    assert 1.0 - 1e-15 < streams.unit(MASK, MASK) < 1.0


@given(st.lists(st.integers(0, MASK), min_size=2, max_size=50, unique=True))
def test_uniform_numbers_increase_with_their_words(high: list[int]) -> None:
    units = [streams.unit(word, 0) for word in sorted(high)]
    assert all(low < above for low, above in pairwise(units))


def test_normal_numbers_exceed_eight_deviations_and_are_finite() -> None:
    assert 8.0 < normal_pair((0, 0, 0, 0))[0] < 9.0
    assert all(map(math.isfinite, normal_pair((MASK, MASK, MASK, MASK))))


@pytest.mark.parametrize("part", PARTS)
def test_compiled_draws_equal_the_interpreted_ones_to_the_last_bit(part: str) -> None:
    interpreted = np.empty((50, 4))
    fill(interpreted, 11, 12, PATH, 13, 14, PARTS.index(part))
    assert (interpreted == draws(part, 50)).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1,), "seed must be a whole number of at least 0 and at most 18446744073709551615, got -1"),
        ((2**64,), "seed must be .*, got 18446744073709551616"),
        ((0, -1), "replication must be .* at least 0 and at most 4294967295, got -1"),
        ((0, 2**32), "replication must be .*, got 4294967296"),
    ],
)
def test_a_seed_or_replication_out_of_range_is_refused(arguments: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stream(*arguments)


@pytest.mark.parametrize("seed", [1.0, "1", None, True])
def test_a_seed_that_is_no_whole_number_is_refused(seed: object) -> None:
    with pytest.raises(TypeError, match="seed must be a whole number"):
        stream(seed)  # type: ignore[arg-type]
