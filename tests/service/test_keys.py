"""API keys: who may do what, rotation, and what is stored of them."""

import asyncio
import contextlib
import inspect
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from typer.testing import CliRunner

from dynabandit.client import Client
from dynabandit.service.command_line import app
from dynabandit.service.http.routes import ENDPOINTS
from dynabandit.service.keys import Keyring, new_key
from dynabandit.service.projections.log_follower import LogFollower
from dynabandit.service.rate_limits import RateLimits
from dynabandit.service.service import Service
from dynabandit.service.stores import open_store
from dynabandit.service.stores.key_tables import add_key, api_keys, revoke_key
from dynabandit.service.stores.schema import migration
from dynabandit.service.web import live_pages, playground_page, static_files
from dynabandit.service.web.playground_workers import WorkerPool
from tools.harness import ARMS, Running, copied_store, failed_command, running, status_of, talking
from tools.waiting import PATIENCE, wait_for

ROWS = [
    ("PUT", "/v1/bandits/b", {"arms": ARMS}, "admin"), ("GET", "/v1/bandits", None, "read"),
    ("GET", "/v1/bandits/b", None, "read"), ("POST", "/v1/bandits/b/decisions", {}, "page"),
    ("PUT", "/v1/decisions/0123456789ab-1/reward", {"reward": 1}, "page"),
    ("POST", "/v1/rewards", {"rewards": [{"decision": "x", "reward": 1}]}, "page"),
    ("PUT", "/v1/bandits/b/decisions/0123456789ab-1/reward", {"reward": 1}, "page"),
    ("POST", "/v1/bandits/b/rewards", {"rewards": [{"decision": "x", "reward": 1}]}, "page"),
    ("POST", "/v1/bandits/b/arms", {"arm": "x"}, "admin"),
    ("PATCH", "/v1/bandits/b/arms/red", {"paused": True}, "admin"),
    ("PUT", "/v1/bandits/b/policy", {"policy": "ucb"}, "admin"), ("GET", "/v1/bandits/b/events", None, "read"),
    ("POST", "/v1/bandits/b/policy/preview", {"policy": "ucb"}, "read"),
    ("PUT", "/v1/bandits/b/shadow", {"policy": "ucb"}, "admin"), ("DELETE", "/v1/bandits/b/shadow", None, "admin"),
    ("POST", "/v1/bandits/b/shadow/promote", {}, "admin"),
    ("GET", "/v1/bandits/b/export", None, "read"), ("DELETE", "/v1/bandits/b?confirm=b", None, "admin"),
    ("GET", "/metrics", None, "read"),
    ("GET", "/v1/bandits/b/local-state", None, "decide"),
    ("POST", "/v1/bandits/b/local-decisions",
     {"id": "0123456789ab", "decider": "0123456789abcdef", "first": 1, "base": 1, "decisions": [{"arm": 0}]}, "decide"),
    ("PUT", "/v1/decisions/0123456789ab-1/metrics", {"metrics": {"latency": 1}}, "page"),
    ("PUT", "/v1/bandits/b/decisions/0123456789ab-1/metrics", {"metrics": {"latency": 1}}, "page"),
    *(("POST", f"{path}/personalizer/v1.0/events/x/{call}", body, "decide")  # for rank, see test_personalizer.py
      for path in ("", "/v1/bandits/b") for call, body in (("reward", {"value": 1}), ("activate", None))),
]  # fmt: skip


SECURITY = (Path(__file__).parents[2] / "SECURITY.md").read_text(encoding="utf-8")
MAY = {"page": {"page"}, "decide": {"page", "decide"}, "read": {"read"}, "admin": {"page", "decide", "read", "admin"}}


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, dict[str, str]]]:
    """A service that needs keys, and a key of each role."""
    store, keys = open_store(f"sqlite:///{tmp_path_factory.mktemp('keyed')}/store.db"), {}
    store.prepare()
    for role in MAY:
        keys[role], row = new_key(role, metrics=["latency"] if role == "page" else [])
        add_key(store, row)
    with running(store, needs_keys=True) as server:
        yield server, keys


def table_of_roles() -> dict[str, dict[str, str]]:
    """Return what SECURITY.md says that each role can do, by request."""
    rows = [line.strip("| \n").split(" | ") for line in SECURITY.splitlines() if line.startswith("| ")]
    titles = [cell.strip("`") for cell in rows[0]]
    return {row[0].strip("`"): dict(zip(titles[1:], row[1:], strict=True)) for row in rows[1:]}


