"""A test of a page that fails leaves what its pages showed, what happened on them, and what its service logged."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tools.waiting import PATIENCE

TESTS = Path(__file__).parents[2]
CONFTEST = """
from pathlib import Path
from tools import browser as tools_browser
from tools.browser import *
tools_browser.FAILED = Path(__file__).parent / "failed"
"""
FAILING = """
import pytest

from tools.waiting import PATIENCE
from tools.browser import DESKTOP, PHONE, open_visit
from tools.harness import process, running
from dynabandit.service.logging_setup import log
from dynabandit.service.stores import open_store

@pytest.fixture
def url(tmp_path):
    with running(open_store(f"sqlite:///{tmp_path}/store.db")) as server:
        log.warning("said by the service")
        yield server.url

LOAD = "() => { console.log('only information'); return fetch('/nothing').then(() => 1); }"

def test_of_two_pages(url, open_page):
    open_page(url, size=DESKTOP)
    assert open_page(url, size=PHONE).page.evaluate(LOAD) == 1
    assert 1 + 1 == 3

@pytest.mark.parametrize("name", ["a/b\\n"])
def test_of_a_page_that_is_closed(url, browser, tmp_path, name):
    with process(f"sqlite:///{tmp_path}/other.db"), open_visit(browser, url) as visit:
        assert visit.page.title() == "another"

def test_that_passes(url, open_page):
    open_page(url)
"""


def width(picture: Path) -> int:
    (pixels,) = struct.unpack(">I", picture.read_bytes()[16:20])
    return int(pixels)


@pytest.mark.usefixtures("browser")  # skipped without one
def test_a_failed_test_leaves_pictures_of_its_pages_their_console_and_the_log_of_its_service(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_pages.py").write_text(FAILING)
    old = tmp_path / "failed" / "test_pages.py-test_that_passes"
    old.mkdir(parents=True)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "1", f"--rootdir={tmp_path}", "."]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_ADDOPTS": ""}  # two failures, so no -x from outside
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=PATIENCE)
    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert not old.exists()
    two, closed = (
        tmp_path / "failed" / f"test_pages.py-test_of_{name}" for name in ("two_pages", "a_page_that_is_closed-a-b-n")
    )
    assert [width(two / f"page-{number}.png") for number in (1, 2)] == [1280, 390]
    record = (two / "page-2.txt").read_text()
    assert "console log: only information" in record
    assert "/nothing: status 404" in record
    assert width(closed / "page-1.png") == 1280
    for folder in (two, closed):
        assert f"saved in {folder}" in done.stdout
        assert "said by the service" in (folder / "log.txt").read_text()
    assert '"started"' in (closed / "log.txt").read_text(), "of the process"
