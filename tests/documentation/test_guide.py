"""The recommendations of docs/which-policy.md agree with the leaderboard."""

import re
from pathlib import Path

import pytest

import dynabandit as db

DOCS = Path(__file__).parents[2] / "docs"
DETECTING = ("aff-dts2", "changepoint-ts", "glr-kl-ucb-diminishing")
ROW = re.compile(r"^\| `([\w-]+)` \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", re.MULTILINE)


Rows = dict[str, tuple[float, ...]]


@pytest.fixture(scope="module")
def rows() -> Rows:
    """Return the mean rank, the mean ratio to the best and the worst ratio of each ranked policy."""
    found = ROW.findall((DOCS / "leaderboard.md").read_text(encoding="utf-8"))
    return {name: tuple(float(cell) for cell in cells) for name, *cells in found}


def of_adaptive(rows: Rows, column: int) -> dict[str, float]:
    return {name: cells[column] for name, cells in rows.items() if name.startswith("aff-")}


def test_aff_dts2_has_the_best_worst_case_of_the_adaptive_policies(rows: Rows) -> None:
    worst = of_adaptive(rows, 2)
    assert min(worst, key=worst.__getitem__) == "aff-dts2"


def test_aff_kl_ucb_is_the_best_adaptive_policy_on_average(rows: Rows) -> None:
    ratio = of_adaptive(rows, 1)
    assert min(ratio, key=ratio.__getitem__) == "aff-kl-ucb"


def test_change_detection_is_faster_than_adaptive_forgetting() -> None:
    text = (DOCS / "leaderboard.md").read_text(encoding="utf-8")
    found = {name: re.findall(rf"^\| `{name}` \|.*\| (\d+) \| [^|]*\|$", text, re.MULTILINE) for name in DETECTING}
    delays = {name: float(delay) for name, (delay,) in found.items()}
    assert delays["aff-dts2"] > 2 * max(delays["changepoint-ts"], delays["glr-kl-ucb-diminishing"])


@pytest.mark.parametrize("name", ["d-ucb", "sw-ucb", "ucb", "ts"])
def test_discouraged_policies_are_worse_than_recommended_ones(rows: Rows, name: str) -> None:
    assert rows[name][0] > max(rows["aff-dts2"][0], rows["aff-kl-ucb"][0])


def test_the_guide_names_only_existing_policies() -> None:
    text = (DOCS / "which-policy.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\(policies/([\w-]+)\.md\)", text)) <= set(db.policies.POLICIES)
