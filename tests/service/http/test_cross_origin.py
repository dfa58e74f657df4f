"""Calls from web pages of other origins: only where an origin is allowed, and only to decide and reward."""

from collections.abc import Iterator

import httpx
import pytest

from dynabandit.service.keys import new_key
from dynabandit.service.stores import open_store
from dynabandit.service.stores.key_tables import add_key
from tools.harness import ARMS, Running, failed_command, running, talking

SHOP = "https://shop.example"
DECIDE = "/v1/bandits/b/decisions"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, str]]:
    """A service with keys that pages of one origin may call, and a key with the role `page`."""
    store = open_store(f"sqlite:///{tmp_path_factory.mktemp('shop')}/store.db")
    store.prepare()
    (key, row), (admin, admin_row) = new_key("page"), new_key("admin")
    add_key(store, row)
    add_key(store, admin_row)
    with running(store, needs_keys=True, allowed_origins=[SHOP]) as server:
        with talking(server.url, admin) as (client, _):
            client.create("b", ARMS)
        with talking(server.url, key) as (_, http):
            yield http, key


def preflight(http: httpx.Client, path: str, origin: str, method: str = "POST") -> httpx.Response:
    """Send what a browser sends before a call to another origin: never a key."""
    asked = {"Origin": origin, "Access-Control-Request-Method": method, "Authorization": ""}
    return http.options(path, headers=asked)


@pytest.mark.promise(260)
@pytest.mark.parametrize(
    ("path", "methods"),
    [(DECIDE, "POST"), ("/v1/decisions/x/reward", "PUT"), ("/v1/rewards", "POST"), (f"{DECIDE}/x/reward", "PUT"),
     ("/v1/bandits/b/rewards", "POST"), ("/v1/decisions/x/metrics", "PUT"), (f"{DECIDE}/x/metrics", "PUT")],
)  # fmt: skip
def test_a_browser_may_decide_and_reward_from_an_allowed_origin(
    shop: tuple[httpx.Client, str], path: str, methods: str
) -> None:
    http, _ = shop
    answer = preflight(http, path, SHOP)
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == SHOP
    assert answer.headers["access-control-allow-methods"] == methods
    assert answer.headers["access-control-allow-headers"] == "Authorization, Content-Type, Idempotency-Key"
    assert "origin" in answer.headers["vary"].lower()


@pytest.mark.promise(260)
def test_a_page_can_read_answers_and_errors(shop: tuple[httpx.Client, str]) -> None:
    http, _ = shop
    answers = [
        http.post(DECIDE, json={}, headers={"Origin": SHOP}),
        http.post(DECIDE, json={"count": 0}, headers={"Origin": SHOP}),
        http.post(DECIDE, json={}, headers={"Origin": SHOP, "Authorization": "Bearer wrong"}),
        http.put("/v1/decisions/x/reward", json={"reward": 1}, headers={"Origin": SHOP}),
    ]
    assert [one.status_code for one in answers] == [200, 422, 401, 404]
    for one in answers:
        assert one.headers["access-control-allow-origin"] == SHOP
        assert one.headers["access-control-expose-headers"] == "Retry-After"
        assert "access-control-allow-credentials" not in one.headers


@pytest.mark.promise(261)
@pytest.mark.parametrize("origin", ["https://evil.example", "http://shop.example", f"{SHOP}.evil.example", "null", ""])
def test_other_origins_get_no_permission(shop: tuple[httpx.Client, str], origin: str) -> None:
    http, _ = shop
    refused = preflight(http, DECIDE, origin)
    assert refused.status_code == 405
    for answer in (refused, http.post(DECIDE, json={}, headers={"Origin": origin}), http.get("/client/dynabandit.js")):
        assert "access-control-allow-origin" not in answer.headers
        assert "Origin" in answer.headers["vary"], "a cache must not give it to a page of an allowed origin"


@pytest.mark.promise(261)
@pytest.mark.parametrize(
    "path",
    ["/v1/bandits/b", "/v1/bandits", "/v1/bandits/b/arms", "/metrics", "/", "/v1/nothing", "/v1/bandits/b/local-state",
     "/v1/bandits/b/local-decisions", "/personalizer/v1.0/rank", "/v1/bandits/b/personalizer/v1.0/events/x/reward"],
)  # fmt: skip
def test_nothing_else_is_allowed(shop: tuple[httpx.Client, str], path: str) -> None:
    http, _ = shop
    for answer in (preflight(http, path, SHOP, "GET"), http.get(path, headers={"Origin": SHOP})):
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.promise(261)
def test_without_the_option_no_origin_is_allowed(sqlite_server: Running) -> None:
    with talking(sqlite_server.url) as (client, http):
        client.create("b", ARMS)
        assert preflight(http, DECIDE, SHOP).status_code == 405
        for answer in (http.post(DECIDE, json={}, headers={"Origin": SHOP}), http.get("/client/dynabandit.js")):
            assert "access-control-allow-origin" not in answer.headers


@pytest.mark.promise(260)
def test_a_page_of_an_allowed_origin_may_load_the_client(shop: tuple[httpx.Client, str]) -> None:
    http, _ = shop
    answer = http.get("/client/dynabandit.js", headers={"Origin": SHOP})
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, SHOP)
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    assert {one.strip() for one in answer.headers["vary"].split(",")} == {"Accept-Encoding", "Origin"}
    assert http.get("/client/dynabandit.d.ts").text.startswith("/** ")
    assert http.get("/client/package.json").status_code == http.get("/client/api.js").status_code == 404


@pytest.mark.parametrize(
    "origin", ["*", "null", "shop.example", "https://shop.example/", "ftp://shop.example", "https://ü.de"]
)
def test_an_origin_that_no_browser_sends_is_refused(origin: str) -> None:
    problem = failed_command("serve", "--allow-origin", origin, code=2)
    assert problem == (
        f"dynabandit: --allow-origin must be like https://shop.example or http://localhost:3000, got {origin!r}\n"
    )
