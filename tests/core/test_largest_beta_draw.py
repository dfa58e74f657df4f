"""The contest picks the arm with the largest Beta draw with the law of drawing them all.

For posteriors of every kind (sharp, flat, mixed, tiny shapes, ties) the arms that the contest chooses are compared
with those of plain draws, by a two-sample chi-squared test, and so are the winning values, by a two-sample
Kolmogorov-Smirnov test. Seeds are fixed; were they drawn anew, one of these tests would fail by chance with
probability 1e-6, so all of them together with less than 1e-4.
"""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.largest_beta_draw import LOSES, challenge, first_bound, power_mass, tail, tangent_mass
from dynabandit.core.streams import SCORE, stream
from dynabandit.policies.base import Kernels, Now
from dynabandit.policies.choose_arm import SCRATCH_ROWS, make_contest, make_draws, make_largest

ALPHA = 1e-6
largest = make_largest()
KINDS = ("flat", "sharp", "mixed", "tiny", "wild", "small a", "small b", "one sharp", "one far ahead", "empty")


@kernel
def given_posterior(memory, arm, idle, now, parameters):  # type: ignore[no-untyped-def]
    return memory[0, arm], memory[1, arm]


def kernels(*, optimistic: bool) -> Kernels:
    return Kernels(start=lambda: None, learn=lambda: None, posterior=given_posterior, optimistic=optimistic)


def counter(fill: Callable[..., None]) -> Callable[..., None]:
    @kernel
    def count(memory, last, scratch, counts, values, source):  # type: ignore[no-untyped-def]
        for step in range(1, values.size + 1):
            fill(memory, last, scratch, Now(step, last.size, 0.0), memory[0], memory[0], source)
            arm = largest(scratch[0], step, source)
            counts[arm] += 1
            values[step - 1] = scratch[0, arm]

    return compiled(count)


COUNTERS = {
    (optimistic, contest): counter((make_contest if contest else make_draws)(kernels(optimistic=optimistic)))
    for optimistic in (False, True)
    for contest in (False, True)
}


def shapes(kind: str, arms: int) -> np.ndarray:
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
    if kind == "empty":  # what AFF-DTS2 holds after a forgetting factor of 0, among arms that learnt something
        shapes = 0.5 + rng.random((2, arms)) * 5.0
        shapes[:, 0] = 0.0
        shapes[0, 1] = 0.0
        shapes[:, 5] = 0.0
        return shapes
    alike = np.full((2, arms), 3.0)
    alike[:, 0] = 300.0 if kind == "one sharp" else (900.0, 100.0)
    return alike


def play(
    memory: np.ndarray, draws: int, seed: int, *, optimistic: bool, contest: bool
) -> tuple[np.ndarray, np.ndarray]:
    arms = memory.shape[1]
    counts, values = np.zeros(arms, dtype=np.int64), np.zeros(draws)
    last, scratch = np.zeros(arms, dtype=np.int64), np.zeros((SCRATCH_ROWS, arms))
    COUNTERS[optimistic, contest](memory, last, scratch, counts, values, stream(seed))
    return counts, values


@pytest.mark.parametrize("optimistic", [False, True])
@pytest.mark.parametrize("arms", [9, 40])
@pytest.mark.parametrize("kind", KINDS)
def test_contest_has_the_law_of_drawing_every_arm(kind: str, arms: int, optimistic: bool, scale: int) -> None:
    memory, draws = shapes(kind, arms), 1000 * scale
    fast, fast_values = play(memory, draws, 100, optimistic=optimistic, contest=True)
    slow, slow_values = play(memory, draws, 101, optimistic=optimistic, contest=False)
    common = fast + slow > 20
    table = np.array([[*side[common], side[~common].sum()] for side in (fast, slow)])
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] > 1:
        assert stats.chi2_contingency(table).pvalue > ALPHA
    assert stats.ks_2samp(fast_values, slow_values, method="asymp").pvalue > ALPHA


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (2.0, 3.0), (50.0, 9.0), (0.2, 4.0), (3.0, 0.5), (2e4, 3e4)])
def test_bounds_and_exact_tail_agree_with_scipy(a: float, b: float) -> None:
    mean = a / (a + b)
    for c in mean + (1.0 - mean) * np.linspace(0.01, 0.99, 25):
        exact = stats.beta.sf(c, a, b)
        if exact < 1e-280:
            continue
        assert tail(a, b, c) == pytest.approx(exact, rel=1e-8)
        assert first_bound(a, b, mean, c) >= exact
        slope = (b - 1.0) / (1.0 - c) - (a - 1.0) / c
        if a >= 1.0 and b >= 1.0 and slope > 0.0:
            assert tangent_mass(a, b, mean, c, slope) >= exact * (1.0 - 1e-9)
        assert power_mass(a, b, c) >= exact * (1.0 - 1e-9)


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [(30.0, 70.0, 0.45), (2.0, 8.0, 0.55), (0.3, 5.0, 0.4), (2.0, 3.0, 0.45), (400.0, 600.0, 0.41)],
)
def test_a_challenge_succeeds_with_the_probability_of_the_tail_and_draws_from_it(
    a: float, b: float, c: float, scale: int
) -> None:
    # Through every way of settling it; two-sided tests at 1e-6 each
    drawn = []
    for step in range(1, 500 * scale + 1):
        prefix = float(stream_prefix(step))
        drawn.append(challenge(a, b, a / (a + b), c, prefix, stream(5), SCORE, step, 0))
    above = np.array([x for x in drawn if x != LOSES])
    exact = stats.beta.sf(c, a, b)
    assert stats.binomtest(len(above), len(drawn), exact).pvalue > ALPHA
    if len(above) > 10:  # interpreted, the sample is small and the tail may be empty
        conditional = stats.kstest(above, lambda x: 1.0 - stats.beta.sf(x, a, b) / exact)
        assert conditional.pvalue > ALPHA


def stream_prefix(step: int) -> int:
    from dynabandit.core.largest_beta_draw import prefixes

    return int(prefixes(stream(5), SCORE, step, 0)[0])
