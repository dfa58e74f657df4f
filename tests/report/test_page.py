"""The report of any experiment, as a file and in a browser."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynabandit.report import page, pdf, tables
from dynabandit.results import Results, SamplePath
from tools.browser import open_visit
from tools.fakes import fake_run

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
        assert visit.page.locator("thead th").last.inner_text() == f"Difference to ucb {MARKUP}, 95 %"
        assert visit.page.locator(".claim").count() == 0
        assert visit.page.evaluate("document.querySelectorAll('img:not(.static)').length") == 0
        assert visit.errors == []
        assert visit.requests == [path.as_uri()]


def test_the_table_has_paired_differences_and_can_be_sorted(tmp_path: Path, browser: Any) -> None:
    totals = {"ucb": [10.0, 20.0, 30.0], "ts": [8.0, 17.0, 29.0], "aff-ts": [110.0, 121.0, 129.0]}
    path = page.publish(Results([fake_run("mine", policy, total) for policy, total in totals.items()]), tmp_path)
    with open_visit(browser, path.as_uri()) as visit:
        rows = visit.page.locator("tbody tr")
        shown = [row.locator("td").all_inner_texts() for row in rows.all()]
        assert [row[0] for row in shown] == ["ucb", "ts", "aff-ts"]
        assert [row[3] for row in shown] == ["", "\u22122.00 (\u22124.48 to 0.484)", "100 (97.5 to 102)"]
        heading = visit.page.locator("thead th").last
        for order, policies in (("ascending", ["ts", "ucb", "aff-ts"]), ("descending", ["aff-ts", "ucb", "ts"])):
            heading.locator("button").click()
            assert heading.get_attribute("aria-sort") == order
            assert [row.locator("td").first.inner_text() for row in rows.all()] == policies
        visit.page.locator("thead th button").first.click()
        assert [row.locator("td").first.inner_text() for row in rows.all()] == ["aff-ts", "ts", "ucb"]


def test_runs_on_other_paths_are_not_compared() -> None:
    runs = [fake_run("mine", "ucb", [1.0, 2.0]), fake_run("mine", "ts", [1.0, 2.0, 3.0])]
    runs += [fake_run("mine", "ucb", [3.0, 4.0], arms=5), fake_run("mine", "ts", [4.0, 5.0], arms=5)]
    rows = tables.summary(runs)
    assert [row["baseline"] for row in rows] == ["ucb", "", "ucb", "ucb"]
    assert rows[1]["difference"] is None
    assert rows[3]["difference"].value == 1.0


def test_a_report_is_printed_as_pdf_and_the_next_report_removes_it(tmp_path: Path, browser: Any) -> None:
    results = Results([fake_run("mine", policy, [1.0, 2.0, 4.0]) for policy in ("ucb", "ts")])
    report = page.publish(results, tmp_path)
    printed = pdf.print_pdf(report)
    assert printed == tmp_path / "report.pdf"
    assert printed.read_bytes().startswith(b"%PDF")
    page.publish(results, tmp_path)
    assert not printed.exists()


def test_a_browser_that_fails_is_named_with_its_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = tmp_path / "chromium"
    browser.write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    browser.chmod(0o755)
    monkeypatch.setattr(pdf, "find_browser", lambda: str(browser))
    with pytest.raises(pdf.PdfError, match=r"chromium could not print .*report\.html: broken"):
        pdf.print_pdf(tmp_path / "report.html")


def test_data_in_the_page_cannot_end_their_script_element() -> None:
    text = page.embedded({"name": "</script><!-- & -->"})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"name": "</script><!-- & -->"}


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs matplotlib.*dynabandit\[lab\]"):
        page.publish(Results([fake_run("mine", "ucb", [1.0, 2.0])]), tmp_path)
