"""The report on the paper, as a file and in a browser."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dynabandit.paper import large_run, report
from dynabandit.paper.verdicts import judge
from tools.axe import serious
from tools.browser import PHONE, Visit, open_visit
from tools.fakes import fake_paper, only

CHART = "figure-two-arms-abrupt"
COVERED = """[...document.querySelectorAll('.legend button')].filter(button => {
    button.scrollIntoView({block: 'center', behavior: 'instant'});
    const {left, right, top, bottom} = button.getBoundingClientRect();
    const found = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return right > innerWidth || found.closest('button') !== button;
}).map(button => button.textContent)"""
FOLLOWS = "() => document.querySelector('.chart').layout.font.color === getComputedStyle(document.body).color"
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


def test_each_part_shows_the_effect_of_the_large_run(published: Path, text: str) -> None:
    kept = json.loads((published / "claims.json").read_text(encoding="utf-8"))
    parts = sum(len(claim["parts"]) for claim in kept["claims"])
    assert text.count('<div class="runs">large run: holds</div>') == parts


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
    columns = report._columns(results, judge(results), large_run.load())
    assert (columns["first"].heading, columns["own"].heading) == (
        "its first 100 replications", "this run, 120 replications",
    )  # fmt: skip
    assert columns["first"].verdicts[4] == columns["own"].verdicts[4] == "holds"


@pytest.mark.parametrize(
    ("verdicts", "text"),
    [
        (["holds"], "1 claim holds"),
        (["holds", "inconclusive", "holds"], "2 claims hold and 1 is inconclusive"),
        (["not run", "contradicted", "not run", "holds in part"],
         "1 claim holds in part, 1 is contradicted and 2 were not run"),
    ],
)  # fmt: skip
def test_the_counts_of_verdicts_are_a_sentence(verdicts: list[str], text: str) -> None:
    assert report.sentence(verdicts) == text


def test_the_abstract_has_five_lines_with_the_verdicts_of_the_large_run_and_of_this_one(text: str) -> None:
    found = re.search(r'<div class="abstract">(.*?)</div>', text, re.DOTALL)
    assert found
    lines = [
        " ".join(re.sub(r"<[^>]*>", "", line).split()) for line in re.findall(r"<p>(.*?)</p>", found[1], re.DOTALL)
    ]
    assert [line.partition(".")[0] for line in lines] == ["Paper", "Method", "Result", "New", "This run"]
    counts = "10 claims hold and 11 were not run."
    assert lines[2] == f"Result. With 40 replications, {counts}"
    assert lines[3].endswith(
        "With a bonus that does grow, its mean regret is between 0.778 times (small number of changes) and 1.40 times "
        "(Case 2, 2 arms) as large."
    )
    assert (
        lines[4]
        == f"This run. With 40 replications, {counts} Every claim that it decides has the verdict of the large run."
    )
    assert text.index('id="abstract"') < text.index('id="verdicts"') < text.index('id="new-results"')
    assert text.index('id="growing"') < text.index('id="trap"') < text.index('id="small-changes"')


def test_all_charts_are_drawn_without_network_access(visit: Visit, published: Path) -> None:
    assert visit.requests == [(published / "report.html").as_uri()]
    charts = visit.page.evaluate("[...document.querySelectorAll('.chart')].map(one => one.data.length)")
    assert len(charts) == 13
    assert min(charts) > 0


def test_the_report_has_no_serious_barriers(visit: Visit) -> None:
    assert serious(visit.page, "main") == []
    assert serious(visit.page, ".contents") == []


def test_the_report_follows_the_colour_scheme(visit: Visit) -> None:
    text = "document.querySelector('.chart').layout.font.color"
    visit.page.wait_for_function(FOLLOWS)  # another test may have changed it before
    light = visit.page.evaluate(f"[{BACKGROUND}, {text}]")
    assert light[0] == "rgb(255, 255, 255)"
    visit.page.emulate_media(color_scheme="dark")
    visit.page.wait_for_function(f"() => {text} !== '{light[1]}'")
    assert visit.page.evaluate(BACKGROUND) != light[0]
    visit.page.emulate_media(color_scheme="light")
    visit.page.wait_for_function(f"() => {text} === '{light[1]}'")


def visible(page: Any) -> list[list[str]]:
    """Return the policies that the charts of the figure show, by chart."""
    shown = f"""[...document.querySelectorAll('#{CHART} .chart')].map(chart =>
        [...new Set(chart.data.filter(trace => trace.visible).map(trace => trace.legendgroup))])"""
    return list(page.evaluate(shown))


def test_six_curves_are_shown_at_first_and_the_others_after_a_click(visit: Visit) -> None:
    figure = visit.page.locator(f"#{CHART}")
    entries = figure.locator(".block").first.locator(".legend button")
    ours = ["ε-Greedy (best ε = 0.1, in hindsight)", "AFF-d-Greedy", "TS", "AFF-TS", "OTS", "AFF-OTS"]
    ucb = ["UCB", "AFF-UCB1", "AFF-UCB2", "D-UCB", "SW-UCB"]
    for button, names in (("Greedy and", ours), ("UCB", ucb), ("All 11", ours + ucb), ("Greedy and", ours)):
        figure.locator(".shown button", has_text=button).click()
        assert entries.all_inner_texts() == names
        assert [sorted(chart) for chart in visible(visit.page)] == [sorted(names)] * 2


def test_clicking_a_legend_hides_the_policy_in_all_charts_of_the_figure(visit: Visit) -> None:
    entry = visit.page.locator(f"#{CHART} .legend button", has_text="AFF-OTS").first
    assert all("AFF-OTS" in names for names in visible(visit.page))
    entry.click()
    assert not any("AFF-OTS" in names for names in visible(visit.page))
    assert entry.get_attribute("aria-pressed") == "false"
    entry.click()
    assert all("AFF-OTS" in names for names in visible(visit.page))


def test_the_contents_stay_in_view_and_mark_the_section_that_is_read(visit: Visit) -> None:
    visit.page.evaluate("document.getElementById('memory').scrollIntoView()")
    marked = visit.page.locator(".contents a[aria-current]", has_text="4.3.2")
    marked.wait_for()
    box = marked.bounding_box()
    assert box
    assert 0 <= box["y"] < 900
    assert visit.page.locator(".contents a[aria-current]").count() == 1


def test_hovering_shows_values(visit: Visit) -> None:
    chart = visit.page.locator(f"#{CHART} .chart").first
    chart.scroll_into_view_if_needed()
    chart.locator(".subplot.xy .scatterlayer .point").last.hover(force=True)
    chart.locator(".hoverlayer .hovertext").first.wait_for()
    assert "cumulative regret" in (chart.locator(".hoverlayer").text_content() or "")


def test_print_shows_pictures_for_charts_and_opens_the_parts_of_claims(visit: Visit) -> None:
    page = visit.page
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".charts").first.is_hidden()
    assert page.locator(".contents").is_hidden()
    assert page.locator(".shown").first.is_hidden()
    assert page.locator(".static").first.is_visible()
    assert page.evaluate("document.querySelectorAll('.claim details:not([open])').length") == 0
    assert page.locator("details", has_text="Seeds, versions and hardware").is_hidden()
    assert page.evaluate(BACKGROUND) == "rgb(255, 255, 255)"
    size = "selector => parseFloat(getComputedStyle(document.querySelector(selector)).fontSize)"
    for text, remark in (("body", ".rule"), ("body", ".tally"), (".parts td", ".parts .runs")):
        assert page.evaluate(size, remark) < page.evaluate(size, text)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.querySelectorAll('details[open]').length") == 0
    page.emulate_media(media="screen", color_scheme="light")


def test_the_report_fits_a_phone(published: Path, browser: Any) -> None:
    with open_visit(browser, (published / "report.html").as_uri(), size=PHONE) as visit:
        show_all_charts(visit.page)
        visit.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert visit.page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
        assert visit.page.locator(".legend button").count() == 40
        assert visit.page.evaluate(COVERED) == []
        assert visit.errors == []
