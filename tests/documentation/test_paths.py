"""Files that the documentation names exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = (ROOT, ROOT / "src" / "dynabandit", ROOT / "tests" / "service", ROOT / "docs")
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_named_in_backticks_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    saved = re.findall(r"^```python\n# (\w+\.py)$", text, re.MULTILINE)  # by the reader of a tutorial
    for name in NAMED.findall(text):
        if not name.startswith((*IGNORED, *saved)) and not NO_FILE.fullmatch(name):
            assert any((folder / name).exists() for folder in FOLDERS), f"{page.name}: {name}"
