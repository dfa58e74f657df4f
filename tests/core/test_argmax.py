import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dynabandit.core.argmax import MANY, top
from dynabandit.core.compilation import compiled

NUMBERS = st.lists(st.sampled_from([-math.inf, -1.0, 0.0, 0.5, math.inf]), min_size=1, max_size=3 * MANY)


@given(NUMBERS)
def test_the_top_is_the_largest_its_first_place_and_its_number(numbers: list[float]) -> None:
    expected = max(numbers), numbers.index(max(numbers)), numbers.count(max(numbers))
    assert top(np.array(numbers)) == expected
    assert compiled(top)(np.array(numbers)) == expected


@pytest.mark.parametrize("size", [5, 4 * MANY])
def test_the_one_largest_is_found_in_every_place_and_nan_never(size: int) -> None:
    for place in range(size):
        numbers = np.linspace(0.0, 1.0, size)
        numbers[place] = 2.0
        numbers[(place + 1) % size] = math.nan
        assert top(numbers) == (2.0, place, 1)


@pytest.mark.parametrize("size", [*range(1, 10), *range(MANY - 1, 2 * MANY + 9)])
def test_the_top_is_found_around_every_size_of_a_block(size: int) -> None:
    for place in range(size):
        numbers = -1.0 - np.arange(size) % 3.0
        numbers[place] = 0.5
        assert top(numbers) == (0.5, place, 1)
        numbers[-1] = 0.5
        assert top(numbers) == (0.5, place, 1 + (place < size - 1))
