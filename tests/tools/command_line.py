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


def without(monkeypatch: pytest.MonkeyPatch, module: str) -> Callable[[list[str]], Any]:
    """Import the command line anew as if a package were not installed, and return a function that calls it."""
    ours = (
        "dynabandit.cli.",
        "dynabandit.experiments",
        "dynabandit.leaderboard",
        "dynabandit.paper",
        "dynabandit.service",
    )
    for name in [one for one in sys.modules if one.startswith((*ours, "dynabandit.playground", f"{module}."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    return lambda arguments: call_main(monkeypatch, arguments, sys.stdout)
