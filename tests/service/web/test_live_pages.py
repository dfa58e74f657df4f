"""The live pages as people use them: actions on bandits and arms, errors, keys and lost connections."""

import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Request, expect

import dynabandit as db
from dynabandit.client import Client
from dynabandit.service.stores import open_store
from dynabandit.service.stores.key_tables import revoke_key
from tools.axe import serious
from tools.browser import PHONE, OpenPage, open_visit
from tools.demo_shop import play
from tools.harness import Running, running, talking
from tools.page_helpers import (
    ARMS,
    ProtectedSite,
    arm_row,
    bandit_url,
    wait_for_charts,
    wait_for_copy,
    wait_for_events,
)
from tools.waiting import PATIENCE, wait_for

MARKUP = "<img src=x onerror=alert(1)>"
RECEIVED = """() => {
  const { parse } = JSON;
  window.received = 0; // decisions, in the latest data that came to the page
  JSON.parse = (text) => {
    const data = parse(text);
    window.received = data.decisions ?? window.received;
    return data;
  };
}"""


def test_a_new_service_shows_how_to_create_a_bandit_and_the_examples_work(
    tmp_path: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db, "Client", partial(Client, timeout=PATIENCE))
    with running(open_store(f"sqlite:///{tmp_path}/store.db")) as server:
        visit = open_page(server.url)
        page = visit.page
        expect(page.get_by_role("heading", name="No bandits yet")).to_be_visible()
        assert serious(page) == []
        assert page.locator("#empty").get_by_role("link", name="Playground").get_attribute("href") == "/playground"
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.locator("[data-copy=start-python]").click()
        wait_for_copy(page.locator("[data-copy=start-python]"))
        python = page.evaluate("navigator.clipboard.readText()")
        shell = page.locator("#start-shell").text_content()
        assert shell is not None
        namespace: dict[str, Any] = {}
        exec(compile(python, "the live page", "exec"), namespace)
        namespace["client"].close()
        expect(page.get_by_role("link", name="banner")).to_be_visible()
        expect(page.get_by_role("heading", name="No bandits yet")).to_be_hidden()
        if shutil.which("curl"):
            other = shell.replace("banner", "from-a-shell")
            subprocess.run(["sh", "-c", f"{other} --silent --fail"], check=True, capture_output=True)
            expect(page.get_by_role("link", name="from-a-shell")).to_be_visible()
        assert visit.errors == []


def test_a_bandit_is_created_in_the_page_and_its_charts_follow_its_traffic(
    site: Running, client: Client, open_page: OpenPage
) -> None:
    visit = open_page(site.url)
    page = visit.page
    page.get_by_role("button", name="New bandit").click()
    page.get_by_label("Name").fill("first")
    page.get_by_label("Arms, one per line").fill("red\ngreen\nblue")
    page.get_by_label("Policy").select_option("kl-ucb")
    page.get_by_label("Rule").select_option("normal-ts")
    expect(page.locator("#create-policy-problem")).to_contain_text("memory 'sample-mean' has none. Memories that fit: ")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#create-policy")).to_be_focused()  # nothing was created: the parts do not fit
    page.get_by_label("Rule").select_option("ots")
    page.get_by_label("Memory").select_option("adaptive")
    expect(page.get_by_label("Policy")).to_have_value("aff-ots")  # this composition has a name of its own
    expect(page.locator("#create-policy-text")).to_contain_text("forgets old rewards faster")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="first")).to_be_visible()
    expect(page.locator("#summary")).to_contain_text("No decisions yet")
    assert client.state("first").policy == "aff-ots"

    dice = random.Random(1)
    play(client, "first", {"red": 0.1, "green": 0.9, "blue": 0.1}, 100, dice)
    page = wait_for_charts(visit)
    expect(page.locator("#tiles")).to_contain_text("100decisions")
    wait_for_events(page, client, "first")
    drawn = page.locator("#share .js-line").first.get_attribute("d")
    assert drawn is not None
    play(client, "first", {"red": 0.1, "green": 0.9, "blue": 0.1}, 400, dice)
    expect(page.locator("#tiles")).to_contain_text("500decisions")
    expect(page.locator("#tiles")).to_contain_text("last 100 decisions")
    expect(page.locator("#share .js-line").first).not_to_have_attribute("d", drawn)
    expect(page.locator("#share .xtitle")).to_have_text("decisions")
    page.get_by_label("time").check()
    expect(page.locator("#share .xtitle")).to_have_text("time")
    expect(page.locator("#summary")).to_contain_text("“green” has")
    expect(page.locator("#summary")).to_contain_text("clearly higher than that of choosing at random")
    assert visit.errors == []


