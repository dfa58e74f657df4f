"""Charts, marks and texts of the live pages, their accessibility, and their pictures for the documentation."""

import json
import re
from collections.abc import Iterator
from typing import Any, Literal

import httpx
import pytest
from playwright.sync_api import expect

from dynabandit.client import Client
from dynabandit.service.projections import log_follower
from dynabandit.service.stores import open_store
from tools.axe import serious
from tools.browser import DESKTOP, PHONE, OpenPage
from tools.demo_shop import fill
from tools.harness import Running, running, talking
from tools.page_helpers import (
    ARMS,
    MAKES_PICTURES,
    PICTURES,
    arm_row,
    axis_ranges,
    bandit_url,
    fits_width,
    only_for_pictures,
    wait_for_charts,
    wait_for_events,
)
from tools.waiting import PATIENCE

CHARTS = ["share", "mean", "forgetting", "reward"]
DASH = "\N{EN DASH}"
DRAW = """async () => {
  const address = document.querySelector("[rel=stylesheet]").href.replace("pages.css", "charts.js");
  const { Chart, line, band, layer, marks, layout } = await import(address);
  const place = document.createElement("section");
  document.getElementById("main").append(place);
  const x = [1, 2, 3], name = "<img src=x onerror=alert(1)> & <b>bold</b>";
  const chart = new Chart(place, () => ({
    data: [...band(name, x, [0.1, 0.2, 0.3], [0.3, 0.4, 0.5], 0), line(name, x, [0.2, 0.3, 0.4], 0),
           layer("layer", x, [0.2, 0.3, 0.4], 1), marks("mark", [2], [0.3], 0, ["here"])],
    layout: layout({ x: "step", y: "mean", percent: true }),
    table: { caption: "Numbers", head: ["step", name], rows: [["1", "0.2"]] },
  }));
  await chart.draw();
  const toggled = new Promise((done) => place.querySelector("details").addEventListener("toggle", done));
  place.querySelector("summary").click();
  await toggled;
  return place.innerText;
}"""


ARRANGE = """async () => {
  const address = document.querySelector("[rel=stylesheet]").href.replace("pages.css", "overview-list.js");
  const { arranged } = await import(address);
  const cards = { b: 6010, a: 6059, unreadable: null, c: 6060 }; // a and b in the same minute
  const given = Object.entries(cards).map(([name, wall]) => ({ name, data: wall && { wall } }));
  return arranged(given).map(({ name }) => name);
}"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with a realistic past."""
    with running(open_store(f"sqlite:///{tmp_path_factory.mktemp('shop')}/store.db")) as server:
        with talking(server.url, tries=6) as (client, _):
            fill(client, steps=6_000 if MAKES_PICTURES else 3_000)
        yield server


def entries(server: Running) -> list[dict[str, Any]]:
    """Return what the overview shows of each bandit."""
    with httpx.stream("GET", f"{server.url}/pages/bandits", timeout=PATIENCE) as answer:
        data = next(line for line in answer.iter_lines() if line.startswith("data: "))
    found: list[dict[str, Any]] = json.loads(data.removeprefix("data: "))["bandits"]
    return found


def test_charts_are_drawn_under_the_security_policy_in_both_colour_schemes(site: Running, open_page: OpenPage) -> None:
    visit = open_page(site.url)
    page = visit.page
    text = page.evaluate(DRAW)
    assert text.count("<img src=x onerror=alert(1)> & <b>bold</b>") >= 1
    assert page.locator(".legendtext").first.inner_html().startswith("&lt;img")
    assert page.locator("main img").count() == 0
    assert all(request.startswith(site.url) for request in visit.requests)

    button = page.get_by_role("button", name="Dark colours")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    assert page.evaluate(background) == dark
    assert visit.errors == []


def test_a_detected_change_is_shown_on_both_pages(shop: Running, open_page: OpenPage) -> None:
    visit = open_page(shop.url)
    card = visit.page.locator("article[data-name='Checkout button']")
    expect(card).to_contain_text("Change detected")
    expect(card).to_contain_text("The mean reward of “Buy now” went from")
    expect(visit.page.locator("article[data-name='Home banner']")).to_contain_text("Autumn sale has")
    expect(visit.page.locator("article[data-name='Mail subject']")).not_to_contain_text("Change")
    card.get_by_role("link").click()
    page = wait_for_charts(visit)
    expect(page.locator("#recent-change")).to_contain_text("“Buy now” went from")
    expect(page.locator("#forgetting .scatterlayer .points path")).not_to_have_count(0)
    page.locator("#forgetting summary").click()
    expect(page.locator("#forgetting caption")).to_contain_text("Buy now changed from")
    assert visit.errors == []


