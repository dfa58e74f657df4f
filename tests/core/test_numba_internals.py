"""The undocumented parts of Numba that `core/numba_internals.py` uses are still there and still do the same.

If a test fails here after an upgrade of Numba or numba-cuda, that release changed the part that the test names. Until
`numba_internals` is adapted, compiled code is not cached.
"""

import fcntl
import gc
import importlib.util
import itertools
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numba
import numpy as np
import pytest
from numba.core import bytecode, caching
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.registry import cpu_target

from dynabandit.core import numba_internals
from dynabandit.core.code_cache import function_folder
from dynabandit.core.compilation import CPU_OPTIONS, compiled, compiled_for_cuda, kernel
from dynabandit.core.kernel_errors import KernelError
from dynabandit.core.numba_internals import cache_directory, compile_once, has_code_libraries, has_symbol_counter
from tools.laws import INTERPRETED
from tools.waiting import PATIENCE, wait_for

needs_compiler = pytest.mark.skipif(INTERPRETED, reason="NUMBA_DISABLE_JIT=1: there is no compiled code")


@kernel
def increase(x: float) -> float:
    return x + 1.0


def imported_again() -> Any:
    """Return a new copy of the module; other modules keep the one that they use."""
    spec = importlib.util.find_spec(numba_internals.__name__)
    assert spec is not None
    assert spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return copy


def test_function_identity_counts_symbols_with_unique_ids() -> None:
    assert has_symbol_counter(), "numba.core.bytecode.FunctionIdentity._unique_ids is not an itertools.count any more"
    first = next(bytecode.FunctionIdentity._unique_ids)
    identity = bytecode.FunctionIdentity.from_function(increase)
    assert identity.unique_id == first + 1, "FunctionIdentity.unique_id does not come from _unique_ids any more"
    assert str(identity.unique_id) in identity.unique_name or identity.unique_id > 2**30
    assert first > 1000  # starts at random: below with probability 1e-15


def test_a_process_and_its_forked_children_count_symbols_from_random_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    at_fork: list[Any] = []
    monkeypatch.setattr(os, "register_at_fork", lambda after_in_child: at_fork.append(after_in_child))
    monkeypatch.setattr(bytecode.FunctionIdentity, "_unique_ids", itertools.count(1))
    copy = imported_again()
    first = next(bytecode.FunctionIdentity._unique_ids)
    (in_child,) = at_fork
    with copy.cache_directory(SimpleNamespace(CACHE_DIR=""), Path("held")):  # by a thread that the child does not have
        in_child()
        with copy.cache_directory(SimpleNamespace(CACHE_DIR=""), Path("free")):
            assert abs(next(bytecode.FunctionIdentity._unique_ids) - first) > 1000
    assert first > 1000  # below with probability 1e-15


def test_a_counter_that_cannot_be_replaced_or_a_system_without_fork_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "register_at_fork")
    for counter in (range(5), itertools.count(1)):
        monkeypatch.setattr(bytecode.FunctionIdentity, "_unique_ids", counter)
        imported_again()
        assert (bytecode.FunctionIdentity._unique_ids is counter) == (counter == range(5))


def test_without_the_symbol_counter_nothing_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bytecode.FunctionIdentity, "_unique_ids", iter(itertools.count(10**6)))
    assert has_symbol_counter()
    monkeypatch.setattr(bytecode.FunctionIdentity, "_unique_ids", range(5))
    assert not has_symbol_counter()
    if not INTERPRETED:
        function: Any = compiled(increase)
        assert function.stats.cache_path is None


@needs_compiler
def test_the_cache_folder_is_read_from_config_when_a_function_is_decorated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    function = numba.njit(cache=True)(increase)
    monkeypatch.undo()
    assert function.stats.cache_path.startswith(str(tmp_path)), "numba.config.CACHE_DIR is not used any more"
    assert caching.config is numba.config


class NotingLock:
    """A lock that notes that a thread found it held."""

    def __init__(self) -> None:
        self.lock, self.was_held = threading.Lock(), threading.Event()

    def __enter__(self) -> None:
        if not self.lock.acquire(blocking=False):
            self.was_held.set()
            self.lock.acquire()

    def __exit__(self, *error: object) -> None:
        self.lock.release()


def test_one_thread_at_a_time_changes_the_cache_directory_even_for_different_targets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cpu, cuda, seen = SimpleNamespace(CACHE_DIR="cpu"), SimpleNamespace(CACHE_DIR="cuda"), []
    lock = NotingLock()
    monkeypatch.setattr(numba_internals, "_lock", lock)

    def enter() -> None:
        with cache_directory(cuda, Path("second")):
            seen.append(cuda.CACHE_DIR)

    other = threading.Thread(target=enter)
    with suppress(OSError), cache_directory(cpu, Path("first")):
        other.start()
        wait_for(lambda: lock.was_held.is_set() or not other.is_alive())
        assert (cpu.CACHE_DIR, cuda.CACHE_DIR, seen) == ("first", "cuda", [])
        raise OSError("an error inside of the block")
    other.join()
    assert (cpu.CACHE_DIR, cuda.CACHE_DIR, seen) == ("cpu", "cuda", ["second"])


