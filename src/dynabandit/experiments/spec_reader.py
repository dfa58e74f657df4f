"""Reads specs strictly: TOML files (``docs/specs.md``), other tables of values, and policies written on one line.

Errors name the key, the value and what would be valid, and suggest the nearest name.
"""

import itertools
import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec

from dynabandit.catalogue import example
from dynabandit.core.one_line_syntax import read_one_line
from dynabandit.environments import (
    Delay,
    Environment,
    delay as make_delay,
    environment as make_environment,
    environment_class,
)
from dynabandit.experiments.spec import CoverageSpec, Experiment, Part, PathSpec, Spec
from dynabandit.extras import import_extra
from dynabandit.plugins import class_or_name
from dynabandit.policies import Policy, policy as make_policy, registered_name
from dynabandit.validation import MissingParameterError, unknown

GRID = "grid"
MOST_UNKNOWN = 4  # unknown keys that are reported: each takes a search for the nearest name
LONGEST = 100  # characters of a key in a report

Made = TypeVar("Made", bound=Part)
Write = Callable[[str, Mapping[str, Any]], str]


@dataclass(frozen=True)
class FieldProblem:
    """What is wrong with one field of a spec, such as ``experiments[0].policies[1]``."""

    field: str
    problem: str

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}" if self.field else self.problem


class SpecError(ValueError):
    """A spec that cannot be run; `problems` says why, field by field."""

    def __init__(self, problems: list[FieldProblem] | str, file: str = "") -> None:
        problems = [FieldProblem("", problems)] if isinstance(problems, str) else problems
        super().__init__((f"{file}: " if file else "") + "; ".join(map(str, problems)))
        self.problems = problems


class SpecFile(msgspec.Struct):
    """A whole file."""

    title: Any = None
    figure: Any = None
    defaults: dict[str, Any] = {}
    experiments: list[dict[str, Any]] = []
    sample_paths: list[dict[str, Any]] = []
    coverage: list[dict[str, Any]] = []


