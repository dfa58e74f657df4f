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
from dynabandit.service.stores import Store, alert_positions, open_store
from dynabandit.service.stores.alert_positions import first_waiting, refused_alerts, save_refusal
from dynabandit.service.webhook import MAX_REFUSALS
from tools.harness import ARMS, captured_log, failed_command, running, talking
from tools.waiting import PATIENCE, wait_for

SECRET = b"a secret of the operator"
RULES = {metric: {"bound": 0.5, "direction": "max", "range": [0, 10]} for metric in ("latency", "errors")}


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """An HTTP server that answers with the given statuses, then with 200; it can keep its caller waiting.

    Alerts of the bandits of `refused` get a status of their own. Those of `endless` get an answer that begins, and then
    the same piece again and again, a hundred times per second.
    """

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.statuses: list[int] = []
        self.refused: dict[str, int] = {}
        self.endless: dict[str, bytes] = {}
        self.ended = threading.Event()
        self.answers = threading.Event()
        self.answers.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.received.append(Received(self.path, dict(self.headers), body))
                receiver.answers.wait(PATIENCE)
                bandit = json.loads(body)["bandit"]
                if bandit in receiver.endless:
                    with contextlib.suppress(OSError):
                        self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
                        while not receiver.ended.wait(0.01):
                            self.wfile.write(receiver.endless[bandit])
                    return
                status = receiver.statuses.pop(0) if receiver.statuses else receiver.refused.get(bandit, 200)
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

    def bandits(self) -> list[str]:
        """Return the bandits of the alerts that came, in order."""
        return [json.loads(one.body)["bandit"] for one in self.received]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    yield one
    one.answers.set()
    one.ended.set()
    one.server.shutdown()
    one.server.server_close()


def has_no_alerts(store: Store) -> bool:
    """Whether all alerts were accepted."""
    with contextlib.closing(store.reader()) as reader:
        return not first_waiting(reader)


def violate(client: Client, name: str, *metrics: str) -> None:
    """Raise an alert, or one for each metric."""
    client.create(name, ARMS, "ucb", guardrails=RULES, seed=1)
    decisions = client.decide_many(name, 30)
    for metric in metrics or ("latency",):
        for decision in decisions:
            if decision.arm == "red":
                client.metrics(decision.decision, {metric: 9})


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


@pytest.mark.promise(280)
def test_an_alert_that_is_refused_is_given_up_and_those_of_other_bandits_do_not_wait_for_it(
    receiver: Receiver, store_url: str
) -> None:
    receiver.refused = {"b": 400}
    webhook = receiver.webhook._replace(first_retry=PATIENCE)
    with running(open_store(store_url), webhook=webhook) as server, talking(server.url) as (client, _):
        violate(client, "b", "latency", "errors")
        wait_for(lambda: receiver.received)
        violate(client, "c")
        wait_for(lambda: receiver.bandits()[-1] == "c")
        assert receiver.bandits() == ["b", "c"], "b waits for its next attempt"
    with (
        captured_log("webhook") as lines,
        running(open_store(store_url), webhook=receiver.webhook) as server,
        talking(server.url) as (client, http),
    ):
        wait_for(lambda: has_no_alerts(server.store))
        sent = [json.loads(one.body) for one in receiver.received]
        attempts = [alert["metric"] for alert in sent[2:] if alert["bandit"] == "b"]
        assert attempts == ["latency"] * MAX_REFUSALS + ["errors"] * MAX_REFUSALS, "in order"
        receiver.refused.clear()
        violate(client, "d")
        wait_for(lambda: has_no_alerts(server.store))
        assert {name: [alert.refused for alert in client.alerts(name)] for name in "bcd"} == {
            "b": [400, 400],
            "c": [None],
            "d": [None],
        }
        assert "dynabandit_alerts_refused_total 2.0" in http.get("/metrics").text
        assert [(line["event"], line["bandit"], line["status"]) for line in lines] == [
            ("alert was refused", "b", 400)
        ] * 2
        client.delete("b", erase=True)
        with contextlib.closing(server.store.reader()) as reader:
            wait_for(lambda: reader.rows("SELECT count(*) FROM refused_alerts") == [(0,)])


@pytest.mark.promise(172)
def test_an_alert_is_not_given_up_while_the_receiver_asks_for_another_attempt(
    receiver: Receiver, sqlite_url: str
) -> None:
    receiver.statuses = [408, 425, 429] * 2
    with running(open_store(sqlite_url), webhook=receiver.webhook) as server, talking(server.url) as (client, _):
        violate(client, "b")
        wait_for(lambda: has_no_alerts(server.store))
        [alert] = client.alerts("b")
    assert (alert.refused, len(receiver.received)) == (None, 7)


@pytest.mark.promise(280)
def test_the_latest_refused_alerts_are_kept(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_positions, "MAX_REFUSED", 5)
    with contextlib.closing(open_store(store_url)) as store:
        store.prepare()
        for number in range(3):
            for sequence in range(1, 5):
                store.write(save_refusal(number, sequence, 400 + number, wall=number))
        kept = [len(refused_alerts(store, number)) for number in range(3)]
        assert (kept, refused_alerts(store, 2)[1]) == ([0, 1, 4], 402)


@pytest.mark.promise(173)
@pytest.mark.parametrize(
    ("piece", "seconds"), [(b"x", 0.5), (b"x" * 100_000, PATIENCE)], ids=["byte after byte", "too large"]
)
def test_an_answer_that_does_not_end_is_not_read_to_its_end(
    receiver: Receiver, sqlite_url: str, piece: bytes, seconds: float
) -> None:
    receiver.endless = {"b": piece}
    webhook = receiver.webhook._replace(timeout=seconds)
    with running(open_store(sqlite_url), webhook=webhook) as server, talking(server.url) as (client, _):
        violate(client, "b")
        wait_for(lambda: receiver.received)
        violate(client, "c")
        wait_for(lambda: "c" in receiver.bandits())
        receiver.endless.clear()
        wait_for(lambda: has_no_alerts(server.store))


def test_a_damaged_alert_holds_back_those_of_its_bandit_only(receiver: Receiver, sqlite_url: str) -> None:
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
        violate(client, "b")
    with contextlib.closing(open_store(sqlite_url)) as store:
        store.write([("UPDATE events SET body = CAST(x'ff' AS TEXT) WHERE kind = 'alert'", ())])
    with (
        captured_log("webhook") as lines,
        running(open_store(sqlite_url), webhook=receiver.webhook) as server,
        talking(server.url) as (client, _),
    ):
        wait_for(lambda: lines)
        violate(client, "c")
        wait_for(lambda: receiver.received)
    assert receiver.bandits() == ["c"]
    assert [line["event"] for line in lines] == ["sending alerts failed"]


@pytest.mark.promise(91)
def test_a_receiver_that_does_not_answer_does_not_delay_the_end(receiver: Receiver, sqlite_url: str) -> None:
    receiver.answers.clear()
    with running(open_store(sqlite_url), webhook=receiver.webhook) as server, talking(server.url) as (client, _):
        violate(client, "b")
        wait_for(lambda: receiver.received)
        server.stop()
    receiver.answers.set()
    with running(open_store(sqlite_url), webhook=receiver.webhook) as server:
        wait_for(lambda: has_no_alerts(server.store))
    first, *again = receiver.received
    assert [one.body for one in again] == [first.body]


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
