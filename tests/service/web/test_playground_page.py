"""The playground as people use it: a real browser, a real service and real worker processes.

Each run of a policy compiles it unless the cache has it, so all tests use `ts`, `ucb` and `aff-ots`, which other tests
compile too. Each run takes a process: tests that only look at results share a page.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Page, expect

from dynabandit import playground
from dynabandit.playground.tour import STEPS
from dynabandit.policies import resolved
from dynabandit.service.http import routes
from dynabandit.service.stores import open_store
from dynabandit.service.web import playground_workers
from dynabandit.service.web.playground_workers import WorkerPool
from tools.axe import serious
from tools.browser import DESKTOP, PHONE, OpenPage, open_visit
from tools.harness import Running, running, talking
from tools.page_helpers import (
    PICTURES,
    ProtectedSite,
    axis_ranges,
    fits_width,
    only_for_pictures,
    wait_for_copy,
)
from tools.waiting import wait_for

OpenPlayground = Callable[..., Page]
Endless = Callable[..., AbstractContextManager[tuple[Running, WorkerPool]]]

SHORT = "v=1&environment=case-1&arms=3&policies=ucb;aff-ots&horizon=1000&replications=6&seed=3"
RISING = "".join("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmno"[3 + column * 44 // 60] for column in range(60))
FALLING = RISING[::-1]
SWITCHING = "K" * 15 + "i" * 15 + "A" * 15 + "c" * 15
DRAWN = (
    f"v=1&environment=drawn&arms=3&drawn={FALLING}.{RISING}.{SWITCHING}"
    "&policies=ts;dts:memory=20;aff-ots&horizon=6000&replications=40&seed=1"
)
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture
def open_playground(site: Running, open_page: OpenPage) -> Iterator[OpenPlayground]:
    """Open the playground; console errors and requests to other hosts fail the test."""
    visits = []

    def visit(link: str = "", **options: Any) -> Page:
        visited = open_page(f"{site.url}/playground{'?' if link else ''}{link}", **options)
        visits.append(visited)
        return visited.page

    yield visit
    for one in visits:
        assert one.errors == []
        assert all(address.startswith((site.url, "blob:")) for address in one.requests)


@pytest.fixture(scope="module")
def finished_run(site: Running, browser: Any) -> Iterator[Page]:
    """A page with the results of SHORT, for tests that only look at them."""
    with open_visit(browser, f"{site.url}/playground?{SHORT}") as visit:
        wait_for_end(visit.page)
        yield visit.page


def runs(page: Page) -> int:
    """Return how many runs of a page have started."""
    return int(page.locator("#results").get_attribute("data-runs") or 0)


# A worker process whose run does not end: it sends some messages and waits
ENDLESS = """
import itertools, json, sys
from dynabandit.playground import messages, read
for message in itertools.islice(messages(read(sys.stdin.readline().strip())), int(sys.argv[1])):
    if message["kind"] != "end":
        print(json.dumps(message), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def endless_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Endless:
    """Starts a service whose runs send `most` messages and do not end by themselves; returns its workers, too."""

    @contextmanager
    def start(most: int = 1_000) -> Iterator[tuple[Running, WorkerPool]]:
        pools = []

        def make_pool(**options: Any) -> WorkerPool:
            pools.append(WorkerPool(**options))
            return pools[-1]

        monkeypatch.setattr(playground_workers, "COMMAND", (sys.executable, "-P", "-c", ENDLESS, str(most)))
        monkeypatch.setattr(routes, "WorkerPool", make_pool)
        with running(open_store(f"sqlite:///{tmp_path}/store.db")) as server:
            yield server, pools[0]

    return start


def wait_for_start(page: Page, run: int) -> None:
    """Wait until the page has started so many runs."""
    expect(page.locator("#results")).to_have_attribute("data-runs", str(run))


def wait_for_end(page: Page, run: int = 1, state: str = "done") -> None:
    """Wait until a run, which is the last one, has ended in this state."""
    page.locator(f'#results[data-runs="{run}"]:not([data-state="running"])').wait_for()
    assert page.locator("#results").get_attribute("data-state") == state, page.inner_text("#status")


def run(page: Page) -> None:
    run = runs(page) + 1
    page.get_by_role("button", name="Run", exact=True).click()
    wait_for_end(page, run)


def hold(page: Page) -> None:
    """Let changes start no runs."""
    page.get_by_label("Run after each change").uncheck()


def curves(page: Page, chart: str = "regret") -> list[Any]:
    """Return the names and values of the curves of a chart after the end of a run."""
    shown: list[Any] = page.evaluate(
        "id => document.querySelector(`#${id} .canvas`).data.map(({ name, y }) => [name, [...y]])", chart
    )
    return shown


def drag(page: Page, *points: tuple[float, float]) -> None:
    """Draw a line through points, given as fractions of the drawing."""
    drawing = page.locator("#drawing-canvas")
    drawing.scroll_into_view_if_needed()
    box = drawing.bounding_box()
    assert box is not None
    at = [(box["x"] + across * box["width"], box["y"] + down * box["height"]) for across, down in points]
    page.mouse.move(*at[0])
    page.mouse.down()
    for x, y in at[1:]:
        page.mouse.move(x, y, steps=6)
    page.mouse.up()


def test_the_page_shows_the_numbers_of_the_simulator(finished_run: Page) -> None:
    expected = [one for one in playground.messages(playground.read(SHORT)) if one["kind"] == "regret"][-1]
    shown = curves(finished_run)
    assert [name for name, _ in shown[2::3]] == ["ucb", "aff-ots"]
    for index, curve in enumerate(expected["curves"]):
        assert [y for _, y in shown[3 * index : 3 * index + 3]] == [curve["low"], curve["high"], curve["mean"]]
    assert finished_run.inner_text("#status") == "Finished: 6 of 6 replications."


def test_a_run_is_available_as_toml_python_and_link(finished_run: Page) -> None:
    page = finished_run
    trial = playground.read(SHORT)
    for button, text in (("TOML", playground.toml(trial)), ("Python", playground.python(trial))):
        page.get_by_role("button", name=button, exact=True).click()
        assert page.locator("#text").text_content() == text
        with page.expect_download() as saved:
            page.get_by_role("button", name="Download").click()
        assert Path(saved.value.path()).read_text() == text
        page.get_by_role("button", name="Close").click()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the link").click()
    wait_for_copy(page.locator("#copy"))
    assert page.evaluate("navigator.clipboard.readText()") == page.evaluate("location.href")


def test_earlier_steps_can_be_shown_again_and_played(finished_run: Page) -> None:
    page = finished_run
    last = int(page.get_attribute("#last-step", "max") or 0)
    assert last > 100
    assert page.inner_text("#last-step-text") == "1,000"
    page.evaluate(
        """() => {
          window.seen = [];
          new MutationObserver(() => window.seen.push(Number(document.getElementById("last-step").value)))
            .observe(document.getElementById("last-step-text"), { childList: true });
        }"""
    )
    labels = page.locator("#play").evaluate(
        "button => [1, 2].map(() => { button.click(); return button.textContent; })"
    )
    assert labels == ["Pause", "Play"]  # both clicks in one script: on a busy machine playing may have ended
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("last => window.seen.at(-1) === last", arg=last)
    played = page.evaluate("window.seen")
    assert played == sorted(played)
    assert played[0] == 0
    assert len(played) > 2  # on a busy machine there are few updates
    page.locator("#last-step").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('#means .canvas').data[0].y.length === 2")
    page.keyboard.press("End")
    page.wait_for_function("last => document.querySelector('#means .canvas').data[0].y.length === last + 1", arg=last)


def test_a_drawing_runs_at_once_and_after_each_stroke_and_its_link_gives_the_same_curves(
    open_playground: OpenPlayground,
) -> None:
    page = open_playground()
    wait_for_end(page)
    assert [name for name, _ in curves(page)[2::3]] == ["ts", resolved("auto")]
    page.get_by_label("Arm 2").check()
    drag(page, (0.1, 0.9), (0.5, 0.1), (0.95, 0.8))
    wait_for_end(page, 2)
    hold(page)
    assert page.locator("#outdated").is_hidden()
    page.fill("#arms", "4")
    expect(page.locator("#outdated")).to_be_visible()
    page.locator("#arms").blur()
    assert page.locator("#drawing-canvas .curve").count() == 4
    page.get_by_label("Arm 4").check()
    canvas = page.get_by_role("slider", name="Mean reward of arm 4")
    canvas.focus()
    page.keyboard.press("Home")
    for key in ("PageUp", "ArrowUp", "Shift+End", "ArrowDown"):
        page.keyboard.press(key)
    assert canvas.get_attribute("aria-valuetext") == "0.60 in segment 60 of 60"
    page.fill("#horizon", "900")
    page.fill("#replications", "5")
    run(page)
    assert page.locator("#outdated").is_hidden()
    link = page.evaluate("location.search").removeprefix("?")
    drawn = parse_qs(link)["drawn"][0].split(".")
    assert len(drawn) == 4
    assert len(set(drawn[1])) > 20  # the line that was drawn, not the one that was there
    assert max(drawn[1]) > "h" > "B" > min(drawn[1])
    assert drawn[3] == "V" * 59 + "U"
    charts = ("regret", "means", "forgetting", "shares")
    shown = {name: curves(page, name) for name in charts}
    assert len(shown["regret"]) == 6  # two policies, each with a curve and a band
    again = open_playground(link)
    wait_for_end(again)
    assert {name: curves(again, name) for name in charts} == shown
    expect(again).to_have_url(page.evaluate("location.href"))
    assert again.locator("#drawing-canvas .curve").count() == 4


BAR_IS_MEASURED = """() => getComputedStyle(document.documentElement).getPropertyValue("--run-bar")
    === `${document.getElementById("run-bar").offsetHeight}px`"""


def test_the_run_button_is_always_visible_and_covers_nothing(finished_run: Page) -> None:
    page = finished_run
    for width, height in (PHONE, DESKTOP):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function(BAR_IS_MEASURED)
        for position in ("0", "document.documentElement.scrollHeight / 2", "document.documentElement.scrollHeight"):
            page.evaluate(f"scrollTo(0, {position})")
            shown: str = page.evaluate(
                """() => {
                  const box = document.getElementById("run").getBoundingClientRect();
                  return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2).id;
                }"""
            )
            assert shown == "run"
        bar = page.locator("#run-bar").bounding_box()
        last_chart = page.locator("#forgetting").bounding_box()  # the page is scrolled to its end
        page.evaluate("scrollTo(0, 0)")
        regret = page.locator("#regret .canvas").bounding_box()
        assert regret is not None
        assert regret["y"] + regret["height"] / 2 < height  # in the first screen
        assert bar is not None
        assert last_chart is not None
        assert bar["height"] < height / 6
        assert last_chart["y"] + last_chart["height"] < bar["y"]
        for field in ("#add-policy", "#policies-0", "#forgetting summary"):
            page.locator(field).focus()  # the browser scrolls a focused field to a place beside the bar
            box = page.locator(field).bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= bar["y"]


def test_a_run_leaves_decisions_alone_and_ends_when_stopped_or_closed(
    endless_runs: Endless, open_page: OpenPage
) -> None:
    with endless_runs() as (server, workers):
        page = open_page(f"{server.url}/playground?{SHORT}").page
        expect(page.locator("#status")).to_have_text("6 of 6 replications.")
        [process] = workers.running
        with talking(server.url) as (_, http):
            http.put("/v1/bandits/beside", json={"policy": "ucb", "arms": ["a", "b"]}).raise_for_status()
            for _ in range(20):
                made = http.post("/v1/bandits/beside/decisions", json={}).raise_for_status().json()["decisions"][0]
                http.put(f"/v1/decisions/{made['decision']}/reward", json={"reward": 1}).raise_for_status()
        assert page.get_attribute("#results", "data-state") == "running"
        page.get_by_role("button", name="Stop").click()
        wait_for_end(page, state="stopped")
        wait_for(lambda: process.returncode is not None)
        assert page.get_by_role("button", name="Stop").is_disabled()
        page.get_by_role("button", name="Run", exact=True).click()
        wait_for_start(page, 2)
        expect(page.locator("#status")).to_have_text("6 of 6 replications.")
        [process] = workers.running
        page.close()
        wait_for(lambda: process.returncode is not None)


def test_parameters_and_policies_can_be_changed(open_playground: OpenPlayground) -> None:
    link = SHORT.replace("aff-ots", "aff-ots:step_size=0.00101")
    page = open_playground(link)
    wait_for_end(page)
    hold(page)
    before = curves(page, "forgetting")
    page.locator("fieldset.policy").nth(1).get_by_text("Parameters").click()
    slider = page.get_by_label("step size, as a slider")
    assert page.input_value("#policies-1-step_size") == "0.00101"  # the slider has no such step
    assert slider.get_attribute("aria-valuetext") == "0.00101"
    slider.focus()
    for key, value in (("ArrowRight", "0.0012"), ("ArrowRight", "0.0015"), ("PageUp", "0.004"), ("End", "0.1")):
        page.keyboard.press(key)
        assert page.input_value("#policies-1-step_size") == value
        assert slider.get_attribute("aria-valuetext") == value
    assert page.locator("#policies summary").nth(1).inner_text() == "Parameters: step size 0.1"
    assert page.evaluate("location.href").endswith(link)
    run(page)
    assert "aff-ots:step_size=0.1;" in page.evaluate("location.href").replace("&", ";")
    assert curves(page, "forgetting") != before

    page.get_by_role("button", name="Add a policy").click()
    page.get_by_label("Policy 3", exact=True).select_option("ts")
    page.get_by_role("button", name="Remove policy 1").click()
    run(page)
    assert "policies=aff-ots:step_size=0.1;ts&" in page.evaluate("location.href")
    assert curves(page)[5][0] == "ts"


def test_menus_compose_a_policy_and_say_which_parts_fit(open_playground: OpenPlayground) -> None:
    def menus(index: int) -> list[str]:
        return [page.input_value(f"#policies-{index}-{role}") for role in ("memory", "rule", "detector")]

    page = open_playground(SHORT)
    wait_for_end(page)
    hold(page)
    assert [menus(0), menus(1)] == [["sample-mean", "ucb", ""], ["adaptive", "ots", ""]]
    page.locator("#policies summary").nth(1).click()
    page.fill("#policies-1-step_size", "0.05")
    page.select_option("#policies-1-rule", "kl-ucb")
    expect(page.locator("#policies-1")).to_have_value("kl-ucb + adaptive")
    assert page.input_value("#policies-1-step_size") == "0.05"
    page.select_option("#policies-1-rule", "ts")  # this composition has a name of its own
    expect(page.locator("#policies-1")).to_have_value("aff-ts")
    page.select_option("#policies-1-rule", "normal-ts")
    problem = page.locator("#policies-1-problem")
    expect(problem).to_contain_text("memory 'adaptive' has none. Memories that fit: sample-moments, unit-free")
    page.select_option("#policies-1-memory", "unit-free")
    expect(page.locator("#policies-1")).to_have_value("aff-normal-ts")
    assert problem.inner_text() == ""
    page.select_option("#policies-0-detector", "glr")
    expect(page.locator("#policies-0")).to_have_value("ucb + sample-mean + glr")
    page.select_option("#policies-1", "uniform")  # it is not made of parts
    assert page.locator("#policies-1-memory").count() == 0
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url("**policies=ucb%2Bsample-mean%2Bglr;uniform&**")
    page.get_by_role("button", name="Stop").click()
    page.reload()
    expect(page.locator("#policies-0")).to_have_value("ucb + sample-mean + glr")
    assert menus(0) == ["sample-mean", "ucb", "glr"]
    page.get_by_role("button", name="Stop").click()


def test_a_change_ends_the_run_and_starts_another_one(endless_runs: Endless, open_page: OpenPage) -> None:
    with endless_runs() as (server, workers):
        page = open_page(f"{server.url}/playground?{SHORT}").page
        expect(page.locator("#status")).to_have_text("6 of 6 replications.")
        [first] = workers.running
        page.locator("fieldset.policy").nth(1).get_by_text("Parameters").click()
        page.get_by_label("scale it by the variance").check()
        wait_for_start(page, 2)
        wait_for(lambda: first.returncode is not None)
        expect(page).to_have_url(re.compile("aff-ots:step_size=variance-scaled&"))
        page.get_by_role("button", name="Stop").click()
        wait_for_end(page, 2, "stopped")


def test_the_curves_of_the_previous_run_stay_until_they_are_removed(open_playground: OpenPlayground) -> None:
    def previous() -> list[Any]:
        return [curve for curve in curves(page) if curve[0].startswith("previous run: ")]

    page = open_playground(SHORT)
    wait_for_end(page)
    hold(page)
    assert previous() == []
    assert page.locator("#previous").is_hidden()
    before = [[f"previous run: {name}", y] for name, y in curves(page)[2::3]]
    run(page)  # nothing has changed
    assert previous() == before
    page.fill("#seed", "4")
    run(page)
    assert previous() == before
    assert curves(page)[2][1] != before[0][1]
    page.get_by_role("button", name="Remove it").click()
    page.wait_for_function("() => document.querySelector('#regret .canvas').data.length === 6")
    assert page.locator("#previous").is_hidden()
    page.locator("fieldset.policy").nth(1).get_by_text("Parameters").click()
    page.fill("#policies-1-step_size", "0.05")
    run(page)
    assert [name for name, _ in previous()] == ["previous run: ucb", "previous run: aff-ots"]
    page.fill("#arms", "4")
    run(page)  # regret of another environment says nothing about this one
    assert previous() == []


def test_problems_of_a_link_and_of_the_form_are_shown_beside_their_fields(open_playground: OpenPlayground) -> None:
    page = open_playground(f"v=1&policies=ucb;aff-ots:step_size=7&horizon=a lot&{MARKUP}=1&environment={MARKUP}")
    page.wait_for_selector("#horizon[aria-invalid=true]")
    assert MARKUP in page.inner_text("#form")
    assert page.locator("main img").count() == 0
    assert "This link is not valid" in page.inner_text("#status")
    assert "whole number from 10 to 100000, got 'a lot'" in page.inner_text("#horizon-problem")
    assert "number in [0, 1], got 7" in page.inner_text("#policies-1-step_size-problem")
    assert "horizon-problem" in (page.get_attribute("#horizon", "aria-describedby") or "")
    assert page.evaluate("document.activeElement.id") == "environment"  # the first one
    assert runs(page) == 0
    hold(page)
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


def test_the_tour_sets_up_and_runs_each_step(open_playground: OpenPlayground) -> None:
    page = open_playground("v=9&policies=ucb")
    expect(page.locator("#form-problem")).to_contain_text("v must be 1")
    page.locator("#tour-card summary").click()
    page.get_by_role("button", name=STEPS[0].title).click()
    for index, step in enumerate(STEPS):
        page.wait_for_url(f"**{playground.read(step.link).query}")
        wait_for_start(page, index + 1)
        if index == 0:
            wait_for_end(page)
            assert page.locator("#form-problem").inner_text() == ""
        expect(page.locator("#traced-policy")).to_have_value(str(step.look))
        assert page.inner_text("#tour-step-title") == f"{index + 1}. {step.title}"
        assert page.locator("#tour-step-text").inner_text().split() == step.text.split()
        if index < len(STEPS) - 1:
            page.get_by_role("button", name="Next step").click()
    assert page.locator("#next-step").is_hidden()


def test_the_page_is_accessible_and_fits_the_screen(open_playground: OpenPlayground) -> None:
    page = open_playground(SHORT)
    wait_for_end(page)
    hold(page)
    page.select_option("#environment", "drawn")
    for summary in page.locator("#tour-card summary, #policies summary, .numbers summary").all():
        summary.click()
    page.fill("#seed", "x")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_selector("#seed[aria-invalid=true]")
    screens: list[tuple[tuple[int, int], Literal["light", "dark"]]] = [(DESKTOP, "light"), (PHONE, "dark")]
    for (width, height), scheme in screens:
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("#theme-button")).to_have_attribute("aria-pressed", str(scheme == "dark").lower())
        assert serious(page) == []
        assert fits_width(page)


