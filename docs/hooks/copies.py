"""Add pages whose text is stored elsewhere: changelog, contributing, notebooks, and the leaderboard with its page."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from dynabandit.leaderboard.board import Board
from dynabandit.leaderboard.page import render
from dynabandit.policies import CONTEXTUAL_POLICIES, POLICIES

ROOT = Path(__file__).parents[2]
COPIED = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
LEADERBOARD = ROOT / "docs" / "leaderboard.md"
LEADERBOARD_PAGES = {
    "leaderboard-results.html": ROOT / "docs" / "measured" / "leaderboard.json",
    "contextual-leaderboard-results.html": ROOT / "docs" / "measured" / "leaderboard-contextual.json",
}
MARK = "<!-- leaderboard -->"
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
COLUMNS = (0, 1, 3, 5, 7)  # policy, regret, worst environment, mean rank, steps to detect a change


def on_files(files: Any, config: Any) -> Any:
    """Add the pages."""
    for source, page in COPIED.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=re.sub(r"\]\(docs/", "](", text)))
    for path in NOTEBOOKS:
        page = notebook(json.loads(path.read_text(encoding="utf-8")), path.name)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=page))
    for page, data in LEADERBOARD_PAGES.items():
        if data.exists():
            files.append(File.generated(config, page, content=render(Board.load(data))))
    return files


def notebook(content: dict[str, Any], name: str) -> str:
    """Return an executed notebook as a page, with the output of its cells."""
    parts = []
    for cell in content["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += [_output(output) for output in cell["outputs"]]
    parts.append(f"*This page is the executed notebook [{name}]({name}).*")
    return "\n\n".join(parts) + "\n"


def _output(output: dict[str, Any]) -> str:
    if "text" in output:
        return f"```text\n{''.join(output['text']).rstrip()}\n```"
    drawn = "".join(output["data"]["image/svg+xml"])
    # Markdown does not change HTML that starts with an element and has a single line
    return '<div class="output">' + " ".join(drawn[drawn.index("<svg") :].split()) + "</div>"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Link the policies of the leaderboard, and insert its main columns into pages with the marker."""
    if page.file.src_uri == LEADERBOARD.name:
        before, mark, tables = markdown.partition(MARK)
        return before + mark + _linked(tables)
    return markdown.replace(MARK, narrow_table()) if MARK in markdown else markdown


def narrow_table() -> str:
    """Return the main columns of the first table of the leaderboard."""
    lines = LEADERBOARD.read_text(encoding="utf-8").partition(MARK)[2].splitlines()
    table = itertools.takewhile(_is_row, itertools.dropwhile(lambda line: not _is_row(line), lines))
    cells = [line.strip("|").split("|") for line in table]
    return _linked("\n".join("|" + "|".join(row[column] for column in COLUMNS) + "|" for row in cells))


def _is_row(line: str) -> bool:
    return line.startswith("|")


def _linked(table: str) -> str:
    """Link the policies in the first column; families of environments are not linked."""
    known = "|".join(map(re.escape, {**POLICIES, **CONTEXTUAL_POLICIES}))
    return re.sub(rf"^\| `({known})` \|", r"| [`\1`](policies/\1.md) |", table, flags=re.MULTILINE)
