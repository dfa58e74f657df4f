import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from scipy import special, stats

from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.draws import beta, beta_odds, gamma, log_odds, poisson
from dynabandit.core.precision import single
from dynabandit.core.streams import SCORE, Stream, stream
from tools.draw_budget import draw_budget
from tools.laws import assert_law, assert_mean, assert_share, size

SHAPES = [1e-3, 0.03, 0.5, 0.999, 1.0, 1.5, 2.0, 40.0, 1e3, 1e6]
PAIRS = [*product([1e-3, 0.3, 1.0, 2.0, 50.0, 1e6], repeat=2), (0.999, 1.0), (1.0, 0.999)]
BELOW = [0.0, 5e-324, 1e-300, 1e-12, 1e-6]
ANY_SHAPE = st.one_of(st.sampled_from([*BELOW, *SHAPES, 1e12, 1e100, 1e300]), st.floats(0.0, 1e300))


@kernel
def fill_gamma(out: np.ndarray, shape: float, source: Stream) -> None:
    for i in range(out.size):
        out[i] = gamma(shape, source, SCORE, i, 3)


@kernel
def fill_beta(out: np.ndarray, a: float, b: float, source: Stream) -> None:
    for i in range(out.size):
        out[i] = beta(a, b, source, SCORE, i, 3)


@kernel
def fill_log_odds(out: np.ndarray, a: float, b: float, source: Stream) -> None:
    for i in range(out.size):
        out[i] = log_odds(beta_odds(a, b, source, SCORE, i, 3))


COMPILED_GAMMA = compiled(fill_gamma)
COMPILED_BETA = compiled(fill_beta)
COMPILED_LOG_ODDS = compiled(fill_log_odds)
SINGLE_BETA = compiled(single(fill_beta))
SINGLE_LOG_ODDS = compiled(single(fill_log_odds))


def gammas(shape: float, count: int) -> np.ndarray:
    out = np.empty(count)
    COMPILED_GAMMA(out, shape, stream(1))
    return out


def betas(a: float, b: float, count: int) -> np.ndarray:
    out = np.empty(count)
    COMPILED_BETA(out, a, b, stream(2))
    return out


@pytest.mark.parametrize("shape", SHAPES)
def test_gamma_draws_have_the_gamma_law(shape: float) -> None:
    assert_law(gammas(shape, size(50_000)), stats.gamma(shape).cdf)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_beta_draws_have_the_beta_law(a: float, b: float) -> None:
    assert_law(betas(a, b, size(50_000)), stats.beta(a, b).cdf)


@pytest.mark.parametrize(("a", "b"), [*product([0.5, 1.0, 2.0, 50.0], repeat=2)])
def test_beta_draws_in_single_precision_have_the_beta_law(a: float, b: float) -> None:
    out = np.empty(size(50_000), dtype=np.float32)
    SINGLE_BETA(out, np.float32(a), np.float32(b), stream(3))
    assert_law(out.astype(float), stats.beta(a, b).cdf)


TAILS = [(1.0, 0.05), (30.0, 0.05), (2.0, 0.01), (0.01, 0.01), (0.01, 0.002), (2.0, 300.0), (300.0, 2.0)]
TAILS += [(b, a) for a, b in TAILS]


def log_tail(a: float, b: float, log_odds: np.ndarray) -> np.ndarray:
    """The distribution function of the log-odds of Beta(a, b); far out X or 1 - X is a power of a uniform number."""
    x, rest = special.expit(log_odds), special.expit(-log_odds)
    below = np.exp(
        a * np.minimum(log_odds, 0.0) - math.log(a) - special.betaln(a, b)
    )  # near 0 the density is x^(a - 1) / B(a, b)
    above = np.exp(-b * np.maximum(log_odds, 0.0) - math.log(b) - special.betaln(a, b))
    inner = np.where(log_odds < 0.0, special.betainc(a, b, x), 1.0 - special.betainc(b, a, rest))
    return np.where(log_odds < -500.0, below, np.where(log_odds > 500.0, 1.0 - above, inner))


