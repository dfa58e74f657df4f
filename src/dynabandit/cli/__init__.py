"""The command line: parses, calls one function, prints."""

import contextlib
import io
import os
import sys

from dynabandit import __version__

__all__ = ["SERVICE", "main", "missing"]

SERVICE = ("serve", "keys", "verify")  # the commands that the extra `serve` brings


def main() -> None:
    """Run the command line."""
    _prepare_output()
    try:
        from dynabandit.cli.commands import app
    except ModuleNotFoundError as error:
        if sys.argv[1:] == ["--version"]:  # there is a version without any extra, too
            sys.stdout.write(f"dynabandit {__version__}\n")
            return
        sys.exit(f"dynabandit: {missing(error, 'serve' if sys.argv[1:2] and sys.argv[1] in SERVICE else 'lab')}")
    except KeyboardInterrupt:
        sys.exit(130)
    try:
        try:
            app(prog_name="dynabandit")
        finally:
            sys.stdout.flush()  # now, while somebody can be told that it failed
    except BrokenPipeError:  # whoever read it has seen enough
        _give_up_output()
        sys.exit(1)
    except OSError as error:
        _give_up_output()
        sys.exit(f"dynabandit: cannot write to the standard output: {error.strerror or error}")


def missing(error: ModuleNotFoundError, extra: str = "lab") -> str:
    """Say what to install; a module of our own that is missing is no matter of installation."""
    module = (error.name or "dynabandit").partition(".")[0]
    if module == "dynabandit":
        raise error
    return f"this needs {module}, which is not installed: pip install 'dynabandit[{extra}]'"


def _prepare_output() -> None:
    """Let nothing fail because a terminal or a file cannot show a letter, or because there is no output at all."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it stays open until the end
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _give_up_output() -> None:
    """Send what is still to be written nowhere: Python would try once more at its end, and complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
