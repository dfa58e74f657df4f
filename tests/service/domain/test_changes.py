"""Changes of a bandit: create, arms, shares, delete."""

import contextlib
import math

import httpx
import pytest

from dynabandit.client import Client
from dynabandit.service.stores import open_store
from dynabandit.service.stores.erasing import Eraser
from tools.harness import ARMS, learn, running, status_of, talking
from tools.waiting import wait_for


@pytest.mark.promise(4)
def test_creating_twice_is_one_bandit_and_another_body_is_refused(http: httpx.Client) -> None:
    body = {"policy": "aff-ots", "parameters": {"step_size": 0.01}, "arms": ARMS, "reward_window": 60, "seed": 1}
    assert http.put("/v1/bandits/b", json=body).status_code == 201
    assert http.put("/v1/bandits/b", json=body).status_code == 200
    assert http.put("/v1/bandits/b", json={**body, "seed": 2}).status_code == 409
    assert len(http.get("/v1/bandits").json()["bandits"]) == 1


@pytest.mark.promise(4, 13)
def test_creating_twice_without_a_seed_keeps_the_seed_that_was_drawn(http: httpx.Client) -> None:
    first = http.put("/v1/bandits/b", json={"arms": ARMS}).json()
    again = http.put("/v1/bandits/b", json={"arms": ARMS})
    assert again.status_code == 200
    assert again.json() == first


@pytest.mark.promise(4, 13)
def test_auto_is_recorded_as_the_policy_that_it_stands_for(http: httpx.Client, client: Client) -> None:
    first = http.put("/v1/bandits/b", json={"arms": ARMS}).json()
    assert first["policy"] == "mix-ts"
    created = next(iter(client.events("b"))).change or {}
    assert (created["policy"], created["auto"]) == ("mix-ts", True)
    for policy, status in (("auto", 200), ("mix-ts", 200), ("ucb", 409)):
        assert http.put("/v1/bandits/b", json={"arms": ARMS, "policy": policy}).status_code == status
    client.set_policy("b", "ucb")
    client.set_policy("b", "auto")
    assert client.state("b").policy == "mix-ts"
    assert ([event.change for event in client.events("b")][-1] or {})["policy"] == "mix-ts"


@pytest.mark.promise(34)
def test_a_paused_arm_is_never_chosen_until_it_is_resumed(client: Client) -> None:
    client.create("b", ARMS, seed=3)
    learn(client, "b", 30)
    client.change_arm("b", "blue", paused=True)
    assert {one.arm for one in client.decide_many("b", 300)} == {"red", "green"}
    assert {arm.arm: arm.paused for arm in client.state("b").arms} == {"red": False, "green": False, "blue": True}
    client.change_arm("b", "blue", paused=False)
    assert "blue" in {one.arm for one in client.decide_many("b", 300)}


@pytest.mark.promise(7, 27, 35)
def test_an_arm_can_be_added_and_retired_while_decisions_go_on(client: Client) -> None:
    client.create("b", ARMS, policy="aff-ots")  # which plays a new arm at once
    learn(client, "b", 10)
    client.add_arm("b", "new")
    before = client.state("b").sequence
    client.add_arm("b", "new")
    assert client.state("b").sequence == before, "the same arm again changes nothing"
    assert "new" in {one.arm for one in client.decide_many("b", 5)}
    waiting = client.decide("b")
    client.change_arm("b", waiting.arm, retired=True)
    assert status_of(client.change_arm, "b", waiting.arm, retired=True) == 200
    assert status_of(client.change_arm, "b", waiting.arm, paused=True) == 404
    assert waiting.arm not in {one.arm for one in client.decide_many("b", 200)}
    assert status_of(client.reward, waiting.decision, 1) == 200, "it was chosen before it was retired"
    client.add_arm("b", waiting.arm)
    assert {arm.arm: arm.plays for arm in client.state("b").arms}[waiting.arm] == 0, "it is a new arm"
    first, second, *others = (arm.arm for arm in client.state("b").arms)
    assert [status_of(client.change_arm, "b", arm, retired=True) for arm in (*others, second)] == [200, 200, 409]
    assert [arm.arm for arm in client.state("b").arms] == [first, second], "two arms remain"


@pytest.mark.promise(36, 37)
def test_shares_are_kept(client: Client, http: httpx.Client) -> None:
    client.create("b", ARMS, "ucb", seed=5)
    learn(client, "b", 50)
    client.change_arm("b", "blue", max_share=0.5)
    client.change_arm("b", "red", min_share=0.3)
    chosen = [one.arm for one in client.decide_many("b", 1000)]
    assert all(chosen[:n].count("blue") <= math.ceil(0.5 * n) for n in range(1, 1001))
    # 1000 fair draws at 0.3: 240 is more than 4 standard deviations away
    assert chosen.count("red") >= 240
    assert status_of(client.change_arm, "b", "green", min_share=0.8) == 409, "more than the others leave"
    assert http.patch("/v1/bandits/b/arms/red", json={"min_share": 1.5}).status_code == 422
    for arm in ("red", "green", "blue"):
        client.change_arm("b", arm, min_share=0.0, max_share=0.1)
    assert len(client.decide_many("b", 100)) == 100, "all have reached their maximum"