@pytest.mark.promise(87)
def test_the_table_of_roles_has_every_request(keyed: tuple[Running, dict[str, str]]) -> None:
    service = keyed[0].service
    pages = [*live_pages.routes(service, LogFollower(service)), *static_files.routes(service)]
    pages += playground_page.routes(service, WorkerPool(closing=service.closing))
    found = {f"{method} {re.sub(':[a-z]+}', '}', one.path)}" for one in pages for method in (one.methods or {"GET"})}
    requests = {one.id for one in ENDPOINTS} | {one for one in found if not one.startswith("HEAD ")}
    assert table_of_roles().keys() == requests
    explained = {"no", "yes", *re.findall(r"^- \*(.+?)\*:", SECURITY, re.MULTILINE)}
    assert {cell for row in table_of_roles().values() for cell in row.values()} == explained


@pytest.mark.promise(87)
@pytest.mark.parametrize("role", ["no key", *MAY])
def test_each_role_can_do_what_the_table_of_roles_says(keyed: tuple[Running, dict[str, str]], role: str) -> None:
    server, keys = keyed
    allowed = {}
    with talking(server.url, keys.get(role)) as (_, http):
        for request in table_of_roles():
            method, path = re.sub("{[a-z]+}", "x", request).split(" ")
            with http.stream(method, path) as answer:  # some answers have no end; none of the requests has a body
                allowed[request] = answer.status_code not in (401, 403)
    assert allowed == {request: row[role] != "no" for request, row in table_of_roles().items()}


@pytest.mark.promise(20, 86, 87, 264)
@pytest.mark.parametrize("role", MAY)
def test_without_the_right_key_every_call_is_401_or_403(keyed: tuple[Running, dict[str, str]], role: str) -> None:
    server, keys = keyed
    key = keys[role]
    with talking(server.url) as (_, http):
        for method, path, body, needs in ROWS:
            for wrong in ({}, {"Authorization": "Bearer dyna_0123_x"}, {"Authorization": key},
                          {"Authorization": f"Bearer {key}x"}, {"Authorization": f"Basic {key}"}):  # fmt: skip
                assert http.request(method, path, json=body, headers=wrong).status_code == 401
            answer = http.request(method, path, json=body, headers={"Authorization": f"Bearer {key}"})
            assert (answer.status_code == 403) == (needs not in MAY[role]), (method, path, answer.text)
        for path in ("/healthz", "/readyz", "/openapi.json"):
            assert http.get(path).status_code == 200
    with talking(server.url, keys["read"]) as (_, http):
        problem = http.post("/v1/bandits/b/decisions", json={}).json()["problem"]
        assert problem == "this needs a key with the role page or decide or admin, got one with the role read"
    with talking(server.url, keys["page"]) as (_, http):
        problem = http.get("/v1/bandits/b/local-state").json()["problem"]
        assert problem == "this needs a key with the role decide or admin, got one with the role page"


def test_a_refusal_says_nothing_about_what_exists(keyed: tuple[Running, dict[str, str]]) -> None:
    server, keys = keyed
    with talking(server.url, keys["admin"]) as (client, _):
        client.create("there", ARMS)
    with talking(server.url) as (_, http):
        for headers in ({}, {"Authorization": f"Bearer {keys['decide']}"}):
            for path in ("/v1/bandits/{}", "/v1/bandits/{}/events", "/v1/bandits/{}/export"):
                there, missing = (http.get(path.format(name), headers=headers) for name in ("there", "missing"))
                assert (there.status_code, there.content) == (missing.status_code, missing.content)
                assert there.status_code in (401, 403)


@pytest.mark.promise(88)
def test_keys_are_compared_in_constant_time_and_stored_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[str, str]] = []

    def compare_digest(a: str, b: str) -> bool:
        compared.append((a, b))
        return a == b

    monkeypatch.setattr("dynabandit.service.keys.hmac.compare_digest", compare_digest)
    key, row = new_key("read")
    ring = Keyring([row])
    assert ring.find(f"Bearer {key}") is row
    assert ring.find("Bearer dyna_unknown_x") is None
    assert ring.find(None) is None
    assert len(compared) == 3, "an unknown key takes the same comparison as a known one"
    assert key.split("_", 2)[2] not in str(row)


