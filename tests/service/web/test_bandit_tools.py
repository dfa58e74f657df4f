"""What the page of a bandit offers: comparison of arms, code to copy, limits, periods, files and what forms say."""

import csv
import random
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import dynabandit as db
from dynabandit.client import Client
from dynabandit.service import policy_change
from dynabandit.service.domain import warm_start
from dynabandit.service.keys import new_key
from dynabandit.service.stores import open_store
from dynabandit.service.stores.key_tables import add_key
from dynabandit.service.web import live_pages
from tools.axe import serious
from tools.browser import OpenPage, open_visit
from tools.demo_shop import play
from tools.harness import Running, running, talking
from tools.page_helpers import ARMS, arm_row, bandit_url, wait_for_charts, wait_for_copy, wait_for_events
from tools.waiting import PATIENCE

DASH = "\N{EN DASH}"


def test_arms_are_compared_with_a_control_arm_that_the_address_remembers(
    site: Running, client: Client, open_page: OpenPage
) -> None:
    client.create("compared", arms=["red", "dark & green", "blue"], policy="ucb", seed=1)
    play(client, "compared", {"red": 0.3, "dark & green": 0.9, "blue": 0.4}, 300, random.Random(1))
    visit = open_page(bandit_url(site, "compared"))
    page = wait_for_charts(visit)
    best = arm_row(page, "dark & green", "comparison-rows").locator("td").nth(0)
    expect(best).to_have_text("100.0\u00a0%")
    difference = arm_row(page, "red", "comparison-rows").locator("td").nth(2)
    expect(difference).to_have_text(DASH)
    page.get_by_label("control arm").select_option("dark & green")
    page.wait_for_url(f"**?control={quote('dark & green').replace('%20', '+')}")
    expect(difference).to_contain_text("points")
    relative = arm_row(page, "red", "comparison-rows").locator("td").nth(3)
    expect(relative).to_contain_text("to \N{MINUS SIGN}")
    page.reload()
    expect(page.get_by_label("control arm")).to_have_value("dark & green")
    means = {arm.arm: arm.mean or 0.0 for arm in client.state("compared").arms}
    lost = 100 * (means["dark & green"] - means["red"])
    expect(difference).to_contain_text("points")
    shown = (difference.text_content() or "").partition(" points")[0].removeprefix("\N{MINUS SIGN}")
    assert float(shown) == pytest.approx(lost, abs=0.02)
    assert serious(page) == []
    client.change_arm("compared", "dark & green", retired=True)
    expect(page.locator("#comparison-note")).to_contain_text("There is no arm “dark & green” to compare with.")
    page.get_by_label("control arm").select_option("none")
    expect(page.locator("#comparison-note")).to_have_text("by the estimates of the policy now")
    expect(page).to_have_url(bandit_url(site, "compared"))
    assert visit.errors == []