@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_pages_are_accessible_and_fit_the_screen(
    shop: Running, open_page: OpenPage, size: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    page = open_page(shop.url, size=size, scheme=scheme).page
    expect(page.locator("article")).to_have_count(4)
    header = page.locator(".bar").bounding_box()
    assert header is not None
    assert header["height"] < 60, "the header has one row"
    assert fits_width(page)
    assert serious(page) == []
    page.get_by_role("button", name="New bandit").click()
    page.locator("#create-dialog summary").first.click()
    assert serious(page, "dialog[open]") == []
    page = wait_for_charts(open_page(bandit_url(shop, "Home banner"), size=size, scheme=scheme))
    for summary in page.locator("main .numbers summary").all():
        summary.click()
    assert fits_width(page)
    assert serious(page) == []
    dialogs = ["Change the policy", "Add an arm", "Export the log", "Delete"]
    for button in dialogs if size == DESKTOP else dialogs[:1]:
        page.get_by_role("button", name=button, exact=True).click()
        assert serious(page, "dialog[open]") == []
        page.keyboard.press("Escape")


def test_the_overview_works_with_the_keyboard_alone(shop: Running, open_page: OpenPage) -> None:
    page = open_page(shop.url).page
    expect(page.locator("article")).to_have_count(4)
    expect(page.get_by_role("button", name="New bandit")).to_be_visible()  # after its policies were fetched
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="New bandit")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="New bandit")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Search", exact=True)).to_be_focused()
    page.keyboard.type("BUTTON")
    expect(page.locator("article h2")).to_have_text(["Checkout button"])
    expect(page.get_by_role("status").filter(has_text="1 found")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Sort by")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Checkout button")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Checkout button")
    page.go_back()
    expect(page.get_by_label("Search", exact=True)).to_have_value("BUTTON")
    expect(page.locator("article h2")).to_have_text(["Checkout button"])


