"""What whoever runs the service sees: commands that fail, logs, metrics."""

import asyncio
import contextlib
import json
import re
import socket
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from dynabandit.client import Client
from dynabandit.service.commands import app
from dynabandit.service.domain.events import KINDS
from dynabandit.service.errors import StoreError
from dynabandit.service.keys import new_key
from dynabandit.service.metrics import MAX_ARMS_SHOWN
from dynabandit.service.service import Service
from dynabandit.service.stores import open_store
from service.harness import assert_replay_agrees, process, running, talking, wait_for

DOCS = Path(__file__).parents[2] / "docs"
ARMS = ["red", "green", "blue"]


def said(*arguments: str, code: int = 1) -> str:
    """Return what a command that must fail says."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == code, (arguments, result.output)
    assert isinstance(result.exception, SystemExit), "it says what is wrong, and shows no traceback"
    return result.output


def test_a_port_in_use_is_named_before_a_store_is_made(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        store = f"sqlite:///{tmp_path}/x.db"
        assert f"port {port} of 127.0.0.1 is in use" in said("serve", "--port", port, "--store", store)
    assert list(tmp_path.iterdir()) == []
    assert "cannot listen" in said("serve", "--host", "203.0.113.1", "--store", store)
    assert "cannot listen" in said("serve", "--host", "no such host", "--store", store)


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["verify"], ["keys", "list"], ["keys", "revoke", "x"],
                                     ["keys", "create", "--role", "read"]])  # fmt: skip
def test_a_store_that_cannot_be_opened_is_named(tmp_path, command):
    assert "must start with" in said(*command, "--store", "mysql://x", code=2)
    assert "must name a file" in said(*command, "--store", "sqlite:///", code=2)
    makes = command[0] == "serve" or command[1:2] == ["create"]
    missing = said(*command, "--store", f"sqlite:///{tmp_path}/missing/x.db", code=1 if makes else 2)
    assert f"{tmp_path}/missing/x.db" in missing
    (tmp_path / "other.db").write_text("this is no database, but long enough to look like one" * 100)
    assert "other.db: file is not a database" in said(*command, "--store", f"sqlite:///{tmp_path}/other.db")
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("command", [["verify"], ["keys", "list"]])
def test_a_database_that_is_not_there_is_named(command):
    assert "Connection refused" in said(*command, "--store", "postgresql://127.0.0.1:1/x")


def test_reading_keys_of_a_wrong_name_makes_no_empty_store(tmp_path):
    assert "does not exist" in said("keys", "list", "--store", f"sqlite:///{tmp_path}/typo.db", code=2)
    assert list(tmp_path.iterdir()) == []


def test_a_store_of_a_later_release_is_left_alone(sqlite_url):
    store = open_store(sqlite_url)
    store.create_tables()
    store.write([("PRAGMA user_version = 99", ())])
    store.close()
    for command in (["serve", "--port", "0"], ["verify"], ["keys", "list"]):
        assert "schema version 99" in said(*command, "--store", sqlite_url)


def test_a_missing_driver_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("psycopg", "dynabandit.service.stores.postgres"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "pip install 'dynabandit[postgres]'" in said("serve", "--port", "0", "--store", "postgresql://x/y")


def test_two_services_cannot_serve_one_file(sqlite_url):
    with process(sqlite_url):
        assert "is served by another process" in said("serve", "--port", "0", "--store", sqlite_url)


def test_keys_are_asked_for_on_any_other_address_and_where_they_are_required(sqlite_url):
    for option in (["--host", "0.0.0.0"], ["--host", "::"], ["--require-keys"]):
        assert "keys create" in said("serve", "--port", "0", *option, "--store", sqlite_url)


def test_a_key_is_rotated_without_a_gap(sqlite_url):
    runner = CliRunner()
    old, new = (runner.invoke(app, ["keys", "create", "--role", "admin", "--note", note, "--store", sqlite_url])
                .output.strip() for note in ("old", "new"))  # fmt: skip
    with process(sqlite_url, "--require-keys") as server:
        with talking(server.url, old) as (_, http), talking(server.url, new) as (_, other):
            assert [one.get("/v1/bandits").status_code for one in (http, other)] == [200, 200]
            assert runner.invoke(app, ["keys", "revoke", old.split("_")[1], "--store", sqlite_url]).exit_code == 0
            while http.get("/v1/bandits").status_code == 200:
                pass
            assert http.get("/v1/bandits").status_code == 401
            assert other.get("/v1/bandits").status_code == 200
    listed = runner.invoke(app, ["keys", "list", "--store", sqlite_url]).output
    assert [line.split()[2] for line in listed.splitlines()] == ["revoked", "valid"]


def test_a_key_is_revoked_however_many_wait_for_the_store(sqlite_url):
    key, row = new_key("read")
    store = open_store(sqlite_url)
    store.create_tables()
    store.add_key(row)
    held = threading.Event()
    with running(store, needs_keys=True) as server, talking(server.url, key) as (_, http):
        loop = server.service.writer._loop
        waiting = [asyncio.run_coroutine_threadsafe(server.service.read(lambda _: held.wait(60)), loop)
                   for _ in range(40)]  # fmt: skip
        assert http.get("/metrics").status_code == 200
        with contextlib.closing(open_store(sqlite_url)) as other:
            other.revoke_key(row.id, 1.0)
        try:
            wait_for(lambda: http.get("/metrics").status_code == 401)
        finally:
            held.set()
        assert all(one.result(60) for one in waiting)


def test_the_log_says_who_changed_what_a_line_each_and_shows_no_key(sqlite_url):
    key = CliRunner().invoke(app, ["keys", "create", "--role", "admin", "--store", sqlite_url]).output.strip()
    name = 'a "name"\nin two lines'
    with process(sqlite_url, "--require-keys") as server:
        with talking(server.url, key) as (client, http):
            client.create(name, ARMS, seed=1)
            client.change_arm(name, "red", paused=True)
            client.set_policy(name, "ucb")
            client.decide(name)
            http.patch("/v1/bandits/none/arms/red", json={"paused": True})
        where = server.url.removeprefix("http://").split(":")
        with socket.create_connection((where[0], int(where[1]))) as wire:
            wire.sendall(b"nonsense\r\n\r\n")
            assert b"400" in wire.recv(1000)
        text = server.stop()
    lines = [json.loads(line) for line in text.splitlines()]
    changes = [line for line in lines if line["event"] == "change"]
    assert [line["call"].split()[0] for line in changes] == ["PUT", "PATCH", "PUT"]
    assert {line["name"] for line in changes} == {name}
    assert {line["key"] for line in changes} == {key.split("_")[1]}
    assert changes[0]["change"]["arms"] == len(ARMS)
    assert changes[1]["change"] == {"paused": True}
    assert lines[0]["event"] == "started"
    assert lines[-1]["event"] == "stopped"
    assert changes[1]["arm"] == "red"
    assert all("timestamp" in line for line in lines)
    assert key.split("_", 2)[2] not in text


def test_the_log_says_when_a_policy_is_compiled_once_a_machine_and_before_the_start_where_asked(
    tmp_path, sqlite_url, monkeypatch
):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    logged = []
    for options, policy in ((), "eps-greedy"), ((), "eps-greedy"), (("--compile", "uniform"), "uniform"):
        with process(sqlite_url, *options) as server:
            with Client(server.url, timeout=120) as client:
                client.create(f"b{len(logged)}", ARMS, policy=policy)
            lines = [json.loads(line) for line in server.stop().splitlines()]
        logged.append([(line["event"].partition(",")[0], line.get("policy")) for line in lines])
    compiled = [("compiling", "eps-greedy")], [], [("compiling", "uniform")]
    assert [[line for line in lines if line[0] == "compiling"] for lines in logged] == list(compiled)
    assert logged[0].index(("started", None)) < logged[0].index(("compiling", "eps-greedy"))
    assert logged[2].index(("compiling", "uniform")) < logged[2].index(("started", None))


@pytest.mark.parametrize(("policy", "problem"), [("ucv", "Did you mean 'ucb'?"), ("best-arm", "true means")])
def test_a_policy_that_cannot_be_compiled_is_named_before_anything_is_opened(tmp_path, policy, problem):
    done = CliRunner().invoke(app, ["serve", "--compile", policy, "--store", f"sqlite:///{tmp_path}/x.db"])
    assert (done.exit_code, problem in done.stderr) == (2, True), done.stderr
    assert not list(tmp_path.iterdir())


def test_what_changes_nothing_is_no_event_and_no_line_of_the_log(sqlite_url):
    with process(sqlite_url) as server:
        with talking(server.url) as (client, http):
            for _ in range(2):  # as after a lost answer, or when a program starts again
                client.create("b", ARMS, seed=1)
                client.add_arm("b", "new")
                client.change_arm("b", "red", paused=True, max_share=0.5)
                client.change_arm("b", "green", retired=True)
                client.set_policy("b", "ucb")
                for path in ("red", "blue"):
                    assert http.patch(f"/v1/bandits/b/arms/{path}", json={}).status_code == 200
                client.change_arm("b", "blue", paused=False, min_share=0, max_share=1)
            assert http.patch("/v1/bandits/b/arms/red", json={"paused": True, "min_share": 0.1}).status_code == 200
            changes = [event.change for event in client.events("b", kind="change")]
            asked = {"confirm": "b", "id": client.state("b").id}
            assert [http.delete("/v1/bandits/b", params=asked).status_code for _ in range(2)] == [200, 200]
        text = server.stop()
    assert [change.get("arm") for change in changes] == [None, "new", "red", "green", None, "red"]
    assert changes[-1] == {"arm": "red", "min_share": 0.1}
    calls = [line["call"].split()[0] for line in map(json.loads, text.splitlines()) if line["event"] == "change"]
    assert calls == ["PUT", "POST", "PATCH", "PATCH", "PUT", "PATCH", "DELETE"]


def test_metrics_show_where_traffic_goes_and_what_it_brings(server):
    with talking(server.url) as (client, http):
        client.create('b"\n', ARMS, seed=1)
        client.create("many", [str(number) for number in range(MAX_ARMS_SHOWN + 1)])
        for decision in client.decide_many('b"\n', 3):
            client.reward(decision.decision, 0.5)
        client.decide_many("many", 5)
        page = http.get("/metrics").text
        for arm in ARMS:
            assert f'dynabandit_decisions_total{{arm="{arm}",bandit="b\\"\\n"}} 1.0' in page
            assert f'dynabandit_reward_sum_total{{arm="{arm}",bandit="b\\"\\n"}} 0.5' in page
        assert 'bandit="many"' not in page
        assert "_created" not in page
        client.delete('b"\n')
        assert "dynabandit_decisions_total{" not in http.get("/metrics").text


def test_every_series_is_in_the_table_of_the_docs(server):
    table = (DOCS / "service.md").read_text(encoding="utf-8").partition("**Metrics**")[2].partition("**Logs**")[0]
    with talking(server.url) as (client, http):
        client.create("b", ARMS)
        client.reward(client.decide("b").decision, 1)
        page = http.get("/metrics").text
    series = {re.match(r"\w+", line)[0] for line in page.splitlines() if not line.startswith("#")}
    assert len(series) > 10
    named = {re.sub("_seconds_(bucket|count|sum)$", "_seconds", one) for one in series}
    assert [one for one in sorted(named) if f"`{one}`" not in table] == []


def test_changes_can_be_found_among_many_events(server):
    with talking(server.url) as (client, http):
        client.create("b", ARMS, seed=1)
        for turn in range(3):
            client.reward_many([(one.decision, 1) for one in client.decide_many("b", 20)])
            client.change_arm("b", "red", paused=turn % 2 == 0)
        kinds = {kind: [event.kind for event in client.events("b", kind=kind, limit=7)] for kind in
                 ("all", "change", "decision", "reward")}  # fmt: skip
        assert kinds["change"] == ["create", "arm", "arm", "arm"]
        assert (kinds["decision"], kinds["reward"]) == (["decision"] * 60, ["reward"] * 60)
        assert len(kinds["all"]) == 124
        lines = http.get("/v1/bandits/b/events", params={"kind": "change", "format": "ndjson"}).text
        assert len(lines.splitlines()) == 4
        assert http.get("/v1/bandits/b/events", params={"kind": "none"}).status_code == 422


def test_changes_are_found_without_reading_what_lies_between_them(sqlite_url):
    asked = []
    with contextlib.closing(open_store(sqlite_url)) as store:
        store.create_tables()
        rows = store.rows
        store.rows = lambda *statement: asked.append(statement) or rows(*statement)
        store.events(1, 0, 10, KINDS["change"])
        store.arm_names(1)
        plans = [str(rows(f"EXPLAIN QUERY PLAN {statement}", values)) for statement, values in asked]
    assert ["INDEX events_changes" in plan for plan in plans] == [True, True]
    assert not any("sequence>?)" in plan.replace("kind=? AND sequence>?)", "") for plan in plans)


def test_the_changes_of_a_deleted_bandit_end_with_its_deletion(server):
    with talking(server.url) as (client, http):
        client.create("b", ARMS, seed=1)
        client.decide_many("b", 5, key="a batch has a body of its own")
        client.change_arm("b", "red", paused=True)
        asked = {"id": client.delete("b").id, "kind": "change"}
        for after, limit, kinds in [(0, 10, "create arm delete"), (0, 2, "create arm"), (1, 2, "arm delete"),
                                    (7, 2, "delete"), (8, 2, "")]:  # fmt: skip
            page = http.get("/v1/bandits/b/events", params={**asked, "after": after, "limit": limit}).json()["events"]
            assert [event["kind"] for event in page] == kinds.split()


def test_a_head_request_starts_no_replay(server, monkeypatch):
    monkeypatch.setattr("dynabandit.service.export.decisions", None)
    with talking(server.url) as (client, http):
        client.create("b", ARMS)
        answer = http.head("/v1/bandits/b/export")
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/x-ndjson")
        assert http.head("/v1/bandits/c/export").status_code == 404


def test_what_is_given_twice_is_refused(server):
    with talking(server.url) as (client, http):
        client.create("b", ARMS)
        assert http.get("/v1/bandits/b/events?after=1&after=2").status_code == 422
        twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
        assert http.post("/v1/bandits/b/decisions", json={}, headers=twice).status_code == 422
        assert client.state("b").step == 0


def test_what_is_wrong_is_quoted_in_part_and_by_its_own_name(server):
    with talking(server.url) as (_, http):
        long = http.put("/v1/bandits/b", json={"arms": ARMS, "policy": "x" * 100_000})
        assert long.status_code == 422
        assert len(long.content) < 1200
        named = http.put("/v1/bandits/b", json={"arms": ARMS, "policy": "ots", "parameters": {"name": 1}})
        assert "policy 'ots' has no parameter 'name'" in named.json()["problem"]


@pytest.mark.parametrize("default", [False, True])
def test_a_negative_zero_is_a_zero_in_the_log_and_in_its_replay(store_url, clock, default):
    with running(open_store(store_url), clock=clock) as server, talking(server.url) as (client, http):
        client.create("b", ARMS, policy="sw-ucb", parameters={"window": 5}, reward_window=10, default_reward=-0.0)
        decision = client.decide("b").decision
        if default:
            clock.seconds += 11
        answer = http.put(f"/v1/decisions/{decision}/reward", content=b'{"reward": -0.0}',
                          headers={"Content-Type": "application/json"})  # fmt: skip
        assert answer.status_code == (410 if default else 200)
    assert_replay_agrees(store_url)


def test_anybody_may_ask_whether_it_is_ready_without_making_it_write_each_time(server):
    written = []
    save = server.store.save_time
    server.store.save_time = lambda now: written.append(now) or save(now)
    with talking(server.url) as (_, http):
        assert {http.get("/readyz").status_code for _ in range(200)} == {200}
    assert len(written) < 100


def test_long_exports_keep_nobody_from_reading(server, monkeypatch):
    held = threading.Event()

    def endless(*_):
        yield b"a line\n"
        assert held.wait(60)

    monkeypatch.setattr("dynabandit.service.export.decision_lines", endless)
    with talking(server.url) as (client, http), contextlib.ExitStack() as stack:
        client.create("b", ARMS)
        for _ in range(40):  # more than there are threads
            where = urlsplit(server.url)
            wire = stack.enter_context(socket.create_connection((where.hostname, where.port)))
            wire.sendall(b"GET /v1/bandits/b/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert http.get("/v1/bandits").status_code == 200
        assert http.get("/v1/bandits/b/events").status_code == 200
        held.set()


def test_a_store_that_is_away_is_two_lines_in_the_log_however_long(sqlite_url, monkeypatch):
    said = []

    class Log:
        def __getattr__(self, level):
            return lambda event, **more: said.append((level, event, more.get("problem")))

    monkeypatch.setattr("dynabandit.service.writer.log", Log())
    with contextlib.closing(open_store(sqlite_url)) as store:
        writer = Service(store).writer
        whole = store.save_time
        for problem in (None, "gone", "gone", "full", None, None, "gone"):
            store.save_time = whole if problem is None else Failing(problem)
            writer._next_save = 0.0
            writer._maintain()
    assert said == [
        ("error", "maintenance failed", "gone"),
        ("error", "maintenance failed", "full"),
        ("info", "maintenance works again", None),
        ("error", "maintenance failed", "gone"),
    ]


class Failing:
    """What a store does when it is away."""

    def __init__(self, problem):
        self.problem = problem

    def __call__(self, time):
        raise StoreError(self.problem)
