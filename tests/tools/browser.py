"""Pages in a real browser: any Chrome or Chromium on this machine, without a window.

`open_page` and `open_visit` open pages and record what happens on them. When a test fails, the folder of the test in
out/failed gets what its pages show and what happened on them, and what the service and the test wrote. Without a
browser these tests are skipped, or fail where CI is set.
"""

import os
import re
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from dynabandit.report.pdf import NAMES, find_browser
from tools.waiting import PATIENCE

if TYPE_CHECKING:  # every test process imports this file, and few need a browser
    from playwright.sync_api import Browser, BrowserContext, Page

__all__ = [
    "DESKTOP", "FLAGS", "PATIENCE_MS", "PHONE", "OpenPage", "Visit", "browser", "find_browser", "open_page",
    "open_visit", "pytest_runtest_makereport", "pytest_runtest_setup",
]  # fmt: skip

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-features=SpareRendererForSitePerProcess",  # a process that is started ahead for the next page
)  # fmt: skip
PHONE, DESKTOP = (390, 844), (1280, 900)
PATIENCE_MS = 1000 * PATIENCE
FAILED = Path(__file__).parents[2] / "out" / "failed"
LONGEST_NAME = 150  # characters of the name of a folder; file systems take 255 bytes


@dataclass
class Visit:
    """An open page with what happened on it."""

    page: "Page"
    errors: list[str] = field(default_factory=list)
    """Errors and warnings of the console, and uncaught exceptions."""
    requests: list[str] = field(default_factory=list)
    """Requested addresses."""
    record: list[str] = field(default_factory=list)
    """All messages of the console, uncaught exceptions, and requests that failed, of this and of further pages."""


OpenPage = Callable[..., Visit]


@pytest.fixture(scope="module")  # its event loop runs in this thread, and later tests may need one of their own
def browser() -> "Iterator[Browser]":
    path = find_browser()
    if path is None:
        missing = f"no browser: none of {', '.join(NAMES)} was found (make browser installs one)"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        # Each launch has a fresh profile in a temporary folder
        launched = playwright.chromium.launch(executable_path=path, args=list(FLAGS), timeout=PATIENCE_MS)
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
    context.set_default_timeout(PATIENCE_MS)
    context.set_default_timeout(PATIENCE_MS)
    visited = Visit(context.new_page())
    visited.page.on("request", lambda request: visited.requests.append(request.url))
    visited.page.on("pageerror", lambda error: visited.errors.append(str(error)))
    visited.page.on(
        "console",
        lambda message: visited.errors.append(message.text) if message.type in ("error", "warning") else None,
    )
    _record(context, visited.record)
    _open.append(visited)
    try:
        visited.page.goto(address)
        yield visited
        for page in context.pages:  # a context that is closed during a navigation may never be closed
            page.wait_for_load_state()
    except BaseException:
        _save(visited, _folder(os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]))
        raise
    finally:
        _open.remove(visited)
        context.close()


@pytest.fixture
def open_page(browser: "Browser") -> Iterator[OpenPage]:
    """Return a function that opens an address, with the options of `open_visit`; its pages close after the test."""
    with ExitStack() as stack:
        yield lambda address, **options: stack.enter_context(open_visit(browser, address, **options))


# What a failed test leaves

_open: list[Visit] = []


def _record(context: "BrowserContext", record: list[str]) -> None:
    context.on("console", lambda message: record.append(f"console {message.type}: {message.text}"))
    context.on("weberror", lambda error: record.append(f"uncaught: {error.error}"))
    context.on(
        "requestfailed",
        lambda request: record.append(f"request failed: {request.method} {request.url}: {request.failure}"),
    )
    context.on(
        "response",
        lambda answer: (
            record.append(f"request failed: {answer.request.method} {answer.url}: status {answer.status}")
            if answer.status >= 400
            else None
        ),
    )


def _folder(test: str) -> Path:
    """Return the folder for a failed test."""
    return FAILED / re.sub(r"[^\w.-]+", "-", test)[-LONGEST_NAME:].strip("-")


def _save(visited: Visit, folder: Path) -> None:
    """Save what the pages of a visit show, and what happened on them."""
    from playwright.sync_api import Error

    folder.mkdir(parents=True, exist_ok=True)
    number = len(list(folder.glob("page-*.txt"))) + 1
    for place, page in enumerate(visited.page.context.pages):
        name = f"page-{number}" + (f"-{place + 1}" if place else "")
        try:
            page.screenshot(path=folder / f"{name}.png", full_page=True, animations="disabled")
        except Error as error:  # such as a page that has crashed; the rest is still worth having
            visited.record.append(f"no screenshot of {page.url}: {error}")
    lines = [*(page.url for page in visited.page.context.pages), "", *visited.record]
    (folder / f"page-{number}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remove what an earlier run of this test has left."""
    shutil.rmtree(_folder(item.nodeid), ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Save the open pages of a test that failed, and with them what was logged, and name the folder in the report."""
    report = yield
    folder = _folder(item.nodeid)
    if report.failed:
        for visited in _open:
            _save(visited, folder)
    if folder.exists():  # also at the end of the test, when processes of services have written their log
        log = "\n".join(f"--- {title}\n{text}" for title, text in report.sections)
        (folder / "log.txt").write_text(log, encoding="utf-8")
        if report.failed:
            report.sections.append(("Pages", f"saved in {folder}"))
    return report
