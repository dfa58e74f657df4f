"""Checks of arguments; each error names the argument, the value and what would be valid."""

import difflib
import importlib
import itertools
import math
import operator
from collections.abc import Iterable
from typing import Any

__all__ = ["Needed", "arguments", "extra", "integer", "keep", "listed", "nearest", "number", "reward", "unknown"]


class Needed(TypeError):  # noqa: N818 - named for what it says
    """A parameter without a default was left out; `lack` is the message without where Python's users read more."""

    def __init__(self, lack: str, where: str) -> None:
        super().__init__(f"{lack}: see {where}")
        self.lack = lack


LONGEST = 100  # characters of a name that is looked up: the time goes with their number
MOST_SEARCHED = 2000  # names, for the same reason
MOST_LISTED = 20


def nearest(value: object, known: Iterable[str]) -> str:
    """Return a hint such as `` Did you mean 'ucb'?``, or an empty string where nothing is close."""
    close = difflib.get_close_matches(
        str(value)[:LONGEST], list(itertools.islice(known, MOST_SEARCHED)), n=1, cutoff=0.5
    )
    return f" Did you mean {close[0]!r}?" if close else ""


def unknown(kind: str, value: object, known: Iterable[str]) -> ValueError:
    """Make the error for a name that is not in a registry."""
    names = sorted(known)
    given = f"{value[:LONGEST]}..." if isinstance(value, str) and len(value) > LONGEST else value
    return ValueError(f"unknown {kind} {given!r}.{nearest(value, names)} Known: {', '.join(names)}")


def listed(names: Iterable[object]) -> str:
    """Return names in quotes, and of many the first few: a bandit may have a hundred thousand arms.

    >>> listed(["red", "blue"]), listed(range(22))[-13:]
    ("'red', 'blue'", '19 and 2 more')
    """
    shown = [repr(name) for name in names]
    cut = [name if len(name) <= LONGEST else f"{name[:LONGEST]}..." for name in shown[:MOST_LISTED]]
    return ", ".join(cut) + (f" and {len(shown) - MOST_LISTED} more" if len(shown) > MOST_LISTED else "")


def number(argument: str, value: Any, low: float, high: float, *, open_low: bool = False) -> float:
    """Return `value` as a float in [low, high] (or (low, high]), or raise an error that says so."""
    valid = f"a number in {'(' if open_low else '['}{low:g}, {high:g}{')' if math.isinf(high) else ']'}"
    if _is_bool(value) or isinstance(value, str) or not hasattr(value, "__float__"):  # NumPy's strings have it
        raise TypeError(f"{argument} must be {valid}, got {value!r}")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    except (TypeError, ValueError):  # such as an array of several numbers
        raise TypeError(f"{argument} must be {valid}, got {value!r}") from None
    inside = low < result <= high if open_low else low <= result <= high
    if not inside or math.isinf(result):
        raise ValueError(f"{argument} must be {valid}, got {value!r}")
    return result


def _is_bool(value: Any) -> bool:
    """Whether a value is true or false, of Python or NumPy, without importing NumPy, which clients do not need."""
    return isinstance(value, bool) or (type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"))


def integer(argument: str, value: Any, low: int, high: int | None = None) -> int:
    """Return `value` as an int in [low, high], or raise an error that says so."""
    valid = f"a whole number of at least {low}" + ("" if high is None else f" and at most {high}")
    if low == high:
        valid = str(low)
    try:
        if isinstance(value, bool):
            raise TypeError
        result = operator.index(value)
    except TypeError:
        raise TypeError(f"{argument} must be {valid}, got {value!r}") from None
    if result < low or (high is not None and result > high):
        raise ValueError(f"{argument} must be {valid}, got {value!r}")
    return result


def reward(value: Any) -> float:
    """Return a reward in [0, 1]; yes and no are 1 and 0, for Python and NumPy alike."""
    return number("reward", int(value) if _is_bool(value) else value, 0.0, 1.0)


def keep(owner: object, **checked: Any) -> None:
    """Let a frozen dataclass hold what a check returned, in place of what it was given."""
    for name, value in checked.items():
        object.__setattr__(owner, name, value)


def arguments(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise an error where `given` holds a parameter that `what` does not have."""
    names = list(known)
    for name in given:
        if name not in names:
            raise TypeError(
                f"{what} has no parameter {name!r}.{nearest(name, names)} Its parameters: {', '.join(names)}"
            )


def extra(module: str, name: str) -> Any:
    """Import a module of an optional dependency, or say which extra to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise
        raise ModuleNotFoundError(
            f"this needs {module.split('.')[0]}, which is not installed: pip install 'dynabandit[{name}]'",
            name=error.name,
        ) from None
