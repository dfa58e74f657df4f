"""Why did the traffic move? Marks, limits and states on the live page, and what pages say while they are empty."""

import re
import shutil
import subprocess

import pytest
from playwright.sync_api import Page, expect

from axe import serious
from browser import DESKTOP, PHONE
from dynabandit.service.keys import new_key
from dynabandit.service.stores import open_store
from service.harness import process, running, talking
from service.watched import client, ready, site

ARMS = ["red", "green", "blue"]
CHARTS = ["share", "mean", "forgetting", "reward"]
DASH = "\N{EN DASH}"
PATIENCE = 60_000  # milliseconds, for machines that are busy

__all__ = ["client", "site"]


def row(page: Page, arm: str, place: str = "arms"):
    return page.locator(f"#{place} tr").filter(has=page.get_by_role("rowheader", name=arm))


def ranges(page: Page, chart: str) -> list[list[float]]:
    """The ends of both axes of a chart, as it is drawn."""
    return page.evaluate(
        "id => { const { xaxis, yaxis } = document.querySelector(`#${id} .canvas`)._fullLayout;"
        " return [xaxis.range, yaxis.range]; }",
        chart,
    )


def test_what_is_done_to_an_arm_is_marked_and_told_on_a_page_that_is_open(site, client, open_page):
    client.create("watched", arms=ARMS, policy="uniform", seed=1)
    client.decide_many("watched", 300)
    visit = open_page(f"{site.url}/bandits/watched")
    page = ready(visit)
    expect(page.locator("#moves-none")).to_contain_text("Nobody changed an arm")
    expect(row(page, "green").locator("td").nth(1)).to_have_text(DASH)

    client.change_arm("watched", "green", min_share=0.1, max_share=0.3)
    expect(row(page, "green").locator("td").nth(1)).to_have_text(f"10{DASH}30 %")
    expect(page.locator("#moves-none")).to_be_hidden()
    for chart in CHARTS:
        expect(page.locator(f"#{chart} .annotation-text")).to_have_text([f"green limited to 10{DASH}30 %"])
    client.decide_many("watched", 300)
    client.change_arm("watched", "blue", paused=True)
    expect(row(page, "blue").locator(".badge")).to_have_text("paused")
    client.decide_many("watched", 300)
    client.change_arm("watched", "blue", paused=False)
    client.decide_many("watched", 300)
    client.change_arm("watched", "red", retired=True)
    expect(row(page, "red", "retired").locator(".badge")).to_have_text("retired")
    expect(page.locator("#legend li").first).to_have_text("red (retired)")
    client.decide_many("watched", 300)
    client.add_arm("watched", "violet")
    client.decide_many("watched", 300)
    client.set_policy("watched", "ucb")
    client.decide_many("watched", 50)

    told = [
        "policy is now ucb",
        "violet added",
        "red retired",
        "blue resumed",
        "blue paused",
        f"green limited to 10{DASH}30 %",
    ]
    expect(page.locator("#moves li")).to_have_text([re.compile(f"{re.escape(one)}$") for one in told])
    expect(page.locator("#moves li").first).to_contain_text("after 1,800 decisions")
    expect(page.locator("#share .annotation-text")).to_have_text(told[::-1])
    expect(page.locator("#share .shapelayer path")).to_have_count(6)
    assert page.evaluate("performance.getEntriesByType('navigation').length") == 1
    assert sum(request.endswith("/bandits/watched") for request in visit.requests) == 1, "without loading it again"
    assert serious(page) == []
    assert visit.errors == []


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_marks_that_lie_together_have_one_label_and_no_label_lies_on_another(site, client, open_page, size):
    name = f"crowded {size[0]}"
    client.create(name, arms=ARMS, policy="uniform", seed=1)
    for place in range(12):
        client.decide_many(name, 40 if place % 3 else 400)
        client.change_arm(name, ARMS[place % 3], paused=place % 2 == 0)
    client.decide_many(name, 400)
    for arm in ARMS:
        client.add_arm(name, f"more {arm}")
    client.decide_many(name, 10)
    page = ready(open_page(f"{site.url}/bandits/{name}", size=size))
    expect(page.locator("#moves li")).to_have_count(6)
    page.get_by_text("Show earlier ones").click()
    expect(page.locator("#earlier li")).to_have_count(8)  # to resume an arm that was not paused is no news
    for chart in CHARTS:
        place = page.locator(f"#{chart}")
        expect(place.locator(".annotation-text").last).to_have_text("3 arms added")
        boxes = [one.bounding_box() for one in place.locator(".annotation-text").all()]
        for i, one in enumerate(boxes):
            assert one["x"] >= 0
            assert one["x"] + one["width"] <= size[0]
            for other in boxes[:i]:
                beside = one["x"] >= other["x"] + other["width"] or other["x"] >= one["x"] + one["width"]
                assert beside or abs(one["y"] - other["y"]) >= one["height"] - 3
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_limits_are_read_on_a_phone_too(site, client, open_page):
    client.create("small", arms=ARMS, policy="uniform", seed=1)
    client.change_arm("small", "red", min_share=0.125)
    client.change_arm("small", "blue", max_share=0.4)
    client.decide_many("small", 30)
    page = ready(open_page(f"{site.url}/bandits/small", size=PHONE))
    expect(row(page, "red").get_by_text("limits ≥ 12.5 %")).to_be_visible()
    expect(row(page, "blue").get_by_text("limits ≤ 40 %")).to_be_visible()
    expect(row(page, "green").locator(".tight")).to_have_count(0)
    button = page.get_by_role("button", name="Pause green").bounding_box()
    assert button["width"] > button["height"], "a word is not broken into letters"


