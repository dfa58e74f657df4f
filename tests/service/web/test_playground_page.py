"""The playground, as a person uses it: a real browser, a real service, real processes that run the trials."""

import os
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import pytest

from axe import serious
from browser import DESKTOP, PHONE
from dynabandit import playground
from dynabandit.playground.tour import STEPS
from dynabandit.service.keys import new_key
from dynabandit.service.stores import open_store
from service.harness import process, talking, workers

PATIENCE = 120_000  # milliseconds, for machines that are busy and compile first
SHORT = "v=1&environment=case-1&arms=3&policies=ucb;aff-ots&horizon=1000&replications=6&seed=3"
HEAVY = "v=1&environment=case-3&arms=50&policies=ucb&horizon=20000&replications=300&seed=3"
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
RISING = "".join(
    f"{'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmno'[3 + column * 44 // 60]}" for column in range(60)
)
FALLING = RISING[::-1]
SWITCHING = "K" * 15 + "i" * 15 + "A" * 15 + "c" * 15
DRAWN = (
    f"v=1&environment=drawn&arms=3&drawn={FALLING}.{RISING}.{SWITCHING}"
    "&policies=ts;dts:memory=20;aff-ots&horizon=6000&replications=40&seed=1"
)
NASTY = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with process(f"sqlite:///{tmp_path_factory.mktemp('lab')}/store.db") as server:
        yield server


@pytest.fixture
def lab(site, open_page):
    """Open the playground; what it did wrong in its console fails the test."""
    visits = []

    def visit(link="", **options):
        visited = open_page(f"{site.url}/lab{'?' if link else ''}{link}", **options)
        visited.page.set_default_timeout(PATIENCE)
        visits.append(visited)
        return visited.page

    yield visit
    for one in visits:
        assert one.errors == []
        assert all(address.startswith((site.url, "blob:")) for address in one.requests)


def wait_for(page, state):
    page.wait_for_selector(f'#results[data-state="{state}"]')


def run(page):
    page.get_by_role("button", name="Run", exact=True).click()
    wait_for(page, "running")
    wait_for(page, "done")


def curves(page, chart="regret"):
    """The numbers that a chart shows."""
    return page.evaluate(
        "id => document.querySelector(`#${id} .canvas`).data.map(({ name, y }) => [name, [...y]])", chart
    )


def wait_for_the_end(page, site, mine):
    """Wait until these processes are gone; a spare for the next run may have come."""
    assert mine
    while set(mine) & set(workers(site)):
        page.wait_for_timeout(20)


def drag(page, *points):
    """Draw a line through points, in shares of the board."""
    board = page.locator("#board")
    board.scroll_into_view_if_needed()
    box = board.bounding_box()
    x, y, width, height = (box[key] for key in ("x", "y", "width", "height"))
    page.mouse.move(x + points[0][0] * width, y + points[0][1] * height)
    page.mouse.down()
    for across, down in points[1:]:
        page.mouse.move(x + across * width, y + down * height, steps=6)
    page.mouse.up()


def test_a_world_drawn_by_hand_runs_and_its_link_gives_the_same_curves(lab):
    page = lab()
    page.select_option("#environment", "drawn")
    page.get_by_label("Arm 2").check()
    drag(page, (0.1, 0.9), (0.5, 0.1), (0.95, 0.8))
    page.fill("#horizon", "900")
    page.fill("#replications", "5")
    run(page)
    drawn = parse_qs(page.url.partition("?")[2])["drawn"][0].split(".")
    assert len(drawn) == 3
    assert len(set(drawn[1])) > 20  # the line that was drawn, and not the one that was there
    assert max(drawn[1]) > "h" > "B" > min(drawn[1])
    shown = {
        name: (curves(page, name), page.input_value("#look")) for name in ("regret", "means", "forgetting", "shares")
    }
    again = lab(page.url.partition("?")[2])
    wait_for(again, "done")
    assert {name: (curves(again, name), again.input_value("#look")) for name in shown} == shown
    assert len(shown["regret"][0]) == 6  # two policies, each with a curve and a band
    assert again.url == page.url
    assert again.locator("#board .curve").count() == 3


def test_the_curves_are_those_of_the_simulator(lab):
    page = lab(SHORT)
    wait_for(page, "done")
    expected = [one for one in playground.messages(playground.read(SHORT)) if one["kind"] == "regret"][-1]
    shown = curves(page)
    assert [name for name, _ in shown[2::3]] == ["ucb", "aff-ots"]
    for place, curve in enumerate(expected["curves"]):
        assert [y for _, y in shown[3 * place : 3 * place + 3]] == [curve["low"], curve["high"], curve["mean"]]
    assert page.inner_text("#status") == "Done: 6 of 6 replications."


