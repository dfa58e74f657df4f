"""The arms of a bandit: their names and columns, which of them can be chosen, and what is known about each."""

import copy
from collections.abc import Container, Sequence
from typing import Any, NamedTuple

import numpy as np

from dynabandit.bandit.serialization import bytes_from_json, bytes_to_json, is_large
from dynabandit.validation import integer, listed, suggestion

ARRAYS = ("active", "paused", "last", "plays", "pending")  # the keys of `ArmColumns.arrays` in JSON


class Arm(NamedTuple):
    """What a bandit knows about one arm.

    Mean and effective size are those of the posterior, prior included, if the policy draws from one (`Policy.belief`);
    before the first reward the mean is then that of the prior. For other policies they are those of the estimate, and
    the mean is NaN before the first reward.
    """

    mean: float
    variance: float
    forgetting: float
    effective_size: float
    idle: int
    plays: int
    paused: bool = False
    pending: int = 0  # plays whose rewards have not arrived


class Arms(dict[str, Arm]):
    """The arms of a bandit by name, shown as a table."""

    def __repr__(self) -> str:
        width = max(3, *(len(name) for name in self))
        lines = [f"{'arm':<{width}}    mean  variance  forgetting  effective size    idle   plays"]
        for name, arm in self.items():
            lines.append(
                f"{name:<{width}}  {arm.mean:6.3f}  {arm.variance:8.4f}  {arm.forgetting:10.4f}"
                f"  {arm.effective_size:14.1f}  {arm.idle:6d}  {arm.plays:6d}"
            )
        return "\n".join(lines)