def test_the_overview_is_sorted_and_the_search_finds_bandits_that_are_not_listed(
    shop: Running, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit = open_page(shop.url)
    page = visit.page
    names = page.locator("article h2")
    by_name = ["Checkout button", "Home banner", "Mail subject", "Search order"]
    expect(names).to_have_text(by_name)
    expect(page.locator("article").nth(1)).to_contain_text("reward rate over all 3,000 decisions")
    page.get_by_label("Sort by").select_option("decisions")
    expect(names).to_have_text(["Home banner", "Checkout button", "Mail subject", "Search order"])
    page.get_by_label("Sort by").select_option("reward rate")
    rates = {one["name"]: one["rate"] or -1.0 for one in entries(shop)}
    expect(names).to_have_text(sorted(by_name, key=lambda name: -rates[name]))
    page.get_by_label("Sort by").select_option("latest activity")
    expect(page).to_have_url(f"{shop.url}/?sort=activity")
    assert page.evaluate(ARRANGE) == ["c", "a", "b", "unreadable"]

    monkeypatch.setattr(log_follower, "MAX_BANDITS", 2)
    page = open_page(f"{shop.url}/?sort=decisions").page
    names = page.locator("article h2")
    expect(names).to_have_text(["Home banner", "Checkout button"])
    expect(page.locator("#more")).to_be_visible()
    page.get_by_label("Search", exact=True).fill("search")
    expect(names).to_have_text(["Search order"])
    expect(page.locator("#more")).to_be_hidden()
    page.reload()
    expect(names).to_have_text(["Search order"])
    page.get_by_label("Search", exact=True).fill("nothing like it")
    expect(page.locator("#found")).to_have_text("No bandit has such a name.")
    expect(page.locator("#empty")).to_be_hidden()
    assert serious(page) == []
    page.get_by_label("Search", exact=True).fill("")
    expect(names).to_have_text(["Home banner", "Checkout button"])
    assert visit.errors == []


def test_interventions_are_marked_and_listed_on_an_open_page(
    site: Running, client: Client, open_page: OpenPage
) -> None:
    client.create("watched", arms=ARMS, policy="uniform", seed=1)
    visit = open_page(bandit_url(site, "watched"))
    page = wait_for_charts(visit)
    expect(page.locator("#summary")).to_contain_text("POST /v1/bandits/watched/decisions")
    for chart in CHARTS:
        expect(page.locator(f"#{chart} .note")).to_have_text("No decisions yet")
        assert min(end for axis in axis_ranges(page, chart) for end in axis) >= 0
    client.decide_many("watched", 300)
    for chart in CHARTS:
        expect(page.locator(f"#{chart} .note")).to_be_hidden()
    expect(page.locator("#timeline-empty")).to_contain_text("nobody changed an arm")
    expect(arm_row(page, "green").locator("td").nth(2)).to_have_text(DASH)

    client.change_arm("watched", "green", min_share=0.1, max_share=0.3)
    expect(arm_row(page, "green").locator("td").nth(2)).to_have_text(f"10{DASH}30 %")
    expect(page.locator("#timeline-empty")).to_be_hidden()
    for chart in CHARTS:
        expect(page.locator(f"#{chart} .annotation-text")).to_have_text([f"green limited to 10{DASH}30 %"])
    client.decide_many("watched", 300)
    client.change_arm("watched", "blue", paused=True)
    expect(arm_row(page, "blue").locator(".badge")).to_have_text("paused")
    client.decide_many("watched", 300)
    client.change_arm("watched", "blue", paused=False)
    client.decide_many("watched", 300)
    client.change_arm("watched", "red", retired=True)
    expect(arm_row(page, "red", "retired").locator(".badge")).to_have_text("retired")
    expect(page.locator("#legend li").first).to_have_text("red (retired)")
    client.decide_many("watched", 300)
    client.add_arm("watched", "violet")
    client.decide_many("watched", 300)
    client.set_policy("watched", "ucb")
    client.decide_many("watched", 50)

    entries = [
        "policy is now ucb",
        "violet added",
        "red retired",
        "blue resumed",
        "blue paused",
        f"green limited to 10{DASH}30 %",
    ]
    expect(page.locator("#timeline li")).to_have_text([re.compile(f"{re.escape(one)}$") for one in entries])
    expect(page.locator("#timeline li").first).to_contain_text("after 1,800 decisions")
    expect(page.locator("#share .annotation-text")).to_have_text(entries[::-1])
    expect(page.locator("#share .shapelayer path")).to_have_count(6)
    assert visit.requests.count(bandit_url(site, "watched")) == 1, "it was not reloaded"
    assert serious(page) == []
    assert visit.errors == []


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_marks_close_to_each_other_share_a_label_and_no_labels_overlap(
    site: Running, client: Client, open_page: OpenPage, size: tuple[int, int]
) -> None:
    name = f"marks {size[0]}"
    client.create(name, arms=ARMS, policy="uniform", seed=1)
    for index in range(16):
        client.decide_many(name, 25)
        client.change_arm(name, ARMS[index % 3], paused=index % 2 == 0)
    client.change_arm(name, "red", paused=False, min_share=0.125)
    client.change_arm(name, "blue", paused=False, max_share=0.4)
    client.change_arm(name, "green", paused=False)
    client.decide_many(name, 400)
    for arm in ARMS:
        client.add_arm(name, f"more {arm}")
    client.decide_many(name, 10)
    page = wait_for_charts(open_page(bandit_url(site, name), size=size))
    wait_for_events(page, client, name)
    expect(page.locator("#timeline li")).to_have_count(6)
    page.get_by_text("Show earlier entries").click()
    for chart in CHARTS:
        element = page.locator(f"#{chart}")
        expect(element.locator(".annotation-text").last).to_have_text("3 arms added")
        boxes = [box for one in element.locator(".annotation-text").all() if (box := one.bounding_box()) is not None]
        for i, one in enumerate(boxes):
            assert one["x"] >= 0
            assert one["x"] + one["width"] <= size[0]
            for other in boxes[:i]:
                beside = one["x"] >= other["x"] + other["width"] or other["x"] >= one["x"] + one["width"]
                assert beside or abs(one["y"] - other["y"]) >= one["height"] - 3
    assert fits_width(page)
    if size == PHONE:
        expect(arm_row(page, "red").first.get_by_text("limits ≥ 12.5 %")).to_be_visible()
        expect(arm_row(page, "blue").first.get_by_text("limits ≤ 40 %")).to_be_visible()
        expect(arm_row(page, "green").first.locator("th .tight")).to_have_count(0)
        button = page.get_by_role("button", name="Pause green", exact=True).bounding_box()
        assert button is not None
        assert button["width"] > button["height"], "words are not broken into letters"


@only_for_pictures
@pytest.mark.parametrize(
    ("name", "path", "size", "scheme", "whole"),
    [
        ("live-all", "/", DESKTOP, "light", False),
        ("live-bandit", "/bandits/Home%20banner?control=Free%20shipping", DESKTOP, "light", True),
        ("live-dark", "/bandits/Home%20banner", DESKTOP, "dark", False),
        ("live-phone", "/bandits/Home%20banner", PHONE, "light", False),
    ],
)
def test_pictures_of_the_live_pages(
    shop: Running,
    open_page: OpenPage,
    name: str,
    path: str,
    size: tuple[int, int],
    scheme: Literal["light", "dark"],
    whole: bool,
) -> None:
    visit = open_page(shop.url + path, size=size, scheme=scheme)
    if path == "/":
        expect(visit.page.locator("article")).to_have_count(4)
    else:
        wait_for_charts(visit)
    visit.page.screenshot(path=PICTURES / f"{name}.png", full_page=whole, animations="disabled")
    assert visit.errors == []
