"""Alerts reach a real HTTP receiver, signed, at least once, also across restarts, and nothing waits for them."""

import contextlib
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dynabandit.client import Client
from dynabandit.service.service import Webhook
from dynabandit.service.stores import Store, open_store
from dynabandit.service.stores.alert_positions import next_alerts
from tools.harness import ARMS, failed_command, running, talking
from tools.waiting import PATIENCE, wait_for

SECRET = b"a secret of the operator"
RULES = {"latency": {"bound": 0.5, "direction": "max", "range": [0, 10]}}


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """An HTTP server that answers with the given statuses, then with 200; it can keep its caller waiting."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.statuses: list[int] = []
        self.answers = threading.Event()
        self.answers.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.received.append(Received(self.path, dict(self.headers), body))
                receiver.answers.wait(PATIENCE)
                status = receiver.statuses.pop(0) if receiver.statuses else 200
                self.send_response(status)
                if status in (302, 307):
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.webhook = Webhook(
            f"http://127.0.0.1:{self.server.server_port}/alerts", SECRET, first_retry=0.001, timeout=PATIENCE
        )
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    yield one
    one.answers.set()
    one.server.shutdown()
    one.server.server_close()


def has_no_alerts(store: Store) -> bool:
    """Whether all alerts were accepted."""
    with contextlib.closing(store.reader()) as reader:
        return not next_alerts(reader)


def violate(client: Client, name: str) -> None:
    """Raise an alert."""
    client.create(name, ARMS, "ucb", guardrails=RULES, seed=1)
    for decision in client.decide_many(name, 30):
        client.metrics(decision.decision, {"latency": 9 if decision.arm == "red" else 0})


@pytest.mark.promise(171, 172)
def test_an_alert_is_sent_signed_and_again_until_it_is_accepted(receiver: Receiver, store_url: str) -> None:
    receiver.statuses = [500, 307, 404]
    with running(open_store(store_url), webhook=receiver.webhook) as server, talking(server.url) as (client, _):
        violate(client, "b")
        [alert] = client.alerts("b")
        wait_for(lambda: len(receiver.received) == 4)
        wait_for(lambda: has_no_alerts(server.store))
        identity = client.state("b").id
        violate(client, "c")
        wait_for(lambda: len(receiver.received) == 5)
        wait_for(lambda: has_no_alerts(server.store))
    for one in receiver.received:
        signed = one.headers["Dynabandit-Timestamp"].encode() + b"." + one.body
        expected = hmac.new(SECRET, signed, hashlib.sha256).hexdigest()
        assert one.headers["Dynabandit-Signature"] == f"sha256={expected}"
        assert one.path == "/alerts", "redirects are not followed"
    first, *again = (one.body for one in receiver.received[:4])
    assert again == [first] * 3
    message = json.loads(first)
    assert (message["id"], message["bandit"]) == (f"{identity}-{alert.sequence}", "b")
    assert (message["message"], message["arm"], message["metric"]) == (alert.message, "red", "latency")
    assert json.loads(receiver.received[4].body)["bandit"] == "c"
    with running(open_store(store_url), webhook=receiver.webhook) as server, talking(server.url) as (client, _):
        violate(client, "d")
        wait_for(lambda: len(receiver.received) == 6)
    assert json.loads(receiver.received[5].body)["bandit"] == "d", "accepted alerts are not sent again"


@pytest.mark.promise(172)
def test_an_alert_that_was_not_accepted_is_sent_after_a_restart(receiver: Receiver, sqlite_url: str) -> None:
    receiver.statuses = [503] * 10_000
    with running(open_store(sqlite_url), webhook=receiver.webhook) as server, talking(server.url) as (client, _):
        violate(client, "b")
        wait_for(lambda: receiver.received)
    receiver.statuses.clear()
    before = len(receiver.received)
    with running(open_store(sqlite_url), webhook=receiver.webhook) as server:
        wait_for(lambda: len(receiver.received) > before)
        wait_for(lambda: has_no_alerts(server.store))
    assert {one.body for one in receiver.received} == {receiver.received[0].body}


@pytest.mark.promise(173)
def test_decisions_do_not_wait_for_a_receiver_that_does_not_answer(receiver: Receiver, sqlite_url: str) -> None:
    receiver.answers.clear()
    with running(open_store(sqlite_url), webhook=receiver.webhook) as server, talking(server.url) as (client, _):
        violate(client, "b")
        wait_for(lambda: receiver.received)
        assert len(client.decide_many("b", 100)) == 100
        violate(client, "c")
        assert len(receiver.received) == 1, "the receiver still has not answered"
        receiver.answers.set()
        wait_for(lambda: len(receiver.received) == 2)


def test_the_options_of_the_webhook_are_checked(tmp_path: Path) -> None:
    secret, short = tmp_path / "secret", tmp_path / "short"
    secret.write_bytes(SECRET + b"\n")
    short.write_bytes(b"short")
    for options, problem in (
        (["--webhook", "http://a/b"], "--webhook needs --webhook-secret-file"),
        (["--webhook-secret-file", str(secret)], "--webhook needs --webhook-secret-file"),
        (
            ["--webhook", "ftp://a", "--webhook-secret-file", str(secret)],
            "must be like https://host/path, got 'ftp://a'",
        ),
        (["--webhook", "http://[", "--webhook-secret-file", str(secret)], "must be like https://host/path"),
        (["--webhook", "http://a", "--webhook-secret-file", str(tmp_path / "none")], "No such file"),
        (["--webhook", "http://a", "--webhook-secret-file", str(short)], "at least 16 characters, got 5"),
    ):
        assert problem in " ".join(failed_command("serve", *options, code=2).split())
