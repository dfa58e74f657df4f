"""Every block of code in the pages runs: as a doctest, here, or in a test that is named here."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dynabandit.service.stores import open_store
from service.harness import running

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ADDRESS = "http://127.0.0.1:8000"
HERE = (
    "index.md",
    "which-policy.md",
    "guides/researcher.md",
    "guides/engineer.md",
    "guides/operator.md",
    "adaptive-forgetting.md",
)
ELSEWHERE = {
    "integrations.md": "tests/integrations/test_docs.py",
    "adding-an-algorithm.md": "tests/documentation/test_own_policy.py",
    "cli.md": "tests/test_cli.py: each option is documented, and each command has tests",
    "offline.md": "tests/offline/test_open_bandit.py",
    "gpu-and-clusters.md": "tests/experiments/test_cluster.py and tests/simulation: they need GPUs and clusters",
    "service.md": "tests/service/test_docs.py",
    "specs.md": "tests/test_cli.py",
}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NEEDS_MORE = ("pip install ", "dynabandit serve")  # an index of packages; a server, which `world` has started


def blocks(name):
    text = (DOCS / name).read_text(encoding="utf-8")
    return [(kind, code) for kind, code in BLOCK.findall(text) if not code.startswith(">>> ")]


@pytest.fixture
def world(tmp_path, monkeypatch):
    """An empty folder in which a service keeps its store, with `dynabandit` on the path."""
    monkeypatch.chdir(tmp_path)
    command = tmp_path / "bin" / "dynabandit"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dynabandit "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("COLUMNS", "100")
    with running(open_store(f"sqlite:///{tmp_path}/dynabandit.db")) as server:
        yield server.url


@pytest.mark.parametrize("name", HERE)
def test_the_blocks_of_a_page_run_in_order(name, world):
    for kind, code in blocks(name):
        if kind == "toml":
            tomllib.loads(code)
            Path("my.toml").write_text(code, encoding="utf-8")
        elif kind == "python":
            exec(compile(code.replace(ADDRESS, world), name, "exec"), {})
        else:
            assert kind == "console", f"{name} has a block of {kind}, which nothing runs"
            for command, expected in commands(code):
                if not command.startswith(NEEDS_MORE):
                    check(command, expected)


def commands(code):
    """Split a session into its commands, each with what it prints."""
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def check(command, expected):
    """Run a command; a line of dots stands for anything, and spaces do not matter."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    pieces = re.split(r"^\.\.\.$", expected, flags=re.MULTILINE)
    pattern = ".*".join(re.escape(" ".join(piece.split())) for piece in pieces)
    printed = " ".join(done.stdout.split())
    assert re.fullmatch(r"\s*".join(["", pattern, ""]), printed), f"{command} printed:\n{done.stdout}"


def test_no_block_is_left_out():
    for page in sorted(DOCS.rglob("*.md")):
        name = page.relative_to(DOCS).as_posix()
        if name not in HERE and name not in ELSEWHERE:
            assert not blocks(name), f"{name} has code that no test runs: add the page to HERE"