@contextmanager
def folder_server(folder: Path) -> Iterator[str]:
    """Serve the files of a folder at another origin than the service's."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_the_code_for_this_bandit_runs(tmp_path: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name, arms and features have what is special in each language."""
    name = 'it\'s "here"/ü $HOME \\\\'
    features = {
        'user\'s "tier"': {"kind": "category", "values": ['go\'ld "$1" \\\\']},
        "taste": {"kind": "vector", "size": 2},
        "new": "boolean",
        "hour": "number",
        "words": "hashed",
    }
    store = open_store(f"sqlite:///{tmp_path}/store.db")
    store.prepare()
    (admin, row), (decide, other) = new_key("admin"), new_key("decide")
    add_key(store, row)
    add_key(store, other)
    with (
        folder_server(tmp_path) as application,
        running(store, needs_keys=True, allowed_origins=[application]) as server,
        talking(server.url, key=admin) as (client, _),
        open_visit(browser, bandit_url(server, name)) as visit,
    ):
        client.create(name, ['"decision":"a"', "b"], "lin-ucb", features=features, holdout={"share": 0.1}, seed=1)
        page = visit.page
        page.get_by_label("API key", exact=True).fill(admin)
        page.get_by_role("button", name="Use this key").click()
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        code: dict[str, str] = {}
        for language in ("Python", "Shell", "JavaScript"):
            page.get_by_role("button", name="Code").click()
            page.get_by_label(language).check()
            assert serious(page, "dialog[open]") == []
            page.locator("#code-copy").click()
            wait_for_copy(page.locator("#code-copy"), times=len(code) + 1)
            code[language] = page.evaluate("navigator.clipboard.readText()").replace("dyna_…", decide)
            page.get_by_role("button", name="Close").click()

        monkeypatch.setattr(db, "Client", partial(Client, timeout=PATIENCE))
        exec(compile(code["Python"], "the live page", "exec"), {})
        expect(page.locator("#tiles")).to_contain_text("1decisions")
        done = subprocess.run(["sh", "-c", code["Shell"]], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout.endswith('"reward":1.0}')
        expect(page.locator("#tiles")).to_contain_text("2decisions")
        html = f"<!doctype html><meta charset=utf-8><script type=module>{code['JavaScript']}</script>"
        (tmp_path / "index.html").write_text(html, encoding="utf-8")
        shop = page.context.new_page()
        with shop.expect_console_message(lambda message: message.text.startswith("show ")):
            shop.goto(application)
        expect(page.locator("#tiles")).to_contain_text("3decisions")
        expect(page.locator("#tiles")).to_contain_text("0without a reward so far")
        expect(page.locator("#events")).to_contain_text("for user-17")
        assert [error for error in visit.errors if "401" not in error and "404" not in error] == []


def test_the_limits_of_an_arm_are_edited(site: Running, client: Client, open_page: OpenPage) -> None:
    client.create("limited", arms=ARMS, policy="uniform", seed=1)
    client.change_arm("limited", "red", min_share=0.7)
    visit = open_page(bandit_url(site, "limited"))
    page = visit.page
    page.get_by_role("button", name="Limits green").click()
    low, high = page.get_by_label("Minimum share"), page.get_by_label("Maximum share")
    for values, field, message in (
        (("0.4", ""), "min_share", "at most 0.3, what the other arms leave"),
        (("", "2"), "max_share", "above 0 and at most 1"),
        (("a lot", ""), "min_share", "must be a number from 0 to 1"),
        (("0.2", "0.1"), "min_share", "at most max_share = 0.1"),
    ):
        low.fill(values[0])
        high.fill(values[1])
        page.get_by_role("button", name="Save").click()
        expect(page.locator(f"#limits-{field}-problem")).to_contain_text(message)
        expect(page.locator(f"#limits-{field}")).to_be_focused()
    assert serious(page, "dialog[open]") == []
    high.fill("0.3")
    high.press("Enter")
    expect(page.get_by_role("button", name="Limits green")).to_be_focused()
    expect(arm_row(page, "green").locator("td").nth(2)).to_have_text(f"20{DASH}30 %")
    page.get_by_role("button", name="Limits green").click()
    expect(low).to_have_value("0.2")
    low.fill("")
    high.fill("")
    page.get_by_role("button", name="Save").click()
    expect(arm_row(page, "green").locator("td").nth(2)).to_have_text(DASH)
    green = client.state("limited").arms[1]
    assert (green.min_share, green.max_share) == (0.0, 1.0)
    assert [error for error in visit.errors if "409" not in error and "422" not in error] == []


def test_forms_say_that_a_policy_is_being_compiled(
    site: Running,
    client: Client,
    open_page: OpenPage,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    client.create("waiting", arms=ARMS, policy="ucb", seed=1)
    is_released = threading.Event()
    request.addfinalizer(is_released.set)  # else the service could not be stopped after a failure
    compile_now, warm_up_now = warm_start.compile_policy, warm_start.warm_up

    def compile_later(*arguments: Any) -> None:
        assert is_released.wait(PATIENCE)
        compile_now(*arguments)

    def warm_up_later(*arguments: Any) -> Any:
        assert is_released.wait(PATIENCE)
        return warm_up_now(*arguments)

    address = f"{site.url}/pages/compiled?policy="
    answers = [httpx.get(address + policy, timeout=PATIENCE) for policy in ("ucb", "none")]
    assert answers[0].json() == {"compiled": True}
    assert answers[1].status_code == 404
    monkeypatch.setattr(live_pages, "is_compiled", lambda *_: False)
    monkeypatch.setattr(policy_change, "compile_policy", compile_later)
    monkeypatch.setattr(policy_change, "warm_up", warm_up_later)
    site.service.compiled.discard("uniform")
    page = open_page(site.url).page
    page.get_by_role("button", name="New bandit").click()
    page.get_by_label("Name").fill("waited")
    page.get_by_label("Arms, one per line").fill("red\ngreen")
    page.get_by_label("Policy").select_option("uniform")
    page.get_by_role("button", name="Create").click()
    waiting = page.locator("#create-waiting")
    expect(waiting).to_have_text(re.compile(r"The service compiles uniform, which takes some seconds.*\d\ss"))
    expect(page.get_by_role("button", name="Create")).to_be_disabled()
    is_released.set()
    expect(page.get_by_role("heading", level=1)).to_have_text("waited")

    is_released.clear()
    page.get_by_role("button", name="Change the policy").click()
    page.get_by_label("Policy", exact=True).select_option("ucb")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.locator("#policy-waiting")).to_contain_text("The service compiles ucb, which takes some seconds")
    assert serious(page, "dialog[open]") == []
    is_released.set()
    expect(page.locator("#policy-dialog")).to_be_hidden()
    expect(page.locator("#policy-waiting")).to_be_empty()
    assert client.state("waited").policy == "ucb"


def drag(page: Page, chart: str, start: float, end: float) -> None:
    """Drag in a chart between two fractions of its width."""
    area = page.locator(f"#{chart} .nsewdrag")
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + (start + end) / 2 * box["width"], y)
    page.mouse.move(box["x"] + end * box["width"], y)
    page.mouse.up()


