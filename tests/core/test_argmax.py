import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dynabandit.core.argmax import MANY, occurrences, top
from dynabandit.core.compilation import compiled

COMPILED = compiled(top)
NUMBERS = st.lists(st.sampled_from([-math.inf, -1.0, 0.0, 0.5, math.inf]), min_size=1, max_size=3 * MANY)


@given(NUMBERS)
def test_top_is_the_largest_number_its_first_index_and_its_count(numbers: list[float]) -> None:
    expected = max(numbers), numbers.index(max(numbers)), numbers.count(max(numbers))
    assert top(np.array(numbers)) == expected
    assert COMPILED(np.array(numbers)) == expected
    last = len(numbers) - 1 - numbers[::-1].index(max(numbers))
    assert occurrences(np.array(numbers), max(numbers)) == (expected[1], last, expected[2])
    assert occurrences(np.array(numbers), math.pi) == (0, 0, 0)


@pytest.mark.parametrize("size", [5, 4 * MANY])
def test_the_largest_number_is_found_at_every_index_and_nan_is_ignored(size: int) -> None:
    for index in range(size):
        numbers = np.linspace(0.0, 1.0, size)
        numbers[index] = 2.0
        numbers[(index + 1) % size] = math.nan
        assert top(numbers) == (2.0, index, 1)


@pytest.mark.parametrize("size", [3, 2 * MANY])
def test_where_no_number_is_above_minus_infinity_the_index_is_0(size: int) -> None:
    assert top(np.full(size, -math.inf)) == (-math.inf, 0, size)
    assert top(np.full(size, math.nan)) == (-math.inf, 0, 0)


@pytest.mark.parametrize("size", [*range(1, 10), *range(MANY - 1, 2 * MANY + 9)])
def test_the_largest_number_is_found_for_sizes_around_multiples_of_eight(size: int) -> None:
    for index in range(size):
        numbers = -1.0 - np.arange(size) % 3.0
        numbers[index] = 0.5
        assert top(numbers) == (0.5, index, 1)
        numbers[-1] = 0.5
        assert top(numbers) == (0.5, index, 1 + (index < size - 1))
