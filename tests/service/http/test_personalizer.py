"""Personalizer's API, with the package that its users have, against a real service."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from azure.cognitiveservices.personalizer import PersonalizerClient
from azure.cognitiveservices.personalizer.models import (
    ErrorResponseException,
    RankableAction,
    RankRequest,
    RankResponse,
)
from msrest.authentication import CognitiveServicesCredentials
from msrest.exceptions import HttpOperationError

from dynabandit.client import Client
from dynabandit.service.domain.personalizer import REWARD_WAIT_SECONDS
from dynabandit.service.domain.personalizer_features import ACTION_COLUMNS
from dynabandit.service.keys import new_key
from dynabandit.service.stores import open_store
from dynabandit.service.stores.key_tables import add_key
from tools.harness import ManualClock, Running, assert_replay_agrees, captured_log, running, talking
from tools.waiting import PATIENCE, wait_for

FOOD = {
    "pasta": [{"taste": "salty", "spice": 0.2}, {"nutrition": {"calories": 400}}],
    "ice cream": [{"taste": "sweet", "spice": 0.0}, {"nutrition": {"calories": 900}}],
    "curry": [{"taste": "salty", "spice": 0.9}, {"nutrition": {"calories": 650}}],
}


@pytest.fixture
def server(sqlite_server: Running) -> Running:
    return sqlite_server


@pytest.fixture
def loop(server: Running) -> Iterator[PersonalizerClient]:
    yield from personalizer(server.url)


def personalizer(url: str, key: str = "none") -> Iterator[PersonalizerClient]:
    client = PersonalizerClient(url, CognitiveServicesCredentials(key))
    client.config.retry_policy.retries = 0
    client.config.connection.timeout = PATIENCE
    yield client
    client._client.close()


def rank(client: PersonalizerClient, *ids: str, time: Any = "morning", **more: Any) -> RankResponse:
    actions = [RankableAction(id=one, features=FOOD.get(one, [{"taste": one}])) for one in ids or FOOD]
    context = [{"time": time}, {"user": {"age": 31, "likes": ["sugar", "tea"]}}]
    return client.rank(RankRequest(actions=actions, context_features=context, **more))


def probabilities(response: RankResponse) -> list[tuple[str, float]]:
    return [(one.id, one.probability) for one in response.ranking]


@pytest.mark.promise(210)
def test_the_unchanged_client_ranks_rewards_and_activates(loop: PersonalizerClient, client: Client) -> None:
    response = rank(loop)
    assert sorted(one.id for one in response.ranking) == sorted(FOOD)
    assert response.ranking[0].id == response.reward_action_id
    assert sum(one.probability for one in response.ranking) == pytest.approx(1.0)
    loop.events.activate(response.event_id)
    loop.events.reward(response.event_id, -0.5)
    decided, rewarded = (list(client.events("personalizer", kind=kind)) for kind in ("decision", "reward"))
    assert (decided[0].arm, decided[0].key) == (response.reward_action_id, response.event_id)
    assert decided[0].propensity == response.ranking[0].probability
    features = {"time": "morning", "user/age": 31, "user/likes/sugar": True, "user/likes/tea": True}
    assert decided[0].context == {"context": features}
    assert (rewarded[0].arm, rewarded[0].reward) == (response.reward_action_id, -0.5)
    state = client.state("personalizer")
    assert (state.reward_window, state.default_reward) == (REWARD_WAIT_SECONDS, 0.0)


@pytest.mark.promise(211)
def test_an_endpoint_with_a_path_uses_the_bandit_in_it(server: Running, client: Client) -> None:
    for loop in personalizer(f"{server.url}/v1/bandits/shop%2Fmenu"):
        response = rank(loop)
        loop.events.reward(response.event_id, 1.0)
    assert [one.name for one in client.bandits()] == ["shop/menu"]
    assert next(client.events("shop/menu", kind="reward")).reward == 1.0


@pytest.mark.promise(211)
def test_any_bandit_can_be_used_with_its_own_arms_and_features(
    server: Running, client: Client, http: httpx.Client
) -> None:
    client.create("plain", ["pasta", "curry"], "ucb", seed=1)
    features = {"time": "category", "user/age": "number"}
    client.create("named", ["pasta", "curry"], "lin-ucb", seed=1, features=features)
    for name, context in (("plain", None), ("named", {"time": "noon", "user/age": 31})):
        for loop in personalizer(f"{server.url}/v1/bandits/{name}"):
            response = rank(loop, "pasta", "curry", time="noon")
            assert sum(one.probability for one in response.ranking) == pytest.approx(1.0)
            with pytest.raises(ErrorResponseException, match=r"actions must be arms of bandit .* got 'ice cream'"):
                rank(loop)
            event = next(client.events(name, kind="decision"))
            assert (event.arm, event.context) == (response.reward_action_id, context)
    for loop in personalizer(f"{server.url}/v1/bandits/named"):
        with pytest.raises(ErrorResponseException, match="contextFeatures: feature 'time' must be a string"):
            rank(loop, "pasta", "curry", time=0.5)


@pytest.mark.promise(212)
def test_the_same_event_id_returns_the_same_result_once(loop: PersonalizerClient, client: Client) -> None:
    first = rank(loop, event_id="e-1", excluded_actions=["pasta"])
    for _ in range(2):
        again = rank(loop, event_id="e-1", excluded_actions=["pasta"])
        assert (again.event_id, again.reward_action_id) == ("e-1", first.reward_action_id)
        assert probabilities(again) == probabilities(first)
    assert client.state("personalizer").step == 1
    assert rank(loop).event_id != rank(loop).event_id
    assert client.state("personalizer").step == 3


@pytest.mark.promise(212, 217)
@pytest.mark.parametrize("other", [{}, {"count": 2}, {"rank": 2}, {"among": ["pasta", "curry"], "rank": 1}])
def test_the_key_of_another_decision_is_no_event_id(
    server: Running, client: Client, http: httpx.Client, other: dict[str, Any]
) -> None:
    client.create("menu", ["pasta", "curry", "ice cream"], "ucb", seed=1)
    assert http.post("/v1/bandits/menu/decisions", json=other, headers={"Idempotency-Key": "e-1"}).status_code == 200
    for loop in personalizer(f"{server.url}/v1/bandits/menu"):
        with pytest.raises(ErrorResponseException, match="eventId must be that of a Rank call, got 'e-1'"):
            rank(loop, "pasta", "curry", event_id="e-1")


@pytest.mark.promise(213)
def test_excluded_actions_keep_their_places_and_paused_ones_come_last(loop: PersonalizerClient, client: Client) -> None:
    rank(loop)
    client.change_arm("personalizer", "curry", paused=True)
    for _ in range(3):
        response = rank(loop, "pasta", "curry", "ice cream", excluded_actions=["pasta", "unknown"])
        assert probabilities(response) == [("pasta", 0.0), ("ice cream", 1.0), ("curry", 0.0)]
        assert response.reward_action_id == "ice cream"
    for excluded, problem in ((list(FOOD), "excludedActions must leave one of the 3 actions"), (["curry"], None)):
        if problem:
            with pytest.raises(ErrorResponseException, match=problem):
                rank(loop, excluded_actions=excluded)
    with pytest.raises(ErrorResponseException) as refused:
        rank(loop, "curry")
    assert refused.value.response.status_code == 409


@pytest.mark.promise(214)
def test_new_actions_become_arms_and_start_from_what_is_known(
    loop: PersonalizerClient, client: Client, clock: ManualClock
) -> None:
    """Sweet food is liked, salty food is not: of two new actions, the sweet one is chosen."""
    rank(loop)
    client.set_policy("personalizer", "lin-ucb")  # which is faster without compiled code
    for visit in range(24):
        response = rank(loop, time=["morning", "evening"][visit % 2])
        loop.events.reward(response.event_id, float(response.reward_action_id == "ice cream"))
    clock.seconds += REWARD_WAIT_SECONDS + 1
    wait_for(lambda: client.state("personalizer").held == 0)
    new = [
        RankableAction(id="steak", features=FOOD["pasta"]),
        RankableAction(id="cake", features=FOOD["ice cream"]),
    ]
    chosen = [
        loop.rank(RankRequest(actions=new, context_features=[{"time": "morning"}])).reward_action_id for _ in range(4)
    ]
    assert chosen.count("cake") >= 3
    assert [one.arm for one in client.state("personalizer").arms] == [*FOOD, "steak", "cake"]
    assert sum(event.kind == "arm" for event in client.events("personalizer", kind="change")) == 2


@pytest.mark.promise(101)
def test_the_log_names_new_arms_and_no_features_of_users(loop: PersonalizerClient) -> None:
    with captured_log("logging_setup") as lines:
        for ids in (("pasta", "curry"), ("pasta", "curry"), ("pasta", "ice cream")):
            rank(loop, *ids)
    changed = [line["change"] for line in lines if line["event"] == "change"]
    assert changed == [{"created": "personalizer", "actions": ["pasta", "curry"]}, {"actions": ["ice cream"]}]
    assert "sugar" not in str(lines)


@pytest.mark.promise(215)
def test_the_first_reward_counts_and_late_ones_are_ignored(
    server: Running, loop: PersonalizerClient, client: Client, clock: ManualClock
) -> None:
    first, late = rank(loop), rank(loop)
    for value in (0.25, 1.0, 0.25):
        loop.events.reward(first.event_id, value)
    clock.seconds += REWARD_WAIT_SECONDS + 1
    loop.events.reward(late.event_id, 1.0)
    wait_for(lambda: client.state("personalizer").held == 0)
    settled = [(one.step, one.kind, one.reward) for one in client.events("personalizer", kind="reward") if one.step]
    assert settled == [(1, "reward", 0.25), (2, "close", 0.0)]
    with pytest.raises(HttpOperationError) as refused:
        loop.events.reward("never", 1.0)
    assert refused.value.response.status_code == 404


@pytest.mark.promise(216)
@pytest.mark.parametrize("learn", ["settled", "at-once"])
def test_a_deferred_event_gets_the_default_reward_only_if_it_is_activated(
    server: Running, client: Client, clock: ManualClock, learn: Any
) -> None:
    client.create(
        "menu", ["pasta", "curry"], "ucb", seed=1, reward_window=REWARD_WAIT_SECONDS, default_reward=0, learn=learn
    )
    for loop in personalizer(f"{server.url}/v1/bandits/menu"):
        names = ("seen", "never", "rewarded", "late")
        arms = [rank(loop, "pasta", "curry", event_id=one, defer_activation=True).reward_action_id for one in names]
        for _ in range(2):
            loop.events.activate("seen")
        loop.events.reward("rewarded", 1.0)
        clock.seconds += REWARD_WAIT_SECONDS + 1
        wait_for(lambda: client.state("menu").held == 0 and sum(one.pending for one in client.state("menu").arms) == 0)
        loop.events.activate("late")
        with pytest.raises(HttpOperationError) as refused:
            loop.events.activate("other")
        assert refused.value.response.status_code == 404
        settled = {one.step: (one.kind, one.reward) for one in client.events("menu", kind="reward") if one.step}
        assert settled == {1: ("close", 0.0), 2: ("close", None), 3: ("reward", 1.0), 4: ("close", None)}
        learned = {one.arm: one.effective_size for one in client.state("menu").arms}
        assert learned == {arm: [arms[0], arms[2]].count(arm) for arm in ("pasta", "curry")}
        activations = [one for one in client.events("menu") if one.kind == "activate"]
        assert [one.step for one in activations] == [1]


@pytest.mark.promise(217)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"actions": []}, "actions must be a list of 1 to 50 items"),
        ({"actions": [{"id": "a"}, {"id": "a"}]}, "actions must have different ids, got 'a' twice"),
        ({"actions": [{"id": "a"}]}, "actions must be at least 2 in the first call of a bandit, got 1"),
        ({"actions": [{"id": "a", "feature": []}, {"id": "b"}]}, "feature"),
        ({"eventId": "é"}, "eventId must have 1 to 256 printable ASCII characters, got 'é'"),
        ({"eventId": "x" * 257}, "eventId must be"),
        ({"contextFeatures": {"time": 1}}, "contextFeatures must be a list"),
        ({"contextFeatures": [{"x": 1e200}]}, "contextFeatures: feature 'context' must be a mapping"),
        ({"contextFeatures": [{str(i): 1 for i in range(1001)}]}, "contextFeatures must have at most 1000 features"),
        ({"contextFeatures": [{str(i): "x" * 999 for i in range(21)}]}, "contextFeatures must have at most 20000 char"),
        ({"contextFeatures": [{"x": "x" * 1001}]}, "names and texts of at most 1000 characters"),
        ({"contextFeatures": [{"x": True}, 1]}, "contextFeatures[1] must be an object, got 1"),
        ({"actions": [{"id": "a", "features": [{"x": 1e200}]}, {"id": "b"}]}, "actions[0].features: feature 'action'"),
        ({"excludedActions": ["a", "b"]}, "excludedActions must leave one of the 2 actions"),
        ({"deferActivation": 1}, "deferActivation must be true or false, got 1"),
    ],
)
def test_what_is_not_valid_is_refused_in_the_format_of_personalizer_and_changes_nothing(
    http: httpx.Client, change: dict[str, Any], message: str
) -> None:
    body = {"actions": [{"id": "a"}, {"id": "b"}], "contextFeatures": [], **change}
    answer = http.post("/personalizer/v1.0/rank", json=body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == "BadRequest"
    assert message in error["message"]
    assert http.get("/v1/bandits").json()["bandits"] == []


@pytest.mark.promise(217)
def test_an_invalid_call_of_an_existing_bandit_adds_no_arm(loop: PersonalizerClient, http: httpx.Client) -> None:
    rank(loop)
    before = http.get("/v1/bandits/personalizer").json()
    body = {"actions": [{"id": "new"}], "contextFeatures": [{"x": 1e200}]}
    assert http.post("/personalizer/v1.0/rank", json=body).status_code == 400
    body = {"actions": [{"id": "new", "features": [{"x": 1e200}]}], "contextFeatures": []}
    assert http.post("/personalizer/v1.0/rank", json=body).status_code == 400
    assert http.post("/personalizer/v1.0/events/none/reward", json={"value": 1}).json() == {
        "error": {"code": "ResourceNotFound", "message": "there is no event 'none'"}
    }
    assert http.get("/v1/bandits/personalizer").json() == before


@pytest.mark.promise(218)
def test_the_subscription_key_is_an_api_key(sqlite_url: str) -> None:
    store, keys = open_store(sqlite_url), {}
    store.prepare()
    for role in ("admin", "decide", "read", "page"):
        keys[role], row = new_key(role)
        add_key(store, row)
    with running(store, needs_keys=True) as server:
        for role, status in (("none", 401), ("read", 403), ("page", 403), ("decide", 403)):
            for loop in personalizer(server.url, keys.get(role, "dyna_none")):
                with pytest.raises(ErrorResponseException) as refused:
                    rank(loop)
                assert refused.value.response.status_code == status
        for role in ("admin", "decide"):
            for loop in personalizer(server.url, keys[role]):
                loop.events.reward(rank(loop).event_id, 1.0)


@pytest.mark.promise(219)
def test_a_replay_makes_the_same_decisions(sqlite_url: str) -> None:
    clock = ManualClock()
    with running(open_store(sqlite_url), clock=clock) as server:
        for loop in personalizer(server.url):
            for visit in range(12):
                if visit == 3:
                    with talking(server.url) as (client, _):
                        client.set_policy("personalizer", "lin-ucb")
                response = rank(loop, *list(FOOD)[visit % 2 :], *([f"new {visit}"] if visit % 4 == 0 else []),
                                defer_activation=visit % 3 == 0)  # fmt: skip
                if visit % 2:
                    loop.events.reward(response.event_id, visit / 12)
                elif visit % 3 == 0:
                    loop.events.activate(response.event_id)
                clock.seconds += 200.0
            with talking(server.url) as (client, _):
                wait_for(lambda: client.state("personalizer").held <= 3)
    assert_replay_agrees(sqlite_url)


@pytest.mark.promise(212, 216)
def test_replicas_know_the_events_of_each_other(postgres_url: str) -> None:
    features = {"features": {"context": {"kind": "hashed", "columns": 2, "required": True}}}
    arms = {"arm_features": {arm: {"action": [0.0] * ACTION_COLUMNS} for arm in ("pasta", "curry")}}
    window = {"reward_window": REWARD_WAIT_SECONDS, "default_reward": 0}
    with running(open_store(postgres_url)) as one, running(open_store(postgres_url)) as other:
        with talking(one.url) as (client, _):
            client.create("personalizer", ["pasta", "curry"], "lin-ucb", **window, **features, **arms)
        for here in personalizer(one.url):
            for there in personalizer(other.url):
                first = rank(here, "pasta", "curry", "ice cream", event_id="e", defer_activation=True)
                again = rank(there, "pasta", "curry", "ice cream", event_id="e", defer_activation=True)
                assert probabilities(again) == probabilities(first)
                assert again.reward_action_id == first.reward_action_id
                there.events.activate("e")
                here.events.activate("e")
                there.events.reward("e", 1.0)
                here.events.reward("e", 0.5)
        with talking(one.url) as (client, _):
            events = [(event.kind, event.reward) for event in client.events("personalizer")]
    assert events == [("create", None), ("arm", None), ("decision", None), ("activate", None), ("reward", 1.0)]
    assert_replay_agrees(postgres_url)


def test_the_blocks_of_the_migration_page_run(server: Running, http: httpx.Client, capsys: Any) -> None:
    page = (Path(__file__).parents[3] / "docs" / "personalizer.md").read_text(encoding="utf-8")
    [program], [command] = (
        re.findall(rf"^```{kind}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE) for kind in ("python", "sh")
    )
    scope: dict[str, Any] = {}
    exec(program.replace("http://127.0.0.1:8000", server.url), scope)
    scope["client"]._client.close()
    assert "show " in capsys.readouterr().out
    [body] = re.findall(r"-d '(.*)'", command, re.DOTALL)
    assert http.put("/v1/bandits/menu", content=body, headers={"Content-Type": "application/json"}).status_code == 201
    for loop in personalizer(f"{server.url}/v1/bandits/menu"):
        assert rank(loop, "pasta", "curry").reward_action_id in ("pasta", "curry")


def test_the_format_of_errors_is_that_of_the_package(loop: PersonalizerClient) -> None:
    with pytest.raises(ErrorResponseException) as refused:
        rank(loop, "only")
    assert refused.value.error.error.code == "BadRequest"
    assert json.loads(refused.value.response.content)["error"]["message"] == refused.value.error.error.message
