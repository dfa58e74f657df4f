"""Errors of kernels that cannot be compiled: the problem, the file and line, and the source."""

import dis
import linecache
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

from numba.core.errors import ForceLiteralArg, NumbaError

from dynabandit.core.fingerprint import reachable_functions

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
NESTED = re.compile(r"raised a specific error:|mode pipeline \(step: [^)]*\)")  # after it, the cause of what is before
PLACE = re.compile(r"During: typing of .* at (.+) \((\d+)\)")  # the first one is the innermost
MISSING = re.compile(r"(?:name|has no attribute) '(\w+)'")
LOADS = ("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD")
PACKAGE = Path(__file__).parents[1]


class KernelError(Exception):
    """A kernel cannot be compiled; the message has the file, the line and the source.

    Parameters
    ----------
    message
        What is shown.
    output
        The complete message of Numba.
    """

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message)
        self.output = output


@contextmanager
def kernel_errors(function: Callable[..., Any]) -> Iterator[None]:
    """Raise a `KernelError` in place of an error in the compilation of a function, if it can be located."""
    try:
        yield
    except ForceLiteralArg:  # a part of how Numba compiles
        raise
    except (AttributeError, NameError, NumbaError) as error:
        described = describe(str(error), reachable_functions(function))
        if described is None:
            raise
        raise KernelError(described, str(error)) from None


def describe(output: str, functions: Sequence[FunctionType]) -> str | None:
    """Return the innermost problem of a message of Numba with its place in the source; None if that is not known.

    `functions` are those that were compiled together.
    """
    output = COLOURS.sub("", output)
    lines = [line.strip() for line in NESTED.split(output)[-1].splitlines() if line.strip()] or [output]
    problem = re.sub(r"^(?:\w+Error: )+", "", lines[0])
    if problem.endswith("for signature:") and len(lines) > 1:
        problem += f" {lines[1].removeprefix('>>> ')}"
    missing, place = MISSING.search(problem), PLACE.search(output)
    where = _place_of_name(missing[1], functions) if missing else (place[1], int(place[2])) if place else None
    if where is None:
        return None
    file, line = where
    codes = [function.__code__ for function in functions]
    before = [code for code in codes if code.co_filename == file and code.co_firstlineno <= line]
    name = max(before, key=lambda code: code.co_firstlineno).co_name if before else "?"
    message = f'cannot compile {name}: {problem}\n  File "{file}", line {line}, in {name}\n'
    message += f"    {linecache.getline(file, line).strip()}"
    others = [code for code in codes if not Path(code.co_filename).is_relative_to(PACKAGE)]
    if others and Path(file).is_relative_to(PACKAGE):
        names = ", ".join(f'{code.co_name} ("{code.co_filename}")' for code in others)
        message += f"\n  One of these may have other arguments or another result than it must have: {names}"
    return message


def _place_of_name(name: str, functions: Sequence[FunctionType]) -> tuple[str, int] | None:
    """Return the file and the line where a global name or an attribute is used, which Numba does not say."""
    for function in functions:
        for instruction in dis.get_instructions(function):
            positions = instruction.positions
            if instruction.opname in LOADS and instruction.argval == name and positions and positions.lineno:
                return function.__code__.co_filename, positions.lineno
    return None
