"""One body, several targets: interpreted, compiled on the CPU, and inside a CUDA kernel.

A function marked with `kernel` is plain Python and stays callable as such. Compiled code may call it too.
`compiled` turns such a function into CPU machine code and keeps the result on disk, in a folder named by a
fingerprint of everything that the function calls. Numba's own cache looks at one file's time stamp and
would go on running an old algorithm after an edit in a function that it captured.
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
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numba
from numba.core.bytecode import FunctionIdentity
from numba.extending import register_jitable

__all__ = ["cache_folder", "compiled", "fingerprint", "kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])

KEEP_UNUSED_DAYS = 30
LAYOUT = 2  # of the cache; 1 had symbols that could clash
_lock = threading.Lock()

# Numba tells functions of one name apart by a number that counts from 1 in each process, and writes it into the
# symbols of the code that it keeps on disk. Two policies that were compiled by two processes then hold different
# functions under one symbol, and a third process that loads both runs one of them for the other, without a word.
# Counting from a place of its own keeps the symbols of each process apart.
FunctionIdentity._unique_ids = itertools.count(secrets.randbits(56))


def kernel(function: Function) -> Function:
    """Mark a function of plain numbers and arrays: callable from Python, compiled code and CUDA alike."""
    return cast(Function, register_jitable(function))


def compiled(function: Function) -> Function:
    """Compile for the CPU on first call, without the interpreter lock, cached on disk by fingerprint."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    folder = cache_folder() / f"{fingerprint(function)[:32]}-{LAYOUT}"
    with _lock:
        before = numba.config.CACHE_DIR
        try:
            _prepare(folder)
            numba.config.CACHE_DIR = str(folder)
            return cast(Function, numba.njit(cache=True, **options)(function))
        except (OSError, RuntimeError):  # nowhere to write: compile for this process alone
            return cast(Function, numba.njit(**options)(function))
        finally:
            numba.config.CACHE_DIR = before


def cache_folder() -> Path:
    """Return where compiled code is kept: `NUMBA_CACHE_DIR` where set, else the user's cache folder."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "dynabandit"


def _prepare(folder: Path) -> None:
    """Make `folder`, mark it as used today, and drop folders that nothing has used for a month."""
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        oldest = time.time() - KEEP_UNUSED_DAYS * 86400
        for other in folder.parent.iterdir():
            if other.is_dir() and other.stat().st_mtime < oldest:
                shutil.rmtree(other, ignore_errors=True)
    os.utime(folder)


def fingerprint(*functions: Callable[..., Any]) -> str:
    """Return a hash of the code of `functions` and of all they refer to, however deep.

    It changes with any edit that changes what runs, in any file, and with nothing else: comments,
    docstrings and the place of a function do not matter.

    Examples
    --------
    >>> fingerprint(fingerprint) == fingerprint(fingerprint)
    True
    """
    digest = hashlib.sha256()
    seen: set[int] = set()

    def add(text: object) -> None:
        digest.update(repr(text).encode())
        digest.update(b"\0")

    def visit(value: Any) -> None:
        value = getattr(value, "py_func", value)  # a Numba dispatcher stands for its function
        if isinstance(value, FunctionType):
            if id(value) not in seen:
                seen.add(id(value))
                visit_code(value.__code__, value.__globals__)
                for inner in (*(value.__defaults__ or ()), *_cells(value)):
                    visit(inner)
        elif isinstance(value, type):
            add((value.__qualname__, getattr(value, "_fields", ())))
        elif isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
            add(value)
        elif isinstance(value, (tuple, list)):
            for inner in value:
                visit(inner)
        elif not isinstance(value, ModuleType):
            add(getattr(value, "__qualname__", type(value).__qualname__))

    def visit_code(code: CodeType, names: dict[str, Any]) -> None:
        add(code.co_code)
        add(code.co_varnames)
        for constant in code.co_consts[_docstrings(code) :]:
            if isinstance(constant, CodeType):
                visit_code(constant, names)
            else:
                add(constant)
        for name in code.co_names:
            add(name)
            value = names.get(name)
            if isinstance(value, ModuleType):  # module.attribute: look at every name that it could be
                for attribute in code.co_names:
                    visit(getattr(value, attribute, None))
            else:
                visit(value)

    for function in functions:
        visit(function)
    return digest.hexdigest()


def _docstrings(code: CodeType) -> int:
    """Return 1 where the first constant of `code` is its docstring, else 0."""
    if sys.version_info >= (3, 13):
        return int(bool(code.co_flags & inspect.CO_HAS_DOCSTRING))
    return int(bool(code.co_consts) and isinstance(code.co_consts[0], str))


def _cells(function: FunctionType) -> list[Any]:
    return [cell.cell_contents for cell in function.__closure__ or ()]