@pytest.mark.promise(88, 89)
def test_a_key_is_rotated_without_a_gap(store_url: str) -> None:
    def keys(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["keys", *arguments, "--store", store_url])
        assert done.exit_code == 0, done.output
        return done.output.strip()

    old, new = (keys("create", "--role", "admin", "--note", note) for note in ("old", "new"))
    with running(open_store(store_url), needs_keys=True) as server:
        with talking(server.url, old) as (_, http), talking(server.url, new) as (_, other):
            assert [one.get("/v1/bandits").status_code for one in (http, other)] == [200, 200]
            keys("revoke", old.split("_")[1])
            wait_for(lambda: http.get("/v1/bandits").status_code == 401)
            assert other.get("/v1/bandits").status_code == 200
    listed = keys("list")
    assert [line.split()[2] for line in listed.splitlines()] == ["revoked", "valid"]
    assert old.split("_", 2)[2] not in listed
    failed_command("keys", "revoke", "nobody", "--store", store_url, code=2)
    assert inspect.signature(Service).parameters["key_seconds"].default <= 1.0, "and reading them takes a moment"
    failed_command("keys", "create", "--role", "king", "--store", store_url, code=2)


@pytest.mark.promise(89)
def test_a_key_is_revoked_even_while_all_readers_are_busy(sqlite_url: str) -> None:
    key, row = new_key("read")
    store = open_store(sqlite_url)
    store.create_tables()
    add_key(store, row)
    held = threading.Event()
    with running(store, needs_keys=True) as server, talking(server.url, key) as (_, http):
        loop = server.service.writer.requests.loop
        assert loop is not None
        waiting = [
            asyncio.run_coroutine_threadsafe(server.service.read(lambda _: held.wait(PATIENCE)), loop)
            for _ in range(40)
        ]
        assert http.get("/metrics").status_code == 200
        with contextlib.closing(open_store(sqlite_url)) as other:
            revoke_key(other, row.id, 1.0)
        try:
            wait_for(lambda: http.get("/metrics").status_code == 401)
        finally:
            held.set()
        assert all(one.result(PATIENCE) for one in waiting)


@pytest.mark.promise(21, 90)
def test_a_key_sends_as_many_decisions_and_rewards_as_it_may(store_url: str) -> None:
    now = [100.0]
    with contextlib.closing(open_store(store_url)) as store:
        store.create_tables()
        (limited, row), (free, other) = new_key("admin", requests_per_second=2), new_key("decide")
        add_key(store, row)
        add_key(store, other)
    with running(open_store(store_url), needs_keys=True) as server:
        server.service.rate_limits = RateLimits(timer=lambda: now[0])
        with talking(server.url, limited) as (client, http), talking(server.url, free) as (_, unlimited):
            client.create("b", ARMS)
            limit = "this key may send 2 decisions, rewards and metrics per second"
            path, reward = "/v1/bandits/b/decisions", "/v1/decisions/x/reward"
            assert [http.post(path, json={}).status_code, http.put(reward, json={"reward": 1}).status_code] == [
                200,
                404,
            ]
            for answer in (http.post(path, json={}), http.put(reward, json={"reward": 1}), http.post("/v1/rewards"),
                           http.get("/v1/bandits/b/local-state")):  # fmt: skip
                assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
                assert answer.json()["problem"] == limit + "; try again later"
            assert [unlimited.post(path, json={}).status_code for _ in range(5)] == [200] * 5
            assert http.get("/v1/bandits/b").json()["step"] == 6, "reading is not limited"
            now[0] += 0.5
            assert [http.post(path, json={}).status_code for _ in range(2)] == [200, 429]
            now[0] += 1
            made = http.post(path, json={"count": 2})
            ids = [one["decision"] for one in made.json()["decisions"]]
            several = {"rewards": [{"decision": one, "reward": 1} for one in ids]}
            now[0] += 0.5
            refused = http.post("/v1/rewards", json=several)
            assert (made.status_code, refused.status_code, refused.headers["Retry-After"]) == (200, 429, "1")
            now[0] += 1
            assert http.post("/v1/rewards", json=several).status_code == 200, "after the wait that was asked for"
            now[0] += 1
            for call in (http.post(path, json={"count": 1000}), http.post("/v1/rewards", json={
                    "rewards": [{"decision": "x", "reward": 1}] * 3})):  # fmt: skip
                assert call.status_code == 422
                assert call.json()["problem"].startswith(limit + ", and no call may have more, got ")
            assert http.post(path, json={}).status_code == 429, "a call that is refused counts as one"
            assert unlimited.post(path, json={"count": 1000}).status_code == 200
            assert "dynabandit_turned_away_total 7.0" in http.get("/metrics").text
            assert CliRunner().invoke(app, ["keys", "limit", row.id, "--store", store_url]).exit_code == 0
            wait_for(lambda: http.post(path, json={}).status_code == 200)
            assert [http.post(path, json={}).status_code for _ in range(5)] == [200] * 5


