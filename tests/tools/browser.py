"""Pages in a real browser: any Chrome or Chromium on this machine, without a window.

`open_page` and `open_visit` open pages and record their requests and console errors. Without a browser these tests are
skipped, or fail where CI is set.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import pytest

from dynabandit.report.pdf import NAMES, find_browser

if TYPE_CHECKING:  # every test process imports this file, and few need a browser
    from playwright.sync_api import Browser, Page

__all__ = ["DESKTOP", "FLAGS", "PHONE", "OpenPage", "Visit", "browser", "find_browser", "open_page", "open_visit"]

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-features=SpareRendererForSitePerProcess",  # a process that is started ahead for the next page
)  # fmt: skip
PHONE, DESKTOP = (390, 844), (1280, 900)


@dataclass
class Visit:
    """An open page with what happened on it."""

    page: "Page"
    errors: list[str] = field(default_factory=list)
    """Errors and warnings of the console, and uncaught exceptions."""
    requests: list[str] = field(default_factory=list)
    """Requested addresses."""


OpenPage = Callable[..., Visit]


@pytest.fixture(scope="module")  # its event loop runs in this thread, and later tests may need one of their own
def browser() -> "Iterator[Browser]":
    path = find_browser()
    if path is None:
        missing = f"no browser: none of {', '.join(NAMES)} was found (make browser installs one)"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Each launch has a fresh profile in a temporary folder
        launched = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield launched
        launched.close()


@contextmanager
def open_visit(
    browser: "Browser",
    address: str,
    *,
    size: tuple[int, int] = DESKTOP,
    scheme: Literal["light", "dark"] = "light",
    animations: bool = False,
) -> Iterator[Visit]:
    """Open an address in a window of a given size and colour scheme, without animations."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=scheme,
        reduced_motion="no-preference" if animations else "reduce",
    )
    visited = Visit(context.new_page())
    visited.page.on("request", lambda request: visited.requests.append(request.url))
    visited.page.on("pageerror", lambda error: visited.errors.append(str(error)))
    visited.page.on(
        "console",
        lambda message: visited.errors.append(message.text) if message.type in ("error", "warning") else None,
    )
    visited.page.goto(address)
    yield visited
    context.close()


@pytest.fixture
def open_page(browser: "Browser") -> Iterator[OpenPage]:
    """Return a function that opens an address, with the options of `open_visit`; its pages close after the test."""
    with ExitStack() as stack:
        yield lambda address, **options: stack.enter_context(open_visit(browser, address, **options))
