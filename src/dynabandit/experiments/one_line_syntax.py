"""Policies and environments as people write them on one line: on a command line, in a link."""

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from dynabandit.experiments.spec import Named

__all__ = ["named", "written"]

PARAMETER = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(.*?)\s*", re.DOTALL)


def named(text: str) -> Named:
    """Read ``name`` or ``name:parameter=value,parameter=value``; values as in TOML, quotes may be left out.

    Examples
    --------
    >>> named("aff-ots:step_size=variance-scaled,prior=[1, 3]")
    Named(name='aff-ots', parameters={'step_size': 'variance-scaled', 'prior': (1, 3)})
    >>> named("piecewise:starts=[1,3],means=[[0.1,0.9],[0.9,0.1]]").make_environment().arms
    2
    """
    name, colon, rest = text.partition(":")
    parameters: dict[str, Any] = {}
    for part in _parts(rest) if colon else ():
        match = PARAMETER.fullmatch(part)
        if match is None:
            raise ValueError(f"must be name:parameter=value,parameter=value such as dts:memory=5, got {text!r}")
        key, value = match.groups()
        if key in parameters:
            raise ValueError(f"every parameter must be given once, got {key!r} twice in {text!r}")
        parameters[key] = _value(value)
    return Named(name.strip(), parameters)


def written(name: str, parameters: Mapping[str, Any]) -> str:
    """Write what `named` reads.

    Examples
    --------
    >>> written("piecewise", {"starts": [1, 3], "means": [[0.1, 0.9], [0.9, 0.1]]})
    'piecewise:starts=[1,3],means=[[0.1,0.9],[0.9,0.1]]'
    """
    values = ",".join(f"{key}={json.dumps(value, separators=(',', ':'))}" for key, value in parameters.items())
    return f"{name}:{values}" if values else name


def _parts(text: str) -> list[str]:
    """Cut at the commas that stand in no brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:  # no TOML, or more digits than Python reads
        return text
    except RecursionError:
        raise ValueError(f"lists must be nested less deeply, got {text[:40]}...") from None
