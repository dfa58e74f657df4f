"""One list of public names: `dynabandit.__all__` and the packages that it names."""

import ast
import importlib
import inspect
import symtable
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import dynabandit as db

SOURCES = Path(db.__file__).parents[1]


def named(path: Path) -> str:
    parts = path.relative_to(SOURCES).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PATHS = {named(path): path for path in sorted(SOURCES.glob("dynabandit/**/*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in PATHS.items()}


def exported(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return None


EXPORTED = {name: exported(tree) for name, tree in TREES.items()}


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the public names of a module and, recursively, of the modules among them."""
    for name in module.__all__:
        value = getattr(module, name, None) or importlib.import_module(f"{module.__name__}.{name}")
        if isinstance(value, ModuleType):
            yield from public(value)
        else:
            yield f"{module.__name__}.{name}", value


def everything() -> dict[str, Any]:
    return dict(public(db))


def imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the pairs (module, name) that a module uses of others of the package, by import or as an attribute."""
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dynabandit":
            for one in node.names:
                full = f"{node.module}.{one.name}"
                if full in PATHS:
                    modules[one.asname or one.name] = full
                elif not one.name.startswith("__"):
                    yield str(node.module), one.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            owner = modules[node.value.id]
            if f"{owner}.{node.attr}" not in PATHS and not node.attr.startswith("__"):
                yield owner, node.attr


def test_every_public_class_and_function_has_an_example() -> None:
    documented = {
        name: value for name, value in everything().items() if inspect.isroutine(value) or inspect.isclass(value)
    }
    assert len(documented) > 80
    assert [name for name, value in documented.items() if ">>>" not in (value.__doc__ or "")] == []


def test_names_that_are_imported_lazily_are_what_type_checkers_see() -> None:
    (block,) = (node for node in TREES["dynabandit"].body if isinstance(node, ast.If))
    seen = {one.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for one in node.names}
    assert sorted(seen) == sorted(db.__all__)
    for name, module in seen.items():
        expected = importlib.import_module(f"dynabandit.{name}") if module == "dynabandit" else None
        assert getattr(db, name) is (expected or getattr(importlib.import_module(str(module)), name))
    assert set(db.__all__) <= set(dir(db))
    assert not hasattr(db, "Clint")


def test_every_name_in_all_exists_and_is_listed_once() -> None:
    for module, names in EXPORTED.items():
        table = symtable.symtable(PATHS[module].read_text(encoding="utf-8"), str(PATHS[module]), "exec")
        bound = {one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported()}
        missing = [name for name in names or () if name not in bound and f"{module}.{name}" not in PATHS]
        assert missing == [], module
        assert len(names or ()) == len(set(names or ())), module


def test_no_module_uses_a_private_name_of_another() -> None:
    taken = {(module, name) for tree in TREES.values() for module, name in imported(tree)}
    assert len(taken) > 300
    assert sorted((module, name) for module, name in taken if name.startswith("_")) == []


def test_the_registries_contain_exactly_the_exported_classes() -> None:
    for registry, module, base in (
        ({**db.policies.POLICIES, **db.policies.CONTEXTUAL_POLICIES}, db.policies, db.Policy),
        ({**db.environments.ENVIRONMENTS, **db.environments.CONTEXTUAL_ENVIRONMENTS}, db.environments, db.Environment),
    ):
        offered = {getattr(module, name) for name in module.__all__ if inspect.isclass(getattr(module, name))}
        bases = {base, db.PythonPolicy}
        assert {kind for kind in offered if issubclass(kind, base)} - bases == set(registry.values())
        assert all(kind.name == name for name, kind in registry.items())
