"""Helpers of the tests of pages."""

import os
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import psutil  # type: ignore[import-untyped]
import pytest
from playwright.sync_api import Locator, Page, expect

from dynabandit.client import Client
from tools.browser import Visit
from tools.harness import Running

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
ARMS = ["red", "green", "blue"]
MAKES_PICTURES = bool(os.environ.get("DYNABANDIT_SCREENSHOTS"))
only_for_pictures = pytest.mark.skipif(not MAKES_PICTURES, reason="only make screenshots runs it")


class ProtectedSite(NamedTuple):
    """A service that requires keys, and a key of each role."""

    server: Running
    keys: dict[str, str]


def bandit_url(site: Running, name: str) -> str:
    return f"{site.url}/bandits/{quote(name, safe='')}"


def wait_for_charts(visit: Visit, charts: int = 4) -> Page:
    """Wait until all charts of a page are drawn; a bandit with a holdout has five."""
    expect(visit.page.locator(".canvas[data-drawn]")).to_have_count(charts)
    return visit.page


def wait_for_events(page: Page, client: Client, name: str) -> None:
    """Wait until the charts of a bandit show all its events so far."""
    drawn = "number => Number(document.getElementById('bandit').dataset.drawn) >= number"
    page.wait_for_function(drawn, arg=client.state(name).sequence)


def wait_for_copy(button: Locator, times: int = 1) -> None:
    """Wait until a button has copied its text so often."""
    expect(button).to_have_attribute("data-copied", str(times))


def arm_row(page: Page, arm: str, table: str = "arms") -> Locator:
    return page.locator(f"#{table} tr").filter(has=page.get_by_role("rowheader", name=arm))


def axis_ranges(page: Page, chart: str) -> list[list[float]]:
    """Return the ends of both axes of a chart, as it is drawn."""
    ranges: list[list[float]] = page.evaluate(
        "id => { const { xaxis, yaxis } = document.querySelector(`#${id} .canvas`)._fullLayout;"
        " return [xaxis.range, yaxis.range]; }",
        chart,
    )
    return ranges


def fits_width(page: Page) -> bool:
    """Whether the page needs no horizontal scrolling."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def worker_processes() -> set[psutil.Process]:
    """Return the processes that run simulations of the playground for a service in this process."""
    found = set()
    for child in psutil.Process().children(recursive=True):
        try:
            if "dynabandit.playground" in child.cmdline() and child.status() != psutil.STATUS_ZOMBIE:
                found.add(child)
        except psutil.NoSuchProcess:
            continue
    return found
