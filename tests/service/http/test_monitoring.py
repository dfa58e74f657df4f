"""Holdouts, guardrails and alerts over HTTP."""

import json

import httpx
import pytest

from dynabandit.client import Client, ServiceError
from dynabandit.service.stores import open_store
from tools.harness import ARMS, Running, assert_replay_agrees, running, status_of, talking

RULES = {"latency": {"bound": 0.5, "direction": "max", "range": [0, 10]}}


@pytest.mark.promise(165, 167, 170)
def test_a_violation_over_http(server: Running, client: Client, http: httpx.Client) -> None:
    client.create("b", ARMS, "ucb", guardrails=RULES, seed=1)
    slow = None
    for _ in range(60):
        made = client.decide("b")
        slow = slow or made.arm
        client.metrics(made.decision, {"latency": 5.0 if made.arm == slow else 0.1}, name="b")
    state = client.state("b")
    [alert] = client.alerts("b")
    assert [arm.arm for arm in state.arms if arm.paused] == [slow] == [alert.arm]
    [latency] = state.guardrails
    assert {arm.arm: arm.violated for arm in latency.arms} == {arm: arm == slow for arm in ARMS}
    [paused] = [event for event in client.events("b", kind="change") if event.kind == "arm"]
    assert paused.change == {"arm": slow, "paused": True, "guardrail": "latency"}
    metric = next(client.events("b", kind="metric"))
    assert (metric.metric, metric.value, metric.arm, metric.step, metric.key) == ("latency", 5.0, slow, 1, None)
    assert metric.decision is not None
    assert client.metrics(metric.decision, {"latency": 5}).metrics == {"latency": 5.0}, "again"
    assert status_of(client.metrics, metric.decision, {"latency": 6}) == 409
    assert list(client.alerts("b", after=alert.sequence)) == []
    page = http.get("/metrics").text
    assert 'dynabandit_alerts_total{alert="guardrail",bandit="b"} 1.0' in page
    assert 'dynabandit_events_total{kind="alert"} ' in page
    assert f'dynabandit_rewards_total{{arm="{slow}",bandit="b"}} 0.0' in page, "metrics are no rewards"
    assert_replay_agrees(server.store.url)
    client.delete("b")
    assert 'bandit="b"' not in http.get("/metrics").text


@pytest.mark.promise(162, 167)
def test_replicas_raise_one_alert_and_have_the_same_lift(postgres_url: str) -> None:
    with (
        running(open_store(postgres_url)) as one,
        running(open_store(postgres_url)) as two,
        talking(one.url) as (first, _),
        talking(two.url) as (second, _),
    ):
        first.create("b", ARMS, "ucb", guardrails=RULES, holdout={"share": 0.5, "control": "red"}, seed=1)
        for n in range(40):
            ours, theirs = (first, second) if n % 2 else (second, first)
            made = ours.decide("b")
            theirs.metrics(made.decision, {"latency": 5.0 if made.arm == "red" else 0.1})
            ours.reward(made.decision, made.arm == "blue")
        [alert] = second.alerts("b")
        assert alert.arm == "red"
        state, other = first.state("b"), second.state("b")
        assert (state.holdout, state.guardrails, state.state_hash) == (
            other.holdout,
            other.guardrails,
            other.state_hash,
        )
        assert [arm.arm for arm in other.arms if arm.paused] == ["red"]
    assert_replay_agrees(postgres_url)