def test_a_slow_key_waits_longer_than_a_second() -> None:
    now = [0.0]
    limits, (_, row) = RateLimits(timer=lambda: now[0]), new_key("decide", requests_per_second=0.1)
    assert [limits.seconds_to_wait(row), limits.seconds_to_wait(row)] == [0.0, 10.0]
    now[0] = 10.0
    assert limits.seconds_to_wait(row) == 0.0
    for rate, seconds in ((1e-3, 1000.0), (1e-320, 86400.0)):  # of the smallest rate, the inverse is infinite
        limits, row = RateLimits(timer=lambda: now[0]), row._replace(requests_per_second=rate)
        assert [limits.seconds_to_wait(row), limits.seconds_to_wait(row)] == [0.0, seconds]
        assert limits.seconds_to_wait(row._replace(requests_per_second=4)) == 0.25, "a higher limit holds at once"


def test_the_rate_limit_of_a_key_is_listed_and_checked(sqlite_url: str, tmp_path: Path) -> None:
    def keys(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["keys", *arguments, "--store", sqlite_url])
        assert done.exit_code == 0, done.output
        return done.output.strip()

    key = keys("create", "--role", "decide", "--requests-per-second", "12.5")
    assert keys("list").endswith("''  12.5 requests per second")
    keys("limit", key.split("_")[1], "7")
    assert keys("list").endswith("''  7 requests per second")
    for wrong in ("0", "nan", "inf"):
        problem = failed_command("keys", "limit", key.split("_")[1], wrong, "--store", sqlite_url, code=2)
        assert "requests per second must be a number in (0, inf)" in problem
    failed_command("keys", "limit", "nobody", "7", "--store", sqlite_url, code=2)
    failed_command("keys", "limit", key, "7", "--store", sqlite_url, code=2)
    earlier = copied_store(
        sqlite_url, tmp_path, "ALTER TABLE keys DROP COLUMN requests_per_second", "PRAGMA user_version = 3"
    )
    problem = failed_command("keys", "limit", key.split("_")[1], "7", "--store", earlier)
    assert "start dynabandit serve once" in problem


@pytest.mark.parametrize("column", ["role", "digest", "requests_per_second"])
def test_a_key_that_is_not_utf_8_is_not_valid_and_the_others_are(sqlite_url: str, column: str) -> None:
    (bad, bad_row), (good, good_row) = new_key("admin"), new_key("admin")
    with contextlib.closing(open_store(sqlite_url)) as store:
        store.create_tables()
        add_key(store, bad_row)
        add_key(store, good_row)
        store.write([(f"UPDATE keys SET {column} = CAST(x'61ff' AS TEXT) WHERE id = ?", (bad_row.id,))])
        ring = Keyring(api_keys(store))
    assert ring.find(f"Bearer {bad}") is None
    assert ring.find(f"Bearer {good}") is not None
    listed = CliRunner().invoke(app, ["keys", "list", "--store", sqlite_url])
    assert (listed.exit_code, len(listed.output.splitlines())) == (0, 2)


@pytest.fixture
def shops(server: Running) -> Iterator[tuple[Client, httpx.Client, Client]]:
    """A client and plain HTTP with an admin key of the namespace "shop", and a client with a key of all bandits."""
    (bound, bound_row), (free, free_row) = new_key("admin", namespace="shop"), new_key("admin")
    server.service.keyring.replace([bound_row, free_row])
    server.service.needs_keys = True
    try:
        with talking(server.url, bound) as (client, http), talking(server.url, free) as (other, _):
            yield client, http, other
    finally:
        server.service.needs_keys = False


