"""What there is to choose from, read off the classes and their docstrings."""

import ast
import doctest
import importlib
import inspect
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, NamedTuple

__all__ = ["Entry", "Field", "Parameter", "entries", "example", "fields_of"]


class Parameter(NamedTuple):
    """A parameter with its default, or several that are described together."""

    name: str  # such as "window = None", or "step_size = 0.001, floor = 0.0"
    description: str


class Entry(NamedTuple):
    """A policy or an environment."""

    name: str
    description: str
    parameters: list[Parameter]


def entries(registry: Mapping[str, type]) -> list[Entry]:
    """Return an entry for each class of a registry.

    Examples
    --------
    >>> import dynabandit as db
    >>> entry = entries(db.policies.POLICIES)[0]
    >>> entry.name, [parameter.name for parameter in entry.parameters]
    ('eps-greedy', ['epsilon = 0.1', 'burn_in = 1'])
    """
    return [
        Entry(name, (inspect.getdoc(kind) or "").partition("\n\n")[0], _parameters(kind))
        for name, kind in registry.items()
    ]


def example(kind: Any) -> dict[str, Any]:
    """Return the parameters that a docstring's example makes an environment or a policy with, where there is one.

    Examples
    --------
    >>> import dynabandit as db
    >>> example(db.environments.ENVIRONMENTS["fixed"])
    {'means': [0.2, 0.8]}
    """
    shown = doctest.DocTestParser().get_examples(inspect.getdoc(kind) or "")
    for call in (node for one in shown for node in ast.walk(ast.parse(one.source)) if isinstance(node, ast.Call)):
        if [ast.unparse(argument) for argument in call.args] == [repr(kind.name)]:
            return {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}
    return {}


class Field(NamedTuple):
    """One parameter as a form asks for it; `default` is None where there is none."""

    name: str
    default: Any
    description: str


def fields_of(kind: Any) -> list[Field]:
    """Return a field for each parameter of a policy or an environment.

    Examples
    --------
    >>> import dynabandit as db
    >>> fields_of(db.policies.POLICIES["d-ucb"])[0].name
    'discount'
    >>> fields_of(db.policies.POLICIES["aff-ots"])[1].description
    "The smallest forgetting factor that is allowed, in [0, 1]. The paper uses 0; Bodenham & Adams' package uses 0.6."
    """
    left = {field.name: field for field in fields(kind) if field.init}
    described = [
        (left.pop(name), description)
        for names, description in _descriptions(inspect.getdoc(kind) or "", whole=True)
        for name in names
        if name in left
    ]
    described += [(field, "") for field in left.values()]
    return [
        Field(one.name, None if one.default is MISSING else one.default, _followed(one.name, text))
        for one, text in described
    ]


def _followed(name: str, text: str) -> str:
    """Return what is said elsewhere about a parameter, where its description only says where."""
    found = re.search(r"see `([\w.]+)\.(\w+)`", text)
    if found is None:
        return text
    there = inspect.getdoc(getattr(importlib.import_module(found[1]), found[2])) or ""
    return next((words for names, words in _descriptions(there, whole=True) if name in names), text)


def _parameters(kind: Any) -> list[Parameter]:
    left = {field.name: field for field in fields(kind) if field.init}
    found = []
    for names, description in _descriptions(inspect.getdoc(kind) or ""):
        known = [_with_default(left.pop(name)) for name in names if name in left]
        found += [Parameter(", ".join(known), description)] if known else []
    return found + [Parameter(_with_default(field), "") for field in left.values()]


def _with_default(field: Any) -> str:
    return f"{field.name} (needed)" if field.default is MISSING else f"{field.name} = {field.default!r}"


def _descriptions(text: str, whole: bool = False) -> list[tuple[list[str], str]]:
    """Read the section ``Parameters`` of a docstring: names, and the first sentence about them or all of it."""
    section = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    found: list[tuple[list[str], list[str]]] = []
    for line in section.splitlines():
        if line.startswith(" "):
            found[-1][1].append(line.strip())
        else:
            found.append(([name.strip() for name in line.split(",")], []))
    joined = [(names, " ".join(lines)) for names, lines in found]
    return joined if whole else [(names, text.partition(". ")[0].rstrip(".")) for names, text in joined]
