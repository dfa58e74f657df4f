"""The report on the paper, as a file and in a browser."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import PHONE, Visit, open_visit
from dynabandit.paper import publish
from dynabandit.paper.verdicts import judge, reference
from dynabandit.results import Results
from fakes import fake_paper, only

CHART = "figure-two-arms-abrupt"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


def show_all_charts(page: Any) -> None:
    """Scroll to every chart, and wait until it is drawn."""
    page.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
    for chart in page.query_selector_all(".chart"):
        chart.scroll_into_view_if_needed()
        chart.wait_for_selector(".main-svg", state="attached")


@pytest.fixture(scope="module")
def text(published: Path) -> str:
    return (published / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def visit(published: Path, browser: Any) -> Iterator[Visit]:
    """The report with all charts drawn; tests leave it as they found it."""
    with open_visit(browser, (published / "report.html").as_uri()) as visit:
        show_all_charts(visit.page)
        yield visit
        assert visit.errors == []


def test_the_report_is_one_file_of_moderate_size(text: str) -> None:
    assert len(text.encode()) < 15_000_000
    own = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", own)


def test_every_claim_is_in_the_report(text: str) -> None:
    for number in range(1, 22):
        assert text.count(f'id="claim-{number}"') == 1
        assert f'href="#claim-{number}"' in text


def test_claims_without_results_are_listed_with_the_reason(published: Path, text: str) -> None:
    kept = json.loads((published / "claims.json").read_text(encoding="utf-8"))
    found = {claim["id"]: claim["verdict"] for claim in kept["claims"]}
    holding = {1, 2, 3, 4, 5, 6, 7, 8, 20, 21}
    assert found == {number: "holds" if number in holding else "not run" for number in range(1, 22)}
    assert "Not judged: case-3-arms-2 was not run." in text
    assert "figure-small-changes" in text
    assert "figure-two-arms-drift" not in text


def test_more_than_100_replications_are_judged_twice() -> None:
    paper = fake_paper()
    paper.replications = 120
    results = only(paper.results(), "small-changes")
    first, whole, *_ = publish._columns(results, judge(results))
    assert (first.heading, whole.heading) == ("first 100", "120 replications")
    assert first.verdicts[4] == whole.verdicts[4] == "holds"


def test_verdicts_kept_with_the_program_are_shown(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = only(results, "small-changes")
    kept = tmp_path / "reference.json"
    kept.write_text(json.dumps(reference(some)))
    monkeypatch.setattr(publish, "REFERENCE", kept)
    _, column = publish._columns(some, judge(some))
    assert column.heading == "40 replications, kept with the program"
    assert column.counts[1] == "3 of 3 parts hold"


def test_the_verdicts_of_a_large_run_are_kept_with_the_program() -> None:
    kept = json.loads(publish.REFERENCE.read_text(encoding="utf-8"))
    assert kept["replications"] == 5000
    assert sorted(map(int, kept["verdicts"])) == list(range(1, 22))


def test_all_charts_are_drawn_without_network_access(visit: Visit, published: Path) -> None:
    assert visit.requests == [(published / "report.html").as_uri()]
    charts = visit.page.evaluate("[...document.querySelectorAll('.chart')].map(one => one.data.length)")
    assert len(charts) == 13
    assert min(charts) > 0


def test_the_report_follows_the_colour_scheme(visit: Visit) -> None:
    text = "document.querySelector('.chart').layout.font.color"
    light = visit.page.evaluate(f"[{BACKGROUND}, {text}]")
    assert light[0] == "rgb(255, 255, 255)"
    visit.page.emulate_media(color_scheme="dark")
    visit.page.wait_for_function(f"{text} !== '{light[1]}'")
    assert visit.page.evaluate(BACKGROUND) != light[0]
    visit.page.emulate_media(color_scheme="light")
    visit.page.wait_for_function(f"{text} === '{light[1]}'")


def test_clicking_a_legend_hides_the_policy_in_all_charts_of_the_figure(visit: Visit) -> None:
    hidden = f"""[...document.querySelectorAll('#{CHART} .chart')].map(chart =>
        chart.data.filter(trace => trace.visible === 'legendonly').map(trace => trace.legendgroup))"""
    assert visit.page.evaluate(hidden) == [[], []]
    entry = visit.page.locator(f"#{CHART} .chart").first.locator(".legend .traces", has_text="D-UCB")
    entry.locator(".legendtoggle").click()
    visit.page.wait_for_function(f"{hidden}.every(names => names.length >= 3)")
    assert {name for names in visit.page.evaluate(hidden) for name in names} == {"D-UCB"}
    entry.locator(".legendtoggle").click()
    visit.page.wait_for_function(f"{hidden}.every(names => names.length === 0)")


def test_hovering_shows_values(visit: Visit) -> None:
    chart = visit.page.locator(f"#{CHART} .chart").first
    chart.scroll_into_view_if_needed()
    chart.locator(".subplot.xy .scatterlayer .point").last.hover(force=True)
    chart.locator(".hoverlayer .hovertext").first.wait_for()
    assert "cumulative regret" in (chart.locator(".hoverlayer").text_content() or "")


def test_print_shows_pictures_for_charts_and_opens_all_details(visit: Visit) -> None:
    page = visit.page
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".charts").first.is_hidden()
    assert page.locator("nav").is_hidden()
    assert page.locator(".static").first.is_visible()
    assert page.evaluate("document.querySelectorAll('details:not([open])').length") == 0
    assert page.evaluate(BACKGROUND) == "rgb(255, 255, 255)"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.querySelectorAll('details[open]').length") == 0
    page.emulate_media(media="screen", color_scheme="light")


def test_the_report_fits_a_phone(published: Path, browser: Any) -> None:
    with open_visit(browser, (published / "report.html").as_uri(), size=PHONE) as visit:
        show_all_charts(visit.page)
        visit.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert visit.page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
        assert visit.errors == []
