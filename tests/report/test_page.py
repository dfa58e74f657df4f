"""The report of any experiment, as a file and in a browser."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import open_visit
from dynabandit.report import page
from dynabandit.results import Results, SamplePath
from fakes import fake_run

MARKUP = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def test_a_report_has_titles_curves_boxes_tables_and_paths_and_shows_markup_as_text(
    tmp_path: Path, browser: Any
) -> None:
    runs = [fake_run("mine", policy, [1.0, 2.0, 4.0], label=f"{policy} {MARKUP}") for policy in ("ucb", "aff-ucb1")]
    spec = {"experiments": [{"id": "mine", "title": "Five offers"}]}
    paths = [SamplePath("fixed", 2, 0, np.arange(1, 5), np.full((4, 2), 0.5))]
    path = page.publish(Results(runs, {"title": f"A {MARKUP}", "spec": spec, "note": MARKUP}, paths), tmp_path)
    assert sorted(one.name for one in (tmp_path / "figures").glob("*.svg")) == [
        "01-mine.svg", "02-sample-paths-1-fixed.svg",
    ]  # fmt: skip
    assert not (tmp_path / "claims.json").exists()
    with open_visit(browser, path.as_uri()) as visit:
        for chart in visit.page.query_selector_all(".chart"):
            chart.scroll_into_view_if_needed()
            chart.wait_for_selector(".main-svg", state="attached")
        kinds = visit.page.evaluate("[...document.querySelectorAll('.chart')].map(one => one.data.map(t => t.type))")
        assert [sorted(set(kind)) for kind in kinds] == [["box", "scatter"], ["scatter"], ["scatter"]]
        assert visit.page.inner_text("h1") == f"A {MARKUP}"
        headings = [one.inner_text() for one in visit.page.query_selector_all("h2")]
        assert headings == ["Five offers", "fixed, 2 arms: sample paths", "How this was made"]
        assert visit.page.inner_text("section p") == "mine, 2 arms; 10,000 steps, 3 replications, seed 1."
        assert visit.page.locator("tbody tr").count() == 2
        assert visit.page.locator(".claim").count() == 0
        assert visit.page.evaluate("document.querySelectorAll('img:not(.static)').length") == 0
        assert visit.errors == []
        assert visit.requests == [path.as_uri()]


def test_data_in_the_page_cannot_end_their_script_element() -> None:
    text = page.embedded({"name": "</script><!-- & -->"})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"name": "</script><!-- & -->"}


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs matplotlib.*dynabandit\[lab\]"):
        page.publish(Results([fake_run("mine", "ucb", [1.0, 2.0])]), tmp_path)
