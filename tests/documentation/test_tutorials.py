"""The tutorials work as written: their files are saved, and their commands print what the pages show."""

import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from documentation.blocks import ADDRESS, blocks, check, commands, compare
from dynabandit.policies import MEMORIES, RULES
from tools.harness import process
from tools.waiting import PATIENCE, wait_for

PARTS: dict[str, dict[str, Any]] = {"memories": MEMORIES, "rules": RULES}
NOT_RUN = ("glr-kl-ucb",)  # takes too long
FEWER = {"4000": "400", "2000": "200"}  # visitors of the banner test


def save_files(page: str, folder: Path) -> None:
    """Write the Python blocks whose first line is the name of a file."""
    for kind, code in blocks(page):
        if kind == "python":
            name = re.match(r"# (\w+\.py)\n", code)
            assert name is not None, f"{page}: {code}"
            (folder / name[1]).write_text(code, encoding="utf-8")


@pytest.fixture
def own_parts() -> Iterator[None]:
    """Forget the parts of the tutorial after the test."""
    before = {name: dict(known) for name, known in PARTS.items()}
    yield
    for name, known in PARTS.items():
        known.clear()
        known.update(before[name])
    for module in ("my_memory", "my_rule"):
        sys.modules.pop(module, None)


@pytest.mark.usefixtures("own_parts")
@pytest.mark.parametrize("name", ["algorithm", "figure", "log-analysis"])
@pytest.mark.filterwarnings("ignore::dynabandit.checks.DocumentationAdvice")
def test_the_commands_print_what_the_page_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = f"tutorials/{name}.md"
    save_files(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for command, expected in (one for kind, code in blocks(page) if kind == "console" for one in commands(code)):
        if any(word in command for word in NOT_RUN):
            continue
        if command.startswith("python "):
            runpy.run_path(command.removeprefix("python "), run_name="__main__")
            compare(command, capsys.readouterr().out, expected)
        else:
            check(command, expected)
    shown = [code for kind, code in blocks(page) if kind == "text"]
    assert all((tmp_path / "visits.csv").read_text(encoding="utf-8").startswith(text) for text in shown)


def test_in_the_banner_test_no_click_is_lost(tmp_path: Path) -> None:
    save_files("tutorials/banner-test.md", tmp_path)
    store, clicks = f"sqlite:///{tmp_path}/dynabandit.db", tmp_path / "clicks.txt"
    with process(store) as server:
        for path in tmp_path.glob("*.py"):
            code = path.read_text(encoding="utf-8").replace(ADDRESS, server.url)
            for many, few in FEWER.items():
                code = code.replace(many, few)
            path.write_text(code, encoding="utf-8")
        assert finish(start("create.py", tmp_path)) == "mix-ts ['sea', 'city', 'forest']\n"
        visitors = start("visitors.py", tmp_path)
        wait_for(lambda: clicks.exists() and clicks.read_text(encoding="utf-8").count("\n") >= 20)
        server.kill()
    with process(store, "--port", server.url.rpartition(":")[2]):
        finish(visitors)
        acknowledged = clicks.read_text(encoding="utf-8").count("\n")
        assert finish(start("check.py", tmp_path)) == (
            f"{acknowledged} clicks were acknowledged\nall are stored: True\nnone is stored twice: True\n"
        )
        printed = finish(start("lift.py", tmp_path))
    assert re.fullmatch(r"(clicks per visitor of the \w+: +0\.\d+\n){2}lift: .*\n", printed)


def start(script: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, script], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(script: subprocess.Popen[str]) -> str:
    """Return what a script prints."""
    out, err = script.communicate(timeout=PATIENCE)
    assert err == ""
    return out