class ArmColumns:
    """A column for every arm that a bandit ever had; the column of an arm never changes.

    `last_played` is the step of each arm's latest play, or the step at which it was added; `pending` counts the plays
    of each arm that have neither a reward nor were closed. They are the two rows of `played`.

    Examples
    --------
    >>> columns = ArmColumns(["red", "green", "blue"])
    >>> columns.remove("green")
    >>> columns.add("green", step=7)
    >>> columns.names, columns.of("green"), columns.available().tolist()
    (['red', 'green', 'blue', 'green'], 3, [0, 2, 3])
    """

    def __init__(self, names: Sequence[str]) -> None:
        if isinstance(names, str) or not hasattr(names, "__len__") or len(names) < 2:
            raise ValueError(f"arms must be a list with at least 2 different names, got {names!r}")
        count = len(names)
        if not all(isinstance(name, str) and name for name in names) or len(set(names)) < count:
            taken: set[str] = set()
            for name in names:
                _check_name(name, taken)
                taken.add(name)
        self.names = list(names)
        self.active, self.paused = np.ones(count, dtype=bool), np.zeros(count, dtype=bool)
        self.played, self.plays = np.zeros((2, count), dtype=np.int64), np.zeros(count, dtype=np.int64)
        self._index_names()

    def _index_names(self) -> None:
        columns = np.flatnonzero(self.active).tolist()
        self.index = {self.names[column]: column for column in columns}

    @property
    def last_played(self) -> np.ndarray:
        """The step of each arm's latest play."""
        return self.played[0]

    @property
    def pending(self) -> np.ndarray:
        """The number of each arm's plays whose rewards have not arrived."""
        return self.played[1]

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """All but the names: active, paused, last_played, plays and pending."""
        return self.active, self.paused, self.last_played, self.plays, self.pending

    def __len__(self) -> int:
        return len(self.names)

    def of(self, name: str) -> int:
        """Return the column of an arm that was not removed, or raise an error that lists the arms."""
        if isinstance(name, str) and name in self.index:
            return self.index[name]
        known = listed(self.index)
        if isinstance(name, str) and name in self.names:
            raise ValueError(f"arm {name!r} was removed. Arms: {known}")
        raise ValueError(f"unknown arm {name!r}.{suggestion(name, self.index)} Arms: {known}")

    def available(self, among: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Return the columns that can be chosen, neither removed nor paused; with `among`, those of these columns."""
        if among is None:
            return np.flatnonzero(self.active & ~self.paused)
        asked = np.unique(np.asarray(among, dtype=np.int64))
        asked = asked[(asked >= 0) & (asked < len(self))]
        return np.asarray(asked[self.active[asked] & ~self.paused[asked]])

    def count_open(self) -> int:
        """Return how many arms can be chosen, at least 1: the number of arms for the parameters of a policy."""
        return max(len(self.available()), 1)

    def play(self, column: int, step: int) -> None:
        """Record that a column was chosen."""
        played = self.played
        played[0, column] = step
        played[1, column] += 1
        self.plays[column] += 1

    def add(self, name: str, step: int) -> None:
        """Add an arm in a column of its own; a removed arm's name can be used again."""
        _check_name(name, self.index)
        self.names.append(name)
        self.active, self.paused = np.append(self.active, True), np.append(self.paused, False)
        self.played, self.plays = np.hstack([self.played, [[step], [0]]]), np.append(self.plays, 0)
        self.index[name] = len(self.names) - 1

    def remove(self, name: str) -> None:
        """Remove an arm permanently."""
        column = self.of(name)
        if len(self.index) <= 2:
            raise ValueError(f"cannot remove arm {name!r}: a bandit needs at least 2 arms")
        self.active[column] = False
        del self.index[name]

    def copy(self) -> "ArmColumns":
        """Return an independent copy."""
        other = copy.copy(self)
        other.names, other.index = self.names.copy(), self.index.copy()
        other.active, other.paused = self.active.copy(), self.paused.copy()
        other.played, other.plays = self.played.copy(), self.plays.copy()
        return other

    def to_json(self) -> list[dict[str, Any]] | dict[str, Any]:
        """Return a mapping for each column; pending plays only where there are some, as release 0.1.0 has none.

        If there are many columns, return one mapping with the names and the arrays as bytes.
        """
        if is_large(len(self)):
            arrays = zip(ARRAYS, self.arrays, strict=True)
            return {"names": self.names, **{key: bytes_to_json(array) for key, array in arrays}}
        keys = ("name", *ARRAYS)
        columns = zip(self.names, *(one.tolist() for one in self.arrays), strict=True)
        mappings = (dict(zip(keys, values, strict=True)) for values in columns)
        return [{key: value for key, value in one.items() if key != "pending" or value} for one in mappings]

    @classmethod
    def from_json(cls, arms: list[dict[str, Any]] | dict[str, Any], step: int) -> "ArmColumns":
        """Return what `to_json` wrote after `step` steps; a removed arm may have the name of another one."""
        return cls._from_bytes(arms, step) if isinstance(arms, dict) else cls._from_mappings(arms, step)

    @classmethod
    def _from_bytes(cls, content: dict[str, Any], step: int) -> "ArmColumns":
        columns = cls.__new__(cls)
        columns.names = content["names"]
        columns.active, columns.paused = (bytes_from_json(content[key], "bool") for key in ARRAYS[:2])
        last_played, plays, pending = (bytes_from_json(content[key], "int64") for key in ARRAYS[2:])
        if any(len(array) != len(columns) for array in (columns.active, columns.paused, last_played, plays, pending)):
            raise ValueError(f"all arrays of the arms must have {len(columns)} elements")
        for key, numbers in zip(ARRAYS[2:], (last_played, plays, pending), strict=True):
            if numbers.min() < 0 or numbers.max() > step:
                raise ValueError(f"{key} must be from 0 to {step}, got {numbers.min()} to {numbers.max()}")
        if not all(isinstance(name, str) and name for name in columns.names):
            raise TypeError("an arm's name must be a string that is not empty")
        columns.played, columns.plays = np.stack([last_played, pending]), plays
        columns._index_names()
        if not 2 <= len(columns.index) == np.count_nonzero(columns.active):
            raise ValueError("at least 2 arms must be active, and all of them must have different names")
        return columns

    @classmethod
    def _from_mappings(cls, arms: list[dict[str, Any]], step: int) -> "ArmColumns":
        taken: set[str] = set()
        for arm in arms:
            if not isinstance(arm["active"], bool):
                raise TypeError(f"active must be true or false, got {arm['active']!r}")
            _check_name(arm["name"], taken if arm["active"] else ())
            if arm["active"]:
                taken.add(arm["name"])
        if len(taken) < 2:
            raise ValueError(f"at least 2 arms must be active, got {len(taken)}")
        columns = cls([str(column) for column in range(len(arms))])
        columns.names = [arm["name"] for arm in arms]
        columns.active = np.array([arm["active"] for arm in arms], dtype=bool)
        columns.paused = np.array([arm.get("paused", False) for arm in arms], dtype=bool)
        last_played, plays, pending = (
            np.array([integer(key, {"pending": 0, **arm}[key], 0, step) for arm in arms])
            for key in ("last", "plays", "pending")
        )
        columns.played, columns.plays = np.stack([last_played, pending]), plays
        columns._index_names()
        return columns


def _check_name(name: Any, taken: Container[str]) -> None:
    if not isinstance(name, str) or not name:
        raise TypeError(f"an arm's name must be a string that is not empty, got {name!r}")
    if name in taken:
        raise ValueError(f"arms must have different names, got {name!r} twice")
