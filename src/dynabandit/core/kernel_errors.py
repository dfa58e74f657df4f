"""Errors of kernels that cannot be compiled, in three lines: the problem, the file and line, and the source."""

import dis
import inspect
import itertools
import linecache
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

from numba.core.errors import ForceLiteralArg, NumbaError

from dynabandit.core.fingerprint import reachable_functions

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
NESTED = re.compile(r"raised a specific error:|mode pipeline \(step: [^)]*\)")  # after it, the cause of what is before
PLACE = re.compile(r"During: typing of .* at (.+) \((\d+)\)")  # the first one is the innermost
MISSING_NAME = re.compile(r"NameError: (?:global )?name '(\w+)'")
MISSING_ATTRIBUTE = re.compile(r"has no attribute '(\w+)'")
CALL = re.compile(r"(\w+)\(([^()]*)\)")
PACKAGE = Path(__file__).parents[1]
LOADS_NAME, LOADS_ATTRIBUTE = ("LOAD_GLOBAL", "LOAD_NAME"), ("LOAD_ATTR", "LOAD_METHOD")  # names of instructions


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
        described = describe(str(error), function)
        if described is None:
            raise
        raise KernelError(described, str(error)) from None


def describe(output: str, function: Callable[..., Any]) -> str | None:
    """Return what a message of Numba says, with the file, the line and the source; None if there is no line in it.

    `function` is what was compiled; the problem may be in any function that it calls.
    """
    output, functions = COLOURS.sub("", output), list(reachable_functions(function))
    found = _place(output, functions)
    if found is None:
        return None
    problem = _problem(output)
    if Path(found[0]).is_relative_to(PACKAGE):
        problem, found = _misfit(*found, functions) or (problem, found)
    file, line, name = found
    where = f'  File "{file}", line {line}, in {name}'
    return "\n".join([f"cannot compile {name}: {problem}", where, f"    {linecache.getline(file, line).strip()}"])


def _misfit(
    file: str, line: int, name: str, functions: Iterable[FunctionType]
) -> tuple[str, tuple[str, int, str]] | None:
    """Return the problem and the place of a user's function that a line of this package calls, if it does not fit."""
    callers = [one for one in functions if (one.__code__.co_filename, one.__name__) == (file, name)]
    source = linecache.getline(file, line).strip()
    for called, arguments in CALL.findall(source):
        kernels = [inspect.getclosurevars(caller).nonlocals.get(called) for caller in callers]
        for one in kernels:
            if not isinstance(one, FunctionType) or Path(one.__code__.co_filename).is_relative_to(PACKAGE):
                continue
            place = one.__code__.co_filename, _line_of_definition(one), one.__name__
            if len(inspect.signature(one).parameters) != len(arguments.split(",")):
                return f"its arguments must be ({arguments}), got {inspect.signature(one)}", place
            if _returns_nothing(one) and source != f"{called}({arguments})":
                return "it returns nothing", place
    return None


def _line_of_definition(function: FunctionType) -> int:
    line = function.__code__.co_firstlineno  # that of the first decorator
    while linecache.getline(function.__code__.co_filename, line).lstrip().startswith("@"):
        line += 1
    return line


def _returns_nothing(function: FunctionType) -> bool:
    instructions = list(dis.get_instructions(function))
    return all(
        before.argval is None and before.opname == "LOAD_CONST" if one.opname == "RETURN_VALUE" else one.argval is None
        for before, one in itertools.pairwise(instructions)
        if one.opname in ("RETURN_VALUE", "RETURN_CONST")
    )


def _problem(output: str) -> str:
    """Return the innermost problem of a message."""
    cause = NESTED.split(output)[-1]
    lines = [line.strip() for line in cause.splitlines() if line.strip()]
    problem = re.sub(r"^(?:\w+Error: )+", "", lines[0]) if lines else output
    signatures = [line.removeprefix(">>> ") for line in lines if line.startswith(">>> ")]
    if problem.startswith("No implementation of function") and signatures:
        return f"there is no {signatures[0]}"
    attribute = re.match(r"Unknown attribute '(\w+)' of type (\w+)", problem)
    return f"{attribute[2]} has no attribute {attribute[1]!r}" if attribute else problem


def _place(output: str, functions: Iterable[FunctionType]) -> tuple[str, int, str] | None:
    """Return the file, the line and the function of the innermost problem."""
    cause = NESTED.split(output)[-1]
    for pattern, instructions in ((MISSING_NAME, LOADS_NAME), (MISSING_ATTRIBUTE, LOADS_ATTRIBUTE)):
        name = pattern.search(cause)
        if name is not None:
            return _use_of_name(name[1], instructions, functions)
    found = PLACE.search(output)
    if found is None:
        return None
    file, line = found[1], int(found[2])
    around = [one for one in functions if one.__code__.co_filename == file and one.__code__.co_firstlineno <= line]
    inner = max(around, key=lambda one: one.__code__.co_firstlineno, default=None)
    return file, line, "?" if inner is None else inner.__name__


def _use_of_name(
    name: str, instructions: tuple[str, ...], functions: Iterable[FunctionType]
) -> tuple[str, int, str] | None:
    """Return where one of the instructions loads a name; Numba does not say."""
    for function in functions:
        for instruction in dis.get_instructions(function):
            positions = instruction.positions
            loads = instruction.opname in instructions and instruction.argval == name
            if loads and positions is not None and positions.lineno is not None:
                return function.__code__.co_filename, positions.lineno, function.__name__
    return None
