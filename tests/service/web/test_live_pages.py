"""The live page as people use it: a real browser against a service that really runs."""

import os
import random
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from axe import serious
from browser import DESKTOP, PHONE
from dynabandit.service.keys import new_key
from dynabandit.service.stores import open_store
from service.demo import fill, play
from service.harness import ServerProcess, process, running, talking
from service.watched import client, ready, site

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
NASTY = "<img src=x onerror=alert(1)>"
ARMS = ["red", "green", "blue"]

__all__ = ["client", "site"]


def address(site, name: str) -> str:
    from urllib.parse import quote

    return f"{site.url}/bandits/{quote(name, safe='')}"


def cell(page: Page, arm: str, place: int):
    return page.locator("#arms tr").filter(has=page.get_by_role("rowheader", name=arm)).locator("td").nth(place)


def test_a_bandit_is_created_in_the_page_and_its_charts_move_with_its_traffic(site, client, open_page):
    visit = open_page(site.url)
    page = visit.page
    page.get_by_role("button", name="New bandit").click()
    page.get_by_label("Name").fill("first steps")
    page.get_by_label("Arms, one a line").fill("red\ngreen\nblue")
    page.get_by_label("Policy").select_option("aff-ts")
    expect(page.locator("#create-policy-text")).to_contain_text("Thompson sampling")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="first steps")).to_be_visible()
    expect(page.locator("#words")).to_contain_text("No decision yet")
    assert client.state("first steps").policy == "aff-ts"

    dice = random.Random(1)
    play(client, "first steps", {"red": 0.1, "green": 0.9, "blue": 0.1}, 100, dice)
    page = ready(visit)
    expect(page.locator("#tiles")).to_contain_text("100decisions")
    drawn = page.locator("#share .js-line").first.get_attribute("d")
    play(client, "first steps", {"red": 0.1, "green": 0.9, "blue": 0.1}, 400, dice)
    expect(page.locator("#tiles")).to_contain_text("500decisions")
    expect(page.locator("#share .js-line").first).not_to_have_attribute("d", drawn)
    expect(page.locator("#share .xtitle")).to_have_text("decisions")
    page.get_by_label("time").check()
    expect(page.locator("#share .xtitle")).to_have_text("time")
    expect(page.locator("#words")).to_contain_text("“green” leads")
    expect(page.locator("#words")).to_contain_text("clearly more than choosing at random")
    assert visit.errors == []


def test_a_paused_arm_gets_no_traffic_and_a_resumed_one_does(site, client, open_page):
    client.create("pausing", arms=ARMS, policy="uniform", seed=1)
    client.decide_many("pausing", 30)
    visit = open_page(address(site, "pausing"))
    page = ready(visit)
    page.get_by_role("button", name="Pause green").click()
    expect(page.get_by_role("button", name="Resume green")).to_be_visible()
    expect(page.get_by_role("button", name="Resume green")).to_be_focused()
    expect(page.locator("#arms")).to_contain_text("paused")
    before = next(arm.plays for arm in client.state("pausing").arms if arm.arm == "green")
    client.decide_many("pausing", 200)
    expect(page.locator("#tiles")).to_contain_text("230decisions")
    expect(cell(page, "green", 2)).to_have_text(str(before))
    expect(cell(page, "green", 0)).to_contain_text("0.0 %")
    page.get_by_role("button", name="Resume green").press("Enter")
    expect(page.get_by_role("button", name="Pause green")).to_be_visible()
    client.decide_many("pausing", 30)
    expect(cell(page, "green", 2)).not_to_have_text(str(before))
    assert visit.errors == []


def test_arms_are_added_and_retired_but_retiring_asks_first(site, client, open_page):
    client.create("arms", arms=ARMS, seed=1)
    visit = open_page(address(site, "arms"))
    page = visit.page
    page.get_by_role("button", name="Add an arm").click()
    page.get_by_label("Name of the arm").fill("violet")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#arms")).to_contain_text("violet")
    page.get_by_role("button", name="Retire red").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("red")
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.locator("#arms tr")).to_have_count(4)
    page.get_by_role("button", name="Retire red").click()
    dialog.get_by_role("button", name="Retire it").click()
    expect(page.locator("#arms tr")).to_have_count(3)
    assert [arm.arm for arm in client.state("arms").arms] == ["green", "blue", "violet"]
    assert visit.errors == []


