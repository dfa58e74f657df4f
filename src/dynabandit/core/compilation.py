"""Compilation for the CPU and for CUDA, with a cache on disk.

A function marked with `kernel` stays a plain Python function and can be called from compiled code too. `compiled` and
`compiled_for_cuda` turn such a function into machine code, which `core.code_cache` keeps.
"""

import contextlib
import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.extending import register_jitable

from dynabandit.core.code_cache import function_folder
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

CPU_OPTIONS = {
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,  # count no references to arrays, which would take most of the time of many policies
}


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


compiled_once = functools.cache(compiled)  # returns the same compiled function at each call


def _dispatcher(function: Function, options: dict[str, Any]) -> Any:
    """Return a dispatcher, whose compiled code is cached on disk if possible."""
    if has_symbol_counter():
        with contextlib.suppress(OSError, RuntimeError):  # no folder can be written, or there is no home folder
            folder = function_folder(function, options)
            with cache_directory(numba.config, folder):
                return compile_once(numba.njit(cache=True, **options)(function), folder)
    return compile_once(numba.njit(**options)(function), None)


def compiled_for_cuda(function: Callable[..., Any], *, device_code: str = "", **options: Any) -> Any:
    """Return `function` compiled as a CUDA kernel: on its first launch, cached on disk.

    `device_code` names the code that changes how kernels are compiled, to which `function` does not refer.
    """
    from numba import cuda

    if numba.config.ENABLE_CUDASIM:  # compiles nothing and does not know all options
        return cuda.jit(function)
    if not has_symbol_counter():
        return cuda.jit(function, **options)
    try:
        import numba_cuda
        from numba.cuda.core import config

        versions = {"numba-cuda": numba_cuda.__version__, "device_code": device_code}
        folder = function_folder(function, {**options, **versions})
        with cache_directory(config, folder):
            config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # a small simulation is small on purpose
            dispatcher = cuda.jit(function, cache=True, **options)
        key_by_signature(dispatcher)
    except (AttributeError, ImportError, OSError, RuntimeError):
        return cuda.jit(function, **options)
    return dispatcher
