"""Imports of optional dependencies."""

import importlib
import importlib.util
from pathlib import Path
from typing import Any


def extra_folder(module: str, name: str) -> Path:
    """Return the folder of an optional dependency without importing it, for its data files."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        raise _missing(module, name)
    return Path(found.origin).parent


def import_extra(module: str, name: str) -> Any:
    """Import a module of an optional dependency; if it is missing, the error says which extra to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise
        raise _missing(module, name) from None


def _missing(module: str, name: str) -> ModuleNotFoundError:
    package = module.split(".")[0]
    message = f"this needs {package}, which is not installed: pip install 'dynabandit[{name}]'"
    return ModuleNotFoundError(message, name=package)
