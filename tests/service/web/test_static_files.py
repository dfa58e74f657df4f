"""HTTP headers, caching and errors of pages and of the files they load."""

import re
from importlib.resources import files
from typing import get_args, get_type_hints

import httpx
import pytest

from dynabandit.service.api_types import Event
from tools.harness import Running, talking


def static_url(http: httpx.Client, name: str) -> str:
    """Return the address of a file that a page loads."""
    found = re.search(r'"(/static/[0-9a-f]+/)pages\.css"', http.get("/").text)
    assert found is not None
    return found[1] + name


def test_a_page_allows_only_content_of_its_own(site: Running) -> None:
    with talking(site.url) as (_, http):
        headers = http.get("/").headers
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["script-src"] == "'self'"
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        for path in ("/", "/playground", "/lab"):
            assert http.get(path, headers={"Host": "evil.example"}).status_code == 421


def test_the_page_has_a_text_for_each_kind_of_event() -> None:
    script = files("dynabandit.service.web").joinpath("static", "bandit.js").read_text()
    [texts] = re.findall(r"EVENT_TEXTS = {(.*?)};", script, re.DOTALL)
    kinds = set(get_args(get_type_hints(Event)["kind"]))
    assert set(re.findall(r"(\w+): \"", texts)) == kinds - {"arm", "policy", "shadow", "metric"}  # made of their values


def test_files_are_cached_under_an_address_that_changes_with_them(site: Running) -> None:
    with talking(site.url) as (_, http):
        address = static_url(http, "api.js")
        first = http.get(address)
        assert "immutable" in first.headers["cache-control"]
        assert first.headers["content-encoding"] == "gzip"
        assert first.headers["content-type"] == "text/javascript; charset=utf-8"
        again = http.get(address, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        old = http.get("/static/0123456789ab/api.js")
        assert (old.status_code, old.headers["cache-control"]) == (200, "no-cache")
        assert http.get(address, headers={"Accept-Encoding": "identity"}).text == first.text
        for bad in ("nothing.js", "..%2frendering.py", "%2e%2e%2frendering.py", "rendering.py"):
            assert http.get(static_url(http, bad)).status_code == 404


def test_plotly_comes_from_the_installed_package(site: Running) -> None:
    with talking(site.url) as (_, http):
        sent = http.get(static_url(http, "plotly.js")).content
    assert sent == (files("plotly") / "package_data" / "plotly.min.js").read_bytes()


def test_pages_answer_wrong_methods_and_unknown_paths_as_the_api_does(site: Running) -> None:
    with talking(site.url) as (_, http):
        assert http.post("/").status_code == 405
        assert http.get("/nothing").json() == {"problem": "there is nothing at '/nothing'"}
        assert http.head("/").status_code == 200
        assert http.head("/pages/bandits").headers["content-type"].startswith("text/event-stream")


def test_the_addresses_that_serve_prints_exist(site: Running) -> None:
    from dynabandit.service.http.server import _greeting

    with talking(site.url) as (_, http):
        playground, api = (line.split()[-1] for line in _greeting(site.url).splitlines()[1:])
        assert "the paper in five steps" in http.get(playground).text
        assert http.get(api).json()["openapi"].startswith("3.")


@pytest.mark.parametrize("query", ["", "?v=1&policies=ucb;aff-ots:step_size=0.01&horizon=100"])
def test_links_to_the_former_address_of_the_playground_still_work(site: Running, query: str) -> None:
    with talking(site.url) as (_, http):
        answer = http.get(f"/lab{query}")
        assert (answer.status_code, answer.headers["location"]) == (308, f"/playground{query}")
        assert http.post("/lab/check", json={"link": "v=1&policies=ucb"}).json()["problems"] == []
