"""The examples of docs/compositions.md: memories and rules of a user, and compositions on the command line."""

from pathlib import Path

import pytest

from documentation.blocks import blocks, check, commands

PAGE = blocks("compositions.md")


@pytest.mark.filterwarnings("ignore::dynabandit.checks.DocumentationAdvice")  # which the page tells to ignore
@pytest.mark.parametrize("place", range(len(PAGE)))
def test_each_block_of_the_page_runs(place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kind, code = PAGE[place]
    if kind == "python":
        exec(compile(code, f"compositions.md, block {place}", "exec"), {"__name__": "my_memory"})
    else:
        for command, expected in commands(code):
            check(command, expected)
