"""Imports of optional dependencies."""

import importlib
from typing import Any


def import_extra(module: str, name: str) -> Any:
    """Import a module of an optional dependency; if it is missing, the error says which extra to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise
        raise ModuleNotFoundError(
            f"this needs {module.split('.')[0]}, which is not installed: pip install 'dynabandit[{name}]'",
            name=error.name,
        ) from None
