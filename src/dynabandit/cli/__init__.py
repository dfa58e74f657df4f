"""The command line: each command parses its arguments, calls one function and prints the result."""

import contextlib
import io
import os
import sys

from dynabandit import __version__

__all__ = ["SERVICE", "main", "missing"]

SERVICE = ("serve", "keys", "verify", "compact", "import")  # commands that need the extra `serve`


def main() -> None:
    """Run the command line."""
    _prepare_output()
    try:
        from dynabandit.cli.commands import app
    except ModuleNotFoundError as error:
        if sys.argv[1:] == ["--version"]:  # works without any extra
            sys.stdout.write(f"dynabandit {__version__}\n")
            return
        sys.exit(f"dynabandit: {missing(error, 'serve' if sys.argv[1:2] and sys.argv[1] in SERVICE else 'lab')}")
    except KeyboardInterrupt:
        sys.exit(130)
    try:
        try:
            app(prog_name="dynabandit")
        finally:
            sys.stdout.flush()  # now, so that a failure can still be reported
    except BrokenPipeError:  # the reader has closed the pipe, such as head
        _discard_output()
        sys.exit(1)
    except OSError as error:
        _discard_output()
        sys.exit(f"dynabandit: cannot write to the standard output: {error.strerror or error}")


def missing(error: ModuleNotFoundError, extra: str = "lab") -> str:
    """Return a message that says what to install; a missing module of dynabandit itself is raised as an error."""
    module = (error.name or "dynabandit").partition(".")[0]
    if module == "dynabandit":
        raise error
    return f"this needs {module}, which is not installed: pip install 'dynabandit[{extra}]'"


def _prepare_output() -> None:
    """Let no command fail because a character cannot be encoded, or because standard output is closed."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it stays open until the end
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Discard what is still buffered: Python would try to write it once more when it exits, and report the failure."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
