"""Contexts, units and a holdout over HTTP: both clients, the export, off-policy estimates, and what is refused."""

import io
import json
import types
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

import dynabandit as db
from dynabandit import offline
from dynabandit.cli.commands import app
from dynabandit.client import Client
from dynabandit.core.context import Context
from dynabandit.service.domain import changes
from dynabandit.service.verify import verify
from tools.harness import ARMS, ManualClock, Running, run_apart
from tools.waiting import PATIENCE

FEATURES: dict[str, Any] = {
    "hour": "number",
    "new": "boolean",
    "country": {"kind": "category", "values": ["NO", "SE"]},
    "taste": {"kind": "vector", "size": 2},
}
CONTEXT: dict[str, Any] = {"hour": 14, "new": True, "country": "NO", "taste": [0.5, -1]}


@pytest.fixture
def fixed_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the bandit an id on which the groups of units do not depend at random."""
    monkeypatch.setattr(changes, "secrets", types.SimpleNamespace(randbits=lambda bits: 2**59 + 17))


@pytest.fixture
def server(sqlite_server: Running) -> Running:
    return sqlite_server


@pytest.mark.promise(292)
def test_the_number_of_decisions_per_call_depends_on_the_models_of_the_policy(
    client: Client, http: httpx.Client
) -> None:
    features = {"taste": {"kind": "vector", "size": 600, "required": True}}
    client.create("b", ARMS, policy="lin-ucb", features=features)
    context = {"taste": [0] * 600}
    policy = db.policy("lin-ucb")
    numbers = policy.models_shape(1, Context(601, per_arm=False))[1]
    most = 1_000_000_000 // (len(ARMS) * numbers)
    assert 1 < most < 1000
    answer = http.post("/v1/bandits/b/decisions", json={"context": context, "count": 1000})
    problem = f"count must be at most {most} with {len(ARMS)} arms, models of {numbers} numbers, got 1000"
    assert (answer.status_code, answer.json()["problem"]) == (422, problem)
    assert client.state("b").step == 0
    client.delete("b", erase=True)


def learn(client: Client, name: str, steps: int) -> None:
    """Decide and reward: new visitors like blue, the others like the other two arms."""
    rng = np.random.default_rng(3)
    for step in range(steps):
        context = {"hour": int(rng.integers(24)), "new": bool(rng.random() < 0.5)}
        made = client.decide(name, context=context, unit=f"user-{step}")
        client.reward(made.decision, float(rng.random() < (0.9 if (made.arm == "blue") == context["new"] else 0.1)))


@pytest.mark.promise(220, 221, 222)
def test_a_decision_carries_its_context_and_the_log_has_it(client: Client, http: httpx.Client) -> None:
    state = client.create("b", ARMS, "lin-ucb", features=FEATURES, seed=3)
    assert state.features is not None
    assert list(state.features) == list(FEATURES)
    # Values of NumPy are numbers, too
    context = {"hour": np.int64(14), "new": np.bool_(True), "country": "NO", "taste": np.array([0.5, -1.0])}
    made = client.decide("b", context=context)
    client.reward(made.decision, 1)
    [event] = client.events("b", kind="decision")
    assert event.context == CONTEXT
    assert client.decide("b", context={"country": "DK", "hour": None}).arm in ARMS, "missing and other values are valid"
    given = http.post("/v1/bandits/b/decisions", json={"context": CONTEXT, "count": 2}).json()["decisions"]
    assert len(given) == 2
    assert len(client.decide_many("b", 3, context=CONTEXT)) == 3
    assert client.preview_policy("b", "ts", draws=10, context=CONTEXT).rewards == 1


def test_coroutines_do_the_same(server: Running) -> None:
    async def talk() -> None:
        async with db.AsyncClient(server.url, timeout=PATIENCE) as client:
            await client.create("b", ARMS, features=FEATURES, sticky_for=60, holdout={"share": 0.5, "control": "red"})
            made = await client.decide("b", context=CONTEXT, unit="user-17")
            again = await client.decide("b", context=CONTEXT, unit="user-17")
            assert (again.decision, made.repeated, again.repeated) == (made.decision, False, True)
            [event] = [one async for one in client.events("b", kind="decision")]
            assert (event.context, event.unit, event.holdout) == (CONTEXT, "user-17", made.holdout)
            prices = {arm: {"price": float(place)} for place, arm in enumerate(ARMS)}
            await client.create("c", ARMS, arm_features=prices)
            await client.add_arm("c", "new", {"price": 4.0})
            assert len((await client.state("c")).arms) == 4

    run_apart(talk())


@pytest.mark.promise(223)
def test_a_new_arm_with_features_is_chosen_from_what_the_others_taught(client: Client) -> None:
    prices = {arm: {"price": float(place)} for place, arm in enumerate(ARMS)}
    client.create("b", ARMS, "lin-ucb", arm_features=prices, seed=1)
    for _ in range(100):
        made = client.decide("b")
        client.reward(made.decision, prices[made.arm]["price"] / 4)
    client.add_arm("b", "new", {"price": 4.0})
    assert client.decide("b").arm == "new"
    client.add_arm("b", "cheap", {"price": -1.0})
    assert "cheap" not in {client.decide("b").arm for _ in range(3)}


@pytest.mark.promise(224, 225)
def test_a_unit_keeps_its_decision_across_a_restart_of_the_clients_and_the_answer_says_so(
    client: Client, http: httpx.Client, clock: ManualClock
) -> None:
    client.create("b", ARMS, "uniform", sticky_for=3600, seed=1)
    made = {unit: client.decide("b", unit=unit) for unit in ("user-1", "user-2", "user-3")}
    client.reward(made["user-1"].decision, 1)
    clock.seconds += 3599
    again = http.post("/v1/bandits/b/decisions", json={"unit": "user-1"}).json()["decisions"]
    assert [(one["decision"], one["repeated"]) for one in again] == [(made["user-1"].decision, True)]
    assert client.state("b").step == 3, "one decision per unit"
    client.change_arm("b", made["user-2"].arm, paused=True)
    moved = client.decide("b", unit="user-2")
    assert (moved.repeated, moved.arm == made["user-2"].arm) == (False, False)
    clock.seconds += 1
    assert not client.decide("b", unit="user-3").repeated, "the time is over"


@pytest.mark.promise(228, 229)
@pytest.mark.usefixtures("fixed_id")
def test_a_fixed_share_of_units_gets_the_control_arm(client: Client) -> None:
    state = client.create("b", ARMS, "ucb", holdout={"share": 0.5, "control": "red"}, seed=1)
    assert state.holdout is not None
    assert (state.holdout.share, state.holdout.control) == (0.5, "red")
    units = [f"user-{number}" for number in range(60)]
    held = {unit for unit in units if client.decide("b", unit=unit).holdout}
    assert 15 < len(held) < 45
    assert {event.arm for event in client.events("b", kind="decision") if event.holdout} == {"red"}
    client.set_policy("b", "ts")
    assert {unit for unit in units if client.decide("b", unit=unit).holdout} == held


@pytest.mark.promise(227, 230)
@pytest.mark.usefixtures("fixed_id")
def test_the_export_of_a_bandit_with_context_is_a_log_for_estimates(
    server: Running, client: Client, http: httpx.Client, tmp_path: Path
) -> None:
    """From the service to a recommendation: a policy with context is better, and the estimates find it."""
    features = {"hour": "number", "new": "boolean"}
    client.create("b", ARMS, "ucb", features=features, seed=1, holdout={"share": 0.6})
    learn(client, "b", 300)
    rows = list(client.export("b", draws=1))
    assert [row.unit for row in rows] == [f"user-{step}" for step in range(300)]
    assert all(set(row.context or {}) == {"hour", "new"} for row in rows)
    # The probability over all units, whether or not this one is in the holdout, in which all arms are equally likely
    decided, held = ([round(row.propensity, 9) for row in rows if row.holdout == is_held] for is_held in (False, True))
    assert {0.2, 0.6} <= set(held) <= {0.2, 0.4, 0.6}, "0.4 is a tie"
    assert set(decided) <= {0.4, 0.6}
    content = http.get("/v1/bandits/b/export?format=parquet&draws=1").content
    (tmp_path / "log.parquet").write_bytes(content)
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(io.BytesIO(content)).to_pylist()
    assert [row["propensity"] for row in table] == [row.propensity for row in rows]
    assert [json.loads(row["context"]) for row in table] == [row.context for row in rows]
    assert [(row["unit"], row["holdout"]) for row in table] == [(row.unit, row.holdout) for row in rows]

    log = offline.read(tmp_path / "log.parquet")
    assert log.features is not None
    assert log.features.names == ("hour", "new"), "the file declares them"
    asked = ["advise", server.store.public_url, "--policy", "lin-ucb", "--policy", "ts", "--json",
             "--replications", "1", "--draws", "2", "--bandit"]  # fmt: skip
    result = CliRunner().invoke(app, [*asked, "b"])
    assert result.exit_code == 0, result.output
    advice = json.loads(result.stdout)
    assert (advice["leader"], advice["log"]["rows"]) == ("lin-ucb", 300)
    with_context, without = (one["value"] for one in advice["candidates"])
    assert with_context["low"] > 0.65 > without["high"]
    unknown = CliRunner().invoke(app, [*asked, "c"])
    assert (unknown.exit_code, unknown.stderr) == (2, "dynabandit: there is no bandit 'c'\n")


@pytest.mark.promise(226)
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({}, "context must be given: the bandit has the features 'hour'"),
        ({"context": {"hour": "noon"}}, "context: feature 'hour' must be a finite number, got 'noon'"),
        ({"context": {"hours": 3}}, "context: unknown feature 'hours'. Did you mean 'hour'?"),
        ({"context": {"new": 3}}, "context: feature 'new' must be True or False, got 3"),
        ({"context": {"taste": [1]}}, "context: feature 'taste' must be a list of 2 finite numbers, got 1"),
        ({"context": 3}, "context must be an object of at most 256 keys, or null, got 3"),
        ({"context": {"hour": {"a": 1}}}, "context: feature 'hour' must be a finite number, got {'a': 1}"),
        ({"context": {"hour": [[1]]}}, "context.hour[0] must be "),
        ({"context": {"hour": 1e400}}, "the body"),
        ({"context": CONTEXT, "unit": ""}, "unit must be text of 1 to 200 characters, or null, got ''"),
        ({"context": CONTEXT, "unit": 17}, "unit must be text of 1 to 200 characters, or null, got 17"),
        ({"context": CONTEXT, "unit": "x" * 201}, "unit must be text of 1 to 200 characters, or null, got 'xxx"),
        ({"context": CONTEXT, "unit": "user-17", "count": 2}, "count must be 1 with a unit, got 2"),
    ],
)
def test_what_does_not_fit_is_refused_by_name_and_changes_nothing(
    client: Client, http: httpx.Client, body: dict[str, Any], problem: str
) -> None:
    client.create("b", ARMS, "ucb", features=FEATURES, sticky_for=60)
    client.decide("b", context=CONTEXT, unit="user-1")
    before = client.state("b").state_hash
    content = json.dumps(body).replace("Infinity", "1e400")
    answer = http.post("/v1/bandits/b/decisions", content=content, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["problem"][: len(problem)]) == (422, problem)
    assert client.state("b").state_hash == before
    assert len(list(client.events("b"))) == 2


def test_a_number_outside_its_declared_range_is_refused_and_the_replay_knows_the_range(
    client: Client, http: httpx.Client, server: Running
) -> None:
    """A single large value would otherwise make those of all later decisions nearly equal."""
    features = {"age": {"kind": "number", "low": 0, "high": 120}}
    client.create("b", ARMS, "ucb", features=features, seed=1)
    for age in (20, 40, 0, 120):
        client.decide("b", context={"age": age})
    before = client.state("b").state_hash
    for wrong in (1e100, 121, -1):
        answer = http.post("/v1/bandits/b/decisions", json={"context": {"age": wrong}})
        problem = f"context: feature 'age' must be between 0 and 120, got {wrong}"
        assert (answer.status_code, answer.json()["problem"][: len(problem)]) == (422, problem)
    assert client.state("b").state_hash == before
    [log] = [one for one in verify(server.store) if one.name == "b"]
    assert (log.problem, log.steps, log.state_hash) == (None, 4, before)


@pytest.mark.promise(226)
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"features": {}}, "features must be an object of 1 to 256 keys, or null, got an object"),
        ({"features": {"hour": "time"}}, "features.hour must be "),
        ({"features": {"hour": {"kind": "time"}}}, "unknown kind of feature 'hour'"),
        ({"features": {"hour": {"kind": "number", "size": 2}}}, "feature 'hour'"),
        ({"arm_features": {"red": {"price": 1}}}, "arm_features must have "),
        ({"arm_features": {arm: {"price": "high" if arm == "blue" else 1} for arm in ARMS}}, "arm 'blue'"),
        ({"sticky_for": 0}, "sticky_for must be a number above 0"),
        ({"sticky_for": "day"}, "sticky_for must be a number above 0"),
        ({"holdout": {"share": 0}}, "holdout.share must be a number above 0"),
        ({"holdout": {"share": 1}}, "holdout.share must be a number above 0"),
        ({"holdout": {"control": "red"}}, "holdout.share must be a number above 0 and at most 0.9, got nothing"),
        ({"holdout": {"share": 0.1, "control": "pink"}}, "holdout.control must be one of the arms, got 'pink'"),
        ({"holdout": {"share": 0.1, "unit": "red"}}, "holdout: unknown field 'unit'"),
        ({"holdout": 0.1}, "holdout must be an object, or null, got 0.1"),
    ],
)
def test_a_bandit_with_wrong_settings_is_not_created(http: httpx.Client, body: dict[str, Any], problem: str) -> None:
    answer = http.put("/v1/bandits/b", json={"arms": ARMS, "policy": "ucb", **body})
    assert (answer.status_code, answer.json()["problem"][: len(problem)]) == (422, problem)
    assert http.get("/v1/bandits/b").status_code == 404


def test_a_context_without_values_is_exported(client: Client, http: httpx.Client) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    client.create("b", ARMS, "ucb", features={"hour": "number"}, seed=1)
    client.decide("b", context={})
    content = http.get("/v1/bandits/b/export?format=parquet").content
    assert pq.read_table(io.BytesIO(content)).to_pylist()[0]["context"] == "{}"


def test_the_examples_of_the_openapi_document_work(http: httpx.Client) -> None:
    paths = http.get("/openapi.json").json()["paths"]

    def example(path: str, method: str) -> Any:
        return paths[path][method]["requestBody"]["content"]["application/json"]["example"]

    assert http.put("/v1/bandits/b", json=example("/v1/bandits/{name}", "put") | {"policy": "ucb"}).status_code == 201
    made = http.post("/v1/bandits/b/decisions", json=example("/v1/bandits/{name}/decisions", "post"))
    assert made.status_code == 200
    reward = example("/v1/decisions/{id}/reward", "put")
    decision = made.json()["decisions"][0]["decision"]
    assert http.put(f"/v1/decisions/{decision}/reward", json=reward).status_code == 200
    assert http.post("/v1/bandits/b/arms", json=example("/v1/bandits/{name}/arms", "post")).status_code == 200
