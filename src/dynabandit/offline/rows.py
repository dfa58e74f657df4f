"""Checks the rows of a log, and reports those that cannot be used."""

import contextlib
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import numpy as np

from dynabandit.validation import BOUNDED, RewardDomain

CONTEXT = "context"  # the column with contexts that the service exports
SHOWN = 5  # bad rows in a message
TRUE_AND_FALSE = {"true": 1.0, "false": 0.0}
LONGEST_SHOWN = 40  # characters of a value in a message


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The names of the columns that are used; a log may have others."""

    arm: str = "arm"
    reward: str = "reward"
    time: str | None = None
    propensity: str | None = None
    rewards: RewardDomain = BOUNDED  # which rewards are valid
    features: tuple[str, ...] = ()  # with columns of their own
    features_in_contexts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        taken: dict[str, str] = {}
        for role, name in self.named():
            if not isinstance(name, str) or not name:
                raise TypeError(f"{role} must name a column, got {name!r}")
            if name in taken:
                raise ValueError(f"{role} and {taken[name]} must be different columns, got {name!r} for both")
            taken[name] = role

    def named(self) -> list[tuple[str, str]]:
        """Return (role, column) of every used column."""
        pairs = [(role, getattr(self, role)) for role in ("arm", "reward", "time", "propensity")]
        pairs += [(feature_role(name), name) for name in self.features]
        if self.features_in_contexts:
            pairs.append((CONTEXT, CONTEXT))
        return [(role, name) for role, name in pairs if name is not None]


def feature_role(name: str) -> str:
    """Return the role of a column with a feature."""
    return f"feature {name!r}"


class RawRows(NamedTuple):
    """Some unchecked rows by role; None is a missing value."""

    first: int  # number of the first row, counted from 1
    lines: Sequence[int] | None  # line of the file on which each row ends, for text files
    values: dict[str, Sequence[Any]]

    def __len__(self) -> int:
        return len(self.values["arm"])


class BadRow(NamedTuple):
    """A row that cannot be used, with the reason."""

    row: int
    line: int | None
    column: str
    problem: str
    value: Any

    def __str__(self) -> str:
        where = f"row {self.row}" if self.line is None else f"row {self.row} (line {self.line})"
        shown = repr(self.value)
        shown = shown if len(shown) <= LONGEST_SHOWN else shown[:LONGEST_SHOWN] + "..."
        return f"{where}, column {self.column!r}: {self.problem}, got {shown}"


@dataclass
class BadRows:
    """The number of rows that cannot be used, and the first few of them."""

    count: int = 0
    shown: list[BadRow] = field(default_factory=list)

    def add(self, bad: Sequence[BadRow]) -> None:
        """Add more bad rows."""
        self.count += len(bad)
        self.shown += bad[: SHOWN - len(self.shown)]

    def __str__(self) -> str:
        lines = [f"  {bad}" for bad in self.shown]
        if self.count > len(self.shown):
            lines.append(f"  and {self.count - len(self.shown)} more")
        return "\n".join(lines)


class Parsed(NamedTuple):
    """The usable rows among some rows."""

    arm: list[str]
    reward: np.ndarray
    propensity: np.ndarray | None
    time: np.ndarray | None
    contexts: list[dict[str, Any]]  # empty without features

    def first_rows(self, count: int) -> "Parsed":
        """Return the first of these rows."""
        propensity, time = (None if one is None else one[:count] for one in (self.propensity, self.time))
        return Parsed(self.arm[:count], self.reward[:count], propensity, time, self.contexts[:count])


class Allowed(NamedTuple):
    """The numbers that are allowed in a column."""

    description: str
    low: float
    high: float
    open_low: bool = False

    def contains(self, numbers: Any) -> Any:
        """Return whether a number, or each number of an array, is allowed; NaN is not."""
        return ((numbers > self.low) if self.open_low else (numbers >= self.low)) & (numbers <= self.high)


ALLOWED = {
    "propensity": Allowed("the probability with which the arm was chosen, in (0, 1]", 0.0, 1.0, open_low=True),
    "time": Allowed("a number or a date and time such as 2024-05-31T12:00:00", -sys.float_info.max, sys.float_info.max),
}


Problems = dict[int, tuple[str, str]]  # the index of a row -> role of its first bad value and the reason


class _BadValueError(Exception):
    """The reason why a value cannot be used; never leaves this module."""


def parse(
    raw: RawRows,
    columns: Columns,
    latest: float = -math.inf,
    read_contexts: Callable[[RawRows, Problems], list[dict[str, Any]]] | None = None,
) -> tuple[Parsed, list[BadRow]]:
    """Return the usable rows and the bad ones; no row may be earlier than `latest`, the last time before them."""
    problems: Problems = {}
    arms = _each(raw, "arm", problems)
    rewards = _floats(raw, "reward", problems, columns.rewards)
    propensities = _floats(raw, "propensity", problems) if columns.propensity is not None else None
    contexts = [] if read_contexts is None else read_contexts(raw, problems)
    times = None
    if columns.time is not None:
        times = _floats(raw, "time", problems)
        _find_unsorted(times, latest, problems)
    kept = np.array([index not in problems for index in range(len(raw))], dtype=bool)
    parsed = Parsed(
        [arm for arm, keep in zip(arms, kept, strict=True) if keep],
        rewards[kept],
        None if propensities is None else propensities[kept],
        None if times is None else times[kept],
        [context for context, keep in zip(contexts, kept, strict=False) if keep],
    )
    return parsed, [_bad_row(raw, columns, index, *problems[index]) for index in sorted(problems)]


def _bad_row(raw: RawRows, columns: Columns, index: int, role: str, problem: str) -> BadRow:
    line = None if raw.lines is None else raw.lines[index]
    return BadRow(raw.first + index, line, dict(columns.named()).get(role, CONTEXT), problem, raw.values[role][index])


def _each(raw: RawRows, role: str, problems: Problems, bad: Any = None, allowed: Any = None) -> list[Any]:
    """Check the values one by one; note each bad one and put `bad` in its place."""
    checked = []
    for index, value in enumerate(raw.values[role]):
        try:
            if value is None:
                raise _BadValueError("is missing")
            checked.append(CHECKS[role](value, allowed))
        except _BadValueError as problem:
            problems.setdefault(index, (role, str(problem)))
            checked.append(bad)
    return checked


def _floats(raw: RawRows, role: str, problems: Problems, allowed: Any = None) -> np.ndarray:
    """Check all values at once, and one by one only if some are bad or not plain numbers."""
    values = raw.values[role]
    allowed = allowed or ALLOWED[role]
    try:
        array = np.fromiter(map(float, values), float, len(values)) if None not in values else None
    except (OverflowError, TypeError, ValueError):
        array = None
    if array is not None and np.all(allowed.contains(array)):
        return array
    return np.array(_each(raw, role, problems, math.nan, allowed), dtype=float)


def _readable(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    if any("\udc80" <= letter <= "\udcff" for letter in text):  # undecodable bytes
        raise _BadValueError("is not text in the encoding of the file; try another encoding, such as latin-1")
    return text


def _arm(value: Any, allowed: Any = None) -> str:
    if isinstance(value, float):
        if math.isnan(value):
            raise _BadValueError("is missing")
        value = int(value) if value.is_integer() else value  # data frames store whole numbers with gaps as floats
    text = _readable(value)
    if not text.strip():
        raise _BadValueError("must name an arm")
    return text


def _number(value: Any, allowed: Any) -> float:
    if isinstance(value, str):
        _readable(value)
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    if not allowed.contains(result):
        raise _BadValueError(f"must be {allowed.description}")
    return result


def _reward(value: Any, allowed: Any) -> float:
    if isinstance(value, str) and value.strip().lower() in TRUE_AND_FALSE:
        return TRUE_AND_FALSE[value.strip().lower()]
    return _number(value, allowed)


def _time(value: Any, allowed: Any) -> float:
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = float(value)  # first, because Python also reads 20240531 as a date
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = datetime.fromisoformat(value.strip())
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if isinstance(value, datetime):
        value = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return value.timestamp()
    return _number(value, allowed)


CHECKS: dict[str, Callable[[Any, Any], Any]] = {
    "arm": _arm, "reward": _reward, "propensity": _number, "time": _time,
}  # fmt: skip


def _find_unsorted(times: np.ndarray, latest: float, problems: Problems) -> None:
    """Note each otherwise good row that is earlier than a row before it."""
    good = np.array([index not in problems for index in range(len(times))], dtype=bool)
    reached = np.maximum.accumulate(np.concatenate([[latest], np.where(good, times, -math.inf)]))[:-1]
    for index in np.flatnonzero(good & (times < reached)):
        problems[int(index)] = ("time", "is earlier than a row before it; sort the log by time")
