"""The JSON of a bandit, with a format, a version and a checksum."""

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from dynabandit.core.json_values import plain
from dynabandit.policies import Policy, policy
from dynabandit.validation import number

FORMAT = "dynabandit.bandit"
VERSION = 1
MANY_COLUMNS = 1000  # from which arrays are written as bytes


def number_to_json(value: float) -> float | str:
    """Return a number as JSON can store it: infinity as a string."""
    return value if math.isfinite(value) else str(value)


def number_from_json(value: Any) -> float:
    """Return the number that `number_to_json` wrote; NaN is never part of a state."""
    if isinstance(value, str) and value in ("inf", "-inf"):
        return float(value)
    return number("each number of the state", value, -math.inf, math.inf)


def is_large(columns: int) -> bool:
    """Whether the arrays of so many columns are written as bytes: with 100,000 arms lists would take seconds."""
    return columns >= MANY_COLUMNS


def array_to_json(array: np.ndarray) -> list[Any] | dict[str, Any]:
    """Return the numbers of an array as nested lists, or those of a large one as bytes."""
    if is_large(array.shape[-1]):
        return bytes_to_json(array)
    if array.ndim > 1:
        return [array_to_json(row) for row in array]
    return [number_to_json(value) for value in array.tolist()]


def array_from_json(values: list[Any] | dict[str, Any]) -> np.ndarray:
    """Return the array that `array_to_json` wrote."""
    if isinstance(values, dict):
        array = bytes_from_json(values, "float64")
        if np.isnan(array).any():
            raise ValueError("each number of the state must be a number, got nan")
        return array
    rows = [list(map(number_from_json, row)) if isinstance(row, list) else number_from_json(row) for row in values]
    return np.array(rows)


def bytes_to_json(array: np.ndarray) -> dict[str, Any]:
    """Return the shape and the type of an array, and its little-endian bytes, compressed by zlib.

    Examples
    --------
    >>> content = bytes_to_json(np.array([1, 2]))
    >>> content["shape"], content["type"], bytes_from_json(content, "int64").tolist()
    ([2], 'int64', [1, 2])
    """
    content = zlib.compress(array.astype(array.dtype.newbyteorder("<")).tobytes(), level=1)
    return {"shape": list(array.shape), "type": array.dtype.name, "bytes": base64.b64encode(content).decode()}


def bytes_from_json(content: dict[str, Any], dtype: str) -> np.ndarray:
    """Return the array that `bytes_to_json` wrote, which must have this type."""
    if content["type"] != dtype:
        raise ValueError(f"the type of an array must be {dtype}, got {content['type']!r}")
    size = math.prod(content["shape"]) * np.dtype(dtype).itemsize
    unpacked = zlib.decompressobj().decompress(base64.b64decode(content["bytes"]), size + 1)
    numbers = np.frombuffer(unpacked, dtype=np.dtype(dtype).newbyteorder("<"))
    return numbers.reshape(content["shape"]).astype(dtype)


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


def encoded(content: dict[str, Any], **options: Any) -> str:
    """Return the JSON of a bandit; if it is large, made in parts, between which other threads can run."""
    if isinstance(content.get("arms"), dict):
        return "".join(json.JSONEncoder(**options).iterencode(content))
    return json.dumps(content, **options)


def checksum(content: dict[str, Any]) -> str:
    """Return a hash of the content, to detect damage."""
    text = encoded(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def write(state: dict[str, Any]) -> str:
    """Return a bandit's state as text."""
    content = {"format": FORMAT, "version": VERSION, **state}
    return encoded({**content, "checksum": checksum(content)}, allow_nan=False)


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


def policy_of(content: dict[str, Any], given: Policy | None) -> Policy:
    """Return the policy of a saved bandit; one that is not in the registry has to be given."""
    if given is None:
        return policy(content["policy"], **content["parameters"])
    if given.name != content["policy"]:
        raise ValueError(f"it holds policy {content['policy']!r}, not {given.name!r}")
    if plain(given.parameters) != content["parameters"]:
        raise ValueError(f"it holds parameters {content['parameters']}, not {given.parameters}")
    return given