def test_arms_are_paused_resumed_added_and_retired(site: Running, client: Client, open_page: OpenPage) -> None:
    client.create("arms", arms=ARMS, policy="uniform", seed=1, reward_window=3600, default_reward=0)
    client.decide_many("arms", 30)
    visit = open_page(bandit_url(site, "arms"))
    page = wait_for_charts(visit)
    page.get_by_role("button", name="Pause green").click()
    expect(page.get_by_role("button", name="Resume green")).to_be_focused()
    expect(arm_row(page, "green")).to_contain_text("paused")
    plays = client.state("arms").arms[1].plays
    client.decide_many("arms", 200)
    expect(page.locator("#tiles")).to_contain_text("230decisions")
    expect(page.locator("#tiles")).to_contain_text("230decisions held, learned after 60 minutes")
    expect(page.locator("#tiles")).to_contain_text("230without a reward so far")
    expect(page.locator("#summary")).to_contain_text("No reward has been learned yet.")
    expect(arm_row(page, "green").locator("td").nth(1)).to_contain_text("0.0 %")  # propensities
    expect(arm_row(page, "red").locator("td").nth(1)).to_contain_text("50.0 %")
    for column in (3, 4):  # all decisions are pending
        expect(arm_row(page, "green").locator("td").nth(column)).to_have_text(str(plays))
    expect(arm_row(page, "green").locator("td").nth(0)).to_contain_text("0.0 %")
    page.get_by_role("button", name="Resume green").press("Enter")
    expect(page.get_by_role("button", name="Pause green")).to_be_visible()
    client.decide_many("arms", 30)
    expect(arm_row(page, "green").locator("td").nth(3)).not_to_have_text(str(plays))

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
    dialog.get_by_role("button", name="Retire").click()
    expect(page.locator("#arms tr")).to_have_count(3)
    assert [arm.arm for arm in client.state("arms").arms] == ["green", "blue", "violet"]
    assert visit.errors == []


def test_a_click_counts_although_the_table_changes_while_the_button_of_the_mouse_is_down(
    site: Running, client: Client, open_page: OpenPage
) -> None:
    client.create("pressed", arms=ARMS, policy="uniform", seed=1)
    visit = open_page(bandit_url(site, "pressed"))
    page = visit.page
    page.evaluate(RECEIVED)
    button = page.get_by_role("button", name="Pause green")
    button.hover()
    page.mouse.down()
    client.decide_many("pressed", 30)
    page.wait_for_function("() => window.received === 30")
    page.mouse.up()
    expect(page.get_by_role("button", name="Resume green")).to_be_visible()
    expect(page.locator("#tiles")).to_contain_text("30decisions")
    assert visit.errors == []


@pytest.mark.promise(170, 175)
def test_the_lift_guardrails_and_alerts_are_shown(site: Running, client: Client, open_page: OpenPage) -> None:
    rules = {"latency": {"bound": 0.5, "direction": "max", "range": [0, 10]}}
    client.create("guarded", ARMS, "ucb", holdout={"share": 0.5, "control": "red"}, guardrails=rules, seed=1)
    visit = open_page(bandit_url(site, "guarded"))
    page = visit.page
    expect(page.locator("#holdout-text")).to_have_text("There are not enough rewards yet for an interval.")
    expect(page.locator("#guardrails")).to_contain_text("no values yet")
    for _ in range(4):
        made = client.decide_many("guarded", 50)
        client.reward_many([(one.decision, float(one.arm == "blue")) for one in made])
    for one in made:
        client.metrics(one.decision, {"latency": 9.0 if one.arm == "blue" else 0.25})
    state = client.state("guarded").holdout
    assert state is not None
    assert state.lift is not None
    expect(page.locator("#holdout-text")).to_contain_text(f"Lift: +{100 * state.lift:.2f} points")
    expect(page.locator("#tiles")).to_contain_text("lift over the holdout")
    cells = page.locator("#groups tr").filter(has_text="Holdout").locator("td")
    expect(cells).to_have_text([str(state.holdout.decisions), str(state.holdout.rewards), "0.0\u00a0%"])
    expect(page.locator("#lift .canvas[data-drawn]")).to_have_count(1)
    page.locator("#lift summary").click()
    expect(page.locator("#lift tbody tr").last).to_contain_text(f"+{100 * state.lift:.2f} points")
    [alert] = client.alerts("guarded")
    expect(page.locator("#alerts li")).to_contain_text([alert.message])
    expect(page.locator("#guardrails tr").filter(has_text="blue")).to_contain_text("violated")
    expect(page.locator("#timeline")).to_contain_text("blue paused by the guardrail latency")
    expect(page.locator("#events")).to_contain_text("latency: 0.25")
    assert serious(page) == []
    assert visit.errors == []


