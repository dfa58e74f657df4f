"""An arm that the cheap bounds close is one that would have lost."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.largest_beta_draw import LOSES, PLAIN, TO_UNIT_16, challenge, contested, first_bound
from dynabandit.core.streams import SCORE, stream

SHAPES = st.floats(-2.0, 6.0).map(lambda exponent: 10.0**exponent)


@settings(max_examples=400)
@given(SHAPES, SHAPES, st.floats(0.0, 1.0), st.integers(0, 65535), st.integers(1, 10**6))
def test_an_arm_is_closed_only_where_its_challenge_is_lost(
    a: float, b: float, share: float, prefix: int, step: int
) -> None:
    mean = a / (a + b)
    c = min(max(mean + share * (1.0 - mean), 1e-12), 1.0 - 1e-12)
    first = first_bound(a, b, mean, c)
    if first >= PLAIN or prefix * TO_UNIT_16 < first:  # what the first bound leaves open
        lost = challenge(a, b, mean, c, float(prefix), stream(1), SCORE, step, 0) == LOSES
        assert contested(a, b, mean, c, float(prefix)) or lost


@kernel
def wrongly_closed(a: float, b: float, c: np.ndarray, steps: int, counts: np.ndarray) -> None:
    mean = a / (a + b)
    for step in range(1, steps + 1):
        for i in range(c.size):
            prefix = float((step * 40503 + i * 9973) % 65536)
            first = first_bound(a, b, mean, c[i])
            if (first >= PLAIN or prefix * TO_UNIT_16 < first) and not contested(a, b, mean, c[i], prefix):
                counts[0] += 1
                if challenge(a, b, mean, c[i], prefix, stream_of_test, SCORE, step, i) != LOSES:
                    counts[1] += 1


stream_of_test = stream(2)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (1.0, 3.0), (2.0, 2.0), (8.0, 3.0), (30.0, 4.0), (900.0, 1100.0)])
def test_the_second_bound_closes_many_arms_and_none_wrongly(a: float, b: float) -> None:
    mean = a / (a + b)
    spread = (mean * (1.0 - mean) / (a + b)) ** 0.5
    counts = np.zeros(2, dtype=np.int64)
    compiled(wrongly_closed)(a, b, np.minimum(mean + spread * np.linspace(0.5, 4.0, 20), 0.999), 500, counts)
    assert counts[0] > 1000 or a + b < 5.0
    assert counts[1] == 0
