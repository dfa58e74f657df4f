"""The command line: parses, calls one function, prints."""

import sys

__all__ = ["main", "missing"]


def main() -> None:
    """Run the command line."""
    try:
        from dynabandit.cli.commands import app
    except ModuleNotFoundError as error:
        sys.exit(f"dynabandit: {missing(error)}")
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="dynabandit")


def missing(error: ModuleNotFoundError, extra: str = "lab") -> str:
    """Say what to install; a module of our own that is missing is no matter of installation."""
    module = (error.name or "dynabandit").partition(".")[0]
    if module == "dynabandit":
        raise error
    return f"this needs {module}, which is not installed: pip install 'dynabandit[{extra}]'"
