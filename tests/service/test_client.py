"""The client: retries that are safe, and the same calls with coroutines."""

import contextlib
import importlib.util
import socket
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

import dynabandit as db
from dynabandit.client import ServiceError
from dynabandit.service.stores import open_store
from tools.harness import ARMS, Running, run_apart, running, talking
from tools.waiting import PATIENCE


@pytest.fixture
def server(sqlite_server: Running) -> Running:
    return sqlite_server


class LosingRelay:
    """Passes requests on, but loses the answers of the first few connections."""

    def __init__(self, url: str, losses: int) -> None:
        self.target = urlsplit(url)
        self.losses = losses
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        try:
            while True:
                near, _ = self.listener.accept()
                self.serve(near)
        except OSError:
            return

    def serve(self, near: socket.socket) -> None:
        far = socket.create_connection((self.target.hostname, self.target.port))
        threading.Thread(target=self.pump, args=(near, far, False), daemon=True).start()
        threading.Thread(target=self.pump, args=(far, near, True), daemon=True).start()

    def pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if answers and self.losses > 0:
                    self.losses -= 1
                    break
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()  # each end by the thread that reads from it


@pytest.mark.promise(1)
@pytest.mark.parametrize("erase", [False, True])
def test_a_lost_answer_to_a_deletion_is_asked_for_again(server: Running, erase: bool) -> None:
    relay = LosingRelay(server.url, losses=0)

    deletions = []

    def lose(request: httpx.Request) -> None:
        if request.method == "DELETE":
            deletions.append(request)
            relay.losses = 3 - len(deletions)

    with talking(server.url) as (direct, http), db.Client(relay.url, timeout=PATIENCE) as client:
        client._http.event_hooks["request"].append(lose)
        there = direct.create("b", ARMS)
        gone = client.delete("b", erase=erase)
        assert len(deletions) == 3
        assert (gone.name, gone.id, gone.log_kept) == ("b", there.id, not erase)
        assert http.get("/v1/bandits/b").status_code == 404
        with pytest.raises(ServiceError, match="404"):
            direct.delete("b", erase=erase)


@pytest.fixture
def beyond_reading(sqlite_url: str) -> Iterator[Running]:
    """A service with a bandit, among others, whose log cannot be read."""
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
        for name in ("b1", "ba", "bad", "bade"):
            client.create(name, ARMS)
    connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    with contextlib.closing(connection), connection:
        bad = "bandit = (SELECT number FROM bandits WHERE name = CAST('bad' AS BLOB))"
        connection.execute(f"UPDATE events SET body = '{{' WHERE {bad}")
        connection.execute(f"DELETE FROM snapshots WHERE {bad}")
    with running(open_store(sqlite_url)) as server:
        yield server


def test_a_bandit_whose_log_is_damaged_can_be_erased(beyond_reading: Running) -> None:
    with talking(beyond_reading.url) as (client, http):
        with pytest.raises(ServiceError, match="500"):
            client.delete("bad")
        listed = http.get("/v1/bandits", params={"after": "ba", "limit": 1}).json()["bandits"]
        gone = client.delete("bad", erase=True)
        assert (gone.name, gone.id, gone.log_kept) == ("bad", listed[0]["id"], False)
        assert http.get("/v1/bandits/bad").status_code == 404
        assert [one.name for one in client.bandits()] == ["b1", "ba", "bade"]


@pytest.mark.promise(1)
def test_lost_answers_are_asked_for_again_and_nothing_happens_twice(server: Running) -> None:
    relay = LosingRelay(server.url, losses=3)
    with talking(server.url) as (direct, _), db.Client(relay.url, timeout=PATIENCE, tries=6) as client:
        direct.create("b", ARMS)
        decision = client.decide("b")
        assert relay.losses == 0
        assert direct.state("b").step == decision.step == 1
        relay.losses = 3
        client.reward(decision.decision, 1)
        assert [event.kind for event in direct.events("b")] == ["create", "decision", "reward"]
    relay.listener.close()