@pytest.mark.promise(165)
def test_guardrails_are_changed_by_a_call(client: Client, server: Running) -> None:
    client.create("b", ARMS, "ucb", seed=1)
    before = client.state("b").sequence
    assert client.set_guardrails("b", RULES).sequence == before + 1
    assert client.set_guardrails("b", RULES).sequence == before + 1, "nothing changed"
    made = client.decide("b")
    client.metrics(made.decision, {"latency": 0.25})
    client.set_guardrails("b", {})
    assert client.state("b").guardrails == []
    with pytest.raises(ServiceError, match="metrics must belong to guardrails, and bandit 'b' has none"):
        client.metrics(made.decision, {"latency": 0.25})
    assert_replay_agrees(server.store.url)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"metrics": {}}, "metrics must be"),
        ({"metrics": {"latency": "x"}}, "metrics.latency must be a number"),
        ({"metrics": {"latency": 11}}, "metrics.latency must be a number from 0 to 10, got 11"),
        ({"metrics": {"other": 1}}, "'other'"),
        ({"latency": 1}, "'latency'"),
    ],
)
def test_invalid_metrics_over_http(sqlite_server: Running, body: object, problem: str) -> None:
    with talking(sqlite_server.url) as (client, http):
        client.create("b", ARMS, "ucb", guardrails=RULES, seed=1)
        made = client.decide("b")
        before = client.state("b")
        answer = http.put(f"/v1/decisions/{made.decision}/metrics", json=body)
        assert (answer.status_code, problem in answer.json()["problem"]) == (422, True), answer.json()
        assert client.state("b") == before
        assert http.put(f"/v1/decisions/{made.decision[:-1]}0x/metrics", json={"metrics": {"a": 1}}).status_code == 404
        assert (
            http.put(f"/v1/bandits/c/decisions/{made.decision}/metrics", json={"metrics": {"a": 1}}).status_code == 404
        )


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("holdout", {"share": 0}, "holdout.share must be"),
        ("holdout", {"share": 0.1, "control": "pink"}, "holdout.control must be one of the arms, got 'pink'"),
        ("guardrails", {"latency": {"bound": 0.5}}, "guardrails.latency.direction must be"),
        ("guardrails", {"latency": {"bound": 0.5, "direction": "up"}}, "guardrails.latency.direction must be"),
        ("guardrails", {"latency": {"bound": 5, "direction": "max", "range": [0, 1]}}, "guardrails.latency.bound"),
        ("guardrails", {"latency": {"bound": 5, "direction": "max", "range": [0]}}, "guardrails.latency.range must"),
        ("guardrails", {"\x00": {"bound": 5, "direction": "max"}}, "printable"),
        ("guardrails", {"\ud800": {"bound": 5, "direction": "max"}}, ""),
    ],
)
def test_invalid_settings_over_http(sqlite_server: Running, field: str, value: object, problem: str) -> None:
    with talking(sqlite_server.url) as (_, http):
        body = json.dumps({"arms": ARMS, "policy": "ucb", field: value})
        answer = http.put("/v1/bandits/b", content=body, headers={"Content-Type": "application/json"})
        assert 400 <= answer.status_code < 500
        assert problem in answer.json()["problem"], answer.json()
        assert http.get("/v1/bandits/b").status_code == 404


@pytest.mark.promise(160, 174)
def test_the_lift_over_http(client: Client, http: httpx.Client) -> None:
    client.create("b", ARMS, "ucb", holdout={"share": 0.5, "control": "red"}, seed=1)
    for n in range(40):
        body = {"unit": f"u{n}"}
        [made] = http.post("/v1/bandits/b/decisions", json=body).json()["decisions"]
        client.reward(made["decision"], made["arm"] == "blue")
    holdout = client.state("b").holdout
    assert holdout is not None
    assert (holdout.share, holdout.control) == (0.5, "red")
    assert holdout.policy.decisions + holdout.holdout.decisions == 40
    assert (holdout.policy.rewards, holdout.holdout.mean) == (holdout.policy.decisions, 0.0)
    assert holdout.lift is not None
    assert holdout.low is not None
    assert holdout.high is not None
    assert holdout.low < holdout.lift < holdout.high
    page = http.get("/metrics").text
    assert f'dynabandit_lift{{bandit="b"}} {holdout.lift}' in page
    assert f'dynabandit_lift_low{{bandit="b"}} {holdout.low}' in page
    other = {"arms": ARMS, "policy": "ucb", "seed": 1, "holdout": {"share": 0.2, "control": "red"}}
    assert http.put("/v1/bandits/b", json=other).status_code == 409, "a holdout cannot be changed"