def load(path: str | Path) -> Spec:
    """Read a spec from a TOML file."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"must be TOML in UTF-8, but holds other bytes: {error}", str(path)) from None
    return loads(text, file=str(path))


def loads(text: str, file: str = "spec.toml") -> Spec:
    """Read a spec from text.

    Examples
    --------
    >>> spec = loads('''
    ... [[experiments]]
    ... id = "trial"
    ... environment = { name = "case-1", arms = 3 }
    ... policies = ["ucb", { name = "dts", prior = [1, 1], grid.memory = [5, 100] }]
    ... ''')
    >>> [policy.label for policy in spec.experiments[0].policies]
    ['ucb', 'dts(memory=5, prior=(1, 1))', 'dts(memory=100, prior=(1, 1))']
    """
    try:
        return _read_spec(tomllib.loads(text), Path(file).stem)
    except SpecError as error:
        raise SpecError(error.problems[:1], file) from None
    except RecursionError:
        raise SpecError("lists and tables must be nested less deeply", file) from None
    except (TypeError, ValueError) as error:
        raise SpecError(str(error), file) from None


def dumps(spec: Spec) -> str:
    """Return a spec as TOML with every key of its parts; `loads` gives an equal one back."""
    return str(import_extra("tomli_w", "lab").dumps(spec.as_dict()))


def _read_spec(table: dict[str, Any], stem: str) -> Spec:
    file = read_table(SpecFile, table)
    _raise_problems(_unknown_keys(file.defaults, SHARED["experiments"], "defaults."))
    safe_stem = re.sub(r"[^A-Za-z0-9]+", "-", stem).strip("-")
    figure = safe_stem or "experiments" if file.figure is None else file.figure
    defaults = {"figure": figure, **file.defaults}

    def read_all(part: type[Made], kind: str) -> tuple[Made, ...]:
        shared = {name: value for name, value in defaults.items() if name in SHARED[kind]}
        tables = enumerate(getattr(file, kind))
        return tuple(_read_part(part, {**shared, **table}, f"{kind}[{index}]") for index, table in tables)

    return Spec(
        title=stem if file.title is None else file.title,
        experiments=read_all(Experiment, "experiments"),
        sample_paths=read_all(PathSpec, "sample_paths"),
        coverage=read_all(CoverageSpec, "coverage"),
    )


SHARED = {
    "experiments": tuple(field.name for field in fields(Experiment) if field.name not in ("id", "title")),
    "sample_paths": ("figure", "horizon", "seed"),
    "coverage": ("figure", "seed"),
}  # the defaults that each kind of part takes


def _read_part(part: type[Made], table: dict[str, Any], where: str) -> Made:
    """Return a part of a spec; it checks its values itself, except those that are made of entries."""
    known = fields(part)
    problems = _unknown_keys(table, [field.name for field in known], f"{where}.")
    values = {}
    for field in known:
        if field.name in table:
            read = READERS.get(field.name, lambda value: value)
            try:
                values[field.name] = read(table[field.name])
            except (TypeError, ValueError) as error:
                key = error.key if isinstance(error, _EntryError) else ""
                problems.append(FieldProblem(f"{where}.{field.name}{key}", str(error)))
        elif field.default is MISSING:
            problems.append(FieldProblem(where, f"missing key {field.name!r}"))
    _raise_problems(problems)
    try:
        return part(**values)
    except (TypeError, ValueError) as error:
        raise SpecError([FieldProblem(where, str(error))]) from None


def _unknown_keys(table: Mapping[str, Any], names: Sequence[str], prefix: str) -> list[FieldProblem]:
    surplus = [name for name in table if name not in names][:MOST_UNKNOWN]
    return [FieldProblem(f"{prefix}{name[:LONGEST]}", str(unknown("key", name, names))) for name in surplus]


def _raise_problems(problems: list[FieldProblem]) -> None:
    if problems:
        raise SpecError(problems)


Table = TypeVar("Table", bound=msgspec.Struct)


def read_table(table_type: type[Table], table: Mapping[str, Any]) -> Table:
    """Convert a table, or raise a `SpecError` with the problems of all its fields."""
    known = msgspec.structs.fields(table_type)
    problems = _unknown_keys(table, [field.name for field in known], "")
    values: dict[str, Any] = {}
    for field in known:
        if field.name in table:
            try:
                values[field.name] = msgspec.convert(table[field.name], field.type)
            except msgspec.ValidationError as error:
                problems.append(_problem(field.name, field.type, table[field.name], error))
        elif field.required:
            problems.append(FieldProblem("", f"missing key {field.name!r}"))
    _raise_problems(problems)
    return table_type(**values)


def _problem(key: str, kind: Any, value: Any, error: msgspec.ValidationError) -> FieldProblem:
    """Return an error of msgspec in our words."""
    place = "".join(re.findall(r" - at `\$([^`]*)`$", str(error)))  # such as [1], an index of a list
    for index in re.findall(r"\[(\d+)\]", place):
        value = value[int(index)]
    return FieldProblem(f"{key}{place}", f"must be {_valid(key, kind, is_element=bool(place))}, got {value!r}")


def _valid(key: str, kind: Any, *, is_element: bool) -> str:
    """Say which values a type takes."""
    if get_origin(kind) is Annotated:
        limits = kind.__metadata__[0]
        return str(limits.ge) if limits.ge == limits.le else f"a whole number from {limits.ge} to {limits.le}"
    if get_origin(kind) is Literal:
        values = get_args(kind)
        return ", ".join(values) if len(values) == 1 else f"one of {', '.join(values)}"
    return "a table" if is_element or kind == dict[str, Any] else f"a list of tables, written [[{key}]]"


class _EntryError(ValueError):
    """What is wrong with a key inside a policy or an environment."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(problem)
        self.key = key


def read_policy(value: Any) -> Policy:
    """Return the policy of an entry such as ``"ucb"``, ``"dts:memory=5"`` or ``{"name": "dts", "memory": 5}``.

    Examples
    --------
    >>> read_policy("aff-ots:step_size=variance-scaled,prior=[1, 3]").label
    'aff-ots(step_size=variance-scaled, prior=(1, 3))'
    """
    name, parameters = _split(value)
    return make_policy(_trusted(name), **parameters)


def _trusted(name: str) -> str | type[Policy]:
    """Return the policy that a name means, in which classes may be written as ``module:Class``."""
    return registered_name(name) if "+" in name else class_or_name(name, Policy)