def test_names_that_look_like_markup_are_shown_as_text(site, client, open_page):
    nasty = [NASTY, "<b>bold</b>", "&lt;i&gt; %{y} ${x}", "<a href='javascript:alert(1)'>x</a>"]
    client.create(f"{NASTY} a/b", arms=nasty, seed=1)
    play(client, f"{NASTY} a/b", dict.fromkeys(nasty, 0.5), 100, random.Random(1))
    visit = open_page(site.url)
    page = visit.page
    page.get_by_role("link", name=NASTY).click()
    page = ready(visit)
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{NASTY} a/b")
    for arm in nasty:
        expect(page.locator("#arms").get_by_role("rowheader", name=arm, exact=True)).to_be_visible()
        expect(page.locator("#legend").get_by_text(arm, exact=True)).to_be_visible()
    page.locator("#share .nsewdrag").hover()
    expect(page.locator("#share .hoverlayer")).to_contain_text("<b>bold</b>")
    page.locator("#share summary").click()
    expect(page.locator("#share").get_by_role("columnheader", name=NASTY)).to_be_visible()
    assert page.locator("main img, main b b, main svg a").count() == 0
    page.get_by_role("button", name=f"Pause {NASTY}").click()
    expect(page.get_by_role("button", name=f"Resume {NASTY}")).to_be_visible()
    assert [error for error in visit.errors if "400" not in error] == []


@pytest.mark.parametrize(
    ("fill_in", "field", "message"),
    [
        ({"Name": "", "Arms, one a line": "a\nb"}, "create-name", "1 to 200 characters"),
        ({"Name": "taken", "Arms, one a line": "a\nb"}, "create-form", "another body"),
        ({"Name": "x", "Arms, one a line": "only one"}, "create-arms", "a list of 2 to"),
        ({"Name": "x", "Arms, one a line": "twice\ntwice"}, "create-arms", "twice"),
        ({"Name": "x", "Arms, one a line": "a\nb", "step size": "7"}, "create-parameter-step_size", "[0, 1]"),
        ({"Name": "x", "Arms, one a line": "a\nb", "Seed": "-1"}, "create-seed", "from 0 to"),
        (
            {"Name": "x", "Arms, one a line": "a\nb", "Reward window": "soon"},
            "create-reward_window",
            "a number above 0",
        ),
    ],
)
def test_wrong_input_gets_the_words_of_the_server_beside_the_field(site, client, open_page, fill_in, field, message):
    client.create("taken", arms=ARMS, seed=1)
    visit = open_page(site.url)
    page = visit.page
    page.get_by_role("button", name="New bandit").click()
    for summary in ("Parameters", "When rewards"):
        page.locator("#create-dialog summary").filter(has_text=summary).click()
    for label, value in fill_in.items():
        page.locator("#create-dialog").get_by_label(label).fill(value)
    page.get_by_role("button", name="Create").click()
    expect(page.locator(f"#{field}-problem")).to_contain_text(message)
    if field != "create-form":
        expect(page.locator(f"#{field}")).to_be_focused()
        expect(page.locator(f"#{field}")).to_have_attribute("aria-invalid", "true")
    assert page.locator(".problem:not(:empty)").count() == 1
    assert [one.name for one in client.bandits() if one.name == "x"] == []


def test_a_policy_is_looked_at_before_it_is_swapped(site, client, open_page):
    client.create("swapping", arms=ARMS, seed=1)
    play(client, "swapping", {"red": 0.1, "green": 0.8, "blue": 0.1}, 300, random.Random(2))
    visit = open_page(address(site, "swapping"))
    page = ready(visit)
    page.get_by_role("button", name="Swap the policy").click()
    page.get_by_label("Policy", exact=True).select_option("eps-greedy")
    page.locator("#swap-dialog summary").click()
    page.get_by_label("epsilon").fill("3")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#swap-parameter-epsilon-problem")).to_contain_text("[0, 1]")
    page.get_by_label("epsilon").fill("0.2")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview table tbody tr")).to_have_count(3)
    expect(page.locator("#preview")).to_contain_text("eps-greedy would choose")
    assert client.state("swapping").policy == "aff-ots"
    page.get_by_role("button", name="Swap", exact=True).click()
    expect(page.locator("#policy")).to_have_text("eps-greedy")
    expect(page.locator("#events")).to_contain_text("policy is now eps-greedy")
    assert client.state("swapping").parameters["epsilon"] == 0.2
    assert [error for error in visit.errors if "422" not in error] == []