def test_the_export_is_read_line_by_line(server: Running) -> None:
    with talking(server.url) as (client, _):
        client.create("b", ARMS, seed=1)
        made = client.decide_many("b", 5)
        client.reward(made[0].decision, 1)
        rows = list(client.export("b", draws=50))
        assert [(row.decision, row.arm) for row in rows] == [(one.decision, one.arm) for one in made]
        assert [row.reward for row in rows] == [1.0, None, None, None, None]
        with pytest.raises(ServiceError, match="404"):
            list(client.export("nobody"))


@pytest.mark.promise(2)
def test_a_service_that_is_not_there_is_an_error_after_the_last_try() -> None:
    with db.Client("http://127.0.0.1:9", tries=2) as client, pytest.raises(ServiceError, match="in 2 tries"):
        client.decide("b")


def test_coroutines_do_the_same(server: Running) -> None:
    async def talk() -> None:
        async with db.AsyncClient(server.url, timeout=PATIENCE) as client:
            await client.create("b", ARMS, seed=1)
            decision = await client.decide("b", key="k")
            assert (await client.decide_many("b", 1, key="k"))[0] == decision
            await client.reward(decision.decision, 1)
            assert [one.status for one in await client.reward_many([(decision.decision, 1)])] == [200]
            await client.add_arm("b", "new")
            await client.change_arm("b", "new", paused=True)
            assert (await client.preview_policy("b", "ucb")).rewards == 1
            await client.set_policy("b", "ucb")
            assert (await client.state("b")).policy == "ucb"
            await client.set_shadow("b", "ts")
            await client.end_shadow("b")
            assert [one.name async for one in client.bandits()] == ["b"]
            assert [one.sequence async for one in client.events("b", limit=4)] == list(range(1, 9))
            assert [one.decision async for one in client.export("b")] == [decision.decision]
            assert (await client.delete("b")).log_kept
            with pytest.raises(ServiceError, match="404"):
                await client.state("b")

    run_apart(talk())


def test_the_synchronous_client_is_generated_from_the_asynchronous_one() -> None:
    path = Path(__file__).parents[2] / "scripts" / "make_sync_client.py"
    spec = importlib.util.spec_from_file_location("make_sync_client", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.make_sync_client() == script.TARGET.read_text(encoding="utf-8"), "run make client"


class Elsewhere(BaseHTTPRequestHandler):
    """Some other server, which answers as it likes."""

    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(b"<html>" if self.status == 200 else b'{"problem": "not now"}')

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def elsewhere() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.promise(2)
def test_the_client_says_why_no_answer_came(elsewhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with db.Client("http://127.0.0.1:9", tries=1) as client, pytest.raises(ServiceError) as caught:
        client.state("b")
    assert str(caught.value).startswith("no answer to GET /v1/bandits/b from http://127.0.0.1:9 in 1 tries: ")
    assert isinstance(caught.value.__cause__, httpx.ConnectError)
    with db.Client(elsewhere, timeout=PATIENCE, tries=1) as client:
        with pytest.raises(ServiceError, match="200: the answer to GET /v1/bandits/b is not dynabandit's: "):
            client.state("b")
        monkeypatch.setattr(Elsewhere, "status", 503)
        with pytest.raises(ServiceError, match=r"^503: not now \(in 1 tries\)$"):
            client.state("b")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"url": "localhost:8000"}, "url must start with http:// or https://, .* got 'localhost:8000'"),
        ({"url": "http://x", "tries": 0}, "tries must be a whole number of at least 1, got 0"),
        ({"url": "http://x", "timeout": -1}, r"timeout must be a number in \(0, inf\), got -1"),
    ],
)
@pytest.mark.parametrize("kind", [db.Client, db.AsyncClient])
def test_a_client_that_could_never_work_is_refused(kind: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**settings)
