"""Lists and pages of the API, on each store."""

import json

import httpx
import pytest

from dynabandit.client import Client
from tools.harness import ARMS, Running, learn, talking


@pytest.mark.promise(117)
def test_the_list_of_bandits_comes_in_pages(client: Client, http: httpx.Client) -> None:
    for number in range(5):
        client.create(f"b{number}", ARMS)
    page = http.get("/v1/bandits", params={"limit": 2}).json()
    assert [one["name"] for one in page["bandits"]] == ["b0", "b1"]
    assert page["next"] == "b1"
    assert [one.name for one in client.bandits()] == [f"b{number}" for number in range(5)]


@pytest.mark.promise(8, 23)
def test_events_come_in_pages_and_in_order(client: Client, http: httpx.Client) -> None:
    client.create("b", ARMS)
    learn(client, "b", 10)
    page = http.get("/v1/bandits/b/events", params={"after": 3, "limit": 4}).json()["events"]
    assert [event["sequence"] for event in page] == [4, 5, 6, 7]
    assert [event.sequence for event in client.events("b", limit=6)] == list(range(1, 22))
    lines = http.get("/v1/bandits/b/events", params={"format": "ndjson", "after": 19}).text.splitlines()
    assert len(lines) == 2


@pytest.mark.promise(8)
def test_a_page_of_large_events_is_shorter(client: Client, http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest page had more than a hundred megabytes, which the event loop encoded in one piece."""
    monkeypatch.setattr("dynabandit.service.export.PAGE_BYTES", 10_000)
    client.create("b", ARMS, policy="ucb", features={"text": "category"})
    client.decide_many("b", 30, context={"text": "x" * 1000})
    page = http.get("/v1/bandits/b/events", params={"limit": 40})
    assert 10_000 <= len(page.content) < 12_000
    assert [event["sequence"] for event in page.json()["events"]] == list(range(1, 11))
    assert [event.sequence for event in client.events("b")] == list(range(1, 32))
    lines = http.get("/v1/bandits/b/events", params={"format": "ndjson"}).text.splitlines()
    assert [json.loads(line)["sequence"] for line in lines] == list(range(1, 32))


@pytest.mark.promise(8)
def test_changes_can_be_found_among_many_events(server: Running) -> None:
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


def test_the_changes_of_a_deleted_bandit_end_with_its_deletion(server: Running) -> None:
    with talking(server.url) as (client, http):
        client.create("b", ARMS, seed=1)
        client.decide_many("b", 5, key="a batch has a body of its own")
        client.change_arm("b", "red", paused=True)
        asked = {"id": client.delete("b").id, "kind": "change"}
        for after, limit, kinds in [(0, 10, "create arm delete"), (0, 2, "create arm"), (1, 2, "arm delete"),
                                    (7, 2, "delete"), (8, 2, "")]:  # fmt: skip
            page = http.get("/v1/bandits/b/events", params={**asked, "after": after, "limit": limit}).json()["events"]
            assert [event["kind"] for event in page] == kinds.split()


def test_unknown_bandits_arms_and_paths_are_404_and_wrong_methods_405(client: Client, http: httpx.Client) -> None:
    client.create("b", ARMS)
    assert http.get("/v1/bandits/c").status_code == 404
    assert http.get("/v1/bandits/c/events").status_code == 404
    assert http.get("/v1/bandits/c/export").status_code == 404
    assert http.patch("/v1/bandits/b/arms/c", json={"paused": True}).status_code == 404
    assert http.get("/v1/nonsense").status_code == 404
    assert http.post("/v1/bandits/b", json={}).status_code == 405
    assert http.get("/healthz").json() == {"status": "live"}
    assert http.get("/readyz").json() == {"status": "ready"}
    page = http.get("/metrics").text
    assert 'dynabandit_events_total{kind="create"}' in page


def test_what_is_wrong_is_quoted_in_part_and_by_its_own_name(server: Running) -> None:
    with talking(server.url) as (_, http):
        long = http.put("/v1/bandits/b", json={"arms": ARMS, "policy": "x" * 100_000})
        assert long.status_code == 422
        assert len(long.content) < 1200
        named = http.put("/v1/bandits/b", json={"arms": ARMS, "policy": "ots", "parameters": {"name": 1}})
        assert "policy 'ots' has no parameter 'name'" in named.json()["problem"]
