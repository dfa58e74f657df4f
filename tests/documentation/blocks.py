"""The blocks of code of a page: reading them, and running their commands."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from typer.testing import CliRunner

from dynabandit.cli.commands import app

DOCS = Path(__file__).parents[2] / "docs"
ADDRESS = "http://127.0.0.1:8000"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BANDIT_ID = re.compile(r"\([0-9a-z]{12}\)")


def blocks(name: str) -> list[tuple[str, str]]:
    """Return the language and the code of each block of a page, without those that are doctests."""
    text = (DOCS / name).read_text(encoding="utf-8")
    return [(kind, code) for kind, code in BLOCK.findall(text) if not code.startswith(">>> ")]


def commands(code: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console session with its output."""
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def check(command: str, expected: str) -> None:
    """Run a command in this process; a line with three dots matches anything, and white space is ignored."""
    program, *arguments = shlex.split(command)
    assert program == "dynabandit", command
    done = CliRunner().invoke(app, arguments, prog_name="dynabandit", env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    own = re.sub(r"^\d{4}-\d\d-\d\d .*\n", "", done.stdout, flags=re.MULTILINE)  # the log of the service beside it
    compare(command, own, expected)


def compare(command: str, printed: str, expected: str) -> None:
    """Compare what a command printed with the output that the page shows; ids of bandits may differ."""
    pieces = re.split(r"^\.\.\.$", BANDIT_ID.sub("(id)", expected), flags=re.MULTILINE)
    pattern = ".*".join(re.escape(" ".join(piece.split())) for piece in pieces)
    words = " ".join(BANDIT_ID.sub("(id)", printed).split())
    assert re.fullmatch(rf"\s*{pattern}\s*", words), f"{command} printed:\n{printed}"
