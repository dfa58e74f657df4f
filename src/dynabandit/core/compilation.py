"""One body, several targets: interpreted, compiled on the CPU, and inside a CUDA kernel.

A function marked with `kernel` is plain Python and stays callable as such. Compiled code may call it too.
`compiled` turns such a function into CPU machine code and keeps the result on disk, in a folder named by a
fingerprint of everything that the function calls. Numba's own cache looks at one file's time stamp and
would go on running an old algorithm after an edit in a function that it captured.

Numba tells compiled functions of one name apart by a number that it counts up from 1 in each process. Two
closures that different processes compiled can thus share a symbol, and a process that loads both from the
cache would silently run one in place of the other. Here every process starts counting at a number of its own.
"""

import hashlib
import inspect
import itertools
import os
import secrets
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.bytecode import FunctionIdentity
from numba.extending import register_jitable

__all__ = ["cache_folder", "compiled", "fingerprint", "inlined_kernel", "kernel", "own_folder"]

Function = TypeVar("Function", bound=Callable[..., Any])

CACHE_FORMAT = 2
KEEP_UNUSED_DAYS = 30
_lock = threading.Lock()

# A later Numba may count in another way; then nothing is cached, which costs time but no truth
_counts_as_known = isinstance(getattr(FunctionIdentity, "_unique_ids", None), itertools.count)


def _count_from_own_number() -> None:
    """Make the symbols that this process compiles differ from those of every other process."""
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(60))


if _counts_as_known:
    _count_from_own_number()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_count_from_own_number)


def kernel(function: Function) -> Function:
    """Mark a function of plain numbers and arrays: callable from Python, compiled code and CUDA alike."""
    return cast(Function, register_jitable(function))


def inlined_kernel(function: Function) -> Function:
    """Mark a function as `kernel` does, and copy its code into compiled callers.

    It is meant for functions with array arguments that are called at every step: an actual call counts a reference to
    each array, which takes longer than most decisions.
    """
    return cast(Function, register_jitable(forceinline=True)(function))


def compiled(function: Function) -> Function:
    """Compile for the CPU on first call, without the interpreter lock, cached on disk by fingerprint."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    if not _counts_as_known:
        return cast(Function, numba.njit(**options)(function))
    with _lock:
        before = numba.config.CACHE_DIR
        try:
            numba.config.CACHE_DIR = str(own_folder(function))
            return cast(Function, numba.njit(cache=True, **options)(function))
        except (OSError, RuntimeError):  # nowhere to write, or no home: compile for this process alone
            return cast(Function, numba.njit(**options)(function))
        finally:
            numba.config.CACHE_DIR = before


def cache_folder() -> Path:
    """Return where compiled code is kept: `NUMBA_CACHE_DIR` where set, else the user's cache folder."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "dynabandit"


def own_folder(function: Callable[..., Any]) -> Path:
    """Return the folder for the compiled code of a function, named by its fingerprint and marked as used today.

    A new folder is a moment to drop those that nothing has used for a month.
    """
    folder = cache_folder() / f"{CACHE_FORMAT}-{fingerprint(function)[:32]}"
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        oldest = time.time() - KEEP_UNUSED_DAYS * 86400
        for other in folder.parent.iterdir():
            if other.is_dir() and other.stat().st_mtime < oldest:
                shutil.rmtree(other, ignore_errors=True)
    os.utime(folder)
    return folder


def fingerprint(*functions: Callable[..., Any]) -> str:
    """Return a hash of the code of `functions` and of all they refer to, however deep.

    It changes with any edit that changes what runs, in any file, and with nothing else: comments,
    docstrings and the place of a function do not matter.

    Examples
    --------
    >>> fingerprint(fingerprint) == fingerprint(fingerprint)
    True
    """
    walk = _Walk()
    for function in functions:
        walk.visit(function)
    return walk.digest.hexdigest()


class _Walk:
    """Feeds all that a function refers to into one hash, each function once."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self._seen: dict[int, int] = {}

    def _add(self, text: object) -> None:
        self.digest.update(repr(text).encode())
        self.digest.update(b"\0")

    def visit(self, value: Any, mentioned: tuple[str, ...] = ()) -> None:
        """Add a value; `mentioned` are the names in the code that refers to it."""
        if isinstance(value, (ModuleType, type)):
            if isinstance(value, type):
                self._add((value.__qualname__, getattr(value, "_fields", ())))
            self._visit_members(value, mentioned, set())
            return
        value = getattr(value, "py_func", value)  # a Numba dispatcher stands for its function
        if isinstance(value, FunctionType):
            if id(value) in self._seen:  # which of them it is matters: f(g, h, g) is not f(g, h, h)
                self._add(("again", self._seen[id(value)]))
            else:
                self._seen[id(value)] = len(self._seen)
                self._visit_function(value)
        elif isinstance(value, (bool, int, float, complex, str, bytes, range, type(None))):
            self._add(value)
        elif isinstance(value, (tuple, list)):
            for inner in value:
                self.visit(inner)
        elif isinstance(value, dict):
            self.visit(list(value.items()))
        elif isinstance(value, (set, frozenset)):  # in an order of its own in each process
            self._add(sorted(map(repr, value)))
        elif isinstance(value, np.generic):
            self._add((value.dtype.str, value.tobytes()))
        elif isinstance(value, np.ndarray):  # Numba bakes a global array into the code
            self._add((value.dtype.str, value.shape, value.tobytes()))
        else:
            self._add(getattr(value, "__qualname__", type(value).__qualname__))

    def _visit_function(self, function: FunctionType) -> None:
        self._visit_code(function.__code__, function.__globals__)
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()):
            self.visit(default)
        for cell in function.__closure__ or ():
            self.visit(cell.cell_contents, function.__code__.co_names)
        self.visit(getattr(function, "compiled_as", None))  # what runs in its place where Numba is told of another body

    def _visit_code(self, code: CodeType, names: dict[str, Any]) -> None:
        self._add(code.co_code)
        self._add(code.co_varnames)
        for constant in code.co_consts[_docstrings(code) :]:
            if isinstance(constant, CodeType):
                self._visit_code(constant, names)
            else:
                self.visit(constant)
        for name in code.co_names:
            self._add(name)
            self.visit(names.get(name), code.co_names)

    def _visit_members(self, owner: ModuleType | type, mentioned: tuple[str, ...], owners: set[int]) -> None:
        """Bytecode has a.b.c as separate names: add all that these names could mean below `owner`."""
        owners.add(id(owner))
        for name in mentioned:
            member = _member(owner, name)
            if not isinstance(member, (ModuleType, type)):
                self.visit(member)
            elif id(member) not in owners:
                self._visit_members(member, mentioned, owners)


def _member(owner: ModuleType | type, name: str) -> Any:
    """Return an attribute or None; a module that makes its attributes when asked may warn of them."""
    if name in vars(owner):
        return vars(owner)[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return getattr(owner, name, None)
        except ImportError:
            return None


def _docstrings(code: CodeType) -> int:
    """Return 1 where the first constant of `code` is its docstring, else 0."""
    if sys.version_info >= (3, 14):
        return int(bool(code.co_flags & inspect.CO_HAS_DOCSTRING))
    inner = code.co_name.startswith("<")  # a comprehension has no docstring, and may begin with any constant
    return int(not inner and bool(code.co_consts) and isinstance(code.co_consts[0], str))
