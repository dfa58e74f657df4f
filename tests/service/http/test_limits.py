"""The limits that docs/service.md states, such as 100,000 arms per bandit."""

import contextlib

import pytest

from dynabandit.client import ServiceError
from dynabandit.service.clock import Clock
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.field_types import MAX_ARMS
from dynabandit.service.stores import open_store
from tools.harness import Running, assert_replay_agrees, running, talking


@pytest.mark.promise(75)
def test_a_hundred_thousand_arms_decide_learn_pause_and_replay(sqlite_url: str) -> None:
    arms = [f"arm {number}" for number in range(MAX_ARMS)]
    with running(open_store(sqlite_url), patience=60) as server, talking(server.url) as (client, http):
        client.create("b", arms, seed=1)
        assert http.post("/v1/bandits/b/decisions", json={"count": 101}).status_code == 422
        answer = http.post("/v1/bandits/b/decisions", json={"rank": 6})
        assert answer.json() == {"problem": "rank must be at most 5 with 100000 arms, got 6"}
        made = client.decide_many("b", 4)
        assert len({one.arm for one in made}) > 1
        for one in made:
            client.reward(one.decision, 1)
        client.change_arm("b", made[0].arm, paused=True)
        assert made[0].arm not in {one.arm for one in client.decide_many("b", 2)}
        state = client.state("b")
        assert len(state.arms) == MAX_ARMS
        assert sum(arm.plays for arm in state.arms) == 6
        assert http.post("/v1/bandits/b/arms", json={"arm": "one more"}).status_code == 409
        assert http.put("/v1/bandits/c", json={"arms": [*arms, "one more"]}).status_code == 422
    with contextlib.closing(open_store(sqlite_url)) as store:
        restarted = UnitOfWork(store, Clock()).state(store.find_log("b", None))
    assert restarted.state_hash() == state.state_hash
    assert_replay_agrees(sqlite_url)


@pytest.mark.promise(76, 78, 81)
def test_the_stated_limits_are_kept(server: Running) -> None:
    with talking(server.url) as (client, http):
        client.create("b", ["a", "b"])
        assert http.post("/v1/bandits/b/decisions", json={"count": 1001}).status_code == 422
        assert len(client.decide_many("b", 1000)) == 1000
        client.create("words", ["a", "b"], "ucb", features={"words": {"kind": "hashed", "columns": 2}})
        asked = {"context": {"words": {"x" * 988: 1}}, "count": 2}  # of 1,004 bytes
        assert http.post("/v1/bandits/words/decisions", json=asked).status_code == 200
        answer = http.post("/v1/bandits/words/decisions", json={**asked, "count": 1000})
        assert answer.json() == {"problem": "count must be at most 996 with a context of 1004 bytes, got 1000"}
        many = [{"decision": "x", "reward": 1}] * 10_001
        assert http.post("/v1/rewards", json={"rewards": many}).status_code == 422
        assert len(client.reward_many([("x", 1)] * 10_000)) == 10_000
        long_key = {"Idempotency-Key": "k" * 256}
        assert http.post("/v1/bandits/b/decisions", json={}, headers=long_key).status_code == 422
        with pytest.raises(ServiceError, match="422"):
            client.create("c", ["a", "b"], policy="sw-ucb", parameters={"window": 10**7})