def test_a_bandit_is_deleted_only_by_its_name(site, client, open_page):
    client.create("going", arms=ARMS, seed=1)
    visit = open_page(address(site, "going"))
    page = visit.page
    page.get_by_role("button", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("to confirm").fill("something else")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.locator("#delete-confirm-problem")).to_contain_text("confirm must repeat the name")
    assert client.state("going").name == "going"
    dialog.get_by_label("to confirm").fill("going")
    dialog.get_by_role("button", name="Delete").click()
    page.wait_for_url(f"{site.url}/")
    expect(page.locator("#all")).to_have_attribute("aria-busy", "false")
    expect(page.get_by_role("link", name="going", exact=True)).to_have_count(0)


def test_the_log_is_exported_as_it_is(site, client, open_page):
    client.create("exported", arms=ARMS, seed=1)
    client.decide_many("exported", 10)
    visit = open_page(address(site, "exported"))
    page = visit.page
    page.get_by_role("button", name="Export the log").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download").click()
    lines = Path(waiting.value.path()).read_text().splitlines()
    assert waiting.value.suggested_filename == "exported-events.ndjson"
    assert len(lines) == 11
    assert visit.errors == []


def test_the_page_says_when_the_server_is_away_and_goes_on_when_it_is_back(sqlite_url, open_page):
    server = ServerProcess(sqlite_url)
    port = server.url.rpartition(":")[2]
    try:
        with talking(server.url) as (client, _):
            client.create("b", arms=ARMS, seed=1)
            client.decide_many("b", 10)
        visit = open_page(f"{server.url}/bandits/b")
        page = ready(visit)
        expect(page.locator("#connection")).to_have_text("Up to date")
        server.kill()
        expect(page.locator("#connection")).to_contain_text("The service is away")
        expect(page.locator("#tiles")).to_contain_text("10decisions")
        server.process.communicate()
        server = ServerProcess(sqlite_url, "--port", port)
        expect(page.locator("#connection")).to_have_text("Up to date")
        with talking(server.url) as (client, _):
            client.decide_many("b", 10)
        expect(page.locator("#tiles")).to_contain_text("20decisions")
        network = re.compile("Failed to load resource|ERR_CONNECTION|ERR_INCOMPLETE")
        assert [error for error in visit.errors if not network.search(error)] == []
        logged = server.stop()
        assert "exceeded" not in logged.lower(), "an open page must not keep the server from stopping"
        expect(page.locator("#connection")).to_contain_text("The service is away")
    finally:
        if server.process.poll() is None:
            server.kill()
            server.process.communicate()


def test_with_keys_the_page_asks_for_one_and_shows_what_its_role_may_do(sqlite_url, open_page):
    store = open_store(sqlite_url)
    store.prepare_tables()
    keys = {}
    for role in ("admin", "read"):
        keys[role], row = new_key(role)
        store.add_key(row)
    store.close()
    with process(sqlite_url, "--require-keys") as server:
        with talking(server.url, key=keys["admin"]) as (client, http):
            client.create("secret", arms=ARMS, seed=1)
            client.decide_many("secret", 10)
            assert "secret" not in http.get("/", headers={"Authorization": ""}).text
            for path in ("/pages/bandits", "/pages/bandit?name=secret", "/pages/policies", "/pages/who"):
                assert http.get(path, headers={"Authorization": ""}).status_code == 401
        visit = open_page(server.url)
        page = visit.page
        page.get_by_label("API key").fill("dyna_wrong_key")
        page.get_by_role("button", name="Use this key").click()
        expect(page.locator("#key-problem")).to_contain_text("not valid")
        page.get_by_label("API key").fill(keys["read"])
        page.get_by_role("button", name="Use this key").click()
        page.get_by_role("link", name="secret").click()
        page = ready(visit)
        expect(page.get_by_role("button", name="Export the log")).to_be_visible()
        expect(page.get_by_role("button", name="Delete")).to_be_hidden()
        expect(page.get_by_role("button", name="Pause red")).to_have_count(0)
        page.get_by_role("button", name="Key", exact=True).click()
        page.get_by_label("API key").fill(keys["admin"])
        page.get_by_role("button", name="Use this key").click()
        expect(page.get_by_role("button", name="Pause red")).to_be_visible()
        store.revoke_key(keys["admin"].split("_")[1], 1.0)
        store.close()
        expect(page.get_by_role("dialog")).to_contain_text("This key is not valid.")
        assert all("dyna_" not in request for request in visit.requests), "a key is never in an address"
        assert [error for error in visit.errors if "401" not in error] == []


