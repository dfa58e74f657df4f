"""Every block of code in the documentation runs: as a doctest, here, or in the test that is named here."""

import os
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dynabandit.cli.commands import app
from dynabandit.service.stores import open_store
from service.harness import running

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ADDRESS = "http://127.0.0.1:8000"
TESTED_HERE = (
    "index.md", "which-policy.md", "guides/researcher.md", "guides/engineer.md",
    "adaptive-forgetting.md", "rewards.md", "estimator-accuracy.md", "figures.md",
)  # fmt: skip
TESTED_ELSEWHERE = {
    "adding-an-algorithm.md": "tests/documentation/test_own_policy.py",
    "cli.md": "tests/cli/test_commands.py: each option is documented, and each command has tests",
    "gpu-and-clusters.md": "tests/experiments/test_dask_executor.py and tests/simulation: they need GPUs and clusters",
    "integrations.md": "tests/integrations/test_docs.py",
    "javascript.md": "tests/service/test_javascript_client.py",
    "leaderboard.md": "tests/leaderboard/test_run.py: parts are merged; its run needs a GPU",
    "operations.md": "tests/service/test_operations.py",
    "personalizer.md": "tests/service/http/test_personalizer.py",
    "offline.md": "tests/offline/test_open_bandit.py",
    "service.md": "tests/service/test_docs.py",
    "specs.md": "tests/cli/test_commands.py",
}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NOT_RUN = ("pip install ", "dynabandit serve")  # they need a package index, or run until they are stopped


def blocks(name: str) -> list[tuple[str, str]]:
    text = (DOCS / name).read_text(encoding="utf-8")
    return [(kind, code) for kind, code in BLOCK.findall(text) if not code.startswith(">>> ")]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service whose store is in the current folder, shared by all pages."""
    folder = tmp_path_factory.mktemp("pages")
    before = Path.cwd()
    os.chdir(folder)
    with running(open_store(f"sqlite:///{folder}/dynabandit.db")) as server:
        yield server.url
    os.chdir(before)


@pytest.mark.parametrize("name", TESTED_HERE)
def test_the_blocks_of_a_page_run_in_order(name: str, address: str) -> None:
    for kind, code in blocks(name):
        if kind == "toml":
            tomllib.loads(code)
            Path("my.toml").write_text(code, encoding="utf-8")
        elif kind == "python":
            exec(compile(code.replace(ADDRESS, address), name, "exec"), {})
        else:
            assert kind == "console", f"{name} has a block of {kind}, which no test runs"
            for command, expected in commands(code):
                if not command.startswith(NOT_RUN):
                    check(command, expected)


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
    pieces = re.split(r"^\.\.\.$", expected, flags=re.MULTILINE)
    pattern = ".*".join(re.escape(" ".join(piece.split())) for piece in pieces)
    own = re.sub(r"^\d{4}-\d\d-\d\d .*\n", "", done.stdout, flags=re.MULTILINE)  # the log of the service beside it
    printed = " ".join(own.split())
    assert re.fullmatch(rf"\s*{pattern}\s*", printed), f"{command} printed:\n{done.stdout}"


def test_every_page_with_code_is_tested() -> None:
    for page in sorted(DOCS.rglob("*.md")):
        name = page.relative_to(DOCS).as_posix()
        if name not in TESTED_HERE and name not in TESTED_ELSEWHERE:
            assert not blocks(name), f"{name} has code that no test runs: add the page to TESTED_HERE"
