"""The API, row by row, on each store."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dynabandit.client import ServiceError
from dynabandit.service.clock import Clock
from dynabandit.service.stores import open_store
from service.harness import HeldStore, assert_replay_agrees, running, talking, wait_for

ARMS = ["red", "green", "blue"]


@pytest.fixture
def talk(server):
    with talking(server.url) as both:
        yield both


@pytest.fixture
def client(talk):
    return talk[0]


@pytest.fixture
def http(talk):
    return talk[1]


def status_of(call, *arguments, **more) -> int:
    try:
        call(*arguments, **more)
    except ServiceError as error:
        return error.status
    return 200


def learn(client, name: str, steps: int) -> None:
    for _ in range(steps):
        decision = client.decide(name)
        client.reward(decision.decision, decision.arm == "blue")


def test_creating_twice_is_one_bandit_and_another_body_is_refused(http):
    body = {"policy": "aff-ots", "parameters": {"step_size": 0.01}, "arms": ARMS, "reward_window": 60, "seed": 1}
    assert http.put("/v1/bandits/b", json=body).status_code == 201
    assert http.put("/v1/bandits/b", json=body).status_code == 200
    assert http.put("/v1/bandits/b", json={**body, "seed": 2}).status_code == 409
    assert len(http.get("/v1/bandits").json()["bandits"]) == 1


def test_creating_twice_without_a_seed_keeps_the_seed_that_was_drawn(http):
    first = http.put("/v1/bandits/b", json={"arms": ARMS}).json()
    again = http.put("/v1/bandits/b", json={"arms": ARMS})
    assert again.status_code == 200
    assert again.json() == first


def test_state_shows_what_the_bandit_of_the_library_would_know(client):
    import dynabandit as db

    client.create("b", ARMS, seed=7)
    twin = db.Bandit("aff-ots", ARMS, seed=7)
    for _ in range(60):
        decision = client.decide("b")
        assert decision.arm == twin.choose()
        reward = float(decision.arm == "blue")
        client.reward(decision.decision, reward)
        twin.reward(decision.arm, reward)
    state = client.state("b")
    assert state.step == 60
    for arm in state.arms:
        known = twin.arms[arm.arm]
        assert (arm.mean, arm.variance, arm.forgetting, arm.effective_size) == known[:4]
        assert (arm.idle, arm.plays, arm.share) == (known.idle, known.plays, known.plays / 60)


def test_the_list_of_bandits_comes_in_pages(client, http):
    for number in range(5):
        client.create(f"b{number}", ARMS)
    page = http.get("/v1/bandits", params={"limit": 2}).json()
    assert [one["name"] for one in page["bandits"]] == ["b0", "b1"]
    assert page["next"] == "b1"
    assert [one.name for one in client.bandits()] == [f"b{number}" for number in range(5)]


def test_the_same_key_gives_the_same_decisions(client):
    client.create("b", ARMS)
    first = client.decide_many("b", 3, key="one")
    assert client.decide_many("b", 3, key="one") == first
    assert client.decide_many("b", 3, key="two") != first
    assert client.state("b").step == 6
    assert status_of(client.decide_many, "b", 2, key="one") == 409


def test_concurrent_calls_with_one_key_make_one_decision(server, client):
    client.create("b", ARMS)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: client.decide("b", key="same"), range(24)))
    assert len({decision.decision for decision in made}) == 1
    assert client.state("b").step == 1


def test_calls_that_share_a_commit_share_what_they_have_done(sqlite_url):
    store = HeldStore(sqlite_url.removeprefix("sqlite:///"))
    with running(store, patience=60) as server, talking(server.url) as (client, _), ThreadPoolExecutor(17) as pool:
        client.create("b", ARMS)
        decision = client.decide("b").decision
        store.hold()
        first = pool.submit(client.decide, "b")
        assert store.begun.wait(20)  # all others wait for this commit, and then have one together
        keyed = [pool.submit(client.decide, "b", "same") for _ in range(8)]
        rewards = [pool.submit(status_of, client.reward, decision, 1) for _ in range(8)]
        wait_for(lambda: server.service.writer.admission.requests == 17)
        store.open.set()
        assert first.result(20).step == 2
        assert {one.result(20).step for one in keyed} == {3}
        assert [one.result(20) for one in rewards] == [200] * 8
        assert sorted(event.kind for event in client.events("b")) == ["create", *["decision"] * 3, "reward"]
    assert_replay_agrees(sqlite_url)


def test_concurrent_and_repeated_rewards_count_once(client):
    client.create("b", ARMS)
    decision = client.decide("b").decision
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: status_of(client.reward, decision, 1), range(24)))
    assert statuses == [200] * 24
    many = client.reward_many([(decision, 1)] * 5)
    assert [one.status for one in many] == [200] * 5
    rewards = [event for event in client.events("b") if event.kind == "reward"]
    assert len(rewards) == 1
    assert client.state("b").arms[0].effective_size == 1.0


def test_of_two_different_concurrent_rewards_exactly_one_counts(client):
    client.create("b", ARMS)
    for _ in range(5):
        decision = client.decide("b").decision
        with ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(lambda i, d=decision: status_of(client.reward, d, i % 2), range(8)))
        assert sorted(statuses) == [200] * 4 + [409] * 4


def test_early_late_orphan_and_changed_rewards_get_their_status(client, clock):
    client.create("b", ARMS, reward_window=10, default_reward=0)
    decision = client.decide("b").decision
    bandit = decision.partition("-")[0]
    assert status_of(client.reward, f"{bandit}-2", 1) == 404, "early: not decided yet"
    assert status_of(client.reward, f"{'0' * 12}-1", 1) == 404, "orphan: no such bandit"
    for nonsense in ("x", f"{bandit}-01", f"{bandit}-0", f"{bandit}-\uff11", f"{bandit.upper()}-1x", "../../etc"):
        assert status_of(client.reward, nonsense, 1) == 404
    late = client.decide("b").decision
    assert status_of(client.reward, decision, 1) == 200
    last = client.decide("b").decision
    clock.seconds += 10
    assert status_of(client.reward, last, 1) == 200, "the end of the window is part of it"
    clock.seconds += 0.001
    assert status_of(client.reward, late, 1) == 410
    assert status_of(client.reward, late, 1) == 410, "late stays late"
    assert status_of(client.reward, decision, 1) == 200, "a reward that counted goes on to be confirmed"
    assert status_of(client.reward, decision, 0) == 409


def test_many_rewards_get_a_status_each(client, clock):
    client.create("b", ARMS, reward_window=10)
    old = client.decide("b").decision
    clock.seconds += 11
    first, second = (one.decision for one in client.decide_many("b", 2))
    given = [(first, 1), (first, 1), (first, 0), (second, 0), (old, 1), ("nonsense", 1)]
    assert [one.status for one in client.reward_many(given)] == [200, 200, 409, 200, 410, 404]


def closed(client) -> list:
    return [event for event in client.events("b") if event.kind == "close"]


@pytest.mark.parametrize("default", [0.25, None])
def test_a_decision_without_a_reward_gets_the_default_exactly_once(client, clock, default):
    client.create("b", ARMS, reward_window=10, default_reward=default)
    forgotten, rewarded = client.decide("b"), client.decide("b")
    client.reward(rewarded.decision, 1)
    clock.seconds += 11
    wait_for(lambda: closed(client))
    assert [(event.decision, event.reward) for event in closed(client)] == [(forgotten.decision, default)]
    clock.seconds += 100
    assert status_of(client.reward, forgotten.decision, 1) == 410
    assert len(closed(client)) == 1
    sizes = {arm.arm: arm.effective_size for arm in client.state("b").arms}
    assert sizes[forgotten.arm] == (0.0 if default is None else 1.0)


def test_defaults_are_given_to_every_one_of_many_pages_of_decisions(client, clock):
    client.create("b", ARMS, reward_window=10, default_reward=0)
    for _ in range(3):
        client.decide_many("b", 400)
    clock.seconds += 11
    wait_for(lambda: len(closed(client)) == 1200)
    assert client.state("b").sequence == 2401


def test_a_jump_of_the_wall_clock_expires_nothing(store_url):
    wall = [1e9]
    with running(open_store(store_url), clock=Clock(wall=lambda: wall[0])) as server:
        with talking(server.url) as (client, _):
            client.create("b", ARMS, reward_window=3600, default_reward=0)
            for jump in (86400, -2 * 86400, 3 * 86400):
                decision = client.decide("b").decision
                wall[0] += jump
                assert status_of(client.reward, decision, 1) == 200
            assert closed(client) == []
            assert [event.wall for event in client.events("b")][-1] == 1e9 + 2 * 86400


def test_a_restart_a_day_later_by_the_wall_clock_expires_nothing(store_url):
    with running(open_store(store_url)) as server, talking(server.url) as (client, _):
        client.create("b", ARMS, reward_window=3600, default_reward=0)
        decisions = [client.decide("b").decision for _ in range(2)]
    for decision, later in zip(decisions, (86400, -86400), strict=True):
        clock = Clock(wall=lambda later=later: time.time() + later)
        with running(open_store(store_url), clock=clock) as server, talking(server.url) as (client, _):
            assert status_of(client.reward, decision, 1) == 200
            assert closed(client) == []


def test_a_paused_arm_is_never_chosen_until_it_is_resumed(client):
    client.create("b", ARMS, seed=3)
    learn(client, "b", 30)
    client.change_arm("b", "blue", paused=True)
    assert {one.arm for one in client.decide_many("b", 300)} == {"red", "green"}
    assert {arm.arm: arm.paused for arm in client.state("b").arms} == {"red": False, "green": False, "blue": True}
    client.change_arm("b", "blue", paused=False)
    assert "blue" in {one.arm for one in client.decide_many("b", 300)}


def test_with_every_arm_paused_a_decision_is_refused_and_rewards_still_count(client):
    client.create("b", ARMS)
    decision = client.decide("b").decision
    for arm in ARMS:
        client.change_arm("b", arm, paused=True)
    assert status_of(client.decide, "b") == 409
    assert status_of(client.reward, decision, 1) == 200


def test_an_arm_can_be_added_and_retired_while_decisions_go_on(client):
    client.create("b", ARMS)
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


def test_shares_are_kept(client, http):
    client.create("b", ARMS, seed=5)
    learn(client, "b", 50)
    client.change_arm("b", "blue", max_share=0.5)
    client.change_arm("b", "red", min_share=0.3)
    chosen = [one.arm for one in client.decide_many("b", 1000)]
    assert chosen.count("blue") <= 500
    # 1000 fair draws at 0.3: 240 is more than 4 standard deviations away
    assert chosen.count("red") >= 240
    assert status_of(client.change_arm, "b", "green", min_share=0.8) == 409, "more than the others leave"
    assert http.patch("/v1/bandits/b/arms/red", json={"min_share": 1.5}).status_code == 422


def test_a_swapped_policy_has_learnt_from_all_rewards_so_far(client):
    import dynabandit as db

    client.create("b", ARMS, policy="ucb", seed=9)
    learn(client, "b", 40)
    before = client.state("b")
    client.set_policy("b", "ts", prior=[1, 1])
    after = client.state("b")
    assert (after.policy, after.step) == ("ts", before.step)
    assert [arm.effective_size for arm in after.arms] == [arm.effective_size for arm in before.arms]
    twin = db.Bandit("ucb", ARMS, seed=9)
    rewards = []
    for _ in range(40):
        arm = twin.choose()
        twin.reward(arm, arm == "blue")
        rewards.append((ARMS.index(arm), float(arm == "blue")))
    twin = twin.swapped("ts", rewards, prior=(1, 1))
    assert [one.arm for one in client.decide_many("b", 50)] == [twin.choose() for _ in range(50)]
    assert status_of(client.set_policy, "b", "nonsense") == 422
    assert status_of(client.set_policy, "b", "best-arm") == 422


def test_a_deleted_bandit_is_gone_its_log_stays_and_its_name_is_free(client, http):
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


def test_the_log_of_a_deleted_bandit_can_be_erased_later_and_its_namesake_is_left_alone(client, http):
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


def test_no_deleted_bandit_is_left_out_where_many_had_one_name(client, http):
    for _ in range(5):
        client.create("b", ARMS)
        client.delete("b")
    page = http.get("/v1/bandits", params={"deleted": "true", "limit": 2}).json()
    assert len({one["id"] for one in page["bandits"]}) == 5
    rest = http.get("/v1/bandits", params={"deleted": "true", "limit": 2, "after": page["next"]}).json()
    assert rest == {"bandits": [], "next": None}


def test_events_come_in_pages_and_in_order(client, http):
    client.create("b", ARMS)
    learn(client, "b", 10)
    page = http.get("/v1/bandits/b/events", params={"after": 3, "limit": 4}).json()["events"]
    assert [event["sequence"] for event in page] == [4, 5, 6, 7]
    assert [event.sequence for event in client.events("b", limit=6)] == list(range(1, 22))
    lines = http.get("/v1/bandits/b/events", params={"format": "ndjson", "after": 19}).text.splitlines()
    assert len(lines) == 2


def test_a_restart_goes_on_bit_for_bit(store_url):
    hashes, arms = [], []
    for _ in range(3):
        with running(open_store(store_url)) as server, talking(server.url) as (client, _):
            client.create("b", ARMS, seed=4)
            if hashes:
                assert client.state("b").state_hash == hashes[-1]
            learn(client, "b", 25)
            hashes.append(client.state("b").state_hash)
    assert_replay_agrees(store_url)
    with running(open_store(store_url)) as server, talking(server.url) as (client, _):
        arms = [event.arm for event in client.events("b") if event.kind == "decision"]
        client.create("unbroken", ARMS, seed=4)
        learn(client, "unbroken", 75)
        assert arms == [event.arm for event in client.events("unbroken") if event.kind == "decision"]


def test_unknown_bandits_arms_and_paths_are_404_and_wrong_methods_405(client, http):
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
    assert 'dynabandit_events_total{kind="create"} 1.0' in page
