import inspect
import sys
import textwrap
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest

from dynabandit.core import philox
from dynabandit.core.fingerprint import _docstrings, fingerprint


def module(source: str, **names: Any) -> ModuleType:
    """Make a module from source text, with `names` in its namespace."""
    made = ModuleType("made")
    vars(made).update(names)
    exec(textwrap.dedent(source), vars(made))
    return made


def function(source: str, **names: Any) -> Callable[..., Any]:
    return module(source, **names).f


HELPER = "def g(x): return x + 1.0"
OTHER_HELPER = "def g(x): return x + 2.0"

EDITS = {
    "an operator": (function("def f(x): return x + 1"), function("def f(x): return x - 1")),
    "a constant": (function("def f(x): return x + 1.0"), function("def f(x): return x + 1.5")),
    "a sign of zero": (function("def f(x): return x * 0.0"), function("def f(x): return x * -0.0")),
    "a type of constant": (function("def f(x): return x + 1"), function("def f(x): return x + 1.0")),
    "an order of arguments": (function("def f(x, y): return x - y"), function("def f(y, x): return x - y")),
    "a default": (function("def f(x=1.0): return x"), function("def f(x=2.0): return x")),
    "a keyword's default": (function("def f(*, x=1.0): return x"), function("def f(*, x=2.0): return x")),
    "a global number": (function("def f(x): return x + N", N=1.0), function("def f(x): return x + N", N=2.0)),
    "a global tuple": (
        function("def f(x): return x + N[0]", N=(1,)),
        function("def f(x): return x + N[0]", N=(2,)),
    ),
    "a global array": (
        function("def f(i): return N[i]", N=np.array([1.0, 2.0])),
        function("def f(i): return N[i]", N=np.array([1.0, 3.0])),
    ),
    "a global number of NumPy": (
        function("def f(x): return x + N", N=np.float64(1.0)),
        function("def f(x): return x + N", N=np.float32(1.0)),
    ),
    "a global set": (
        function("def f(x): return x in N", N={1, 2}),
        function("def f(x): return x in N", N={1, 3}),
    ),
    "a global dictionary": (
        function("def f(x): return N[x]", N={1: 2.0}),
        function("def f(x): return N[x]", N={1: 3.0}),
    ),
    "a called function": (
        function("def f(x): return g(x)", g=module(HELPER).g),
        function("def f(x): return g(x)", g=module(OTHER_HELPER).g),
    ),
    "a function called by a called function": (
        function("def f(x): return h(x)", h=function("def f(x): return g(x)", g=module(HELPER).g)),
        function("def f(x): return h(x)", h=function("def f(x): return g(x)", g=module(OTHER_HELPER).g)),
    ),
    "a module's function": (
        function("def f(x): return m.g(x)", m=module(HELPER)),
        function("def f(x): return m.g(x)", m=module(OTHER_HELPER)),
    ),
    "a function of a module in a package": (
        function("def f(x): return p.m.g(x)", p=module("", m=module(HELPER))),
        function("def f(x): return p.m.g(x)", p=module("", m=module(OTHER_HELPER))),
    ),
    "a function that a module makes when asked": (
        function("def f(x): return m.g(x)", m=module("def __getattr__(name): return h", h=module(HELPER).g)),
        function("def f(x): return m.g(x)", m=module("def __getattr__(name): return h", h=module(OTHER_HELPER).g)),
    ),
    "a module's constant": (
        function("def f(x): return x + m.N", m=module("N = 1.0")),
        function("def f(x): return x + m.N", m=module("N = 2.0")),
    ),
    "a class attribute": (
        function("class C: N = 1\ndef f(x): return x + C.N"),
        function("class C: N = 2\ndef f(x): return x + C.N"),
    ),
    "a field of a named tuple": (
        function("from collections import namedtuple\nS = namedtuple('S', 'a b')\ndef f(x): return S(x, x)"),
        function("from collections import namedtuple\nS = namedtuple('S', 'b a')\ndef f(x): return S(x, x)"),
    ),
    "a function in a closure": (
        module("def make(g):\n  def f(x): return g(x)\n  return f").make(module(HELPER).g),
        module("def make(g):\n  def f(x): return g(x)\n  return f").make(module(OTHER_HELPER).g),
    ),
    "a number in a closure": (
        module("def make(n):\n  def f(x): return x + n\n  return f").make(1.0),
        module("def make(n):\n  def f(x): return x + n\n  return f").make(2.0),
    ),
    "a module in a closure": (
        module("def make(m):\n  def f(x): return m.g(x)\n  return f").make(module(HELPER)),
        module("def make(m):\n  def f(x): return m.g(x)\n  return f").make(module(OTHER_HELPER)),
    ),
    "an inner function": (
        function("def f(x):\n  def g(y): return y + 1\n  return g(x)"),
        function("def f(x):\n  def g(y): return y + 2\n  return g(x)"),
    ),
    "a constant of a comprehension": (
        function("def f(xs): return tuple('a' for x in xs)"),
        function("def f(xs): return tuple('b' for x in xs)"),
    ),
    "a compiled function's source": (
        numba.njit(function("def f(x): return x + 1.0")),
        numba.njit(function("def f(x): return x + 2.0")),
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_fingerprint_changes_with(edit: str) -> None:
    before, after = EDITS[edit]
    assert fingerprint(before) == fingerprint(before)
    assert fingerprint(before) != fingerprint(after)


UNCHANGED = {
    "a docstring": (function("def f(x):\n  'One.'\n  return x"), function("def f(x):\n  'Two.'\n  return x")),
    "a docstring before another constant": (
        function("def f(x):\n  'One.'\n  return x + 1.5"),
        function("def f(x):\n  'Two.'\n  return x + 1.5"),
    ),
    "a comment and the place in the file": (
        function("def f(x): return x + 1"),
        function("# why\n\n\ndef f(x):\n  # because\n  return x + 1"),
    ),
    "a function nobody calls": (
        function("def g(x): return x\ndef f(x): return x + 1"),
        function("def g(x): return -x\ndef f(x): return x + 1"),
    ),
    "a docstring of a called function": (
        function("def f(x): return g(x)", g=module("def g(x):\n  'One.'\n  return x").g),
        function("def f(x): return g(x)", g=module("def g(x):\n  'Two.'\n  return x").g),
    ),
}


@pytest.mark.parametrize("edit", UNCHANGED)
def test_a_fingerprint_does_not_change_with(edit: str) -> None:
    before, after = UNCHANGED[edit]
    assert fingerprint(before) == fingerprint(after)


@pytest.mark.parametrize(("version", "by_flag"), [((3, 13, 9), False), ((3, 14), True), ((3, 14, 1), True)])
def test_from_python_3_14_on_a_flag_tells_whether_the_first_constant_is_a_docstring(
    version: tuple[int, ...], by_flag: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_docstring = 1 << 26
    monkeypatch.setattr(inspect, "CO_HAS_DOCSTRING", has_docstring, raising=False)
    monkeypatch.setattr(sys, "version_info", version)
    plain = function("def f(x): return 'text'").__code__.replace(co_consts=("text",))
    flagged = SimpleNamespace(co_flags=plain.co_flags | has_docstring, co_name="f", co_consts=(1.0,))
    found = [_docstrings(code) for code in (plain, flagged)]  # type: ignore[arg-type]
    monkeypatch.undo()
    assert found == ([0, 1] if by_flag else [1, 0])


def test_names_that_a_module_warns_of_or_cannot_import_are_ignored() -> None:
    refuse = "def __getattr__(name):\n  raise ImportError(name)"
    assert fingerprint(function("def f(x): return x.str + np.sqrt(x)", np=np))
    assert fingerprint(function("def f(x): return m.g(x)", m=module(refuse)))


def test_functions_that_call_each_other_have_a_fingerprint() -> None:
    made = module("def f(x): return g(x) if x else 0\ndef g(x): return f(x - 1)")
    assert fingerprint(made.f) == fingerprint(made.f)


def test_a_fingerprint_tells_which_of_several_functions_is_called_where() -> None:
    def make(first: Callable[..., int], second: Callable[..., int], third: Callable[..., int]) -> Callable[..., int]:
        return lambda x: first(x) + 2 * second(x) + 4 * third(x)

    def one(x: int) -> int:
        return x

    def two(x: int) -> int:
        return x + 2

    assert fingerprint(make(one, two, one)) != fingerprint(make(one, two, two))


def test_a_fingerprint_includes_the_overload_that_numba_compiles_in_place_of_a_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = fingerprint(philox.philox)
    monkeypatch.setattr(philox.word, "compiled_as", lambda x: lambda x: x)
    assert fingerprint(philox.philox) != before
