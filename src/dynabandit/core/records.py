"""Named tuples stored in arrays: the functions that read and write them, generated from their fields.

Kernels access parameters and estimator states by name. The simulator stores them as rows or columns of an array, one
per replication or arm. A generated reader turns such a row into the named tuple; like every kernel it can be called
from Python, compiled code and CUDA.
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from dynabandit.core.compilation import kernel

CONVERSIONS = {Any: "{}", float: "{}", int: "int({})", bool: "{} > 0.0"}
METHODS_OF_TUPLES = {"count", "index"}  # a CUDA kernel finds the method, not a field with its name


class NoParams(NamedTuple):
    """The parameters of an algorithm that has none; compiled code has no empty tuples."""

    unused: Any = 0.0


def to_row(record: Any) -> np.ndarray:
    """Return the fields of a named tuple, nested ones included, as a vector of floats.

    Examples
    --------
    >>> from dynabandit.core.streams import Stream
    >>> to_row(Stream(7, 0, 3))
    array([7., 0., 3.])
    """
    return np.array(list(_leaves(record)), dtype=float)


def _leaves(record: Any) -> Iterator[float]:
    for value in record:
        if isinstance(value, (tuple, np.ndarray)):
            yield from _leaves(value)
        else:
            yield float(value)


@functools.cache
def vector_reader(kind: type) -> Callable[[np.ndarray], Any]:
    """Return read(row): the inverse of `to_row`. A last field of type array gets the rest of the row.

    Examples
    --------
    >>> from dynabandit.core.streams import Stream
    >>> vector_reader(Stream)(np.array([7.0, 0.0, 3.0]))
    Stream(seed_low=7, seed_high=0, replication=3)
    """
    return _generated(kind, "row", "row[{}]")


@functools.cache
def column_reader(kind: type, first: int = 0) -> Callable[[np.ndarray, int], Any]:
    """Return read(matrix, column): the named tuple in a column, from the row `first` on."""
    return _generated(kind, "matrix, column", "matrix[{}, column]", first)


@functools.cache
def column_writer(kind: type, first: int = 0) -> Callable[[np.ndarray, int, Any], None]:
    """Return write(matrix, column, record): write what `column_reader` reads."""
    lines = [f"matrix[{place}, column] = record.{name}" for place, name in enumerate(get_type_hints(kind), first)]
    return _compile(f"def write(matrix, column, record):\n    {'; '.join(lines)}", {}, kind)


@functools.cache
def rows_reader(kind: type) -> Callable[[np.ndarray], Any]:
    """Return read(matrix): a named tuple of arrays, one row of the matrix per field."""
    fields = ", ".join(f"matrix[{place}]" for place in range(len(get_type_hints(kind))))
    return _compile(f"def read(matrix):\n    return Record({fields})", {"Record": kind}, kind)


def _generated(kind: type, arguments: str, cell: str, first: int = 0) -> Callable[..., Any]:
    if np.ndarray in list(get_type_hints(kind).values())[:-1]:
        raise TypeError(f"the array must be the last field of {kind.__qualname__}: it gets the rest of the row")
    if METHODS_OF_TUPLES & set(get_type_hints(kind)):
        raise TypeError(f"{kind.__qualname__} must have no field 'count' or 'index', which are methods of every tuple")
    types: dict[str, Any] = {}
    expression = _expression(kind, cell, itertools.count(first), types)
    return _compile(f"def read({arguments}):\n    return {expression}", types, kind)


def _expression(kind: type, cell: str, places: Iterator[int], types: dict[str, Any]) -> str:
    fields = []
    for annotation in get_type_hints(kind).values():
        if hasattr(annotation, "_fields"):
            fields.append(_expression(annotation, cell, places, types))
        elif annotation is np.ndarray:
            fields.append(cell.format(f"{next(places)}:"))
        else:
            fields.append(CONVERSIONS[annotation].format(cell.format(next(places))))
    name = f"Record{len(types)}"
    types[name] = kind
    return f"{name}({', '.join(fields)})"


def _compile(source: str, names: dict[str, Any], kind: type) -> Callable[..., Any]:
    namespace = {**names, "__name__": kind.__module__}
    exec(compile(source, f"<generated for {kind.__qualname__}>", "exec"), namespace)
    return kernel(namespace[source.split("(")[0].removeprefix("def ")])
