"""Single precision from the same source: kernels whose floating-point constants are float32.

Numba treats a Python float as a double, and one double makes a whole expression double. `single` rebuilds a kernel and
all kernels that it calls with float32 constants, so that GPU code can use single precision throughout without a second
copy of any algorithm. The attribute `in_single` of a function names another function that replaces it there.
"""

import builtins
import dis
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.extending import register_jitable

FAST = {"afn", "arcp", "contract", "nsz", "reassoc"}  # not "nnan" or "ninf": an arm without plays scores infinity

FOREIGN = ("numpy", "numba", "numba_cuda", "builtins")  # not "math": math.inf becomes a float32, too
_rebuilt: dict[FunctionType, Any] = {}


def single(function: Any) -> Any:
    """Return a kernel, and all kernels that it calls, in fast single precision.

    Examples
    --------
    >>> from dynabandit.core.special_functions import exp_negative
    >>> type(single(exp_negative)(np.float32(-1.0)))
    <class 'numpy.float32'>
    """
    function = getattr(function, "in_single", function)
    if function not in _rebuilt:
        code = _single_code(function.__code__)
        names: dict[str, Any] = {"__builtins__": builtins, "float": np.float32, "__name__": function.__module__}
        cells = tuple(CellType() for _ in function.__closure__ or ())
        rebuilt = FunctionType(code, names, function.__name__, function.__defaults__, cells)
        rebuilt.__module__ = function.__module__
        rebuilt.__qualname__ = f"{function.__qualname__}_single"
        _rebuilt[function] = register_jitable(fastmath=FAST)(rebuilt)
        mentioned, attributes = _names(code)
        for name in mentioned & set(function.__globals__):
            names[name] = _single(function.__globals__[name], attributes)
        for new, old in zip(cells, function.__closure__ or (), strict=True):
            new.cell_contents = _single(old.cell_contents, attributes)
    return _rebuilt[function]


def keep_in_single(function: Any) -> None:
    """Use a kernel without floating-point numbers in single precision as it is."""
    _rebuilt[function] = function


def _single_code(code: CodeType) -> CodeType:
    return code.replace(co_consts=tuple(_single(constant, set()) for constant in code.co_consts))


def _names(code: CodeType) -> tuple[set[str], set[str]]:
    """Return the names of the globals and of the attributes in the code."""
    mentioned: set[str] = set()
    attributes: set[str] = set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            mentioned.add(instruction.argval)
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes.add(instruction.argval)
    return mentioned, attributes


def _single(value: Any, attributes: set[str]) -> Any:
    """Return a value that code refers to in single precision; of a module, the attributes that the code uses."""
    if hasattr(value, "compiled_as"):  # it has no constants, and Numba compiles an overload in its place
        return value
    if isinstance(value, FunctionType) and value.__module__.split(".")[0] not in FOREIGN:
        return single(value)
    if isinstance(value, float):
        return np.float32(value)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(_single(inner, attributes) for inner in value)
    if isinstance(value, CodeType):
        return _single_code(value)
    if isinstance(value, ModuleType) and value.__name__.split(".")[0] not in FOREIGN:
        twin = ModuleType(f"{value.__name__}_single")
        for name in attributes & set(vars(value)):
            setattr(twin, name, _single(getattr(value, name), attributes))
        return twin
    return value
