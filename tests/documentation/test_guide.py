"""What the decision guide says is on the leaderboard that it stands on."""

import re
from pathlib import Path

import pytest

import dynabandit as db

DOCS = Path(__file__).parents[2] / "docs"
SOON = ("aff-dts2", "changepoint-ts", "glr-kl-ucb-diminishing")
ROW = re.compile(r"^\| `([\w-]+)` \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", re.MULTILINE)


@pytest.fixture(scope="module")
def rows():
    """The mean rank, the mean ratio to the best, and the worst ratio of each ranked policy."""
    found = ROW.findall((DOCS / "leaderboard.md").read_text(encoding="utf-8"))
    return {name: tuple(float(cell) for cell in cells) for name, *cells in found}


def of_adaptive(rows, column):
    return {name: cells[column] for name, cells in rows.items() if name.startswith("aff-")}


def test_aff_dts2_has_the_mildest_worst_case_of_the_adaptive_policies(rows):
    worst = of_adaptive(rows, 2)
    assert min(worst, key=worst.get) == "aff-dts2"


def test_aff_kl_ucb_is_the_best_adaptive_policy_on_average(rows):
    ratio = of_adaptive(rows, 1)
    assert min(ratio, key=ratio.get) == "aff-kl-ucb"


def test_those_that_look_for_changes_see_one_sooner_than_those_that_adapt():
    text = (DOCS / "leaderboard.md").read_text(encoding="utf-8")
    delays = {name: float(re.search(rf"^\| `{name}` \|.*\| (\d+) \| [^|]*\|$", text, re.MULTILINE)[1]) for name in SOON}
    assert delays["aff-dts2"] > 2 * max(delays["changepoint-ts"], delays["glr-kl-ucb-diminishing"])


@pytest.mark.parametrize("name", ["d-ucb", "sw-ucb", "ucb", "ts"])
def test_what_the_guide_warns_of_is_behind_what_it_recommends(rows, name):
    assert rows[name][0] > max(rows["aff-dts2"][0], rows["aff-kl-ucb"][0])


def test_the_guide_names_no_policy_that_does_not_exist():
    text = (DOCS / "which-policy.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\(policies/([\w-]+)\.md\)", text)) <= set(db.policies.POLICIES)
