"""What all pages share: their headers, their files, their colours, and charts under a strict policy."""

import gzip
import re

import pytest

from dynabandit.service.stores import open_store
from service.harness import running, talking

DRAW = """async (address) => {
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
  place.querySelector("summary").click();
  await new Promise((done) => setTimeout(done));
  return place.innerText;
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with running(open_store(f"sqlite:///{tmp_path_factory.mktemp('pages')}/store.db")) as server:
        yield server


def static(http, name: str) -> str:
    """Return the address of a file that a page loads."""
    found = re.search(rf'"(/static/[0-9a-f]+/){re.escape("pages.css")}"', http.get("/").text)
    assert found is not None
    return found[1] + name


def test_a_page_lets_no_one_in_who_is_not_ours(site):
    with talking(site.url) as (_, http):
        headers = http.get("/").headers
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["script-src"] == "'self'"
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert http.get("/", headers={"Host": "evil.example"}).status_code == 421


def test_files_are_kept_for_ever_under_an_address_that_changes_with_them(site):
    with talking(site.url) as (_, http):
        address = static(http, "api.js")
        first = http.get(address)
        assert "immutable" in first.headers["cache-control"]
        assert first.headers["content-encoding"] == "gzip"
        assert first.headers["content-type"].startswith("text/javascript")
        again = http.get(address, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        old = http.get("/static/0123456789ab/api.js")
        assert (old.status_code, old.headers["cache-control"]) == (200, "no-cache")
        assert http.get(address, headers={"Accept-Encoding": "identity"}).text == first.text
        for bad in ("nothing.js", "..%2fframe.py", "%2e%2e%2fframe.py", "frame.py"):
            assert http.get(static(http, bad)).status_code == 404


def test_plotly_comes_from_the_installed_package(site):
    from importlib.resources import files

    with talking(site.url) as (_, http):
        sent = http.get(static(http, "plotly.js")).content
    assert gzip.compress(sent[:1000]) == gzip.compress(
        (files("plotly") / "package_data" / "plotly.min.js").read_bytes()[:1000]
    )


def test_pages_answer_wrong_methods_and_unknown_paths_as_the_api_does(site):
    with talking(site.url) as (_, http):
        assert http.post("/").status_code == 405
        assert http.get("/nothing").json() == {"problem": "there is nothing at '/nothing'"}
        assert http.head("/").status_code == 200
        assert http.head("/pages/bandits").headers["content-type"].startswith("text/event-stream")


def test_charts_draw_under_the_policy_and_show_names_as_text(site, open_page):
    with talking(site.url) as (_, http):
        address = static(http, "charts.js")
    visit = open_page(site.url)
    text = visit.page.evaluate(DRAW, address)
    assert text.count("<img src=x onerror=alert(1)> & <b>bold</b>") >= 1
    assert visit.page.locator(".legendtext").first.inner_html().startswith("&lt;img")
    assert visit.page.locator("main img").count() == 0
    assert visit.errors == [], visit.errors
    assert all(request.startswith(site.url) for request in visit.requests)


def test_the_switch_turns_the_page_dark_and_the_next_page_stays_so(site, open_page):
    visit = open_page(site.url)
    button = visit.page.get_by_role("button", name="Dark colours")

    def background() -> str:
        return visit.page.evaluate("getComputedStyle(document.body).backgroundColor")

    light = background()
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    dark = background()
    assert dark != light
    visit.page.reload()
    assert background() == dark
    assert visit.errors == []