def wait_for_range(page: Page, chart: str, start: float, end: float, within: float = 12.0) -> None:
    """Wait until the horizontal axis of a chart has about these ends."""
    page.wait_for_function(
        """([id, start, end, within]) => {
          const { range } = document.querySelector(`#${id} .canvas`)._fullLayout.xaxis;
          return Math.abs(range[0] - start) < within && Math.abs(range[1] - end) < within;
        }""",
        arg=[chart, start, end, within],
    )


def test_a_period_is_selected_and_kept_while_new_data_arrive(
    site: Running, client: Client, open_page: OpenPage
) -> None:
    client.create("zoomed", arms=ARMS, policy="uniform", seed=1)
    client.decide_many("zoomed", 600)
    client.change_arm("zoomed", "red", max_share=0.9)
    client.decide_many("zoomed", 600)
    visit = open_page(bandit_url(site, "zoomed"))
    page = wait_for_charts(visit)
    wait_for_events(page, client, "zoomed")
    wait_for_range(page, "mean", 0, 1_200)
    drag(page, "share", 0.1, 0.3)
    for chart in ("share", "mean", "forgetting", "reward"):  # all charts show the same period
        wait_for_range(page, chart, 120, 360)
        expect(page.locator(f"#{chart} .annotation-text")).to_have_count(0)
    expect(page.get_by_label("Period of the charts")).to_have_value("dragged")
    client.decide_many("zoomed", 400)
    expect(page.locator("#tiles")).to_contain_text("1,600decisions")
    client.decide_many("zoomed", 400)
    wait_for_events(page, client, "zoomed")
    wait_for_range(page, "share", 120, 360)
    page.get_by_label("time", exact=True).check()
    expect(page.locator("#share .xtitle")).to_have_text("time")
    page.get_by_label("decisions", exact=True).check()
    wait_for_range(page, "share", 120, 360)
    assert serious(page) == []

    page.get_by_role("button", name="Show all").click()
    wait_for_range(page, "share", 0, 2_000)
    expect(page.get_by_label("Period of the charts")).to_be_focused()
    expect(page.locator("#period-note")).to_be_hidden()
    page.get_by_label("Period of the charts").select_option("last 1,000 decisions")
    wait_for_range(page, "reward", 1_000, 2_000, within=0.5)
    client.decide_many("zoomed", 200)
    wait_for_range(page, "reward", 1_200, 2_200, within=0.5)
    wait_for_events(page, client, "zoomed")
    page.clock.set_fixed_time(datetime.now())  # Plotly takes two clicks for a double click if 0.3 s are between them
    page.locator("#reward .nsewdrag").dblclick()
    wait_for_range(page, "share", 0, 2_200)
    expect(page.locator("#share .annotation-text")).to_have_count(1)
    assert visit.errors == []


