"""Runs the command line in this process, which is faster than in one of its own."""

import sys
from collections.abc import Callable
from typing import Any, TextIO

import pytest
from typer.testing import CliRunner, Result

import dynabandit.cli
from dynabandit.cli.commands import app

COMMAND = [sys.executable, "-m", "dynabandit"]  # where a process is needed: for signals, limits and a fresh start


def invoke(*arguments: object) -> Result:
    """Run a command as the shell would."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="dynabandit")


def call_main(monkeypatch: pytest.MonkeyPatch, arguments: list[str], stdout: TextIO | None) -> Any:
    """Run the whole command line with this standard output, and return its exit status, as `sys.exit` takes it."""
    monkeypatch.setattr(sys, "argv", ["dynabandit", *arguments])
    monkeypatch.setattr(sys, "stdout", stdout)
    try:
        dynabandit.cli.main()
    except SystemExit as end:
        return end.code
    return 0


def forget_modules(monkeypatch: pytest.MonkeyPatch, *prefixes: str) -> None:
    """Let the modules whose names begin with one of these be imported anew, until the end of the test."""
    for name in [name for name in sys.modules if name.startswith(prefixes)]:
        package, _, own_name = name.rpartition(".")
        if package in sys.modules:  # an import also sets an attribute of the package, which the test must not leave
            monkeypatch.delattr(sys.modules[package], own_name, raising=False)
        monkeypatch.delitem(sys.modules, name)


def without(monkeypatch: pytest.MonkeyPatch, module: str) -> Callable[[list[str]], Any]:
    """Import the command line anew as if a package were not installed, and return a function that calls it."""
    ours = ("cli.", "experiments", "leaderboard", "paper", "playground", "service")
    forget_modules(monkeypatch, *(f"dynabandit.{name}" for name in ours), f"{module}.")
    monkeypatch.setitem(sys.modules, module, None)
    return lambda arguments: call_main(monkeypatch, arguments, sys.stdout)
