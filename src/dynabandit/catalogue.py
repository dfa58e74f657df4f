"""Descriptions of policies and environments and of their parameters, from classes and docstrings."""

import ast
import doctest
import importlib
import inspect
import itertools
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, NamedTuple

from dynabandit.core.docstrings import parameter_descriptions
from dynabandit.policies import Policy
from dynabandit.policies.compositions import ROLES, is_composition, parts_of
from dynabandit.policies.fit import misfit
from dynabandit.policies.memories.models import ModelMemory
from dynabandit.policies.preset import Preset


class Parameter(NamedTuple):
    """A parameter with its default, or several that share a description."""

    name: str  # such as "window = None", or "step_size = 0.001, floor = 0.0"
    description: str


class Entry(NamedTuple):
    """A policy or an environment."""

    name: str
    description: str  # the first paragraph of the docstring: in plain words what it does, and when to use it
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
    return [Entry(name, _first_paragraph(kind), _parameters(kind)) for name, kind in registry.items()]


def _first_paragraph(kind: Any) -> str:
    return (inspect.getdoc(kind) or "").partition("\n\n")[0]


def summary(policy: type[Policy]) -> str:
    """Return what a policy does, in a sentence or two: of a composition, what each of its parts does."""
    kinds = parts_of(policy).kinds() if is_composition(policy) else (policy,)
    return " ".join(" ".join(map(_first_paragraph, kinds)).split()).replace("`", "")


def part_names(policy: type[Policy]) -> dict[str, str] | None:
    """Return the names of the memory, the rule and the detector of a policy, or None if it is not made of parts.

    Examples
    --------
    >>> import dynabandit as db
    >>> part_names(db.policies.POLICIES["aff-ots"])
    {'memory': 'adaptive', 'rule': 'ots', 'detector': ''}
    """
    if not issubclass(policy, Preset):
        return None
    names = [(kind.variant_of or kind).name for kind in parts_of(policy).kinds()]
    return dict(itertools.zip_longest(ROLES, names, fillvalue=""))


def part_menus() -> dict[str, list[dict[str, Any]]]:
    """Return the memories, the rules and the detectors that users can choose."""
    known = {role: [kind for kind in parts.values() if kind.variant_of is None] for role, (_, parts) in ROLES.items()}
    without_features = [kind for kind in known["memory"] if not issubclass(kind, ModelMemory)]
    return {
        role: [
            {
                "name": kind.name,
                "text": " ".join(_first_paragraph(kind).split()).replace("`", ""),
                "contextual": (role == "memory" and kind not in without_features)
                or (role == "rule" and all(misfit(memory, kind) for memory in without_features)),
            }
            for kind in kinds
        ]
        for role, kinds in known.items()
    }


def example(kind: Any) -> dict[str, Any]:
    """Return the parameters in the docstring example of an environment or a policy; empty if there are none.

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
    """A parameter as a form field; `default` is None if the parameter has none."""

    name: str
    default: Any
    description: str


def fields_of(kind: Any) -> list[Field]:
    """Return a form field for each parameter of a policy or an environment.

    Examples
    --------
    >>> import dynabandit as db
    >>> fields_of(db.policies.POLICIES["d-ucb"])[0].name
    'discount'
    >>> fields_of(db.policies.POLICIES["aff-ots"])[1].description
    'The minimum forgetting factor, in [0, 1]; 0 in the paper, 0.6 in the package of Bodenham & Adams.'
    """
    return [
        Field(one.name, None if one.default is MISSING else one.default, _resolve_reference(one.name, text))
        for group, text in _documented_fields(kind)
        for one in group
    ]


def _resolve_reference(name: str, text: str) -> str:
    """Return the description of a parameter, from elsewhere if `text` only refers to it."""
    found = re.search(r"see `([\w.]+)\.(\w+)`", text)
    if found is None:
        return text
    there = inspect.getdoc(getattr(importlib.import_module(found[1]), found[2])) or ""
    return next((description for names, description in parameter_descriptions(there) if name in names), text)


def _parameters(kind: Any) -> list[Parameter]:
    return [
        Parameter(", ".join(map(_with_default, group)), text.partition(". ")[0].rstrip("."))
        for group, text in _documented_fields(kind)
    ]


def _with_default(field: Any) -> str:
    return f"{field.name} (needed)" if field.default is MISSING else f"{field.name} = {field.default!r}"


def _documented_fields(kind: Any) -> list[tuple[list[Any], str]]:
    """Return the fields of a dataclass with their descriptions; several may share one.

    The reward law, which every environment has, is described by `dynabandit.environments.reward_law`.
    """
    left = {field.name: field for field in fields(kind) if field.init and field.name != "rewards"}
    found = []
    for names, description in parameter_descriptions(inspect.getdoc(kind) or ""):
        if known := [left.pop(name) for name in names if name in left]:
            found.append((known, description))
    return found + [([field], "") for field in left.values()]
