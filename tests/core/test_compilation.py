"""Compiled code and its cache on disk."""

import importlib.util
import os
import pwd
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import llvmlite
import numba
import pytest

import dynabandit
from dynabandit.core import code_cache, compilation
from dynabandit.core.code_cache import function_folder, is_cached
from dynabandit.core.compilation import compiled, compiled_for_cuda, kernel
from tools.laws import INTERPRETED

SOURCES = Path(dynabandit.__file__).parents[1]
needs_compiler = pytest.mark.skipif(INTERPRETED, reason="NUMBA_DISABLE_JIT=1: there is no compiled code to cache")


@kernel
def double(x: float) -> float:
    return 2.0 * x


@kernel
def triple(x: float) -> float:
    return 3.0 * x


def test_a_kernel_stays_a_plain_function() -> None:
    assert double(1.5) == 3.0
    assert compiled(double)(1.5) == 3.0


# --- The cache on disk --------------------------------------------------------------------------------------


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder for compiled code."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "dynabandit"


def load(path: Path) -> Any:
    """Import a file as a new module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # where Numba looks for the module of cached code
    spec.loader.exec_module(module)
    return module


def call_add(folder: Path, amount: float) -> tuple[float, int, int]:
    """Write a file with a helper and call it, compiled, from a function of another file; return hits and misses too."""
    helper = "from dynabandit.core.compilation import kernel\n@kernel\ndef add(x): return x + {}\n"
    caller = "from dynabandit.core.compilation import kernel\n@kernel\ndef call(x): return add(x)\n"
    (folder / "cached_helper.py").write_text(helper.format(amount))
    if not (folder / "cached_caller.py").exists():  # Numba itself notices an edit of this file
        (folder / "cached_caller.py").write_text(caller)
    module = load(folder / "cached_caller.py")
    module.add = load(folder / "cached_helper.py").add
    function = compiled(module.call)
    value = function(10.0)
    return value, sum(function.stats.cache_hits.values()), sum(function.stats.cache_misses.values())


def test_functions_are_compiled_without_the_gil_and_cached_if_symbols_can_be_numbered(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    def njit(**options: Any) -> Callable[..., Any]:
        asked.append((numba.config.CACHE_DIR, options))
        return lambda function: function

    monkeypatch.setattr(numba, "njit", njit)
    usual, options = numba.config.CACHE_DIR, {"nogil": True, "error_model": "numpy", "_nrt": False}
    compiled(double)
    monkeypatch.setattr(compilation, "has_symbol_counter", lambda: False)
    compiled(double)
    assert asked == [(str(function_folder(double, options)), {"cache": True, **options}), (usual, options)]


def test_a_function_is_cached_if_its_folder_has_machine_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def function(cache_path: Path | None) -> Any:
        return SimpleNamespace(stats=SimpleNamespace(cache_path=cache_path))

    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    assert is_cached(function(None))  # there is nothing to compile
    monkeypatch.setattr(numba.config, "DISABLE_JIT", False)
    assert not is_cached(function(None))
    assert not is_cached(function(tmp_path))
    (tmp_path / "double-1.py311.nbc").touch()
    assert is_cached(function(tmp_path))


@needs_compiler
@pytest.mark.usefixtures("cache")
def test_the_cache_is_used_again_and_notices_an_edit_in_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python itself notices an edit only by size and second
    assert call_add(tmp_path, 1.0) == (11.0, 0, 1)
    assert call_add(tmp_path, 1.0) == (11.0, 1, 0)
    assert call_add(tmp_path, 2.0) == (12.0, 0, 1)
    assert call_add(tmp_path, 1.0) == (11.0, 1, 0)


@needs_compiler
def test_a_function_is_cached_once_it_was_called(cache: Path) -> None:
    before = numba.config.CACHE_DIR
    function = compiled(double)
    assert before == numba.config.CACHE_DIR
    assert not is_cached(function)
    function(1.0)
    assert is_cached(function)
    assert is_cached(compiled(double))
    assert [folder.name for folder in cache.iterdir()] == [function_folder(double, compilation.CPU_OPTIONS).name]


@needs_compiler
def test_without_a_cache_folder_functions_are_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert compiled(double)(1.5) == 3.0
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)  # a user without a home folder
    assert compiled(double)(1.5) == 3.0


def test_the_cache_folder_is_the_one_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert code_cache.cache_folder() == tmp_path / "numba" / "dynabandit"
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert code_cache.cache_folder() == tmp_path / "xdg" / "dynabandit"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert code_cache.cache_folder() == tmp_path / ".cache" / "dynabandit"


@pytest.mark.usefixtures("cache")
def test_the_folder_of_a_function_depends_on_code_options_settings_and_compiler_versions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def folder(function: Callable[..., Any] = double, **options: Any) -> str:
        return function_folder(function, options).name

    seen = [folder(), folder(triple), folder(fastmath={"nsz", "arcp"}), folder(fastmath={"nsz"})]
    assert folder() == seen[0]
    for owner, name, value in (
        (numba, "__version__", "0"),
        (llvmlite, "__version__", "0"),
        (numba.config, "OPT", 0),
        (numba.config, "BOUNDSCHECK", 1),
        (code_cache, "CACHE_FORMAT", 0),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, value)
            seen.append(folder())
    assert len(set(seen)) == len(seen)


def test_the_name_of_a_folder_is_the_format_and_half_a_hash(cache: Path) -> None:
    folder = function_folder(double, {})
    assert folder.parent == cache
    assert re.fullmatch(
        "3-[0-9a-f]{32}", folder.name
    )  # raise the format if folders of earlier versions must not be read


def test_two_processes_may_create_a_folder_at_the_same_time(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = function_folder(double, {})
    monkeypatch.setattr(Path, "exists", lambda path: False)  # created by the other process after this was asked
    assert function_folder(double, {}) == folder == cache / folder.name


def test_folders_that_were_not_used_for_a_month_are_deleted(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    monkeypatch.setattr(code_cache, "time", SimpleNamespace(time=lambda: now))
    own = function_folder(double, {})
    month = 30 * 24 * 3600
    ages = {"never used": now, "a month old": month + 1, "almost": month - 25, "new": 0}
    for name, age in ages.items():
        (cache / name).mkdir()
        os.utime(cache / name, (now - age,) * 2)
    os.utime(own, (0, 0))
    assert function_folder(double, {}) == own  # it exists: it is marked as used, and nothing is deleted
    assert len(list(cache.iterdir())) == 5
    assert now - own.stat().st_mtime < month
    other = function_folder(triple, {})
    assert {folder.name for folder in cache.iterdir()} == {own.name, other.name, "almost", "new"}


@needs_compiler
def test_cuda_kernels_are_cached_by_options_device_code_and_version_of_numba_cuda(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CUDA kernel is compiled at its first launch, so this needs no GPU."""
    numba_cuda = pytest.importorskip("numba_cuda")
    from numba.cuda.core import config

    before = config.CACHE_DIR
    folders = [
        Path(compiled_for_cuda(double, **options)._cache.cache_path).parent
        for options in ({}, {"fastmath": True}, {"device_code": "other"})
    ]
    monkeypatch.setattr(numba_cuda, "__version__", "0")
    folders.append(Path(compiled_for_cuda(double)._cache.cache_path).parent)
    assert len(set(folders)) == 4
    assert {folder.parent for folder in folders} == {cache}
    assert before == config.CACHE_DIR


