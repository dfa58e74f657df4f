"""Accessibility checks with axe."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

__all__ = ["serious"]


def serious(page: Page, part: str | None = None) -> list[str]:
    """Return the serious and critical violations that axe finds on a page, or in the part that a selector matches."""
    found = Axe().run(page, part).response["violations"]
    return [
        f"{one['id']}: {node['html'][:200]} {node.get('failureSummary', '')}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