def read_environment(value: Any, arms: int | None = None, write: Write | None = None) -> Environment:
    """Return the environment of an entry, which is written like a policy.

    Parameters
    ----------
    value
        Such as ``"case-3"`` or ``"reflected-walk:variance=0.01"``, or a table.
    arms
        The number of arms, in place of the one of the entry.
    write
        Writes an example of the missing parameters in the syntax that the entry came in, by default TOML.

    Examples
    --------
    >>> read_environment("piecewise:starts=[1,3],means=[[0.1,0.9],[0.9,0.1]]").arms
    2
    """
    name, parameters = _split(value)
    if arms is not None:
        parameters["arms"] = arms
    kind = class_or_name(name, Environment)
    try:
        return make_environment(kind, **parameters)
    except MissingParameterError as error:
        shown = example(environment_class(kind) if isinstance(kind, str) else kind)
        such_as = f", such as {(write or _inline_table)(name, shown)}" if shown else ""
        raise TypeError(f"{error.lack}{such_as}; dynabandit list shows all parameters") from None


def read_delay(value: Any) -> Delay:
    """Return the delay of an entry such as ``"geometric:mean=100,lost=0.01"`` or ``{"kind": "fixed", "steps": 5}``.

    Examples
    --------
    >>> read_delay("geometric:mean=100,lost=0.01").label
    'geometric(lost=0.01, mean=100)'
    """
    kind, parameters = _split(value, key="kind", what="delay")
    try:
        return make_delay(kind, **parameters)
    except MissingParameterError as error:
        raise TypeError(error.lack) from None


def _read_policies(value: Any) -> tuple[Policy, ...]:
    """Return the policies of a list of entries."""
    if not isinstance(value, list):
        raise _EntryError("", f"must be a list of policies, got {value!r}")
    policies = []
    for index, entry in enumerate(value):
        try:
            policies += _read_grid(entry)
        except (TypeError, ValueError) as error:
            key = error.key if isinstance(error, _EntryError) else ""
            raise _EntryError(f"[{index}]{key}", str(error)) from None
    return tuple(policies)


READERS: dict[str, Callable[[Any], Any]] = {
    "environment": read_environment,
    "policies": _read_policies,
    "delay": read_delay,
}


def _read_grid(value: Any) -> list[Policy]:
    """Return the policies of one entry: one, or as many as its grid has points."""
    grid: Any = {}
    if isinstance(value, dict) and GRID in value:
        grid = value[GRID]
        value = {key: inner for key, inner in value.items() if key != GRID}
    name, parameters = _split(value)
    if not isinstance(grid, dict):
        raise _EntryError(f".{GRID}", f"must be a table, got {grid!r}")
    for key, values in grid.items():
        if key in parameters:
            raise _EntryError(f".{GRID}.{key}", f"{key!r} is set outside the grid as well")
        if not isinstance(values, list) or not values:
            raise _EntryError(f".{GRID}.{key}", f"must be a list of at least one value, got {values!r}")
    points = itertools.product(*grid.values())
    return [_make_policy(name, {**parameters, **dict(zip(grid, point, strict=True))}) for point in points]


def _make_policy(name: str, parameters: dict[str, Any]) -> Policy:
    """Make a policy; where that fails on a list, say how a grid is written."""
    try:
        return make_policy(_trusted(name), **parameters)
    except (TypeError, ValueError) as error:
        lists = [name for name, value in parameters.items() if isinstance(value, list)]
        hint = f" To try several values, write {GRID}.{lists[0]} = [...]" if lists else ""
        raise ValueError(f"{error}{hint}") from None


def _split(value: Any, key: str = "name", what: str = "policy or environment") -> tuple[str, dict[str, Any]]:
    """Return the name and the parameters of an entry."""
    if isinstance(value, str):
        return read_one_line(value, classes=key == "name")
    if not isinstance(value, dict):
        raise _EntryError("", f"must be a table, got {value!r}")
    if key not in value:
        raise _EntryError("", f"missing key {key!r}, which {what} is meant")
    if not isinstance(value[key], str):
        raise _EntryError(f".{key}", f"must be text, got {value[key]!r}")
    return value[key], {name: inner for name, inner in value.items() if name != key}


def _inline_table(name: str, parameters: Mapping[str, Any]) -> str:
    """Write a TOML table on one line; numbers, text and lists are the same in JSON."""
    values = {"name": name, **parameters}
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in values.items()) + " }"