class FakeCuda(ModuleType):
    """Records how kernels are compiled; stands for `numba.cuda`, `numba.cuda.core` and `numba_cuda`."""

    __version__ = "1.2"

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__("numba.cuda")
        self.config = SimpleNamespace(CACHE_DIR="usual", CUDA_LOW_OCCUPANCY_WARNINGS=1)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._cache = SimpleNamespace(_index_key=lambda signature, codegen: "hash of the closure")
        monkeypatch.setattr(numba, "cuda", self, raising=False)
        for name in ("numba.cuda", "numba.cuda.core", "numba_cuda"):
            monkeypatch.setitem(sys.modules, name, self)

    def jit(self, function: Any, **options: Any) -> "FakeCuda":
        self.asked.append((self.config.CACHE_DIR, options))
        return self  # the dispatcher, whose cache is `_cache`

    def magic_tuple(self) -> tuple[str, ...]:
        return ("sm_90",)


def test_a_cuda_kernel_is_cached_by_signature_and_gpu(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = FakeCuda(monkeypatch)
    dispatcher = compiled_for_cuda(double, device_code="abc", fastmath=True)
    folder = function_folder(double, {"fastmath": True, "numba-cuda": "1.2", "device_code": "abc"})
    assert cuda.asked == [(str(folder), {"fastmath": True, "cache": True})]
    assert vars(cuda.config) == {"CACHE_DIR": "usual", "CUDA_LOW_OCCUPANCY_WARNINGS": 0}
    assert dispatcher._cache._index_key("signature", cuda) == ("signature", ("sm_90",))
    assert folder.parent == cache


@pytest.mark.parametrize("reason", ["simulator", "no symbol counter", "other cache keys"])
def test_a_cuda_kernel_is_compiled_without_a_cache_where_none_can_be_used(
    reason: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = FakeCuda(monkeypatch)
    monkeypatch.setattr(numba.config, "ENABLE_CUDASIM", reason == "simulator")
    monkeypatch.setattr(compilation, "has_symbol_counter", lambda: reason != "no symbol counter")
    if reason == "other cache keys":
        cuda._cache = SimpleNamespace()
    compiled_for_cuda(double, fastmath=True)
    options = {} if reason == "simulator" else {"fastmath": True}  # the simulator does not know all options
    assert cuda.asked[-1] == ("usual", options)
    assert len(cuda.asked) == (2 if reason == "other cache keys" else 1)
    assert cache.exists() == (reason == "other cache keys")


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
        if os.fork() == 0:
            call(1)
            os._exit(0)
        assert os.wait()[1] == 0
        call(2)
        call(1)
    else:
        call(3)
        call(2)
        call(1)
"""


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_closures_compiled_by_different_processes_do_not_run_each_others_code(tmp_path: Path) -> None:
    """A forked child compiles closure 1, its parent 2 and another process 3, which then loads the others."""
    (tmp_path / "closures.py").write_text(textwrap.dedent(CLOSURES))
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(SOURCES)}
    for argument in ("fork", "load"):
        subprocess.run([sys.executable, str(tmp_path / "closures.py"), argument], env=settings, check=True)
