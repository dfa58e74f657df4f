import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

import dynabandit
from dynabandit.core import compilation, philox
from dynabandit.core.compilation import compiled, fingerprint, kernel
from laws import INTERPRETED

SOURCES = Path(dynabandit.__file__).parents[1]
needs_compiler = pytest.mark.skipif(INTERPRETED, reason="NUMBA_DISABLE_JIT=1: there is no compiled code to cache")


# --- Fingerprints -------------------------------------------------------------------------------------------


def module(source: str, **names: Any) -> ModuleType:
    """Make a module from source text, with `names` already in it."""
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
def test_a_fingerprint_notices_an_edit_of(edit: str) -> None:
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


def test_a_name_that_a_module_warns_of_or_cannot_import_does_not_matter() -> None:
    refuse = "def __getattr__(name):\n  raise ImportError(name)"
    assert fingerprint(function("def f(x): return x.str + np.sqrt(x)", np=np))
    assert fingerprint(function("def f(x): return m.g(x)", m=module(refuse)))


def test_functions_that_call_each_other_have_a_fingerprint() -> None:
    made = module("def f(x): return g(x) if x else 0\ndef g(x): return f(x - 1)")
    assert fingerprint(made.f) == fingerprint(made.f)


def test_a_kernel_stays_a_plain_function() -> None:
    @kernel
    def twice(x: float) -> float:
        return 2.0 * x

    assert twice(1.5) == 3.0
    assert compiled(twice)(1.5) == 3.0


# --- The cache on disk --------------------------------------------------------------------------------------

MAIN = """
    from dynabandit.core.compilation import compiled, kernel
    import helper

    @kernel
    def run(x):
        return helper.step(x)

    fast = compiled(run)
    value = fast(10.0)
    stats = getattr(fast, "stats", None)
    print(value, sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""
STEP = """
    from dynabandit.core.compilation import kernel

    @kernel
    def step(x):
        return x {operation}
"""


class Project:
    """Two files of a user's own and a folder for compiled code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        (folder / "main.py").write_text(textwrap.dedent(MAIN))
        self.edit("+ 1.0")

    def edit(self, operation: str) -> None:
        """Write helper.py anew; its size and the second of its time stamp need not change."""
        (self.folder / "helper.py").write_text(textwrap.dedent(STEP.format(operation=operation)))

    def run(self, **environment: str) -> tuple[float, int, int]:
        """Run main.py in a process of its own; return its value, the cache hits and the cache misses."""
        settings = {
            **os.environ,
            "NUMBA_CACHE_DIR": str(self.cache),
            "PYTHONPATH": os.pathsep.join([str(SOURCES), str(self.folder)]),
            "PYTHONDONTWRITEBYTECODE": "1",  # Python itself tells an edit by size and seconds
            **environment,
        }
        settings = {name: value for name, value in settings.items() if value}
        command = [sys.executable, str(self.folder / "main.py")]
        output = subprocess.run(command, env=settings, check=True, capture_output=True, text=True).stdout
        value, hits, misses = output.split()
        return float(value), int(hits), int(misses)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@needs_compiler
def test_the_cache_serves_a_second_process_and_notices_an_edit_in_another_file(project: Project) -> None:
    assert project.run() == (11.0, 0, 1)
    assert project.run() == (11.0, 1, 0)
    project.edit("+ 2.0")
    assert project.run() == (12.0, 0, 1)
    project.edit("+ 1.0")
    assert project.run() == (11.0, 1, 0)


@needs_compiler
def test_a_cache_folder_that_cannot_be_made_costs_the_cache_and_nothing_else(project: Project) -> None:
    project.cache.write_text("a file is in the way")
    assert project.run()[0] == 11.0
    assert project.cache.read_text() == "a file is in the way"


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs a user without a home folder")
def test_a_user_without_a_home_folder_can_compile(project: Project) -> None:
    main = project.folder / "main.py"
    main.write_text("import os, pwd\npwd.getpwuid = {}.__getitem__\n" + main.read_text())
    assert project.run(NUMBA_CACHE_DIR="", XDG_CACHE_HOME="", HOME="")[0] == 11.0


