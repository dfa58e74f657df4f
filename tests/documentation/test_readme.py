"""What README.md says about this and other libraries agrees with the code and the measurements."""

import re
import runpy
from pathlib import Path

import pytest

import dynabandit as db

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def speed() -> dict[str, object]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        return runpy.run_path(str(ROOT / "benchmarks" / "readme_speed.py"))


def test_the_speeds_are_the_measured_ones(speed: dict[str, object]) -> None:
    written = README.partition("<!-- speed: begin -->")[2].partition("<!-- speed: end -->")[0].strip()
    assert written == speed["text"](), "run: python benchmarks/readme_speed.py"  # type: ignore[operator]


def test_both_tables_compare_the_same_libraries(speed: dict[str, object]) -> None:
    head = next(line for line in README.splitlines() if line.startswith("| | dynabandit |"))
    assert tuple(re.findall(r"(?:\[)?([A-Za-z][\w ]+?)(?:\]\([^)]+\))? \|", head)) == speed["LIBRARIES"]


def test_there_are_more_than_seventy_policies() -> None:
    assert "more than seventy policies" in README
    assert len(db.policies.POLICIES) + len(db.policies.CONTEXTUAL_POLICIES) > 70


def test_there_are_at_most_three_examples() -> None:
    assert len(re.findall(r"^```python$", README, re.MULTILINE)) <= 3


def test_linked_files_exist() -> None:
    linked = re.findall(r"\]\((?!https?:|#)([^)#]+)", README)
    assert len(linked) > 20
    assert [path for path in linked if not (ROOT / path).exists()] == []