def test_a_bandit_without_decisions_has_calm_charts(site, client, open_page):
    client.create("waiting", arms=ARMS, policy="uniform", seed=1)
    visit = open_page(f"{site.url}/bandits/waiting")
    page = ready(visit)
    expect(page.locator("#words")).to_contain_text("POST /v1/bandits/waiting/decisions")
    for chart in CHARTS:
        expect(page.locator(f"#{chart} .note")).to_have_text("No decision yet")
        assert min(end for axis in ranges(page, chart) for end in axis) >= 0
    client.decide_many("waiting", 10)
    for chart in CHARTS:
        expect(page.locator(f"#{chart} .note")).to_be_hidden()
    assert visit.errors == []


def test_a_page_without_bandits_leads_to_the_lab(tmp_path, open_page):
    with running(open_store(f"sqlite:///{tmp_path}/store.db")) as server:
        page = open_page(server.url).page
        page.locator("#empty").get_by_role("link", name="Lab").click()
        expect(page).to_have_url(f"{server.url}/lab")


def test_the_bar_has_one_row_on_a_phone_even_where_keys_are_asked_for(sqlite_url, open_page):
    store = open_store(sqlite_url)
    store.create_tables()
    store.add_key(new_key("read")[1])
    store.close()
    with process(sqlite_url, "--require-keys") as server:
        page = open_page(server.url, size=PHONE).page
        expect(page.locator("#key-button")).to_be_visible()
        assert page.locator(".bar").bounding_box()["height"] < 60


def test_a_fresh_service_says_how_to_begin_and_what_it_says_works(tmp_path, open_page):
    with running(open_store(f"sqlite:///{tmp_path}/store.db")) as server:
        visit = open_page(server.url)
        page = visit.page
        expect(page.get_by_role("heading", name="There is no bandit yet")).to_be_visible()
        assert serious(page) == []
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.locator("[data-copy=start-python]").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        python = page.evaluate("navigator.clipboard.readText()")
        shell = page.locator("#start-shell").text_content()
        exec(compile(python, "the live page", "exec"), told := {})
        told["client"].close()
        expect(page.get_by_role("link", name="banner")).to_be_visible()
        expect(page.get_by_role("heading", name="There is no bandit yet")).to_be_hidden()
        if shutil.which("curl"):
            again = shell.replace("banner", "from-a-shell")
            subprocess.run(["sh", "-c", f"{again} --silent --fail"], check=True, capture_output=True)
            expect(page.get_by_role("link", name="from-a-shell")).to_be_visible()
        assert visit.errors == []


def test_a_run_that_compiles_says_so_in_calm_charts_and_says_when_it_was_stopped(tmp_path, monkeypatch, open_page):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "nothing is compiled here"))
    with process(f"sqlite:///{tmp_path}/store.db") as server:
        link = "v=1&environment=case-1&arms=3&policies=ucb;ts;aff-ots&horizon=1000&replications=6&seed=3"
        page = open_page(f"{server.url}/lab?{link}").page
        note = page.locator("#regret .note")
        expect(note).to_contain_text("Compiling", timeout=PATIENCE)
        expect(page.locator("#forgetting .note")).to_have_text("Comes with the first replication")
        expect(page.locator(".canvas[data-drawn]")).to_have_count(4)
        assert ranges(page, "regret") == [[0, 1000], [0, 1]]
        expect(page.locator("#regret .ytick text")).to_have_count(0)
        for chart in ("means", "shares", "forgetting"):
            steps, values = ranges(page, chart)
            assert steps == [0, 1000]
            assert 0 <= values[0] < values[1] < 1.1
        assert serious(page) == []
        page.get_by_role("button", name="Stop").click()
        expect(note).to_contain_text("Stopped")
        expect(page.locator("#forgetting .note")).to_be_hidden()


def test_serving_begins_with_the_addresses_of_the_pages_and_of_the_api(sqlite_url):
    with process(sqlite_url) as server, talking(server.url) as (_, http):
        lab, api = (server.process.stdout.readline().split()[-1] for _ in range(2))
        assert "The paper in five steps" in http.get(lab).text
        assert http.get(api).json()["openapi"].startswith("3.")
