"""A policy or an environment on one line, as on the command line and in links: ``dts:memory=5,prior=[1, 3]``.

In place of a name, ``module:Class`` means a class of the user: ``my_policies:EwmaUCB:rate=0.1``.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

REFERENCE = re.compile(r"\s*([A-Za-z_][\w.]*:[A-Za-z_][\w.]*)\s*(:|$)")
PARAMETER = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(.*?)\s*", re.DOTALL)


def read_one_line(text: str, *, classes: bool = False) -> tuple[str, dict[str, Any]]:
    """Read ``name`` or ``name:parameter=value,parameter=value``; values as in TOML, quotes may be left out.

    With `classes`, the name may be ``module:Class``.

    Examples
    --------
    >>> read_one_line("aff-ots:step_size=variance-scaled,prior=[1, 3]")
    ('aff-ots', {'step_size': 'variance-scaled', 'prior': [1, 3]})
    >>> read_one_line("my_policies:EwmaUCB:rate=0.1", classes=True)
    ('my_policies:EwmaUCB', {'rate': 0.1})
    """
    name, colon, rest = text.partition(":")
    reference = REFERENCE.match(text) if classes else None
    if reference is not None:
        name, colon, rest = reference[1], reference[2], text[reference.end() :]
    parameters: dict[str, Any] = {}
    for part in _split_at_commas(rest) if colon else ():
        match = PARAMETER.fullmatch(part)
        if match is None:
            raise ValueError(f"must be name:parameter=value,parameter=value such as dts:memory=5, got {text!r}")
        key, value = match.groups()
        if key in parameters:
            raise ValueError(f"every parameter must be given once, got {key!r} twice in {text!r}")
        parameters[key] = _read_value(value)
    return name.strip(), parameters


def write_one_line(name: str, parameters: Mapping[str, Any]) -> str:
    """Write what `read_one_line` reads.

    Examples
    --------
    >>> write_one_line("piecewise", {"starts": [1, 3], "means": [[0.1, 0.9], [0.9, 0.1]]})
    'piecewise:starts=[1,3],means=[[0.1,0.9],[0.9,0.1]]'
    >>> write_one_line("case-3", {"rewards": {"name": "normal", "deviation": 0.5}})
    'case-3:rewards={name="normal",deviation=0.5}'
    """
    values = _write_values(parameters)
    return f"{name}:{values}" if values else name


def _write_values(parameters: Mapping[str, Any]) -> str:
    return ",".join(
        f"{key}={{{_write_values(value)}}}"
        if isinstance(value, Mapping)
        else f"{key}={json.dumps(value, separators=(',', ':'))}"
        for key, value in parameters.items()
    )


def _split_at_commas(text: str) -> list[str]:
    """Split at the commas outside brackets and braces."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _read_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:  # not TOML, or more digits than Python reads
        return text
    except RecursionError:
        raise ValueError(f"lists must be nested less deeply, got {text[:40]}...") from None
