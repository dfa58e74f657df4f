"""Personalizer's features: lists of nested objects become one mapping from names to numbers and strings."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dynabandit.features.kinds import Hashed
from dynabandit.service.domain.decision_details import ContextValues
from dynabandit.service.errors import InvalidValueError

MAX_FEATURES = 1000  # of a context or an action
MAX_PARTS = 10_000  # values of a context or an action, with missing ones, lists and objects
MAX_TEXT = 1000  # characters of a name or a text
MAX_CHARACTERS = 20_000  # of a context or an action: those of open decisions are kept in memory
LARGEST_INTEGER = 2**53
LARGEST = 10**300
ACTION_COLUMNS = 6
ACTION = "action"  # the feature of an arm
_hashed_action = Hashed(name=ACTION, columns=ACTION_COLUMNS, required=True)

Flat = dict[str, bool | float | str]


def flat_features(where: str, objects: Iterable[Mapping[str, Any]] | None) -> Flat:
    """Return the features of a context or an action; the names of nested objects are joined by slashes.

    A list counts each of its texts as present, and numbers its other items. Missing values are left out.

    Examples
    --------
    >>> flat_features("contextFeatures", [{"user": {"age": 30, "likes": ["tea", "cake"]}}, {"os": "linux", "ip": None}])
    {'user/age': 30, 'user/likes/tea': True, 'user/likes/cake': True, 'os': 'linux'}
    """
    flattening = _Flattening(where)
    try:
        for one in objects or ():
            flattening.add("", one)
    except RecursionError:
        raise InvalidValueError(f"{where} must be nested less deeply") from None
    found = flattening.found
    if sum(len(name) + len(str(value)) for name, value in found.items()) > MAX_CHARACTERS:
        raise InvalidValueError(f"{where} must have at most {MAX_CHARACTERS} characters, got more")
    return found


class _Flattening:
    """The features that were found so far; whatever is too large or too much ends it before more is done."""

    def __init__(self, where: str) -> None:
        self.found: Flat = {}
        self._where, self._parts = where, 0

    def add(self, name: str, value: Any) -> None:
        """Add a value, or all that it contains."""
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise InvalidValueError(f"{self._where} must have at most {MAX_PARTS} values, lists and objects, got more")
        match value:
            case None:
                return
            case dict():
                for key, part in value.items():
                    self.add(self._longer(name, f"/{key}" if name else key), part)
            case list():
                for place, part in enumerate(value):
                    if isinstance(part, str):
                        self.add(self._longer(name, f"/{part}"), True)
                    else:
                        self.add(self._longer(name, f"/{place}"), part)
            case _:
                if isinstance(value, str):
                    self._check_length(len(value))
                is_large = type(value) is int and abs(value) > LARGEST_INTEGER  # the log has numbers of a usual size
                self.found[name] = float(min(max(value, -LARGEST), LARGEST)) if is_large else value
                if len(self.found) > MAX_FEATURES:
                    raise InvalidValueError(f"{self._where} must have at most {MAX_FEATURES} features, got more")

    def _longer(self, name: str, more: str) -> str:
        self._check_length(len(name) + len(more))
        return name + more

    def _check_length(self, length: int) -> None:
        if length > MAX_TEXT:
            raise InvalidValueError(
                f"{self._where} must have names and texts of at most {MAX_TEXT} characters, got more"
            )


def arm_features(where: str, objects: Iterable[Mapping[str, Any]]) -> ContextValues:
    """Return the features of an action as those of an arm: a vector of hashed columns."""
    vector = np.zeros(ACTION_COLUMNS)
    try:
        _hashed_action.write(vector, 0, flat_features(where, objects), None)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"{where}: {error}") from None
    return {ACTION: vector.tolist()}
