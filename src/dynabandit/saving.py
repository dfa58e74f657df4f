"""How a bandit is written down: JSON with a format, a version and a checksum."""

import hashlib
import json
import math
from typing import Any

from dynabandit.errors import number

__all__ = ["FORMAT", "VERSION", "checksum", "number_of", "plain", "read"]

FORMAT = "dynabandit.bandit"
VERSION = 1


def plain(value: float) -> float | str:
    """Infinity has no place in JSON; a string has."""
    return value if math.isfinite(value) else str(value)


def number_of(value: Any) -> float:
    """Read what `plain` wrote; NaN is never part of a state."""
    if isinstance(value, str) and value in ("inf", "-inf"):
        return float(value)
    return number("each number of the state", value, -math.inf, math.inf)


def checksum(content: dict[str, Any]) -> str:
    """Return a hash of the content, which tells whether it came through whole."""
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()


def read(text: str) -> dict[str, Any]:
    """Parse and verify what `to_json` wrote."""
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
