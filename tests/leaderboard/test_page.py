"""The page of the leaderboard in a browser."""

from pathlib import Path
from typing import Any

import pytest

from dynabandit.leaderboard.board import Board, BoardEntry
from dynabandit.leaderboard.page import render
from tools.browser import PHONE, open_visit

MARKUP = "</script><img src=x onerror=alert(1)>"
FAMILIES = {"case-1-2": "case-1", "case-1-10": "case-1", "pb-1": "pb"}
REGRET = {"a": (10.0, 40.0, 10.0), MARKUP: (20.0, 20.0, 40.0), "told": (1.0, 1.0, 1.0)}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    entries = [
        BoardEntry(
            trial, policy, "oracle" if policy == "told" else "practical", "", 400, 1, regret[i], 0.1, [regret[i]] * 5,
            [regret[i]] * 4, [0.5 * regret[i], regret[i]], "abc",
        )
        for i, trial in enumerate(FAMILIES)
        for policy, regret in REGRET.items()
    ]  # fmt: skip
    trials = {
        name: {"family": family, "arms": 2, "horizon": 10, "environment": "x", "delay": None, "times": [5, 10]}
        for name, family in FAMILIES.items()
    }
    path = tmp_path_factory.mktemp("page") / "leaderboard.html"
    path.write_text(render(Board("1", trials, entries, {"a": None}, {"a": 0.5})), encoding="utf-8")
    return path


def column(visit: Any, table: str, place: int) -> list[str]:
    cells = visit.page.query_selector_all(f"#{table} tbody tr td:nth-child({place})")
    return [cell.inner_text() for cell in cells]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_sorts_filters_and_draws_curves_without_network_access(page: Path, browser: Any, scheme: Any) -> None:
    with open_visit(browser, page.as_uri(), scheme=scheme) as visit:
        assert column(visit, "overall", 1) == ["a", MARKUP]
        assert column(visit, "overall", 2) == ["1.19", "2.38"]
        visit.page.click("#overall th:nth-child(2) button")
        assert column(visit, "overall", 1) == [MARKUP, "a"]
        visit.page.click("#families label:has-text('pb') input")
        assert column(visit, "overall", 2) == ["1.41", "1.41"]
        visit.page.check("#oracles")
        assert "told" in column(visit, "overall", 1)
        visit.page.select_option("#trial", "pb-1")
        assert column(visit, "single", 3) == ["1.0", "10.0", "40.0"]
        assert visit.page.locator("#chart polyline").count() == 2
        visit.page.fill("#search", "told")
        assert column(visit, "overall", 1) == ["told"]
        assert visit.errors == []
        assert visit.requests == [page.as_uri()]


def test_it_fits_on_a_phone(page: Path, browser: Any) -> None:
    with open_visit(browser, page.as_uri(), size=PHONE) as visit:
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