@pytest.mark.promise(245)
def test_a_shadow_policy_is_started_compared_and_promoted(site: Running, client: Client, open_page: OpenPage) -> None:
    client.create("shadowed", ARMS, "ts", seed=1)
    visit = open_page(bandit_url(site, "shadowed"))
    page = wait_for_charts(visit)
    expect(page.locator("#shadow-section")).to_be_hidden()
    page.get_by_role("button", name="Change the policy").click()
    page.get_by_label("Policy", exact=True).select_option("ucb")
    page.get_by_role("button", name="Use as shadow policy").click()
    expect(page.locator("#shadow-note")).to_have_text("ucb sees the same traffic, but does not decide")
    expect(page.locator("#shadow-text")).to_contain_text("No estimate: no decision")
    for _ in range(4):
        made = client.decide_many("shadowed", 50)
        client.reward_many([(one.decision, float(one.arm == "blue")) for one in made])
    state = client.state("shadowed").shadow
    assert state is not None
    assert state.difference is not None
    expect(page.locator("#shadow-text")).to_contain_text(
        f"Both chose the same in {state.agreed / 2:.1f}\u00a0% of 200 decisions. Difference: "
    )
    expect(page.locator("#shadow-text")).to_contain_text(f"Estimated from {state.rewards} rewards")
    expect(page.locator("#shadow-means tr")).to_have_count(2)
    shares = [f"{state.arms[2].decided / 2:.1f}\u00a0%", f"{state.arms[2].chosen / 2:.1f}\u00a0%"]
    expect(page.locator("#shadow-arms tr").filter(has_text="blue").locator("td")).to_have_text(shares)
    assert serious(page) == []
    page.get_by_role("button", name="Promote").click()
    page.locator("#promote-form").get_by_role("button", name="Promote").click()
    expect(page.locator("#policy")).to_have_text("ucb")
    expect(page.locator("#shadow-note")).to_have_text("ts sees the same traffic, but does not decide")
    expect(page.locator("#timeline")).to_contain_text("policy is now ucb, promoted")
    page.get_by_role("button", name="End", exact=True).click()
    expect(page.locator("#shadow-section")).to_be_hidden()
    expect(page.locator("#events")).to_contain_text("shadow policy ended")
    assert client.state("shadowed").shadow is None
    assert visit.errors == []


def test_names_that_look_like_markup_are_shown_as_text(site: Running, client: Client, open_page: OpenPage) -> None:
    names = [MARKUP, "<b>bold</b>", "&lt;i&gt; %{y} ${x}", "<a href='javascript:alert(1)'>x</a>"]
    bandit = f"{MARKUP} a/b"
    client.create(bandit, arms=names, seed=1)
    play(client, bandit, dict.fromkeys(names, 0.5), 100, random.Random(1))
    visit = open_page(site.url)
    visit.page.get_by_role("link", name=MARKUP).click()
    page = wait_for_charts(visit)
    wait_for_events(page, client, bandit)  # a chart that is drawn again forgets where the mouse is
    expect(page.get_by_role("heading", level=1)).to_have_text(bandit)
    for arm in names:
        expect(page.locator("#arms").get_by_role("rowheader", name=arm, exact=True)).to_be_visible()
        expect(page.locator("#legend").get_by_text(arm, exact=True)).to_be_visible()
    page.locator("#share .nsewdrag").hover()
    expect(page.locator("#share .hoverlayer")).to_contain_text("<b>bold</b>")
    page.locator("#share summary").click()
    expect(page.locator("#share").get_by_role("columnheader", name=MARKUP)).to_be_visible()
    assert page.locator("main img, main b b, main svg a").count() == 0
    page.get_by_role("button", name=f"Pause {MARKUP}").click()
    expect(page.get_by_role("button", name=f"Resume {MARKUP}")).to_be_visible()
    assert [error for error in visit.errors if "400" not in error] == []


@pytest.mark.parametrize("name", ["a\rb", "ends\n", "e\r\nf/g&amp;%0A"])
def test_names_with_line_breaks_are_not_changed(site: Running, client: Client, open_page: OpenPage, name: str) -> None:
    client.create(name, arms=ARMS, seed=1)
    for other in (name.replace("\r", "\n"), name.rstrip("\n"), name.replace("\r\n", "\n")):
        if other != name:
            client.create(other, arms=["other", "arms"], seed=1)
    visit = open_page(bandit_url(site, name))
    visit.page.get_by_role("button", name="Pause green").click()
    expect(visit.page.get_by_role("button", name="Resume green")).to_be_visible()
    assert [arm.paused for arm in client.state(name).arms] == [False, True, False]
    assert visit.errors == []


