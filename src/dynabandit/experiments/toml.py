"""Specs as TOML files; ``docs/specs.md`` describes the format.

Every error names the file, the key, and what would be valid.
"""

import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dynabandit.errors import extra, unknown
from dynabandit.experiments.missing_parameters import try_environment
from dynabandit.experiments.spec import CoverageSpec, Experiment, Named, PathSpec, Spec

__all__ = ["SpecError", "dumps", "load", "loads"]

EXPERIMENT = tuple(Experiment.__dataclass_fields__)
SAMPLE_PATHS = tuple(PathSpec.__dataclass_fields__)
COVERAGE = tuple(CoverageSpec.__dataclass_fields__)
FILE = ("title", "figure", "defaults", "experiments", "sample_paths", "coverage")
DEFAULTS = tuple(key for key in EXPERIMENT if key not in ("id", "title"))
GRID = "grid"


class SpecError(ValueError):
    """A spec that cannot be run: the message names the file, the key, and what would be valid."""


def load(path: str | Path) -> Spec:
    """Read a spec from a TOML file."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: must be TOML in UTF-8, but holds other bytes: {error}") from None
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
    >>> [named.make_policy().label for named in spec.experiments[0].policies]
    ['ucb', 'dts(memory=5, prior=(1, 1))', 'dts(memory=100, prior=(1, 1))']
    """
    try:
        with _at(file):
            table = tomllib.loads(text)
    except RecursionError:
        raise SpecError(f"{file}: lists and tables must be nested less deeply") from None
    stem = Path(file).stem
    return _Reader(file).spec(table, title=stem, figure=re.sub(r"[^A-Za-z0-9]+", "-", stem).strip("-"))


def dumps(spec: Spec) -> str:
    """Return a spec as TOML, with nothing left to defaults; `loads` gives an equal one back."""
    writer = extra("tomli_w", "lab")
    return str(writer.dumps(spec.as_dict()))


@contextmanager
def _at(file: str, key: str = "") -> Iterator[None]:
    """Put the file and the key in front of an error."""
    try:
        yield
    except SpecError:
        raise
    except (TypeError, ValueError) as error:
        raise SpecError(": ".join(part for part in (file, key, str(error)) if part)) from None


def _inline(name: str, parameters: Mapping[str, Any]) -> str:
    """Write a policy or an environment as a table on one line: numbers, text and lists are the same in JSON."""
    return (
        "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in {"name": name, **parameters}.items()) + " }"
    )


def _try(choice: Named) -> None:
    """Make the policy once; where that fails on a list, say how a grid is written."""
    try:
        choice.make_policy()
    except (TypeError, ValueError) as error:
        lists = [name for name, value in choice.parameters.items() if isinstance(value, tuple)]
        hint = f" To try several values, write {GRID}.{lists[0]} = [...]" if lists else ""
        raise ValueError(f"{error}{hint}") from None