@pytest.mark.promise(109)
def test_for_a_key_of_a_namespace_other_bandits_do_not_exist(shops: tuple[Client, httpx.Client, Client]) -> None:
    client, http, other = shops
    for name in ("shop/banner", "shop/b", "shop0", "shop", "other/b", "shopping/b"):
        other.create(name, ARMS)
    mine, theirs = client.decide("shop/banner").decision, other.decide("other/b").decision
    for method, path, body, _ in ROWS:
        if "/bandits/b" not in path:
            continue
        answers = []
        for name in ("other/b", "other/x"):  # one that exists, and one that does not
            asked = path.replace("/bandits/b", f"/bandits/{quote(name, safe='')}").replace("=b", f"={name}")
            answer = http.request(method, asked, json=body)
            answers.append((answer.status_code, answer.text.replace(name, "")))
        assert answers[0] == answers[1], (method, path)
        assert answers[0][0] == (403 if method == "PUT" and path.endswith("/b") else 404)
    assert status_of(client.reward, theirs, 0.5) == 404
    results = client.reward_many([(theirs, 7.0), (mine, 1.0)])
    assert [one.status for one in results] == [404, 200], "a reward that is not valid there is not even looked at"
    assert other.state("other/b").sequence == 2
    assert [one.name for one in client.bandits()] == ["shop/b", "shop/banner"]
    assert len(list(other.bandits())) == 6
    client.delete("shop/b")
    other.delete("shopping/b")
    assert [one["name"] for one in http.get("/v1/bandits?deleted=true").json()["bandits"]] == ["shop/b"]
    assert [one["name"] for one in http.get("/v1/bandits?limit=1&after=other").json()["bandits"]] == ["shop/banner"]
    assert http.get("/v1/bandits?after=shop0").json() == {"bandits": [], "next": None}


@pytest.mark.promise(109)
def test_a_key_of_a_namespace_does_everything_in_it(shops: tuple[Client, httpx.Client, Client]) -> None:
    client, http, other = shops
    client.create("shop/a/b", ARMS)
    decision = client.decide("shop/a/b", key="k").decision
    assert client.decide("shop/a/b", key="k").decision == decision
    client.reward(decision, 1)
    assert other.state("shop/a/b") == client.state("shop/a/b")
    assert [event.kind for event in client.events("shop/a/b")] == ["create", "decision", "reward"]
    assert len(http.get("/v1/bandits/shop%2Fa%2Fb/export").text.splitlines()) == 1
    assert http.get("/pages/who").json() == {"role": "admin", "namespace": "shop"}


@pytest.mark.promise(109)
def test_metrics_and_pages_show_a_key_only_its_namespace(shops: tuple[Client, httpx.Client, Client]) -> None:
    _, http, other = shops
    for name in ("shop/b", "other/b"):
        other.create(name, ARMS)
        other.decide(name)
    series = [line for line in http.get("/metrics").text.splitlines() if not line.startswith("#")]
    assert series
    assert all('bandit="shop/b"' in line for line in series)
    with http.stream("GET", "/pages/bandits") as stream:
        shown = next(line for line in stream.iter_lines() if line.startswith("data: ") and '"decisions":1' in line)
    assert [one["name"] for one in json.loads(shown.removeprefix("data: "))["bandits"]] == ["shop/b"]
    assert http.get("/pages/bandit?name=other/b").status_code == 404
    assert http.get("/pages/bandit?name=other/x").text.replace("x", "b") == http.get("/pages/bandit?name=other/b").text


def test_the_namespace_of_a_key_is_stored_and_listed(store_url: str) -> None:
    create = ["keys", "create", "--role", "decide", "--store", store_url, "--namespace"]
    assert CliRunner().invoke(app, [*create, "cafe\u0301"]).exit_code == 0
    listed = CliRunner().invoke(app, ["keys", "list", "--store", store_url]).output
    assert listed.strip().endswith("namespace 'caf\xe9'")
    assert "namespace must not contain a slash, got 'shop/b'" in failed_command(*create, "shop/b", code=2)
    assert "namespace must have 1 to 200 characters, got 0" in failed_command(*create, "", code=2)


def test_an_older_store_says_what_its_keys_lack(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with contextlib.closing(open_store(url)) as store:
        store.write([(statement, ()) for statement in migration("sqlite", 0)[: -len(migration("sqlite", 3))]])
        store.write([("PRAGMA user_version = 3", ())])
    assert CliRunner().invoke(app, ["keys", "create", "--role", "read", "--store", url]).exit_code == 0
    problem = failed_command("keys", "create", "--role", "read", "--namespace", "shop", "--store", url)
    assert "whose keys have neither namespaces nor rate limits: start dynabandit serve once" in problem
    assert len(CliRunner().invoke(app, ["keys", "list", "--store", url]).output.splitlines()) == 1