def test_a_bandit_that_is_not_there_is_said_to_be_missing(site, open_page):
    visit = open_page(address(site, "nobody"))
    expect(visit.page.locator("#gone")).to_have_text("There is no bandit with this name.")


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A service with a realistic past."""
    with running(open_store(f"sqlite:///{tmp_path_factory.mktemp('shop')}/store.db")) as server:
        with talking(server.url, tries=6) as (client, _):
            fill(client)
        yield server


def test_a_change_is_seen_at_a_glance(shop, open_page):
    visit = open_page(shop.url)
    card = visit.page.locator("article[data-name='Checkout button']")
    expect(card).to_contain_text("The world has changed")
    expect(card).to_contain_text("“Buy now” went from")
    expect(visit.page.locator("article[data-name='Home banner']")).to_contain_text("Autumn sale leads with")
    expect(visit.page.locator("article[data-name='Mail subject']")).not_to_contain_text("changed")
    card.get_by_role("link").click()
    page = ready(visit)
    expect(page.locator("#changed")).to_contain_text("“Buy now” went from")
    expect(page.locator("#forgetting .scatterlayer .points path")).not_to_have_count(0)
    page.locator("#forgetting summary").click()
    expect(page.locator("#forgetting caption")).to_contain_text("Buy now changed from")
    assert visit.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(shop, open_page, scheme):
    visit = open_page(shop.url, scheme=scheme)
    visit.page.emulate_media(reduced_motion="reduce")  # a dialog that is fading in has little contrast yet
    expect(visit.page.locator("article")).to_have_count(4)
    assert serious(visit.page) == []
    visit.page.get_by_role("button", name="New bandit").click()
    visit.page.locator("#create-dialog summary").first.click()
    assert serious(visit.page) == []
    visit = open_page(address(shop, "Home banner"), scheme=scheme)
    visit.page.emulate_media(reduced_motion="reduce")
    page = ready(visit)
    for summary in page.locator("main .numbers summary").all():
        summary.click()
    assert serious(page) == []
    for button in ("Add an arm", "Swap the policy", "Export the log", "Delete"):
        page.get_by_role("button", name=button, exact=True).click()
        assert serious(page) == []
        page.keyboard.press("Escape")


@pytest.mark.parametrize("path", ["/", "/bandits/Home%20banner"])
def test_a_phone_scrolls_in_one_direction_only(shop, open_page, path):
    visit = open_page(shop.url + path, size=PHONE)
    page = visit.page
    if path == "/":
        expect(page.locator("article")).to_have_count(4)
    else:
        ready(visit)
    wide, seen = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= seen


def test_the_page_works_from_the_keyboard_alone(shop, open_page):
    visit = open_page(shop.url)
    page = visit.page
    expect(page.locator("article")).to_have_count(4)
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
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Checkout button")


@pytest.mark.skipif(not os.environ.get("DYNABANDIT_SCREENSHOTS"), reason="make screenshots asks for them")
@pytest.mark.parametrize(
    ("name", "path", "size", "scheme", "whole"),
    [
        ("live-all", "/", DESKTOP, "light", False),
        ("live-bandit", "/bandits/Home%20banner", DESKTOP, "light", True),
        ("live-dark", "/bandits/Home%20banner", DESKTOP, "dark", False),
        ("live-phone", "/bandits/Home%20banner", PHONE, "light", False),
    ],
)
def test_pictures_of_the_page(shop, open_page, name, path, size, scheme, whole):
    visit = open_page(shop.url + path, size=size, scheme=scheme)
    if path == "/":
        expect(visit.page.locator("article")).to_have_count(4)
    else:
        ready(visit)
    PICTURES.mkdir(exist_ok=True)
    visit.page.screenshot(path=PICTURES / f"{name}.png", full_page=whole, animations="disabled")
    assert visit.errors == []