class _Reader:
    """Turns tables into specs; knows the file, for errors."""

    def __init__(self, file: str) -> None:
        self.file = file

    def spec(self, table: dict[str, Any], title: str, figure: str) -> Spec:
        self.check(table, FILE, "")
        defaults = self.table(table.get("defaults", {}), "defaults")
        self.check(defaults, DEFAULTS, "defaults")
        defaults = {"figure": table.get("figure", figure or "experiments"), **defaults}
        experiments, paths, coverage = (
            self.tables(table.get(name, []), name) for name in ("experiments", "sample_paths", "coverage")
        )
        with _at(self.file):
            return Spec(
                title=table.get("title", title),
                experiments=tuple(self.experiment(one, defaults, key) for key, one in experiments),
                sample_paths=tuple(self.paths(one, defaults, key) for key, one in paths),
                coverage=tuple(self.coverage(one, defaults, key) for key, one in coverage),
            )

    def experiment(self, table: dict[str, Any], defaults: dict[str, Any], key: str) -> Experiment:
        values = self.values(table, defaults, EXPERIMENT, ("id", "environment", "policies"), key)
        values["environment"] = self.environment(values["environment"], f"{key}.environment")
        values["policies"] = self.policies(values["policies"], f"{key}.policies")
        with _at(self.file, key):
            return Experiment(**values)

    def paths(self, table: dict[str, Any], defaults: dict[str, Any], key: str) -> PathSpec:
        shared: dict[str, Any] = {name: defaults[name] for name in ("figure", "horizon", "seed") if name in defaults}
        values = self.values(table, shared, SAMPLE_PATHS, ("environment",), key)
        values["environment"] = self.environment(values["environment"], f"{key}.environment")
        with _at(self.file, key):
            return PathSpec(**values)

    def coverage(self, table: dict[str, Any], defaults: dict[str, Any], key: str) -> CoverageSpec:
        shared: dict[str, Any] = {name: defaults[name] for name in ("figure", "seed") if name in defaults}
        needed = ("means", "step_sizes", "observations")
        values = self.values(table, shared, COVERAGE, needed, key)
        with _at(self.file, key):
            return CoverageSpec(**values)

    def environment(self, value: Any, key: str) -> Named:
        named = self.named(value, key)
        with _at(self.file, key):
            try_environment(named, _inline)
        return named

    def policies(self, value: Any, key: str) -> tuple[Named, ...]:
        if not isinstance(value, list):
            raise SpecError(f"{self.file}: {key}: must be a list of policies, got {value!r}")
        return tuple(named for index, entry in enumerate(value) for named in self.expand(entry, f"{key}[{index}]"))

    def expand(self, entry: Any, key: str) -> list[Named]:
        """Return the policies of one entry: one, or as many as its grid has points."""
        grid: dict[str, Any] = {}
        if isinstance(entry, dict) and GRID in entry:
            grid = self.table(entry[GRID], f"{key}.{GRID}")
            entry = {name: value for name, value in entry.items() if name != GRID}
        named = self.named(entry, key)
        for name, values in grid.items():
            if name in named.parameters:
                raise SpecError(f"{self.file}: {key}.{GRID}.{name}: {name!r} is set outside the grid as well")
            if not isinstance(values, list) or not values:
                raise SpecError(
                    f"{self.file}: {key}.{GRID}.{name}: must be a list of at least one value, got {values!r}"
                )
        points = itertools.product(*grid.values())
        choices = [Named(named.name, {**named.parameters, **dict(zip(grid, point, strict=True))}) for point in points]
        with _at(self.file, key):
            for choice in choices:
                _try(choice)
        return choices

    def named(self, value: Any, key: str) -> Named:
        """Read ``"ucb"`` or ``{ name = "ucb", burn_in = 2 }``."""
        if isinstance(value, str):
            return Named(value)
        table = self.table(value, key)
        if "name" not in table:
            raise SpecError(f"{self.file}: {key}: missing key 'name', which policy or environment is meant")
        if not isinstance(table["name"], str):
            raise SpecError(f"{self.file}: {key}.name: must be text, got {table['name']!r}")
        return Named(table["name"], {name: one for name, one in table.items() if name != "name"})

    def values(
        self,
        table: dict[str, Any],
        defaults: Mapping[str, Any],
        known: tuple[str, ...],
        needed: tuple[str, ...],
        key: str,
    ) -> dict[str, Any]:
        """Return the values of a table with the defaults filled in."""
        self.check(table, known, key)
        values = {**defaults, **table}
        for name in needed:
            if name not in values:
                raise SpecError(f"{self.file}: {key}: missing key {name!r}")
        return values

    def check(self, table: dict[str, Any], known: tuple[str, ...], key: str) -> None:
        for name in table:
            if name not in known:
                with _at(self.file, f"{key}.{name}" if key else name):
                    raise unknown("key", name, known)

    def table(self, value: Any, key: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise SpecError(f"{self.file}: {key}: must be a table, got {value!r}")
        return value

    def tables(self, value: Any, key: str) -> list[tuple[str, dict[str, Any]]]:
        if not isinstance(value, list):
            raise SpecError(f"{self.file}: {key}: must be a list of tables, written [[{key}]], got {value!r}")
        return [(f"{key}[{index}]", self.table(one, f"{key}[{index}]")) for index, one in enumerate(value)]
