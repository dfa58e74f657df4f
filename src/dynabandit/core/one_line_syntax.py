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

    With `classes`, the name may be ``module:Class``. Parts of a composition may have parameters each.

    Examples
    --------
    >>> read_one_line("aff-ots:step_size=variance-scaled,prior=[1, 3]")
    ('aff-ots', {'step_size': 'variance-scaled', 'prior': [1, 3]})
    >>> read_one_line("my_policies:EwmaUCB:rate=0.1", classes=True)
    ('my_policies:EwmaUCB', {'rate': 0.1})
    >>> read_one_line("kl-ucb:loglog=3 + window:window=500")
    ('kl-ucb + window', {'loglog': 3, 'window': 500})
    """
    parts = _split(text, "+")
    if len(parts) > 1:
        return _read_composition(text, [read_one_line(part, classes=classes) for part in parts])
    name, colon, rest = text.partition(":")
    reference = REFERENCE.match(text) if classes else None
    if reference is not None:
        name, colon, rest = reference[1], reference[2], text[reference.end() :]
    parameters: dict[str, Any] = {}
    for part in _split(rest, ",") if colon else ():
        match = PARAMETER.fullmatch(part)
        if match is None:
            raise ValueError(f"must be name:parameter=value,parameter=value such as dts:memory=5, got {text!r}")
        key, value = match.groups()
        if key in parameters:
            raise ValueError(f"every parameter must be given once, got {key!r} twice in {text!r}")
        parameters[key] = _read_value(value)
    return name.strip(), parameters


def with_written(text: str, parameters: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a name and its parameters: those written after it, and those given as arguments.

    Examples
    --------
    >>> with_written("dts:memory=5", {"burn_in": 1}), with_written("dts", {"memory": 5})
    (('dts', {'memory': 5, 'burn_in': 1}), ('dts', {'memory': 5}))
    """
    if ":" not in text or "=" not in text:
        return text, dict(parameters)
    name, written = read_one_line(text)
    for key in written:
        if key in parameters:
            raise TypeError(f"parameter {key!r} is given twice: in {text!r} and as an argument")
    return name, {**written, **parameters}


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


def _read_composition(text: str, parts: list[tuple[str, dict[str, Any]]]) -> tuple[str, dict[str, Any]]:
    """Return the name of a composition and the parameters of all its parts."""
    together: dict[str, Any] = {}
    for _, parameters in parts:
        for key, value in parameters.items():
            if key in together:
                raise ValueError(f"every parameter must be given once, got {key!r} twice in {text!r}")
            together[key] = value
    return " + ".join(name.strip() for name, _ in parts), together


def _split(text: str, at: str) -> list[str]:
    """Split at a character outside brackets, braces and quotes; a sign in a number such as 1e+3 does not count."""
    parts, depth, quote = [""], 0, ""
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        depth += (character in "[{") - (character in "]}")
        is_sign = at == "+" and text[place + 1 : place + 2].isdigit()
        if character == at and depth == 0 and not quote and not is_sign:
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