@pytest.fixture(scope="module")
def create_dialog(site: Running, browser: Any) -> Iterator[Page]:
    """The form that creates a bandit, opened once for all invalid inputs."""
    with talking(site.url) as (client, _):
        client.create("taken", arms=ARMS, seed=1)
    with open_visit(browser, site.url) as visit:
        visit.page.get_by_role("button", name="New bandit").click()
        for summary in ("Parameters", "Missing rewards"):
            visit.page.locator("#create-dialog summary").filter(has_text=summary).click()
        yield visit.page


@pytest.mark.parametrize(
    ("inputs", "field", "message"),
    [
        ({"Name": ""}, "create-name", "1 to 200 characters"),
        ({"Name": "taken"}, "create-form", "another body"),
        ({"Arms": "only one"}, "create-arms", "a list of 2 to"),
        ({"Arms": "twice\ntwice"}, "create-arms", "twice"),
        ({"surplus": "-7"}, "create-parameter-surplus", "[0, 1e+06]"),
        ({"Seed": "-1"}, "create-seed", "from 0 to"),
        ({"Reward window": "soon"}, "create-reward_window", "a number above 0"),
    ],
)
def test_invalid_input_shows_the_message_of_the_server_beside_the_field(
    create_dialog: Page, client: Client, inputs: dict[str, str], field: str, message: str
) -> None:
    page = create_dialog
    valid = {"Name": "x", "Arms": "a\nb", "surplus": "0.1", "Seed": "", "Reward window": ""}
    for label, value in {**valid, **inputs}.items():
        page.locator("#create-dialog").get_by_label(label).fill(value)
    page.get_by_role("button", name="Create").click()
    expect(page.locator(f"#{field}-problem")).to_contain_text(message)
    if field != "create-form":
        expect(page.locator(f"#{field}")).to_be_focused()
        expect(page.locator(f"#{field}")).to_have_attribute("aria-invalid", "true")
    assert page.locator(".problem:not(:empty)").count() == 1
    assert [one.name for one in client.bandits() if one.name == "x"] == []


def test_a_policy_is_previewed_and_changed_the_log_exported_and_the_bandit_deleted(
    site: Running, client: Client, open_page: OpenPage
) -> None:
    client.create("changing", arms=ARMS, seed=1)
    play(client, "changing", {"red": 0.1, "green": 0.8, "blue": 0.1}, 300, random.Random(2))
    visit = open_page(bandit_url(site, "changing"))
    page = wait_for_charts(visit)
    page.get_by_role("button", name="Change the policy").click()
    page.get_by_label("Policy", exact=True).select_option("eps-greedy")
    page.locator("#policy-dialog summary").click()
    page.get_by_label("epsilon").fill("3")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#policy-parameter-epsilon-problem")).to_contain_text("[0, 1]")
    page.get_by_label("epsilon").fill("0.2")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview table tbody tr")).to_have_count(3)
    expect(page.locator("#preview")).to_contain_text("the mean that eps-greedy estimates")
    assert client.state("changing").policy == "mix-ts"
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.locator("#policy")).to_have_text("eps-greedy")
    expect(page.locator("#events")).to_contain_text("policy is now eps-greedy")
    assert client.state("changing").parameters["epsilon"] == 0.2

    page.get_by_role("button", name="Export the log").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download", exact=True).click()
    assert waiting.value.suggested_filename == "changing-events.ndjson"
    lines = Path(waiting.value.path()).read_text().splitlines()
    assert len(lines) == client.state("changing").sequence

    page.get_by_role("button", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("to confirm").fill("something else")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.locator("#delete-confirm-problem")).to_contain_text("confirm must repeat the name")
    assert client.state("changing").name == "changing"
    dialog.get_by_label("to confirm").fill("changing")
    dialog.get_by_role("button", name="Delete").click()
    page.wait_for_url(f"{site.url}/")
    expect(page.locator("#all")).to_have_attribute("aria-busy", "false")
    expect(page.get_by_role("link", name="changing", exact=True)).to_have_count(0)
    # The page may ask for the bandit once more between its end and the other page
    assert [error for error in visit.errors if "422" not in error and "404" not in error] == []
    client.create("Changing/2", arms=ARMS, seed=1)
    answer = page.goto(bandit_url(site, "changing"))
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("heading", level=1)).to_have_text("There is no bandit “changing”")
    assert serious(page) == []
    page.get_by_role("link", name="Changing/2").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Changing/2")


