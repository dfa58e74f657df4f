"""Named tuples come back from arrays as they were stored, interpreted and compiled, in double and single precision."""

from typing import NamedTuple

import numpy as np
import pytest

from dynabandit.core.compilation import compiled
from dynabandit.core.fingerprint import fingerprint
from dynabandit.core.precision import single
from dynabandit.core.records import NoParams, column_reader, column_writer, rows_reader, to_row, vector_reader


class Inner(NamedTuple):
    a: float
    b: bool


class Outer(NamedTuple):
    inner: Inner
    window: int
    c: float
    rates: np.ndarray


class Swapped(NamedTuple):
    b: float
    a: bool


RECORD = Outer(Inner(0.25, True), 7, -1.5, np.array([0.1, 0.2]))


def test_a_row_has_the_fields_in_their_order() -> None:
    assert to_row(RECORD).tolist() == [0.25, 1.0, 7.0, -1.5, 0.1, 0.2]
    assert to_row(NoParams()).tolist() == [0.0]


@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_vector_is_read_back_with_the_types_of_the_fields(is_compiled: bool) -> None:
    read = vector_reader(Outer)
    found = (compiled(read, creates_arrays=True) if is_compiled else read)(to_row(RECORD))
    assert found[:3] == RECORD[:3]
    assert found.rates.tolist() == [0.1, 0.2]
    assert isinstance(found.window, int)
    assert not vector_reader(Inner)(np.array([1.0, 0.0])).b


def test_in_single_precision_floats_stay_single_and_integers_stay_integers() -> None:
    found = single(vector_reader(Outer))(to_row(RECORD).astype(np.float32))
    assert [type(found.inner.a), type(found.window), found.rates.dtype] == [np.float32, int, np.float32]


def test_a_record_has_no_field_that_a_cuda_kernel_would_take_for_a_method() -> None:
    for name in ("count", "index"):
        kind = NamedTuple("Numbers", [("mean", float), (name, float)])  # type: ignore[misc]
        with pytest.raises(TypeError, match="Numbers must have no field 'count' or 'index'"):
            column_reader(kind)


def test_a_column_is_written_and_read_at_its_place_only() -> None:
    matrix = np.arange(12.0).reshape(4, 3)
    assert column_reader(Swapped)(matrix, 1) == (1.0, True)
    expected = matrix.copy()
    expected[:2, 2] = 5.0, 1.0
    column_writer(Swapped)(matrix, 2, Swapped(5.0, True))
    assert (matrix == expected).all()


def test_rows_become_arrays() -> None:
    found = rows_reader(Inner)(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    assert [one.tolist() for one in found] == [[1.0, 2.0], [3.0, 4.0]]


def test_a_reader_is_generated_once_and_its_fingerprint_tells_the_fields() -> None:
    assert vector_reader(Outer) is vector_reader(Outer)
    assert fingerprint(vector_reader(Inner)) != fingerprint(vector_reader(Swapped))


class EarlyArray(NamedTuple):
    rates: np.ndarray
    a: float


class MiddleArray(NamedTuple):
    a: float
    rates: np.ndarray
    b: float


@pytest.mark.parametrize("kind", [EarlyArray, MiddleArray])
def test_an_array_before_another_field_is_refused(kind: type) -> None:
    with pytest.raises(TypeError, match=f"the array must be the last field of {kind.__name__}"):
        vector_reader(kind)