def test_charts_grow_while_the_run_goes_on(lab):
    page = lab()
    page.evaluate(
        """() => {
          window.seen = [];
          new MutationObserver(() => window.seen.push(Number(document.getElementById("upto").value)))
            .observe(document.getElementById("upto-text"), { childList: true, characterData: true, subtree: true });
        }"""
    )
    run(page)
    seen = page.evaluate("window.seen")
    assert seen == sorted(seen)
    assert len(seen) > 3
    assert seen[-1] == int(page.get_attribute("#upto", "max"))


def test_time_can_be_turned_back(lab):
    page = lab(SHORT)
    wait_for(page, "done")
    whole = len(curves(page, "means")[0][1])
    page.locator("#upto").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('#means .canvas').data[0].y.length === 2")
    assert whole > 100


def test_stop_ends_the_run_and_its_process(lab, site):
    page = lab(HEAVY)
    page.wait_for_selector("#charts:not([hidden])")
    mine = workers(site)
    page.get_by_role("button", name="Stop").click()
    wait_for(page, "stopped")
    wait_for_the_end(page, site, mine)
    assert page.get_by_role("button", name="Stop").is_disabled()
    page.fill("#replications", "2")
    page.fill("#horizon", "500")
    run(page)


def test_a_run_ends_when_its_page_is_closed(lab, site):
    page = lab(HEAVY)
    page.wait_for_selector("#charts:not([hidden])")
    mine = workers(site)
    other = lab()
    page.close()
    wait_for_the_end(other, site, mine)


def test_decisions_go_on_while_a_heavy_run_is_under_way(lab, site):
    page = lab(HEAVY)
    page.wait_for_selector("#charts:not([hidden])")
    with talking(site.url) as (_, http):
        http.put("/v1/bandits/beside", json={"policy": "ucb", "arms": ["a", "b"]}).raise_for_status()
        for _ in range(50):
            made = http.post("/v1/bandits/beside/decisions", json={}).raise_for_status().json()["decisions"][0]
            http.put(f"/v1/decisions/{made['decision']}/reward", json={"reward": 1}).raise_for_status()
    assert page.get_attribute("#results", "data-state") == "running"
    page.get_by_role("button", name="Stop").click()
    wait_for(page, "stopped")


def test_a_slider_moves_the_number_the_link_and_the_forgetting(lab):
    page = lab(SHORT)
    wait_for(page, "done")
    before = curves(page, "forgetting")
    page.locator("fieldset.policy").nth(1).get_by_text("Parameters").click()
    slider = page.get_by_label("step size, as a slider")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("PageUp")
    value = page.input_value("#policies-1-step_size")
    assert float(value) > 0.001
    assert slider.get_attribute("aria-valuetext") == value
    assert page.locator("summary").nth(1).inner_text() == f"Parameters: step size {value}"
    run(page)
    assert f"aff-ots:step_size={value}" in page.url
    assert curves(page, "forgetting") != before
    assert [name for name, _ in curves(page)][-1] == "before: aff-ots"
    page.get_by_label("Run again when I change something").check()
    wait_for(page, "done")
    page.get_by_label("scale it by the variance").check()
    page.wait_for_url("**aff-ots:step_size=variance-scaled**")
    wait_for(page, "done")


def test_wrong_input_shows_its_message_beside_the_field(lab):
    page = lab()
    page.fill("#horizon", "a lot")
    page.locator("fieldset.policy").nth(1).get_by_text("Parameters").click()
    page.fill("#policies-1-step_size", "7")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_selector("#horizon[aria-invalid=true]")
    assert "whole number from 10 to 100000, got 'a lot'" in page.inner_text("#horizon-problem")
    assert "number in [0, 1], got 7" in page.inner_text("#policies-1-step_size-problem")
    assert "horizon-problem" in page.get_attribute("#horizon", "aria-describedby")
    assert page.evaluate("document.activeElement.id") == "horizon"
    assert page.url.endswith("/lab")  # nothing was run
    page.fill("#horizon", "100000")
    page.fill("#replications", "1000")
    page.fill("#policies-1-step_size", "0.01")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_selector("#replications[aria-invalid=true]")
    assert "at most 500 " in page.inner_text("#replications-problem")
    assert page.inner_text("#horizon-problem") == ""
    page.fill("#horizon", "500")
    page.fill("#replications", "2")
    run(page)
    assert page.locator("#form [aria-invalid]").count() == 0


def test_a_wrong_link_says_what_is_wrong_and_shows_text_as_text(lab):
    page = lab(f"v=1&policies=ucb;{NASTY}&seed=x&{NASTY}=1&environment={NASTY}")
    page.wait_for_selector("#seed[aria-invalid=true]")
    assert NASTY in page.inner_text("#form")
    assert page.locator("main img").count() == 0
    assert "cannot be run" in page.inner_text("#status")
    assert "v must be 1" in _problem(lab, "v=9&policies=ucb")


def _problem(lab, link):
    page = lab(link)
    page.wait_for_function("document.getElementById('form-problem').textContent")
    return page.inner_text("#form-problem")