@pytest.mark.promise(10, 19, 41)
def test_a_deleted_bandit_is_gone_its_log_stays_and_its_name_is_free(client: Client, http: httpx.Client) -> None:
    client.create("b", ARMS)
    learn(client, "b", 3)
    waiting = client.decide("b").decision
    assert http.delete("/v1/bandits/b").status_code == 422, "the name must be repeated"
    assert http.delete("/v1/bandits/b", params={"confirm": "c"}).status_code == 422
    gone = client.delete("b")
    assert gone.log_kept
    assert status_of(client.state, "b") == 404
    assert status_of(client.decide, "b") == 404
    assert status_of(client.reward, waiting, 1) == 404
    log = http.get("/v1/bandits/b/events", params={"id": gone.id}).json()["events"]
    assert [event["kind"] for event in log][-2:] == ["decision", "delete"]
    client.create("b", ARMS)
    assert client.state("b").sequence == 1
    erased = client.delete("b", erase=True)
    assert http.get("/v1/bandits/b/events", params={"id": erased.id}).status_code == 404


@pytest.mark.promise(10)
def test_the_log_of_a_deleted_bandit_can_be_erased_later_and_its_namesake_is_left_alone(
    client: Client, http: httpx.Client
) -> None:
    client.create("b", ARMS)
    gone = client.delete("b")
    client.create("b", ARMS)
    for _ in range(2):  # a lost answer and another try: what is deleted stays deleted
        again = http.delete("/v1/bandits/b", params={"confirm": "b", "id": gone.id})
        assert (again.status_code, again.json()["log_kept"]) == (200, True)
    erased = http.delete("/v1/bandits/b", params={"confirm": "b", "id": gone.id, "erase": "true"})
    assert (erased.status_code, erased.json()["id"]) == (200, gone.id)
    assert http.get("/v1/bandits/b/events", params={"id": gone.id}).status_code == 404
    assert http.delete("/v1/bandits/b", params={"confirm": "b", "id": gone.id}).status_code == 404
    assert client.state("b").sequence == 1


@pytest.mark.promise(10, 42)
def test_a_long_log_is_erased_in_batches_and_a_restart_continues(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("stores.erasing", "domain.changes"):
        monkeypatch.setattr(f"dynabandit.service.{module}.ERASED_ROWS", 10)
    step, steps = Eraser.step, [3]

    def some_steps(eraser: Eraser) -> None:
        if steps[0]:
            steps[0] -= 1
            step(eraser)

    monkeypatch.setattr(Eraser, "step", some_steps)
    with running(open_store(store_url)) as server, talking(server.url) as (client, http):
        gone = client.create("b", ARMS).id
        client.create("other", ARMS)
        waiting = client.decide_many("b", 100)[0].decision
        query = {"confirm": "b", "id": gone, "erase": "true"}
        first = http.delete("/v1/bandits/b", params=query)
        assert (first.status_code, first.json()) == (202, {"name": "b", "id": gone, "log_kept": False, "left": 101})
        assert [status_of(client.decide, "b"), status_of(client.reward, waiting, 1)] == [404, 404]
        for path in ("events", "export"):
            assert http.get(f"/v1/bandits/b/{path}", params={"id": gone}).status_code == 404
        assert http.get("/v1/bandits", params={"deleted": "true"}).json()["bandits"] == []
        assert client.create("b", ARMS).sequence == 1, "the name is free"
        wait_for(lambda: client.delete("b", erase=True, id=gone).left == 71)
        assert client.decide("other").step == 1, "other bandits are served meanwhile"
    with contextlib.closing(open_store(store_url)) as store:
        assert {row.name for row in store.bandits()} == {"b", "other"}
        steps[0] = 100
    with running(open_store(store_url)) as server, talking(server.url) as (client, http):
        wait_for(lambda: http.delete("/v1/bandits/b", params=query).status_code == 404)
        assert client.delete("b", erase=True, id=gone).left == 0
        assert steps[0] == 100 - 8, "ten events at a time, and no step after the last"
    with contextlib.closing(open_store(store_url)) as store:
        kinds = [kind for (kind,) in store.rows("SELECT kind FROM events ORDER BY kind")]
        assert kinds == ["create", "create", "decision"], "nothing of it is left"


def test_no_deleted_bandit_is_left_out_where_many_had_one_name(client: Client, http: httpx.Client) -> None:
    for _ in range(5):
        client.create("b", ARMS)
        client.delete("b")
    page = http.get("/v1/bandits", params={"deleted": "true", "limit": 2}).json()
    assert len({one["id"] for one in page["bandits"]}) == 5
    rest = http.get("/v1/bandits", params={"deleted": "true", "limit": 2, "after": page["next"]}).json()
    assert rest == {"bandits": [], "next": None}
