"""The JSON of a bandit, with a format, a version and a checksum."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dynabandit.policies import Policy, policy
from dynabandit.validation import number

FORMAT = "dynabandit.bandit"
VERSION = 1


def plain(value: Any) -> Any:
    """Return parameters as JSON would: Python numbers for those of NumPy, and lists for tuples and arrays.

    Examples
    --------
    >>> plain({"prior": (2.0, np.float64(1.0))})
    {'prior': [2.0, 1.0]}
    """
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def number_to_json(value: float) -> float | str:
    """Return a number as JSON can store it: infinity as a string."""
    return value if math.isfinite(value) else str(value)


def number_from_json(value: Any) -> float:
    """Return the number that `number_to_json` wrote; NaN is never part of a state."""
    if isinstance(value, str) and value in ("inf", "-inf"):
        return float(value)
    return number("each number of the state", value, -math.inf, math.inf)


def array_to_json(array: np.ndarray) -> list[Any]:
    """Return the numbers of an array as nested lists."""
    if array.ndim > 1:
        return [array_to_json(row) for row in array]
    return [number_to_json(value) for value in array.tolist()]


def array_from_json(values: list[Any]) -> np.ndarray:
    """Return the array that `array_to_json` wrote."""
    rows = [list(map(number_from_json, row)) if isinstance(row, list) else number_from_json(row) for row in values]
    return np.array(rows)


def check_shape(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array, or raise an error if it has another shape."""
    if array.shape != shape:
        raise ValueError(f"its state has shape {array.shape}, not {shape}")
    return array


def digest(rest: list[Any], arrays: Iterable[np.ndarray]) -> str:
    """Return a hash of plain values and arrays, the same on all machines."""
    found = hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode())
    for array in arrays:
        found.update(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())
    return found.hexdigest()


def checksum(content: dict[str, Any]) -> str:
    """Return a hash of the content, to detect damage."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def write(state: dict[str, Any]) -> str:
    """Return a bandit's state as text."""
    content = {"format": FORMAT, "version": VERSION, **state}
    return json.dumps({**content, "checksum": checksum(content)}, allow_nan=False)


def read(text: str) -> dict[str, Any]:
    """Parse and verify what `write` returned."""
    try:
        content = json.loads(text)
    except (RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"text must be what Bandit.to_json wrote, but is no JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"text must be what Bandit.to_json wrote, with format {FORMAT!r}")
    if content.get("version") != VERSION:
        raise ValueError(
            f"text has format version {content.get('version')!r}, but this release reads version {VERSION}"
        )
    found = content.pop("checksum", None)
    if found != checksum(content):
        raise ValueError("text is damaged: its checksum does not fit its content")
    return content


def check_given(policy: Any) -> None:
    """Raise an error unless `policy` is a policy object or None."""
    if policy is not None and not isinstance(policy, Policy):
        raise TypeError(f"policy must be a policy object, and only where it is not in the registry, got {policy!r}")


def policy_of(content: dict[str, Any], given: Policy | None) -> Policy:
    """Return the policy of a saved bandit; one that is not in the registry has to be given."""
    if given is None:
        return policy(content["policy"], **content["parameters"])
    if given.name != content["policy"]:
        raise ValueError(f"it holds policy {content['policy']!r}, not {given.name!r}")
    if plain(given.parameters) != content["parameters"]:
        raise ValueError(f"it holds parameters {content['parameters']}, not {given.parameters}")
    return given
