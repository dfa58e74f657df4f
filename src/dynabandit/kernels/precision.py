"""Single precision from the same source: a kernel with every floating-point number in it made a float32.

A Python number is a double to Numba, and one double makes a whole expression double. `single` rebuilds a kernel and
all kernels that it calls with float32 constants, so that code for a GPU can be single precision throughout without
a second copy of any algorithm.
"""

import functools
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from dynabandit.kernels.compilation import kernel

__all__ = ["single"]


@functools.cache
def single(function: FunctionType) -> Any:
    """Return `function` in single precision; what it calls through globals, closures and modules is rebuilt too.

    Examples
    --------
    >>> from dynabandit.kernels.elementary import exp_negative
    >>> type(single(exp_negative)(np.float32(-1.0)))
    <class 'numpy.float32'>
    """
    code = _single_code(function.__code__)
    mentioned = _names(code)
    names = {name: _single(function.__globals__[name], mentioned) for name in mentioned if name in function.__globals__}
    names["float"] = np.float32
    names["__builtins__"] = __builtins__
    cells = tuple(CellType(_single(cell.cell_contents, mentioned)) for cell in function.__closure__ or ())
    rebuilt = FunctionType(code, names, f"{function.__name__}_single", function.__defaults__, cells)
    rebuilt.__module__ = function.__module__
    rebuilt.__qualname__ = f"{function.__qualname__}_single"
    return kernel(rebuilt)


def _single_code(code: CodeType) -> CodeType:
    return code.replace(co_consts=tuple(_single(constant, set()) for constant in code.co_consts))


def _names(code: CodeType) -> set[str]:
    """Return every name that the code mentions, inner functions included."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found


def _single(value: Any, mentioned: set[str]) -> Any:
    """Return a value that code refers to in single precision."""
    if isinstance(value, FunctionType) and value.__module__.split(".")[0] not in (
        "math",
        "numpy",
        "numba",
        "builtins",
    ):
        return single(value)
    if isinstance(value, float):
        return np.float32(value)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(_single(inner, mentioned) for inner in value)
    if isinstance(value, CodeType):
        return _single_code(value)
    if isinstance(value, ModuleType) and value.__name__.startswith("dynabandit."):
        twin = ModuleType(f"{value.__name__}_single")
        for name in mentioned & set(vars(value)):
            setattr(twin, name, _single(getattr(value, name), mentioned))
        return twin
    return value
