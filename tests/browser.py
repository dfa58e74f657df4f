"""Pages in a real browser: any Chrome or Chromium on this machine, without a window.

A test asks for the fixture `open_page` and gets pages that remember what they asked the network for and what
went wrong in their console. Without a browser such tests are skipped, and fail where CI is set.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ELSEWHERE = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
PHONE, DESKTOP = (390, 844), (1280, 900)


def find_browser() -> str | None:
    """Return the path of a browser, if there is one."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    return next((path for path in ELSEWHERE if Path(path).exists()), None)


@dataclass
class Visit:
    """An open page with what happened on it."""

    page: Any
    errors: list[str] = field(default_factory=list)
    """Errors and warnings of the console, and exceptions that nobody caught."""
    requests: list[str] = field(default_factory=list)
    """Addresses that were asked for."""


@pytest.fixture(scope="module")  # its event loop runs in this thread: what comes after may need one of its own
def browser() -> Iterator[Any]:
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


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Visit]]:
    """Return a function that opens an address in a window of some size and colour scheme."""
    contexts = []

    def visit(address: str, *, size: tuple[int, int] = DESKTOP, scheme: str = "light") -> Visit:
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
        contexts.append(context)
        visited = Visit(context.new_page())
        visited.page.on("request", lambda request: visited.requests.append(request.url))
        visited.page.on("pageerror", lambda error: visited.errors.append(str(error)))
        visited.page.on(
            "console",
            lambda message: visited.errors.append(message.text) if message.type in ("error", "warning") else None,
        )
        visited.page.goto(address)
        return visited

    yield visit
    for context in contexts:
        context.close()
