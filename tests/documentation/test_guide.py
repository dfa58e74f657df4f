"""The recommendations of docs/which-policy.md agree with the leaderboard."""

import re
import runpy
from pathlib import Path

import pytest

import dynabandit as db

DOCS = Path(__file__).parents[2] / "docs"
DETECTING = ("aff-dts2", "changepoint-ts", "glr-kl-ucb-diminishing")
# policy, ratio to the best policy, its interval, ratio in the worst environment
ROW = re.compile(r"^\| `([\w-]+)` \| ([\d.]+) \| [\d.]+ to [\d.]+ \| ([\d.]+) \|", re.MULTILINE)

Rows = dict[str, tuple[float, float]]


@pytest.fixture(scope="module")
def table() -> str:
    """Return the first table of the leaderboard."""
    return (DOCS / "leaderboard.md").read_text(encoding="utf-8").partition("Tuned with the truth")[0]


@pytest.fixture(scope="module")
def rows(table: str) -> Rows:
    """Return the mean ratio to the best and the worst ratio of each policy."""
    return {name: (float(ratio), float(worst)) for name, ratio, worst in ROW.findall(table)}


def test_the_tables_are_those_of_the_data() -> None:
    page = runpy.run_path(str(DOCS / "pictures" / "leaderboard.py"))["page"]()
    assert page == (DOCS / "leaderboard.md").read_text(encoding="utf-8"), "run: python docs/pictures/leaderboard.py"


def test_the_recommended_policy_has_the_smallest_mean_and_the_smallest_worst_ratio(rows: Rows) -> None:
    ranked = {name: cells for name, cells in rows.items() if not db.policies.POLICIES[name].informed}
    for column in (0, 1):
        assert min(ranked, key=lambda name: ranked[name][column]) == db.policy("auto").name


def test_change_detection_is_faster_than_adaptive_forgetting(table: str) -> None:
    found = {
        name: re.findall(rf"^\| `{name}` \|.*?\| (\d+) \| [\d.]* \| [\d,]+ \|", table, re.MULTILINE)
        for name in DETECTING
    }
    delays = {name: float(delay) for name, (delay,) in found.items()}
    assert delays["aff-dts2"] > 2 * max(delays["changepoint-ts"], delays["glr-kl-ucb-diminishing"])


@pytest.mark.parametrize("name", ["d-ucb", "sw-ucb", "ucb", "ts"])
def test_discouraged_policies_are_worse_than_recommended_ones(rows: Rows, name: str) -> None:
    assert rows[name][0] > max(rows["mix-ts"][0], rows["aff-dts2"][0])


def test_the_guide_names_only_existing_policies() -> None:
    text = (DOCS / "which-policy.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\(policies/([\w-]+)\.md\)", text)) <= set(db.policies.POLICIES)
