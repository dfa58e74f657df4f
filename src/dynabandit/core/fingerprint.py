"""Fingerprints of functions: hashes of their code and of everything that the code refers to."""

import hashlib
import inspect
import sys
import warnings
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np


def fingerprint(*functions: Callable[..., Any]) -> str:
    """Return a hash of the code of `functions` and, recursively, of everything that it refers to.

    It changes with every edit, in any file, that can change what the functions do. It does not change with comments,
    docstrings or the position of a function.

    Examples
    --------
    >>> fingerprint(fingerprint) == fingerprint(fingerprint)
    True
    """
    visitor = _Visitor()
    for function in functions:
        visitor.visit(function)
    return visitor.digest.hexdigest()


def refers_to(function: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Return whether the code of `function`, or anything that it refers to, refers to the function `other`.

    Examples
    --------
    >>> from dynabandit.core import philox, streams
    >>> refers_to(streams.uniform, philox.philox), refers_to(streams.unit, philox.philox)
    (True, False)
    """
    visitor = _Visitor()
    visitor.visit(function)
    return visitor.has_seen(other)


def reachable_functions(function: Callable[..., Any]) -> list[FunctionType]:
    """Return a function and all functions that its code refers to, directly or not.

    Examples
    --------
    >>> from dynabandit.core import streams
    >>> [one.__name__ for one in reachable_functions(streams.uniform)][:3]
    ['uniform', 'words', 'philox']
    """
    visitor = _Visitor()
    visitor.visit(function)
    return visitor.functions


class _Visitor:
    """Adds everything that a function refers to to one hash, each function once."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.functions: list[FunctionType] = []
        self._seen: dict[int, int] = {}

    def has_seen(self, function: Callable[..., Any]) -> bool:
        """Return whether a function was visited."""
        return id(getattr(function, "py_func", function)) in self._seen

    def _add(self, text: object) -> None:
        self.digest.update(repr(text).encode())
        self.digest.update(b"\0")

    def visit(self, value: Any, mentioned: tuple[str, ...] = ()) -> None:
        """Add a value; `mentioned` are the names that the code which refers to it contains."""
        if isinstance(value, (ModuleType, type)):
            if isinstance(value, type):
                self._add((value.__qualname__, getattr(value, "_fields", ())))
            self._visit_members(value, mentioned, set())
            return
        value = getattr(value, "py_func", value)  # of a Numba dispatcher, the function that it compiles
        if isinstance(value, FunctionType):
            if id(value) in self._seen:  # its number matters: f(g, h, g) differs from f(g, h, h)
                self._add(("again", self._seen[id(value)]))
            else:
                self._seen[id(value)] = len(self._seen)
                self.functions.append(value)
                self._visit_function(value)
        elif isinstance(value, (bool, int, float, complex, str, bytes, range, type(None))):
            self._add(value)
        elif isinstance(value, (tuple, list)):
            for inner in value:
                self.visit(inner)
        elif isinstance(value, dict):
            self.visit(list(value.items()))
        elif isinstance(value, (set, frozenset)):  # their order differs between processes
            self._add(sorted(map(repr, value)))
        elif isinstance(value, np.generic):
            self._add((value.dtype.str, value.tobytes()))
        elif isinstance(value, np.ndarray):  # Numba compiles a global array as a constant
            self._add((value.dtype.str, value.shape, value.tobytes()))
        else:
            self._add(getattr(value, "__qualname__", type(value).__qualname__))

    def _visit_function(self, function: FunctionType) -> None:
        self._visit_code(function.__code__, function.__globals__)
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()):
            self.visit(default)
        for cell in function.__closure__ or ():
            self.visit(cell.cell_contents, function.__code__.co_names)
        self.visit(getattr(function, "compiled_as", None))  # an overload that Numba compiles in place of the function

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
        """Add every member of `owner`, at any depth, that `mentioned` can mean: in bytecode a.b.c is three names."""
        owners.add(id(owner))
        for name in mentioned:
            member = _member(owner, name)
            if not isinstance(member, (ModuleType, type)):
                self.visit(member)
            elif id(member) not in owners:
                self._visit_members(member, mentioned, owners)


def _member(owner: ModuleType | type, name: str) -> Any:
    """Return an attribute or None; a module with `__getattr__` may warn or fail to import."""
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
    inner = code.co_name.startswith("<")  # a comprehension has no docstring; its first constant may be a string
    return int(not inner and bool(code.co_consts) and isinstance(code.co_consts[0], str))
