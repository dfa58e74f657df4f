"""Compilation for the CPU and for CUDA, with a cache on disk.

A function marked with `kernel` stays a plain Python function and can be called from compiled code too. `compiled` and
`compiled_for_cuda` turn such a function into machine code and cache it in a folder whose name is a hash of the code
(`core.fingerprint`), the compile options and the versions of the compilers. Numba's own cache compares only the time
stamp of one file and would run an old algorithm after an edit of a captured function.
"""

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite
import numba
from numba.extending import register_jitable

from dynabandit.core.fingerprint import fingerprint
from dynabandit.core.kernel_errors import kernel_errors
from dynabandit.core.numba_internals import (
    cache_directory,
    compile_once,
    forbid_returned_arrays,
    has_symbol_counter,
    key_by_signature,
    wrap_compilation,
)

Function = TypeVar("Function", bound=Callable[..., Any])

CACHE_FORMAT = 3
KEEP_UNUSED_DAYS = 30
CPU_OPTIONS = {
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,  # count no references to arrays, which would take most of the time of many policies
}
# Settings of Numba, from environment variables, that change the machine code
NUMBA_SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")


def kernel(function: Function) -> Function:
    """Mark a function of numbers and arrays, so that Python, compiled code and CUDA kernels can call it."""
    return cast(Function, register_jitable(function))


def inlined_kernel(function: Function) -> Function:
    """Mark a function as `kernel` does, and copy its code into compiled callers.

    It is meant for functions with array arguments that are called at every step: an actual call counts a reference to
    each array, which takes longer than most decisions.
    """
    return cast(Function, register_jitable(forceinline=True)(function))


def compiled(function: Function, *, creates_arrays: bool = False) -> Function:
    """Return `function` compiled for the CPU: on its first call, without the GIL, cached on disk.

    Kernels do not create arrays. If a function returns arrays, `creates_arrays` must be true. If it only creates them,
    it need not be said, but saves a first attempt to compile it.
    """
    dispatcher = _dispatcher(function, {**CPU_OPTIONS, "_nrt": creates_arrays})
    if not creates_arrays:
        forbid_returned_arrays(dispatcher)
    wrap_compilation(dispatcher, lambda: kernel_errors(function))
    return cast(Function, dispatcher)


def _dispatcher(function: Function, options: dict[str, Any]) -> Any:
    """Return a dispatcher, whose compiled code is cached on disk if possible."""
    if has_symbol_counter():
        with contextlib.suppress(OSError, RuntimeError):  # no folder can be written, or there is no home folder
            folder = function_folder(function, options)
            with cache_directory(numba.config, folder):
                return compile_once(numba.njit(cache=True, **options)(function), folder)
    return compile_once(numba.njit(**options)(function), None)


def compiled_for_cuda(function: Callable[..., Any], **options: Any) -> Any:
    """Return `function` compiled as a CUDA kernel: on its first launch, cached on disk."""
    from numba import cuda

    if numba.config.ENABLE_CUDASIM:  # compiles nothing and does not know all options
        return cuda.jit(function)
    if not has_symbol_counter():
        return cuda.jit(function, **options)
    try:
        import numba_cuda
        from numba.cuda.core import config

        folder = function_folder(function, {**options, "numba-cuda": numba_cuda.__version__})
        with cache_directory(config, folder):
            config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # a small simulation is small on purpose
            dispatcher = cuda.jit(function, cache=True, **options)
        key_by_signature(dispatcher)
    except (AttributeError, ImportError, OSError, RuntimeError):
        return cuda.jit(function, **options)
    return dispatcher


def is_cached(function: Callable[..., Any]) -> bool:
    """Whether machine code of a function that `compiled` returned is on disk, from this process or another."""
    if numba.config.DISABLE_JIT or not hasattr(function, "stats"):  # there is nothing to compile
        return True
    folder = cast(Any, function).stats.cache_path
    return folder is not None and any(Path(folder).glob("*.nbc"))


def cache_folder() -> Path:
    """Return the folder for compiled code: `NUMBA_CACHE_DIR` if it is set, else the user's cache folder."""
    # Not platformdirs: the core depends on NumPy and Numba alone
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "dynabandit"


def function_folder(function: Callable[..., Any], options: dict[str, Any]) -> Path:
    """Return the cache folder of a function compiled with these options, and mark it as used now.

    Creating a folder also deletes those that were not used for a month, such as those of earlier versions.
    """
    settings = {name: getattr(numba.config, name, None) for name in NUMBA_SETTINGS}
    compiler = (numba.__version__, llvmlite.__version__, sorted(settings.items()), _stable(options))
    key = hashlib.sha256(f"{fingerprint(function)} {compiler}".encode()).hexdigest()
    folder = cache_folder() / f"{CACHE_FORMAT}-{key[:32]}"
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _delete_unused(folder.parent)
    os.utime(folder)
    return folder


def _stable(options: dict[str, Any]) -> list[tuple[str, str]]:
    """Return options as text that is the same in every process: the order of a set is not."""
    return sorted((name, repr(sorted(value) if isinstance(value, set) else value)) for name, value in options.items())


def _delete_unused(cache: Path) -> None:
    oldest = time.time() - KEEP_UNUSED_DAYS * 86400
    for folder in cache.iterdir():
        with contextlib.suppress(OSError):  # another process may be deleting it too
            if folder.is_dir() and folder.stat().st_mtime < oldest:
                shutil.rmtree(folder, ignore_errors=True)
