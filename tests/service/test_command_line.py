"""The commands serve, keys and verify: their errors, and what the service logs."""

import contextlib
import json
import signal
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil  # type: ignore[import-untyped]
import pytest
from typer.testing import CliRunner

from dynabandit.client import Client
from dynabandit.service import command_line
from dynabandit.service.command_line import app
from dynabandit.service.stores import open_store
from service.stores.test_store_faults import LockedSqlite
from tools.command_line import forget_modules
from tools.harness import (
    ARMS,
    Running,
    ServerProcess,
    assert_replay_agrees,
    captured_log,
    failed_command,
    process,
    running,
    talking,
)
from tools.waiting import PATIENCE, wait_for


@pytest.fixture
def server(sqlite_server: Running) -> Running:
    return sqlite_server


def test_a_port_in_use_is_named_before_a_store_is_made(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        store = f"sqlite:///{tmp_path}/x.db"
        assert f"port {port} of 127.0.0.1 is in use" in failed_command("serve", "--port", port, "--store", store)
    assert list(tmp_path.iterdir()) == []
    assert "cannot listen" in failed_command("serve", "--host", "203.0.113.1", "--store", store)
    assert "cannot listen" in failed_command("serve", "--host", "no such host", "--store", store)


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["verify"], ["keys", "list"], ["keys", "revoke", "x"],
                                     ["keys", "create", "--role", "read"]])  # fmt: skip
def test_a_store_that_cannot_be_opened_is_named(tmp_path: Path, command: list[str]) -> None:
    assert "must start with" in failed_command(*command, "--store", "mysql://x", code=2)
    assert "must name a file" in failed_command(*command, "--store", "sqlite:///", code=2)
    makes = command[0] == "serve" or command[1:2] == ["create"]
    missing = failed_command(*command, "--store", f"sqlite:///{tmp_path}/missing/x.db", code=1 if makes else 2)
    assert f"{tmp_path}/missing/x.db" in missing
    (tmp_path / "other.db").write_text("this is no database, but long enough to look like one" * 100)
    assert "other.db: file is not a database" in failed_command(*command, "--store", f"sqlite:///{tmp_path}/other.db")
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("command", [["verify"], ["keys", "list"]])
def test_a_database_that_is_not_there_is_named(command: list[str]) -> None:
    assert "Connection refused" in failed_command(*command, "--store", "postgresql://127.0.0.1:1/x")


def test_reading_keys_of_a_wrong_name_makes_no_empty_store(tmp_path: Path) -> None:
    assert "does not exist" in failed_command("keys", "list", "--store", f"sqlite:///{tmp_path}/typo.db", code=2)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_modules(monkeypatch, "psycopg", "dynabandit.service.stores.postgres")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "pip install 'dynabandit[postgres]'" in failed_command("serve", "--port", "0", "--store", "postgresql://x/y")


@pytest.mark.promise(91)
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_calls_in_progress_are_answered_before_the_signal_ends_the_process(
    sqlite_url: str, stop: signal.Signals
) -> None:
    with sigint_not_ignored(), process(sqlite_url) as server, ThreadPoolExecutor(3) as pool:
        with talking(server.url) as (client, _):
            client.create("b", ARMS)
        other = LockedSqlite(sqlite_url)
        other.take()
        calls = [pool.submit(Client(server.url, timeout=PATIENCE, tries=1).decide, "b") for _ in range(3)]
        with talking(server.url) as (_, http):
            wait_for(lambda: "dynabandit_waiting 3.0" in http.get("/metrics").text)
        server.process.send_signal(stop)
        wait_for(lambda: not is_listening(server))
        other.give()
        assert sorted(call.result(PATIENCE).step for call in calls) == [1, 2, 3]
        server.process.communicate(timeout=PATIENCE)
        assert server.process.returncode in (-stop, 128 + stop)