@pytest.mark.parametrize(("a", "b"), TAILS)
def test_the_odds_of_beta_draws_have_their_law_in_both_tails_and_no_two_are_equal(a: float, b: float) -> None:
    kinds: list[tuple[Any, Any]] = [(COMPILED_LOG_ODDS, np.float64), (SINGLE_LOG_ODDS, np.float32)]
    for fill, dtype in kinds:
        out: Any = np.empty(size(50_000), dtype=dtype)
        fill(out, dtype(a), dtype(b), stream(2))
        assert_law(out.astype(float), lambda log_odds: log_tail(a, b, log_odds))
        if dtype is np.float64:
            assert len(np.unique(out)) == out.size
            ends = stats.beta(a, b).ppf([0.001, 0.01, 0.1]), stats.beta(b, a).ppf([0.001, 0.01, 0.1])
            for share, low, high in zip([0.001, 0.01, 0.1], *ends, strict=True):
                for tail, end in ((out, low), (-out, high)):
                    if end > 1e-280:
                        assert_share((tail < special.logit(end)).sum(), out.size, share)


@pytest.mark.parametrize(("a", "b"), [*product([0.3, 1.0, 2.0, 50.0], repeat=2)])
def test_beta_draws_have_the_mean_of_their_law(a: float, b: float) -> None:
    assert_mean(betas(a, b, size(50_000)), a / (a + b))


@pytest.mark.parametrize("shape", [0.0, 1e-300, 1e-12])
def test_beta_draws_with_shapes_of_zero_are_0_or_1_with_equal_chance(shape: float) -> None:
    sample = betas(shape, shape, size(20_000))
    assert ((sample < 1e-9) | (sample > 1.0 - 1e-9)).all()
    assert_share((sample > 0.5).sum(), sample.size, 0.5)


def test_beta_draws_with_one_shape_of_zero_are_at_one_end() -> None:
    assert (betas(0.0, 1.0, 1000) < 1e-9).all()
    assert (betas(1.0, 0.0, 1000) > 1.0 - 1e-9).all()


@given(ANY_SHAPE, ANY_SHAPE, st.integers(0, 1000), st.integers(0, 99))
@example(0.0, 0.0, 1, 0)
@example(1e-12, 1e-12, 1, 0)
@example(1e300, 1e300, 1, 0)
def test_a_beta_draw_is_a_probability_whatever_the_shapes(a: float, b: float, step: int, arm: int) -> None:
    draw = beta(a, b, stream(3), SCORE, step, arm)
    assert 0.0 <= draw <= 1.0
    assert not math.isnan(draw)


@given(ANY_SHAPE, st.integers(0, 1000))
@example(0.0, 1)
def test_a_gamma_draw_is_finite_and_not_negative_whatever_the_shape(shape: float, step: int) -> None:
    draw = gamma(shape, stream(3), SCORE, step, 0)
    assert 0.0 <= draw < math.inf


@pytest.mark.parametrize(("a", "b"), [*product([0.0, 1e-12, 1e-3, 0.5, 2.0, 1e6], repeat=2)])
def test_compiled_beta_draws_equal_the_interpreted_ones_to_the_last_bit(a: float, b: float) -> None:
    interpreted, out = np.empty(50), np.empty(50)
    fill_beta(interpreted, a, b, stream(2))
    assert (interpreted == betas(a, b, 50)).all()
    fill_log_odds(interpreted, a, b, stream(2))
    COMPILED_LOG_ODDS(out, a, b, stream(2))
    assert (interpreted == out).all()


@pytest.mark.parametrize("shape", [0.0, 1e-12, *SHAPES])
def test_compiled_gamma_draws_equal_the_interpreted_ones_to_the_last_bit(shape: float) -> None:
    interpreted = np.empty(50)
    fill_gamma(interpreted, shape, stream(1))
    assert (interpreted == gammas(shape, 50)).all()


@pytest.mark.parametrize("draw", [gamma, lambda *more: beta(more[0], 2.0, *more[1:]), poisson])
@pytest.mark.parametrize("wrong", [math.nan, -1.0, math.inf, 1e300])
def test_a_draw_of_an_invalid_law_ends_and_is_no_wrong_number(draw: Any, wrong: float) -> None:
    with draw_budget() as budget:
        budget.allow(300)
        drawn = draw(wrong, stream(1), SCORE, 1, 0)
    if draw is poisson or math.isnan(wrong):
        assert math.isnan(drawn)
    else:
        assert not drawn < 0.0
