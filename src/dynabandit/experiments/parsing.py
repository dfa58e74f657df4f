"""Policies and environments as people write them on one line: on a command line, in a link."""

import re
import tomllib
from typing import Any

from dynabandit.experiments.spec import Named

__all__ = ["named"]

PARAMETER = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(.*?)\s*", re.DOTALL)
COMMA = re.compile(r",(?![^\[]*\])")  # not one inside brackets


def named(text: str) -> Named:
    """Read ``name`` or ``name:parameter=value,parameter=value``; values as in TOML, quotes may be left out.

    Examples
    --------
    >>> named("aff-ots:step_size=variance-scaled,prior=[1, 3]")
    Named(name='aff-ots', parameters={'step_size': 'variance-scaled', 'prior': (1, 3)})
    """
    name, colon, rest = text.partition(":")
    parameters: dict[str, Any] = {}
    for part in COMMA.split(rest) if colon else ():
        match = PARAMETER.fullmatch(part)
        if match is None:
            raise ValueError(f"expected name:parameter=value,parameter=value such as dts:memory=5, got {text!r}")
        key, value = match.groups()
        if key in parameters:
            raise ValueError(f"{key!r} is given twice in {text!r}")
        parameters[key] = _value(value)
    return Named(name.strip(), parameters)


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