CLOSURES = """
    import math
    import os
    import sys
    import numpy as np
    from dynabandit.core.compilation import compiled, kernel

    def make_inner(n):
        @kernel
        def inner(values, x):  # too long to be inlined
            total = 0.0
            for i in range(values.size):
                if values[i] > x:
                    values[i] = math.sin(x) * math.exp(math.cos(x)) + n
                elif values[i] > 0.5 * x:
                    values[i] -= math.log(x + values[i]) * n
                for j in range(i):
                    values[i] += values[j] * math.sqrt(x + j) + math.atan2(values[j], x)
                    if values[j] < n:
                        values[j] += math.tanh(values[i]) * math.exp(-x) + math.cos(n)
                total += values[i]
            return total
        return inner

    def make_outer(n):
        inner = make_inner(n)
        @kernel
        def outer(values, x):
            return inner(values, x) + 10.0 * inner(values, x + 1.0) + 100.0 * inner(values, x + 2.0)
        return outer

    def call(n):
        outer = make_outer(float(n))
        start = np.linspace(0.0, 3.0, 5)
        assert np.isclose(compiled(outer)(start.copy(), 3.0), outer(start.copy(), 3.0)), n

    if sys.argv[1] == "fork":
        for n in sys.argv[2:]:
            if os.fork() == 0:
                call(n)
                os._exit(0)
            assert os.wait()[1] == 0
    for n in sys.argv[2:]:
        call(n)
"""


def run_closures(folder: Path, *arguments: str) -> None:
    """Compile closures in a process of its own; it fails where one does not do what its source says."""
    (folder / "closures.py").write_text(textwrap.dedent(CLOSURES))
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(SOURCES)}
    subprocess.run([sys.executable, str(folder / "closures.py"), *arguments], env=settings, check=True)


@needs_compiler
def test_closures_that_different_processes_compiled_are_not_mistaken_for_each_other(tmp_path: Path) -> None:
    run_closures(tmp_path, "call", "1")
    run_closures(tmp_path, "call", "2")
    run_closures(tmp_path, "call", "1", "2")


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_closures_that_forked_processes_compiled_are_not_mistaken_for_each_other(tmp_path: Path) -> None:
    run_closures(tmp_path, "fork", "1", "2")


def test_the_fingerprint_tells_which_known_function_stands_where() -> None:
    def make(first: Callable[..., int], second: Callable[..., int], third: Callable[..., int]) -> Callable[..., int]:
        return lambda x: first(x) + 2 * second(x) + 4 * third(x)

    def one(x: int) -> int:
        return x

    def two(x: int) -> int:
        return x + 2

    assert fingerprint(make(one, two, one)) != fingerprint(make(one, two, two))


def test_the_fingerprint_sees_what_numba_compiles_in_place_of_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(philox.philox)
    monkeypatch.setattr(philox.word, "compiled_as", lambda x: lambda x: x)
    assert fingerprint(philox.philox) != before


def test_the_cache_folder_is_the_one_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert compilation.cache_folder() == tmp_path / "numba" / "dynabandit"
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert compilation.cache_folder() == tmp_path / "xdg" / "dynabandit"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert compilation.cache_folder() == tmp_path / ".cache" / "dynabandit"


@needs_compiler
def test_compiling_leaves_the_cache_setting_of_numba_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    before = numba.config.CACHE_DIR
    compiled(EDITS["a constant"][0])
    assert before == numba.config.CACHE_DIR


def test_code_that_nothing_used_for_a_month_is_dropped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cache = tmp_path / "made" / "here"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    own = compilation.own_folder(EDITS["a constant"][0])
    month = 30 * 24 * 3600
    ages = {"old": time.time(), "a month old": month + 1, "almost": month - 25, "new": 0}
    for name, age in ages.items():
        (cache / "dynabandit" / name).mkdir()
        os.utime(cache / "dynabandit" / name, (time.time() - age,) * 2)
    os.utime(own, (0, 0))
    assert own.name == "2-" + fingerprint(EDITS["a constant"][0])[:32]
    assert compilation.own_folder(EDITS["a constant"][0]) == own  # in use: it is young again, and nothing is dropped
    assert len(list(own.parent.iterdir())) == 5
    assert time.time() - own.stat().st_mtime < month
    compilation.own_folder(EDITS["a constant"][1])
    kept = {folder.name for folder in own.parent.iterdir()}
    assert {own.name, "almost", "new"} <= kept
    assert not {"old", "a month old"} & kept