def test_the_run_is_there_as_toml_and_as_python(lab):
    page = lab(SHORT)
    wait_for(page, "done")
    trial = playground.read(SHORT)
    for button, text in (("TOML", playground.toml(trial)), ("Python", playground.python(trial))):
        page.get_by_role("button", name=button, exact=True).click()
        assert page.locator("#text").text_content() == text
        with page.expect_download() as saved:
            page.get_by_role("button", name="Download").click()
        with open(saved.value.path()) as file:
            assert file.read() == text
        page.get_by_role("button", name="Close").click()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the link").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.url


def test_the_tour_sets_up_each_step_runs_it_and_says_what_to_look_at(lab):
    page = lab()
    page.get_by_role("button", name=STEPS[0].title).click()
    for place, step in enumerate(STEPS):
        link = playground.read(step.link).query
        page.wait_for_url(f"**{link}")
        wait_for(page, "done")
        assert page.inner_text("#stop-title") == f"{place + 1}. {step.title}"
        assert page.locator("#stop-text").inner_text().split() == step.text.split()
        assert page.input_value("#look") == str(step.look)
        if place < 4:
            page.get_by_role("button", name="Next step").click()
    assert page.locator("#next").is_hidden()


def test_arms_can_be_drawn_with_the_keyboard(lab):
    page = lab()
    page.select_option("#environment", "drawn")
    page.fill("#arms", "4")
    page.locator("#arms").blur()
    assert page.locator("#board .curve").count() == 4
    page.get_by_label("Arm 4").check()
    board = page.get_by_role("slider", name="Mean reward of arm 4")
    board.focus()
    for key in ("PageUp", "ArrowUp", "Shift+End", "ArrowDown"):
        page.keyboard.press(key)
    assert board.get_attribute("aria-valuetext") == "0.60 in piece 60 of 60"
    page.fill("#horizon", "600")
    page.fill("#replications", "2")
    run(page)
    assert parse_qs(page.url.partition("?")[2])["drawn"][0].split(".")[3] == "V" * 59 + "U"


def test_policies_can_be_added_and_taken_away(lab):
    page = lab(SHORT)
    wait_for(page, "done")
    page.get_by_role("button", name="Add a policy").click()
    page.get_by_label("Policy 3", exact=True).select_option("best-arm")
    page.get_by_role("button", name="Take policy 1 away").click()
    run(page)
    assert "policies=aff-ots;best-arm&" in page.url
    assert curves(page)[5][1][-1] == 0.0


@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_axe_finds_nothing_serious(lab, size, scheme):
    page = lab(size=size, scheme=scheme)
    page.get_by_role("button", name=STEPS[2].title).click()
    wait_for(page, "done")
    page.select_option("#environment", "drawn")
    for summary in page.locator("#policies summary, .numbers summary").all():
        summary.click()
    page.fill("#seed", "x")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_selector("#seed[aria-invalid=true]")
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_run_needs_a_key_that_may_read(tmp_path, open_page):
    url = f"sqlite:///{tmp_path}/store.db"
    store = open_store(url)
    store.prepare()
    keys = {}
    for role in ("read", "decide"):
        keys[role], row = new_key(role)
        store.add_key(row)
    store.close()
    with process(url, "--require-keys") as server:
        for path in ("check", "run"):
            asked = {"link": SHORT}
            assert httpx.post(f"{server.url}/lab/{path}", json=asked).status_code == 401
            headers = {"Authorization": f"Bearer {keys['decide']}"}
            assert httpx.post(f"{server.url}/lab/{path}", json=asked, headers=headers).status_code == 403
        page = open_page(f"{server.url}/lab?{SHORT}").page
        page.set_default_timeout(PATIENCE)
        page.get_by_label("API key").fill(keys["read"])
        page.get_by_role("button", name="Use this key").click()
        wait_for(page, "done")


@pytest.mark.skipif(not os.environ.get("DYNABANDIT_SCREENSHOTS"), reason="make screenshots asks for them")
@pytest.mark.parametrize(
    ("name", "size", "scheme", "step"),
    [
        ("lab-tour", (1280, 1560), "light", 2),
        ("lab-drawn", (1280, 1500), "light", None),
        ("lab-dark", (1280, 1560), "dark", 3),
        ("lab-phone", (390, 1500), "light", 1),
    ],
)
def test_pictures_of_the_playground(lab, name, size, scheme, step):
    page = lab(DRAWN if step is None else "", size=size, scheme=scheme)
    if step is not None:
        page.get_by_role("button", name=STEPS[step].title).click()
    wait_for(page, "done")
    page.mouse.move(0, 0)
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=PICTURES / f"{name}.png", animations="disabled")
    if name == "lab-tour":
        page.locator("#charts").screenshot(path=PICTURES / "lab-charts.png", animations="disabled")