def downloaded(page: Page, button: Locator, name: str) -> list[dict[str, str]]:
    with page.expect_download() as waiting:
        button.click()
    assert waiting.value.suggested_filename == name
    with Path(waiting.value.path()).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_the_numbers_are_downloaded_as_csv(site: Running, client: Client, open_page: OpenPage) -> None:
    arms = ["=1+1", 'say "hello", twice', "blue"]
    client.create("tables", arms=arms, policy="ucb", seed=1)
    play(client, "tables", dict(zip(arms, (0.2, 0.5, 0.4), strict=True)), 300, random.Random(1))
    visit = open_page(f"{bandit_url(site, 'tables')}?control=blue")
    page = wait_for_charts(visit)
    wait_for_events(page, client, "tables")
    expect(arm_row(page, "=1+1", "comparison-rows")).to_contain_text("points")
    page.locator("#share summary").click()
    rows = downloaded(
        page, page.locator("#share").get_by_role("button", name="CSV"), "tables, Share of the decisions.csv"
    )
    assert list(rows[0]) == ["decision", "time", "'=1+1", *arms[1:]], "no spreadsheet takes a name for a formula"
    assert len(rows) > 100, "all points, not only those of the table"
    assert rows[-1]["decision"] == "300"
    assert sum(float(rows[-1][name]) for name in list(rows[0])[2:]) == pytest.approx(1.0, abs=1e-3)
    assert datetime.fromisoformat(rows[-1]["time"]).tzinfo is not None
    state = client.state("tables")
    listed = downloaded(page, page.locator("#arms-csv"), "tables, arms.csv")
    assert [int(row["plays"]) for row in listed] == [arm.plays for arm in state.arms]
    assert [float(row["mean"]) for row in listed] == pytest.approx([arm.mean for arm in state.arms], rel=1e-4)
    assert sum(float(row["best"]) for row in listed) == pytest.approx(1.0, abs=1e-3)
    assert float(listed[0]["uplift"]) == pytest.approx(float(listed[0]["mean"]) - float(listed[2]["mean"]), abs=1e-4)
    assert listed[2]["uplift"] == ""
    assert visit.errors == []


@pytest.mark.promise(189)
def test_local_deciders_are_listed(site: Running, client: Client, open_page: OpenPage, tmp_path: Path) -> None:
    client.create("local", ARMS, "ucb", seed=1)
    visit = open_page(bandit_url(site, "local"))
    page = visit.page
    expect(page.locator("#events tr")).to_have_count(1)
    expect(page.locator("#deciders-section")).to_be_hidden()
    with db.LocalDecider(
        site.url, "local", tmp_path, refresh_seconds=1e6, flush_seconds=1e6, timeout=PATIENCE
    ) as decider:
        decider.decide_many(3)
        decider.sync()
        decider.decide_many(2)
        decider._refresh()  # without sending
        client.decide("local")
        cells = page.locator("#deciders tr").filter(has=page.get_by_role("rowheader", name=decider.id)).locator("td")
        expect(cells).to_have_text(["3", "1 event behind", re.compile("now|ago"), "2"])
        expect(page.locator("#deciders-section")).to_be_visible()
        assert serious(page) == []
    assert visit.errors == []
