"""The command line: parses, calls one function, prints."""

import sys

from dynabandit import __version__

__all__ = ["SERVICE", "main", "missing"]

SERVICE = ("serve", "keys", "verify")  # the commands that the extra `serve` brings


def main() -> None:
    """Run the command line."""
    try:
        from dynabandit.cli.commands import app
    except ModuleNotFoundError as error:
        if sys.argv[1:] == ["--version"]:  # there is a version without any extra, too
            sys.stdout.write(f"dynabandit {__version__}\n")
            return
        sys.exit(f"dynabandit: {missing(error, 'serve' if sys.argv[1:2] and sys.argv[1] in SERVICE else 'lab')}")
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="dynabandit")


def missing(error: ModuleNotFoundError, extra: str = "lab") -> str:
    """Say what to install; a module of our own that is missing is no matter of installation."""
    module = (error.name or "dynabandit").partition(".")[0]
    if module == "dynabandit":
        raise error
    return f"this needs {module}, which is not installed: pip install 'dynabandit[{extra}]'"
