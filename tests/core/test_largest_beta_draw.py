"""The pruned argmax chooses the arm, and draws its value, with the law of drawing every arm.

For posteriors of every kind (sharp, flat, mixed, tiny shapes, ties) it is compared with the log-odds of NumPy's Beta
draws for all arms: the chosen arms by a two-sample chi-squared test, the largest values by a two-sample
Kolmogorov-Smirnov test. Seeds are fixed. With random seeds one such test would fail by chance with probability 1e-6,
any of them with 1e-4.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dynabandit.choosing.choose_arm import SCRATCH_ROWS, make_pruned_draws
from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.draws import SMALLEST_SHAPE, log_odds
from dynabandit.core.largest_beta_draw import NOT_ABOVE, draw_above, uniform_prefixes
from dynabandit.core.streams import stream
from dynabandit.core.tie_breaking import make_argmax
from dynabandit.policies.base import PolicyFunctions, PolicyState, Step

ALPHA = 1e-6
argmax = make_argmax()
KINDS = ("flat", "sharp", "mixed", "tiny", "wild", "small a", "small b", "one sharp", "one far ahead", "empty")


@kernel
def given_posterior(state: PolicyState, arm: int, step: Step, params: Any) -> Any:
    return state.memory[0, arm], state.memory[1, arm]


def make_count(*, optimistic: bool) -> Callable[..., None]:
    fill = make_pruned_draws(
        PolicyFunctions(lambda *_: None, lambda *_: None, posterior=given_posterior, optimistic=optimistic)
    )

    @kernel
    def count(memory, last, scratch, counts, values, source):  # type: ignore[no-untyped-def]
        for step in range(1, values.size + 1):
            now = Step(step, last.size, 0.0, memory[0], memory[0], source)
            fill(PolicyState(memory, memory[0], last), now, 0.0, scratch)
            arm = argmax(scratch[0], step, source)
            counts[arm] += 1
            values[step - 1] = log_odds(scratch[0, arm])

    return compiled(count)


COUNT = {optimistic: make_count(optimistic=optimistic) for optimistic in (False, True)}


def make_shapes(kind: str, arms: int) -> np.ndarray:
    rng = np.random.default_rng(arms)
    mean = rng.random(arms)
    if kind == "flat":
        return np.full((2, arms), 2.0)
    if kind == "sharp":
        return rng.uniform(0.45, 0.55, (2, arms)) * 2000.0
    if kind == "mixed":
        size = 10.0 ** rng.uniform(0.3, 3.0, arms)
        return 1.0 + np.stack([mean, 1.0 - mean]) * size
    if kind == "tiny":
        size = 10.0 ** rng.uniform(-3.0, 1.0, arms)
        return 1e-9 + np.stack([mean, 1.0 - mean]) * size
    if kind == "wild":
        return 10.0 ** rng.uniform(-2.0, 2.0, (2, arms))
    if kind == "small a":
        return np.stack([rng.uniform(0.01, 1.0, arms), rng.uniform(1.0, 20.0, arms)])
    if kind == "small b":
        return np.stack([rng.uniform(1.0, 3.0, arms), rng.uniform(0.3, 1.0, arms)])
    if kind == "empty":  # posteriors of AFF-DTS2 after a forgetting factor of 0, among arms with data
        shapes = 0.5 + rng.random((2, arms)) * 5.0
        shapes[:, 0] = 0.0
        shapes[0, 1] = 0.0
        shapes[:, 5] = 0.0
        return shapes
    alike = np.full((2, arms), 3.0)
    alike[:, 0] = 300.0 if kind == "one sharp" else (900.0, 100.0)
    return alike


def prune(shapes: np.ndarray, draws: int, *, optimistic: bool) -> tuple[np.ndarray, np.ndarray]:
    """Count the arms that the pruned argmax chooses; also return the log-odds of the largest draws."""
    arms = shapes.shape[1]
    counts, values = np.zeros(arms, dtype=np.int64), np.zeros(draws)
    last, scratch = np.zeros(arms, dtype=np.int64), np.zeros((SCRATCH_ROWS, arms))
    COUNT[optimistic](shapes, last, scratch, counts, values, stream(100))
    return counts, values


def draw_all(shapes: np.ndarray, draws: int, *, optimistic: bool) -> tuple[np.ndarray, np.ndarray]:
    """Count the arms with the largest of NumPy's draws, ties broken at random; also return the largest log-odds.

    The logarithm of a gamma draw with shape a is that of one with shape a + 1, plus log(u) / a.
    """
    rng, (a, b) = np.random.default_rng(101), np.maximum(shapes, SMALLEST_SHAPE)
    log_x, log_y = (
        np.log(rng.gamma(shape + 1.0, size=(draws, shape.size))) + np.log(rng.random((draws, shape.size))) / shape
        for shape in (a, b)
    )
    drawn = log_x - log_y
    if optimistic:
        drawn = np.maximum(drawn, np.log(a / b))
    values = drawn.max(axis=1)
    chosen = np.argmax((drawn == values[:, None]) * (1.0 + rng.random(drawn.shape)), axis=1)
    return np.bincount(chosen, minlength=a.size), values


@pytest.mark.parametrize("optimistic", [False, True])
@pytest.mark.parametrize("arms", [9, 40])
@pytest.mark.parametrize("kind", KINDS)
def test_the_pruned_argmax_has_the_law_of_drawing_every_arm(kind: str, arms: int, optimistic: bool, scale: int) -> None:
    shapes, draws = make_shapes(kind, arms), 1000 * scale
    pruned, pruned_values = prune(shapes, draws, optimistic=optimistic)
    plain, plain_values = draw_all(shapes, draws, optimistic=optimistic)
    common = pruned + plain > 20
    table = np.array([[*side[common], side[~common].sum()] for side in (pruned, plain)])
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] > 1:
        assert stats.chi2_contingency(table).pvalue > ALPHA
    values = (one.round(9) for one in (pruned_values, plain_values))  # optimistic values may be equal but for rounding
    assert stats.ks_2samp(*values, method="asymp").pvalue > ALPHA


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [(30.0, 70.0, 0.45), (2.0, 8.0, 0.55), (0.3, 5.0, 0.4), (2.0, 3.0, 0.45), (400.0, 600.0, 0.41)],
)
def test_a_draw_above_c_has_the_probability_and_the_law_of_the_tail(a: float, b: float, c: float, scale: int) -> None:
    source, drawn = stream(5), []
    for step in range(1, 500 * scale + 1):
        prefix = uniform_prefixes(source, step, 0)[0]
        drawn.append(draw_above(a, b, a / (a + b), c / (1.0 - c), prefix, source, step, 0))
    above = np.array([odds / (1.0 + odds) for odds in drawn if odds != NOT_ABOVE])
    exact = stats.beta.sf(c, a, b)
    assert stats.binomtest(len(above), len(drawn), exact).pvalue > ALPHA
    if len(above) > 10:  # interpreted, the sample is small and the tail may be empty
        conditional = stats.kstest(above, lambda x: 1.0 - stats.beta.sf(x, a, b) / exact)
        assert conditional.pvalue > ALPHA