@pytest.mark.promise(91)
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_store_that_does_not_answer_does_not_delay_the_end(
    sqlite_url: str, stop: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DYNABANDIT_STOP_SECONDS", "0.2")
    with sigint_not_ignored(), process(sqlite_url) as server, ThreadPoolExecutor(1) as pool:
        with talking(server.url) as (client, _):
            client.create("b", ARMS)
            client.decide("b")
        other = LockedSqlite(sqlite_url)
        other.take()
        call = pool.submit(Client(server.url, timeout=PATIENCE, tries=1).decide, "b")
        with talking(server.url) as (_, http):
            wait_for(lambda: "dynabandit_waiting 1.0" in http.get("/metrics").text)
        server.process.send_signal(stop)
        logged = server.process.communicate(timeout=PATIENCE)[1]
        assert server.process.returncode == -stop
        assert "stopped before all was done" in logged
        assert call.exception(PATIENCE) is not None
        other.give()
    with running(open_store(sqlite_url)) as again, talking(again.url) as (client, _):
        assert client.state("b").step == 1, "what was acknowledged is there"
    assert_replay_agrees(sqlite_url)


@contextlib.contextmanager
def sigint_not_ignored() -> Iterator[None]:
    """Let new processes start with the default action for SIGINT.

    A shell ignores SIGINT in its background jobs. A process inherits this, and a signal that it ignores cannot end it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def is_listening(server: ServerProcess) -> bool:
    """Whether this process listens; after its end another one may listen on the same port."""
    connections = psutil.Process(server.process.pid).net_connections("tcp")
    return any(one.status == psutil.CONN_LISTEN for one in connections)


@pytest.mark.promise(93, 121, 141)
def test_two_services_cannot_serve_one_file(sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "store.db")
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
        client.create("b", ARMS)  # the service locks the file at its first commit, after it has begun to listen
        for url in (sqlite_url, f"sqlite:///{tmp_path}/link.db"):
            assert "is served by another process" in failed_command("serve", "--port", "0", "--store", url)
        (tmp_path / "hard.db").hardlink_to(tmp_path / "store.db")
        for command in (["serve", "--port", "0"], ["verify"], ["keys", "create", "--role", "read"]):
            assert "has 2 hard links" in failed_command(*command, "--store", f"sqlite:///{tmp_path}/hard.db")
        assert not (tmp_path / "hard.db-wal").exists()
    (tmp_path / "hard.db").unlink()
    assert_replay_agrees(sqlite_url)


@pytest.mark.promise(122)
def test_a_new_store_is_readable_by_its_owner_only_and_others_keep_their_mode(sqlite_url: str, tmp_path: Path) -> None:
    def modes() -> dict[str, int]:
        return {one.name.removeprefix("store.db"): one.stat().st_mode & 0o777 for one in tmp_path.iterdir()}

    for mode in (0o600, 0o644):
        with captured_log("stores.sqlite") as lines, running(open_store(sqlite_url)) as server:
            with talking(server.url) as (client, _):
                client.create("b", ARMS)
            assert modes() == {"": mode, "-wal": mode, "-shm": mode, ".lock": 0o600}
        assert [line["remedy"] for line in lines] == [f"chmod 600 {tmp_path}/store.db*"] * (mode != 0o600)
        (tmp_path / "store.db").chmod(0o644)


@pytest.mark.promise(86)
def test_keys_are_asked_for_on_any_other_address_and_where_they_are_required(sqlite_url: str) -> None:
    for option in (["--host", "0.0.0.0"], ["--host", "::"], ["--require-keys"]):
        assert "keys create" in failed_command("serve", "--port", "0", *option, "--store", sqlite_url)


@pytest.mark.parametrize(("policy", "problem"), [("ucv", "Did you mean 'ucb'?"), ("best-arm", "true means")])
def test_a_policy_that_cannot_be_compiled_is_named_before_anything_is_opened(
    tmp_path: Path, policy: str, problem: str
) -> None:
    done = CliRunner().invoke(app, ["serve", "--compile", policy, "--store", f"sqlite:///{tmp_path}/x.db"])
    assert (done.exit_code, problem in done.stderr) == (2, True), done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.promise(116)
def test_policies_that_decide_by_features_are_compiled_before_the_start_too(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    monkeypatch.setattr("dynabandit.bandit.bandit.Bandit.compile", lambda bandit: compiled.append(bandit.policy.name))
    command_line._compile(["lin-ucb", "ucb"])
    assert compiled == ["lin-ucb", "ucb"]
    compiled.clear()
    command_line._compile(["auto", "mix-lin-ucb"])
    assert compiled == ["mix-ts", "mix-lin-ucb"], "auto is another policy with features"


@pytest.mark.promise(116)
def test_compilation_is_logged_once_per_machine_and_done_before_the_start_if_asked(
    tmp_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    logged = []
    for _ in range(2):
        with process(sqlite_url, "--compile", "uniform") as server:
            with Client(server.url, timeout=PATIENCE) as client:
                client.create("b", ARMS, policy="uniform")
            lines = [json.loads(line) for line in server.stop().splitlines()]
        logged.append([line["event"].partition(",")[0] for line in lines])
    assert [lines.count("compiling") for lines in logged] == [1, 0]
    assert logged[0].index("compiling") < logged[0].index("started")


def test_a_policy_that_is_compiled_when_a_bandit_is_created_is_logged(
    client: Client, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynabandit.service.domain.warm_start.is_cached", lambda function: False)
    monkeypatch.setattr(server.service, "compiled", set())
    new = type("NewFunction", (), {"signatures": ()})()
    monkeypatch.setattr("dynabandit.service.domain.warm_start.compiled_learn", lambda kernels: new)
    monkeypatch.setattr("dynabandit.bandit.bandit.Bandit.compile", lambda bandit: None)
    with captured_log("domain.warm_start") as lines:
        client.create("b", ARMS, policy="aff-ots")
        client.create("c", ARMS, policy="aff-ots")
    assert [line.get("policy") for line in lines if line["event"].startswith("compiling")] == ["aff-ots"]


@pytest.mark.promise(100, 101)
def test_the_log_names_every_change_in_a_line_of_json_and_shows_no_key(sqlite_url: str) -> None:
    key = CliRunner().invoke(app, ["keys", "create", "--role", "admin", "--store", sqlite_url]).output.strip()
    name = 'a "name"\nin two lines'
    with process(sqlite_url, "--require-keys") as server:
        with talking(server.url, key) as (client, http):
            client.create(name, ARMS, seed=1)
            client.change_arm(name, "red", paused=True)
            client.set_policy(name, "ucb")
            client.reward(client.decide(name).decision, 1)
            http.patch("/v1/bandits/none/arms/red", json={"paused": True})
            http.put("/v1/bandits/b", content=b"{", headers={"Content-Type": "application/json"})
            http.get("/v1/bandits", headers={"Authorization": f"Bearer {key}x"})
        where = urlsplit(server.url)
        with socket.create_connection((where.hostname, where.port)) as wire:
            wire.sendall(b"nonsense\r\n\r\n")
            assert b"400" in wire.recv(1000)
        text = server.stop()
    lines = [json.loads(line) for line in text.splitlines()]
    changes = [line for line in lines if line["event"] == "change"]
    assert [line["call"].split()[0] for line in changes] == ["PUT", "PATCH", "PUT"]
    assert {line["name"] for line in changes} == {name}
    assert {line["key"] for line in changes} == {key.split("_")[1]}
    assert changes[0]["change"]["arms"] == len(ARMS)
    assert (changes[1]["arm"], changes[1]["change"]) == ("red", {"paused": True})
    assert (lines[0]["event"], lines[-1]["event"]) == ("started", "stopped")
    assert all("timestamp" in line for line in lines)
    assert key.split("_", 2)[2] not in text


@pytest.mark.promise(7, 102)
def test_what_changes_nothing_is_no_event_and_no_line_of_the_log(client: Client, http: httpx.Client) -> None:
    with captured_log("logging_setup") as lines:
        for _ in range(2):  # as after a lost response, or when a program starts again
            client.create("b", ARMS, seed=1)
            client.add_arm("b", "new")
            client.change_arm("b", "red", paused=True, max_share=0.5)
            client.change_arm("b", "green", retired=True)
            client.set_policy("b", "ucb")
            for path in ("red", "blue"):
                assert http.patch(f"/v1/bandits/b/arms/{path}", json={}).status_code == 200
            client.change_arm("b", "blue", paused=False, min_share=0, max_share=1)
        assert http.patch("/v1/bandits/b/arms/red", json={"paused": True, "min_share": 0.1}).status_code == 200
        changes = [event.change or {} for event in client.events("b", kind="change")]
        asked = {"confirm": "b", "id": client.state("b").id}
        assert [http.delete("/v1/bandits/b", params=asked).status_code for _ in range(2)] == [200, 200]
    assert [change.get("arm") for change in changes] == [None, "new", "red", "green", None, "red"]
    assert changes[-1] == {"arm": "red", "min_share": 0.1}
    calls = [line["call"].split()[0] for line in lines if line["event"] == "change"]
    assert calls == ["PUT", "POST", "PATCH", "PATCH", "PUT", "PATCH", "DELETE"]
