"""Policies and environments of other packages: installed with an entry point, or a class given as ``module:Class``.

A package declares entry points in its ``pyproject.toml``::

    [project.entry-points."dynabandit.policies"]
    ewma-ucb = "my_package:EwmaUCB"
"""

import functools
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

POLICIES, ENVIRONMENTS = "dynabandit.policies", "dynabandit.environments"  # groups of entry points

Kind = TypeVar("Kind")

_enabled = True  # whether entry points are loaded by name
_composes = True  # whether policies without a name of their own are composed by name
_simulates = ContextVar("simulates", default=False)  # whether this is for a simulation, which composes them anyway


class PluginError(ValueError):
    """A plug-in cannot be loaded, or is no policy or environment."""


class UnknownPolicyError(PluginError):
    """There is no policy with this name, unless another package has it that is not in use."""

    def __init__(self, problem: str, policy: object) -> None:
        super().__init__(problem)
        self.policy = policy


@functools.cache
def installed(group: str) -> dict[str, list[EntryPoint]]:
    """Return the entry points of a group by name; packages that were installed meanwhile are not noticed."""
    found: dict[str, list[EntryPoint]] = {}
    for one in entry_points(group=group):
        found.setdefault(one.name, []).append(one)
    return dict(sorted(found.items()))


def find(group: str, name: Any, base: type[Kind]) -> type[Kind] | None:
    """Return the class that an installed package provides under a name; None if there is none."""
    entries = installed(group).get(name, []) if isinstance(name, str) else []
    if not entries:
        return None
    if not _enabled:
        raise UnknownPolicyError(
            f"{name!r} is a plug-in, which this service does not use: start it with --plugin {name}", name
        )
    if len(entries) > 1:
        packages = ", ".join(sorted(_package(one) for one in entries))
        raise PluginError(f"{name!r} is provided by several packages: {packages}; uninstall all but one")
    kind = _load(entries[0].value, base, f"plug-in {name!r} of {_package(entries[0])}")
    own = getattr(kind, "name", None)
    if own != name:
        raise PluginError(
            f"plug-in {name!r} of {_package(entries[0])}: {kind.__name__}.name must be {name!r}, got {own!r}"
        )
    return kind


def load(reference: str, base: type[Kind] | tuple[type[Kind], ...]) -> type[Kind]:
    """Return the class ``module:Class``, of an installed module or of a file in the current folder.

    Examples
    --------
    >>> load("collections:OrderedDict", dict).__name__
    'OrderedDict'
    """
    folder = os.getcwd()
    if folder not in sys.path and "" not in sys.path:
        sys.path.append(folder)  # as `python -m` does; it stays, because the module may import others later
    hint = f", neither installed nor in {folder}; a parameter must be name:parameter=value"
    return _load(reference, base, repr(reference), hint)


def _load(reference: str, base: type[Kind] | tuple[type[Kind], ...], what: str, hint: str = "") -> type[Kind]:
    """Return the class ``module:Class``. Errors say `what` it is and, if there is no such module, the `hint`."""
    module, _, name = reference.partition(":")
    try:
        kind: Any = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise PluginError(f"{what}: there is no module {error.name!r}{hint}") from None
        raise PluginError(f"{what} cannot be imported: {error}") from error
    except AttributeError as error:
        raise PluginError(f"{what}: {error}") from None
    except Exception as error:
        raise PluginError(f"{what} cannot be imported: {type(error).__name__}: {error}") from error
    if not isinstance(kind, type) or not issubclass(kind, base):
        names = " or ".join(one.__name__ for one in (base if isinstance(base, tuple) else (base,)))
        raise PluginError(f"{what} must be a class derived from {names}, got {kind!r}")
    if not isinstance(getattr(kind, "name", ""), str):
        raise PluginError(f"{what}: the name of {kind.__name__} must be text")
    return kind


def class_or_name(text: str, base: type[Kind]) -> type[Kind] | str:
    """Return the class that ``module:Class`` means; a name is returned unchanged. Only for trusted text."""
    return load(text, base) if ":" in text else text


def reference_to(group: str, kind: Any) -> str:
    """Return what other processes find a class by: its name if it is built in or installed, else ``module:Class``."""
    reference = f"{kind.__module__}:{kind.__qualname__}"
    is_installed = any(one.value == reference for one in installed(group).get(kind.name, []))
    return str(kind.name) if is_installed or is_built_in(kind) else reference


def is_built_in(kind: type) -> bool:
    """Whether a class is one of this package."""
    return kind.__module__.partition(".")[0] == "dynabandit"


def composes() -> bool:
    """Whether policies without a name of their own are composed by name."""
    return _composes or _simulates.get()


def check_composition(name: str) -> None:
    """Raise an error if a service does not compose policies, each of which it would have to compile."""
    if not composes():
        raise UnknownPolicyError(
            f"{name!r} is a composition, which this service does not use: start it with --allow-compositions", name
        )


@contextmanager
def disabled(*, compositions: bool = False) -> Iterator[None]:
    """Load no entry point by its name, which may come from anywhere, as in a service, and perhaps compose nothing."""
    global _composes, _enabled
    before = _enabled, _composes
    _enabled, _composes = False, compositions
    try:
        yield
    finally:
        _enabled, _composes = before


@contextmanager
def for_simulation() -> Iterator[None]:
    """Compose policies also in a service that does not: a simulation compiles them in a process of its own."""
    token = _simulates.set(True)
    try:
        yield
    finally:
        _simulates.reset(token)


def _package(entry: EntryPoint) -> str:
    return "an unknown package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
