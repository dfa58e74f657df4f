"""Personalizer's features: lists of nested objects become one mapping from names to numbers and strings."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dynabandit.features.kinds import Hashed
from dynabandit.service.domain.decision_details import ContextValues
from dynabandit.service.errors import InvalidValueError

MAX_FEATURES = 1000  # of a context or an action
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
    found: Flat = {}
    for one in objects or ():
        _add(found, "", one, where)
    if sum(len(name) + len(str(value)) for name, value in found.items()) > MAX_CHARACTERS:
        raise InvalidValueError(f"{where} must have at most {MAX_CHARACTERS} characters, got more")
    return found


def _add(found: Flat, name: str, value: Any, where: str) -> None:
    match value:
        case None:
            return
        case dict():
            for key, part in value.items():
                _add(found, f"{name}/{key}" if name else key, part, where)
        case list():
            for place, part in enumerate(value):
                if isinstance(part, str):
                    _add(found, f"{name}/{part}", True, where)
                else:
                    _add(found, f"{name}/{place}", part, where)
        case _:
            if len(name) > MAX_TEXT or (isinstance(value, str) and len(value) > MAX_TEXT):
                raise InvalidValueError(f"{where} must have names and texts of at most {MAX_TEXT} characters, got more")
            is_large = type(value) is int and abs(value) > LARGEST_INTEGER  # the log has numbers of a usual size
            found[name] = float(min(max(value, -LARGEST), LARGEST)) if is_large else value
            if len(found) > MAX_FEATURES:
                raise InvalidValueError(f"{where} must have at most {MAX_FEATURES} features, got more")


def arm_features(where: str, objects: Iterable[Mapping[str, Any]]) -> ContextValues:
    """Return the features of an action as those of an arm: a vector of hashed columns."""
    vector = np.zeros(ACTION_COLUMNS)
    try:
        _hashed_action.write(vector, 0, flat_features(where, objects), None)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"{where}: {error}") from None
    return {ACTION: vector.tolist()}
