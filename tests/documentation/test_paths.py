"""Files that the documentation names exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
FOLDERS = (ROOT, ROOT / "src" / "dynabandit", ROOT / "tests", ROOT / "tests" / "service", ROOT / "docs")
NAMED = re.compile(r"`(?:python )?([\w-]+/[\w/.-]+|[\w-]+\.py)(?: --?\w+)?`")
NO_FILE = re.compile(r"[A-Za-z]+/[A-Za-z0-9-]+-v0|application/json")
IGNORED = (
    "out/",
    "dist/",
    "site/",
    "figures/",
    "results/",
    "store/",
    "dynabandit/",
    "my_policy.py",
    "plain_policy.py",
)  # made by commands


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_named_in_backticks_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    saved = re.findall(r"^```python\n# (\w+\.py)$", text, re.MULTILINE)  # by the reader of a tutorial
    for name in NAMED.findall(text):
        if not name.startswith((*IGNORED, *saved)) and not NO_FILE.fullmatch(name):
            assert any((folder / name).exists() for folder in FOLDERS), f"{page.name}: {name}"


def test_the_map_of_the_tests_names_every_helper() -> None:
    text = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    rows = [row.split("|")[1] for row in text.partition("## Helpers")[2].splitlines() if row.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named == {file.stem for file in (ROOT / "tests" / "tools").glob("[!_]*.py")}
