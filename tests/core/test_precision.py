"""Kernels in single precision: all floating-point numbers that they refer to become float32, nothing else changes."""

import math
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.philox import word
from dynabandit.core.precision import single

NUMBER, PAIR = 0.1, (0.1, 2, (0.3,))
MODULE = ModuleType("numbers_of_test")
MODULE.NUMBER, MODULE.OTHER = 0.1, 0.2  # type: ignore[attr-defined]


class Named(NamedTuple):
    number: float


NAMED = Named(0.1)


def helper(x: Any) -> Any:
    return x * 0.1


def is_single(value: Any) -> bool:
    return type(value) is np.float32


def test_constants_globals_and_called_functions_become_single() -> None:
    def constant() -> Any:
        return 0.1, 7, NUMBER, float(1), helper(np.float32(3.0))

    numbers = single(constant)()
    assert [type(number) for number in numbers] == [np.float32, int, np.float32, np.float32, np.float32]
    assert numbers[0] == np.float32(0.1)
    assert single(constant) is single(constant)
    assert type(constant()[0]) is float


def test_numbers_in_tuples_and_closures_become_single_and_named_tuples_stay() -> None:
    factor, words, foreign = 0.7, word, np.isscalar

    def closed() -> Any:
        return PAIR, NAMED, factor, words, (lambda: 0.5)(), foreign

    pair, named, closed_over, kept, inner, still_foreign = single(closed)()
    assert still_foreign is np.isscalar
    assert is_single(pair[0])
    assert (type(pair[1]), is_single(pair[2][0])) == (int, True)
    assert named is NAMED
    assert is_single(closed_over)
    assert kept is word
    assert is_single(inner)


def test_the_used_attributes_of_a_module_become_single() -> None:
    def mentions() -> Any:
        return MODULE

    def reads() -> Any:
        return MODULE.NUMBER, math.pi, MODULE

    number, pi, twin = single(reads)()
    assert is_single(number)
    assert type(pi) is float  # a foreign module is unchanged
    assert set(vars(twin)) & {"NUMBER", "OTHER"} == {"NUMBER"}
    assert not hasattr(single(mentions)(), "NUMBER")


def test_functions_and_modules_of_foreign_packages_are_unchanged() -> None:
    function, module = np.polynomial.polynomial.polyval, np.polynomial.polynomial
    assert function.__module__ == module.__name__ == "numpy.polynomial.polynomial"

    def mentions() -> Any:
        return function, module, module.polyone

    kept_function, kept_module, _ = single(mentions)()
    assert kept_function is function
    assert kept_module is module
