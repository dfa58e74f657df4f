"""Kernels in single precision: all floating-point numbers that they refer to become float32, nothing else changes."""

import math
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

from dynabandit.core import streams
from dynabandit.core.philox import MASK, word
from dynabandit.core.precision import single
from dynabandit.core.special_functions import exp_negative, exp_positive
from dynabandit.core.streams import TIE, pick, stream, unit
from dynabandit.policies.compositions import compose
from dynabandit.policies.memories.base import exponential
from dynabandit.policies.rules import RULES, Rule

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
        return MODULE.NUMBER, math.inf, math.log, np.pi, MODULE

    number, infinity, log, pi, twin = single(reads)()
    assert is_single(number)
    assert is_single(infinity)  # one double makes a tuple another type, which CUDA cannot return from one function
    assert log is math.log
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


@pytest.mark.parametrize("rule", [rule for rule in RULES.values() if rule.kernels.store is not None])
def test_rules_store_single_numbers_with_and_without_rewards(rule: type[Rule]) -> None:
    params = compose(rule=rule).params(2).rule
    store, numbers = single(rule.kernels.store), type(params)(*map(np.float32, params))
    for size in (0.0, 3.0):
        mean = np.float32(0.5 if size else math.inf)
        stored = store(mean, np.float32(size), np.float32(size), np.float32(size), numbers)
        assert [type(number) for number in stored] == [np.float32] * len(stored)


# --- Functions that single precision replaces ----------------------------------------------------------------


def test_exponentials_in_single_precision_are_off_by_few_roundings() -> None:
    numbers = -np.concatenate([np.logspace(-7, 1.9, 400), [0.0]]).astype(np.float32)
    for x in numbers:
        found, exact = single(exp_negative)(x), math.exp(float(x))
        assert type(found) is np.float32
        assert abs(float(found) - exact) <= 2.0**-23 * exact
        assert abs(float(single(exp_positive)(min(-x, np.float32(50.0)))) * exact - 1.0) <= 2.0**-22 or x < -50.0


def test_the_fading_of_an_arm_that_was_idle_for_a_step_is_right_in_single_precision() -> None:
    found = single(exponential)(np.float32(math.log(0.99)), 1, 100, 0.0)
    assert 1.0 - float(found) == pytest.approx(1.0 - 0.99**0.01, rel=1e-3)


def test_no_uniform_number_in_single_precision_is_one() -> None:
    for high, low in [(MASK, MASK), (MASK, 0), (MASK - 64, 7), (2**31, 0), (1, 2), (0, 0)]:
        found = single(unit)(high, low)
        assert type(found) is np.float32
        assert 0.0 < found < 1.0
        assert float(found) == pytest.approx(unit(high, low), rel=2.0**-23)
    assert streams.unit_in_single(123, MASK) == unit(123, MASK)  # called with doubles, nothing is rounded
    assert streams.unit_in_single(MASK, MASK) == np.nextafter(np.float32(1.0), np.float32(0.0))


@pytest.mark.parametrize("count", [2, 3, 1000, 10**6, 2**31])
def test_a_pick_in_single_precision_gives_every_number_as_many_of_the_words(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = set()
    for number in (0, 1, count // 3, count - 1):
        first, end = (-(-place * 2**32 // count) for place in (number, number + 1))
        assert abs(end - first - 2**32 / count) < 1.0
        for word_, expected in ((first, number), (end - 1, number)):

            def words(*key: Any, four: Any = (word_, 0, 0, 0)) -> Any:
                keys.add(key)
                return four

            monkeypatch.setattr(streams, "words", words)
            assert streams.pick_in_single(stream(1), TIE, 1, 3, count) == expected
    assert keys == {(stream(1), TIE, 1, 3, 0)}
    assert pick.in_single is streams.pick_in_single  # type: ignore[attr-defined]