def test_empty_charts_say_what_the_run_is_doing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endless_runs: Endless, open_page: OpenPage
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "empty cache"))
    with endless_runs(most=2) as (server, _):  # the run has started, and it is compiling
        page = open_page(f"{server.url}/playground?{SHORT}").page
        note = page.locator("#regret .note")
        expect(note).to_contain_text("Compiling")
        expect(page.locator("#forgetting .note")).to_have_text("Waiting for the first replication")
        expect(page.locator(".canvas[data-drawn]")).to_have_count(4)
        assert axis_ranges(page, "regret") == [[0, 1000], [0, 1]]
        expect(page.locator("#regret .ytick text")).to_have_count(0)
        for chart in ("means", "shares", "forgetting"):
            steps, values = axis_ranges(page, chart)
            assert steps == [0, 1000]
            assert 0 <= values[0] < values[1] < 1.1
        assert serious(page, "#results") == []
        page.get_by_role("button", name="Stop").click()
        expect(note).to_contain_text("Stopped")
        expect(page.locator("#forgetting .note")).to_be_hidden()


def test_a_run_needs_a_key_that_permits_reading(protected_site: ProtectedSite, open_page: OpenPage) -> None:
    server, keys = protected_site
    with talking(server.url) as (_, http):
        for path in ("check", "run"):
            asked = {"link": SHORT}
            headers = {"Authorization": f"Bearer {keys['decide']}"}
            assert http.post(f"/playground/{path}", json=asked).status_code == 401
            assert http.post(f"/playground/{path}", json=asked, headers=headers).status_code == 403
    page = open_page(f"{server.url}/playground?{SHORT}").page
    page.get_by_label("API key", exact=True).fill(keys["read"])
    page.get_by_role("button", name="Use this key").click()
    page.wait_for_selector("#charts:not([hidden])")


@only_for_pictures
@pytest.mark.parametrize(
    ("name", "size", "scheme", "step"),
    [
        ("playground-tour", (1280, 1560), "light", 2),
        ("playground-drawn", (1280, 1500), "light", None),
        ("playground-dark", (1280, 1560), "dark", 3),
        ("playground-phone", (390, 1500), "light", 1),
    ],
)
def test_pictures_of_the_playground(
    open_playground: OpenPlayground,
    name: str,
    size: tuple[int, int],
    scheme: Literal["light", "dark"],
    step: int | None,
) -> None:
    page = open_playground(DRAWN if step is None else "", size=size, scheme=scheme)
    wait_for_end(page)
    if step is not None:
        page.locator("#tour-card summary").click()
        page.get_by_role("button", name=STEPS[step].title).click()
        wait_for_end(page, 2)
    page.mouse.move(0, 0)
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=PICTURES / f"{name}.png", animations="disabled")
    if name == "playground-tour":
        page.locator("#charts").screenshot(path=PICTURES / "playground-charts.png", animations="disabled")