@needs_compiler
def test_a_process_waits_while_another_one_compiles_the_same_function(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    compiled(increase)(1.0)
    waits, flock = threading.Event(), fcntl.flock

    def note_and_wait(file: Any, operation: int) -> None:
        try:
            flock(file, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            waits.set()
            flock(file, operation)

    here = threading.Thread(target=compiled(increase), args=(1.0,))
    with (function_folder(increase, CPU_OPTIONS) / "lock").open("w") as held:
        flock(held, fcntl.LOCK_EX)  # as the other process does
        monkeypatch.setattr(fcntl, "flock", note_and_wait)
        here.start()
        wait_for(lambda: waits.is_set() or not here.is_alive())
        assert here.is_alive(), "Dispatcher.compile is not what compiles a function any more"
    here.join()


def test_a_function_is_compiled_by_one_process_at_a_time(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    found = []

    def compile_now(signature: str) -> str:
        with (tmp_path / "lock").open("w") as file, suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found.append("not locked")
        return f"code of {signature}"

    for folder, locked in ((tmp_path, True), (tmp_path / "missing", False)):  # without a lock it compiles all the same
        dispatcher = SimpleNamespace(compile=compile_now)
        compile_once(dispatcher, folder)
        assert dispatcher.compile("signature") == "code of signature"
        assert found == ([] if locked else ["not locked"])
    compile_once(increase, tmp_path)  # interpreted: nothing is compiled
    assert increase(1.0) == 2.0


def test_a_forked_process_does_not_keep_the_lock(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    reads, writes = os.pipe()
    with numba_internals._locked(tmp_path):
        child = os.fork()  # as in a thread of this process that does not compile
        if child == 0:
            os.read(reads, 1)
            os._exit(0)
    try:
        with (tmp_path / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.write(writes, b"x")
        os.waitpid(child, 0)


@kernel
def positive(x: float) -> float:
    if x < 0.0:
        raise ValueError("x is negative")
    return x


@kernel
def twice_positive(x: float) -> float:
    return positive(x) + positive(x)


@kernel
def never_called(x: float) -> float:
    return twice_positive(x)


@needs_compiler
def test_only_functions_that_python_calls_have_machine_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert has_code_libraries(), "numba.core.codegen.JITCodeLibrary or its context has other methods"
    library, made = numba_internals.WholeFunctionLibrary, list[Any]()
    finalize = library.finalize

    def finalize_and_keep(self: Any) -> None:
        made.append(self)
        finalize(self)

    monkeypatch.setattr(library, "finalize", finalize_and_keep)

    def first(x: float, count: int) -> float:
        # LLVM removes the first call, and links what it calls only because the second call needs it
        return (never_called(x) if count - count > 0 else 0.0) + twice_positive(x)

    usual = cpu_target.target_context.codegen()._library_class
    whole: Any = compiled(first)
    assert whole(2.0, 1) == 4.0
    assert {one.name for one in made if one.has_machine_code} == {first.__qualname__}
    assert {"positive", "twice_positive"} <= {one.name for one in made}
    with pytest.raises(ValueError, match="x is negative"):  # it has the environment of `positive`
        whole(-1.0, 1)
    assert cpu_target.target_context.codegen()._library_class is usual
    assert "create_cfunc_wrapper" not in vars(cpu_target.target_context)
    assert gc.isenabled()
    # Functions of other libraries that are compiled as usual can call the same kernels, also from C
    assert numba.njit(lambda x: twice_positive(x) + 1.0)(2.0) == 5.0
    assert numba.cfunc("float64(float64)")(increase).ctypes(1.0) == 2.0
    again: Any = compiled(first)
    assert again(3.0, 1) == 6.0
    assert again.stats.cache_hits  # from the folder

    def caller(x: float, count: int) -> float:
        return whole(x, count) + 1.0

    nested: Any = compiled(caller)
    whole.recompile()  # while its caller is compiled
    assert nested(2.0, 1) == 5.0
    assert "create_cfunc_wrapper" not in vars(cpu_target.target_context)
    assert gc.isenabled()


@needs_compiler
def test_a_function_that_creates_arrays_counts_references(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def total(x: float) -> float:
        numbers = np.zeros(3)
        numbers[0] = x
        return float(numbers.sum())

    assert compiled(total)(2.0) == compiled(total)(2.0) == 2.0
    assert gc.isenabled()


@needs_compiler
def test_other_errors_are_raised_without_a_second_attempt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    coloured = Mock()  # Numba replaces sys.stdout while it makes a coloured message
    monkeypatch.setattr(numba.core.errors, "_termcolor_inst", coloured)
    function: Any = compiled(lambda: not_defined)  # type: ignore[name-defined]  # noqa: F821
    with pytest.raises(KernelError, match="not_defined"):
        function()
    assert (coloured.mock_calls, numba.core.errors._termcolor_inst) == ([], coloured)
    assert (function.targetoptions["_nrt"], gc.isenabled()) == (False, True)


@needs_compiler
def test_functions_that_return_arrays_must_say_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def parts(numbers: np.ndarray) -> tuple[float, np.ndarray]:
        return numbers[0], numbers[1:]

    function = compiled(parts)
    for _ in range(2):
        with pytest.raises(TypeError, match="creates_arrays"):
            function(np.arange(3.0))
    first, rest = compiled(parts, creates_arrays=True)(np.arange(3.0))
    assert (first, list(rest)) == (0.0, [1.0, 2.0])


@needs_compiler
def test_functions_of_users_that_kernels_call_can_be_values(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    doubled = numba.njit(lambda x: x * 2.0)
    assert compiled(lambda x: doubled(x))(1.0) == 2.0
    apply = numba.njit("float64(FunctionType(float64(float64)), float64)")(lambda function, x: function(x))
    assert apply(doubled, 3.0) == 6.0


WITHOUT_PRIVATE_NAMES = """
import numba
from numba.core import bytecode, codegen
bytecode.Renamed, codegen.Renamed = bytecode.FunctionIdentity, codegen.JITCodeLibrary
del bytecode.FunctionIdentity, codegen.JITCodeLibrary
import dynabandit
from dynabandit.core.compilation import compiled
from dynabandit.core.numba_internals import has_code_libraries, has_symbol_counter
bytecode.FunctionIdentity, codegen.JITCodeLibrary = bytecode.Renamed, codegen.Renamed  # which Numba itself uses
print(has_code_libraries(), has_symbol_counter(), compiled(lambda x: x + 1.0)(1.0))
"""


@needs_compiler
def test_a_numba_with_other_names_compiles_as_usual() -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_PRIVATE_NAMES], capture_output=True, text=True, timeout=PATIENCE
    )
    assert (run.stdout, run.stderr) == ("False False 2.0\n", "")


@needs_compiler
def test_compiled_code_that_names_a_module_of_another_version_is_compiled_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def fresh() -> Any:
        return compile_once(numba.njit(cache=True, **CPU_OPTIONS)(increase), tmp_path)

    with cache_directory(numba.config, tmp_path):
        assert fresh()(1.0) == 2.0
        [code] = tmp_path.rglob("*.nbc")
        code.write_bytes(b"cdynabandit.moved\nname\n.")  # a pickle that names what is not there
        function = fresh()
        assert function(1.0) == 2.0
        function = fresh()
        assert (function(1.0), function.stats.cache_hits.total()) == (2.0, 1)


@needs_compiler
def test_a_thread_can_be_asked_to_stop_compiling(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    function: Any = compiled(lambda x: increase(x) - 1.0)
    with pytest.raises(numba_internals.CompilationStopped), numba_internals.stop_compiling_when(lambda: True):
        function(1.0)
    assert (function.signatures, gc.isenabled()) == ([], True)
    assert function(1.0) == 1.0


@needs_compiler
def test_a_numba_with_other_code_libraries_compiles_as_usual(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.delattr(JITCPUCodegen, "_library_class")
    assert not has_code_libraries()
    monkeypatch.undo()
    construct = JITCodeLibrary.__init__

    def construct_as_in_numba_0_60(library: Any, *arguments: Any) -> None:
        construct(library, *arguments)
        del library._reload_init

    monkeypatch.setattr(JITCodeLibrary, "__init__", construct_as_in_numba_0_60)
    assert not has_code_libraries()
    monkeypatch.undo()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(numba_internals, "has_code_libraries", lambda: False)
    function: Any = compiled(increase)
    assert function(1.0) == 2.0
    (overload,) = function.overloads.values()
    assert not isinstance(overload.library, numba_internals.WholeFunctionLibrary)


@needs_compiler
def test_the_cache_key_of_a_cuda_kernel_can_be_replaced() -> None:
    pytest.importorskip("numba_cuda")
    cache = compiled_for_cuda(increase)._cache
    assert type(cache).__name__ == "CUDACache", "CUDADispatcher._cache is not a CUDACache any more"
    key = type(cache)._index_key
    assert key.__code__.co_varnames[:3] == ("self", "sig", "codegen"), "CUDACache._index_key has other arguments"

    class Codegen:
        def magic_tuple(self) -> tuple[str]:
            return ("sm_90",)

    assert cache._index_key("signature", Codegen()) == ("signature", ("sm_90",))