def test_the_page_reports_a_lost_connection_and_continues_when_the_service_is_back(
    sqlite_url: str, open_page: OpenPage
) -> None:
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
        client.create("b", arms=ARMS, seed=1)
        client.decide_many("b", 10)
        visit = open_page(bandit_url(server, "b"))
        page = wait_for_charts(visit)
        expect(page.locator("#connection")).to_have_text("Up to date")
    expect(page.locator("#connection")).to_contain_text("cannot be reached")
    expect(page.locator("#tiles")).to_contain_text("10decisions")
    port = int(server.url.rpartition(":")[2])
    with running(open_store(sqlite_url), port=port) as server, talking(server.url) as (client, _):
        expect(page.locator("#connection")).to_have_text("Up to date")
        client.decide_many("b", 10)
        expect(page.locator("#tiles")).to_contain_text("20decisions")
    network = re.compile("Failed to load resource|ERR_CONNECTION|ERR_INCOMPLETE")
    assert [error for error in visit.errors if not network.search(error)] == []


def test_with_keys_the_page_asks_for_one_and_shows_what_its_role_permits(
    protected_site: ProtectedSite, open_page: OpenPage
) -> None:
    server, keys = protected_site
    with talking(server.url, key=keys["admin"]) as (client, http):
        client.create("secret", arms=ARMS, seed=1)
        client.decide_many("secret", 10)
        assert "secret" not in http.get("/", headers={"Authorization": ""}).text
        pages = [http.get(f"/bandits/{name}", headers={"Authorization": ""}).text for name in ("secret", "unknown")]
        assert pages[0].replace("secret", "unknown") == pages[1]
        for path in ("/pages/bandits", "/pages/bandit?name=secret", "/pages/policies", "/pages/who"):
            assert http.get(path, headers={"Authorization": ""}).status_code == 401
    visit = open_page(server.url, size=PHONE)
    page = visit.page
    bar = page.locator(".bar").bounding_box()
    assert bar is not None
    assert bar["height"] < 60, "the header has one row on a phone"
    late = []  # a call with the wrong key, which is answered after the right one was entered

    def is_wrong(request: Request) -> bool:
        return "wrong" in request.headers.get("authorization", "")

    page.route(
        "**/pages/who",
        lambda route: late.append(route) if is_wrong(route.request) else route.continue_(),
    )
    for key, problem in (("dyna_wrong_key", "not valid"), (keys["read"], "")):
        page.get_by_label("API key", exact=True).fill(key)
        page.get_by_role("button", name="Use this key").click()
        expect(page.locator("#key-problem")).to_contain_text(problem)
    expect(page.get_by_role("link", name="secret")).to_be_visible()
    wait_for(lambda: page.title() and late)  # only calls of the browser let it report a request
    with page.expect_response(lambda answer: "/pages/who" in answer.url and answer.ok):
        late[0].continue_()
    page.get_by_role("link", name="secret").click()
    page = wait_for_charts(visit)
    expect(page.get_by_role("button", name="Export the log")).to_be_visible()
    expect(page.get_by_role("button", name="Delete")).to_be_hidden()
    expect(page.get_by_role("button", name="Pause red")).to_have_count(0)
    page.get_by_role("button", name="Key", exact=True).click()
    page.get_by_label("API key", exact=True).fill(keys["admin"])
    page.get_by_role("button", name="Use this key").click()
    expect(page.get_by_role("button", name="Pause red")).to_be_visible()
    expect(page.locator("#unknown")).to_be_hidden()
    answer = page.goto(bandit_url(server, "unknown"))
    assert answer is not None
    assert answer.status == 200, "without a key nobody learns which bandits exist"
    expect(page.get_by_role("heading", level=1)).to_have_text("There is no bandit “unknown”")
    expect(page.locator("#bandit")).to_be_hidden()
    page.goto(bandit_url(server, "secret"))
    expect(page.get_by_role("button", name="Pause red")).to_be_visible()
    store = server.store.reader()
    revoke_key(store, keys["admin"].split("_")[1], 1.0)
    store.close()
    expect(page.get_by_role("dialog")).to_contain_text("This key is not valid.")
    assert all("dyna_" not in request for request in visit.requests), "a key is never part of an address"
    assert [error for error in visit.errors if "401" not in error and "404" not in error] == []
