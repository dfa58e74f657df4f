"""The report, as a file and in a real browser."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import PHONE, Visit
from dynabandit.paper import publish as paper_report
from dynabandit.paper.figures import IDS, make_figures
from dynabandit.paper.verdicts import judge, reference
from dynabandit.report import page
from dynabandit.report.page import publish
from dynabandit.results import Results, SamplePath
from fakes import fake_run, holding

Open = Callable[..., Visit]
CHART = "figure-two-arms-abrupt"


def scroll_through(page: Any, charts: str = ".chart") -> None:
    """Bring charts into view, as a reader does, and wait until they are drawn."""
    page.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
    for chart in page.query_selector_all(charts):
        chart.scroll_into_view_if_needed()
        chart.wait_for_selector(".main-svg", state="attached")


def test_the_report_is_one_file_of_fair_size(published: Path) -> None:
    text = (published / "report.html").read_text(encoding="utf-8")
    assert len(text.encode()) < 15_000_000
    mine = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", mine)


def test_every_claim_and_figure_is_in_the_report(published: Path) -> None:
    text = (published / "report.html").read_text(encoding="utf-8")
    for number in range(1, 22):
        assert text.count(f'id="claim-{number}"') == 1
        assert f'href="#claim-{number}"' in text
    for name in IDS:
        assert text.count(f'id="figure-{name}"') == 1


def test_claims_json_lies_beside_the_report(published: Path) -> None:
    kept = json.loads((published / "claims.json").read_text(encoding="utf-8"))
    assert kept["counts"]["holds"] == 21


def test_a_part_of_the_paper_says_what_was_not_run(part_published: Path) -> None:
    kept = json.loads((part_published / "claims.json").read_text(encoding="utf-8"))
    found = {claim["id"]: claim["verdict"] for claim in kept["claims"]}
    assert found[20] == found[5] == "holds"
    assert found[1] == found[12] == found[21] == "not run"
    text = (part_published / "report.html").read_text(encoding="utf-8")
    assert "Not judged: small-changes was not run." in text
    assert "figure-small-changes" not in text


def test_more_than_100_replications_are_judged_twice() -> None:
    world = holding()
    world.replications = 120
    results = world.results()
    first, whole, *_ = paper_report._columns(results, judge(results))
    assert (first.heading, whole.heading) == ("first 100", "120 replications")
    assert first.verdicts[4] == "not run"
    assert whole.verdicts[4] == "holds"


def test_verdicts_kept_with_the_program_are_shown(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "reference.json"
    kept.write_text(json.dumps(reference(results)))
    monkeypatch.setattr(paper_report, "REFERENCE", kept)
    _, column = paper_report._columns(results, judge(results))
    assert column.heading == "40 replications, kept with the program"
    assert column.counts[1] == "3 of 3 parts hold"


def test_markup_in_names_is_text(tmp_path: Path, open_page: Open) -> None:
    nasty = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    runs = [fake_run(f"a {nasty}", policy, [1.0, 2.0], label=f"{policy} {nasty}") for policy in ("ucb", "ts")]
    path = publish(Results(runs, {"note": nasty}), tmp_path)
    visit = open_page(path.as_uri())
    scroll_through(visit.page)
    assert visit.errors == []
    assert visit.requests == [path.as_uri()]
    assert nasty in visit.page.inner_text("h1")
    assert visit.page.evaluate("document.querySelectorAll('img:not(.static)').length") == 0


def test_data_in_the_page_cannot_end_their_script_element() -> None:
    text = page.embedded({"name": "</script><!-- & -->"})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"name": "</script><!-- & -->"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_renders_without_errors_and_without_network(
    results: Results, published: Path, open_page: Open, scheme: str
) -> None:
    path = published / "report.html"
    visit = open_page(path.as_uri(), scheme=scheme)
    scroll_through(visit.page)
    assert visit.errors == []
    assert visit.requests == [path.as_uri()]
    charts = visit.page.evaluate("[...document.querySelectorAll('.chart')].map(one => one.data.length)")
    assert len(charts) == sum(len(figure.blocks) for figure in make_figures(results))
    assert min(charts) > 0
    light = visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert light == (scheme == "light")


def test_clicking_a_legend_hides_the_policy_in_all_charts_of_the_figure(published: Path, open_page: Open) -> None:
    visit = open_page((published / "report.html").as_uri())
    scroll_through(visit.page, f"#{CHART} .chart")
    hidden = f"""[...document.querySelectorAll('#{CHART} .chart')].map(chart =>
        chart.data.filter(trace => trace.visible === 'legendonly').map(trace => trace.legendgroup))"""
    assert visit.page.evaluate(hidden) == [[], []]
    entry = visit.page.locator(f"#{CHART} .chart").first.locator(".legend .traces", has_text="D-UCB")
    entry.locator(".legendtoggle").click()
    visit.page.wait_for_function(f"{hidden}.every(names => names.length >= 3)")
    assert {name for names in visit.page.evaluate(hidden) for name in names} == {"D-UCB"}
    entry.locator(".legendtoggle").click()
    visit.page.wait_for_function(f"{hidden}.every(names => names.length === 0)")
    assert visit.errors == []


def test_hovering_shows_values(published: Path, open_page: Open) -> None:
    visit = open_page((published / "report.html").as_uri())
    scroll_through(visit.page, f"#{CHART} .chart")
    chart = visit.page.locator(f"#{CHART} .chart").first
    chart.scroll_into_view_if_needed()
    chart.locator(".subplot.xy .scatterlayer .point").last.hover(force=True)
    chart.locator(".hoverlayer .hovertext").first.wait_for()
    assert "cumulative regret" in chart.locator(".hoverlayer").text_content()


def test_the_report_fits_a_phone(published: Path, open_page: Open) -> None:
    visit = open_page((published / "report.html").as_uri(), size=PHONE)
    scroll_through(visit.page)
    visit.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert visit.page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
    assert visit.errors == []


def test_print_shows_pictures_for_charts_and_opens_what_was_closed(published: Path, open_page: Open) -> None:
    visit = open_page((published / "report.html").as_uri(), scheme="dark")
    visit.page.emulate_media(media="print")
    visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert visit.page.locator(".charts").first.is_hidden()
    assert visit.page.locator("nav").is_hidden()
    assert visit.page.locator(".static").first.is_visible()
    assert visit.page.evaluate("document.querySelectorAll('details:not([open])').length") == 0
    assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    visit.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert visit.page.evaluate("document.querySelectorAll('details[open]').length") == 0


def test_a_report_without_the_paper_has_curves_boxes_and_a_table(tmp_path: Path, open_page: Open) -> None:
    runs = [fake_run("mine", policy, [1.0, 2.0, 4.0]) for policy in ("ucb", "aff-ucb1")]
    path = publish(Results(runs), tmp_path)
    assert not (tmp_path / "claims.json").exists()
    visit = open_page(path.as_uri())
    scroll_through(visit.page)
    assert visit.errors == []
    assert visit.page.locator("tbody tr").count() == 2
    kinds = visit.page.evaluate("[...document.querySelectorAll('.chart')].map(one => one.data.map(t => t.type))")
    assert [sorted(set(kind)) for kind in kinds] == [["box", "scatter"], ["scatter"]]
    assert visit.page.locator(".claim").count() == 0


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs matplotlib.*dynabandit\[lab\]"):
        publish(Results([fake_run("mine", "ucb", [1.0, 2.0])]), tmp_path)


def test_a_report_of_your_own_has_the_titles_of_the_spec_and_the_paths_asked_for(tmp_path: Path) -> None:
    spec = {"experiments": [{"id": "mine", "title": "Five offers"}]}
    path = SamplePath("fixed", 2, 0, np.arange(1, 5), np.full((4, 2), 0.5))
    run = fake_run("mine", "ucb", [1.0, 2.0])
    text = publish(Results([run], {"title": "A <good> week", "spec": spec}, [path]), tmp_path).read_text(
        encoding="utf-8"
    )
    assert "<h1>A &lt;good&gt; week</h1>" in text
    assert "<h2>Five offers</h2>" in text
    assert "<p>mine, 2 arms; 10,000 steps, 2 replications, seed 1.</p>" in text
    assert "<h2>fixed, 2 arms: sample paths</h2>" in text
    assert (tmp_path / "figures" / "02-sample-paths-1-fixed.svg").exists()
