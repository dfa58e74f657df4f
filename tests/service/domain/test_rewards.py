"""Rewards: which one counts, which one is late, and what a decision gets when its window ends."""

import contextlib
import functools
import math
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import dynabandit as db
from dynabandit.client import Client, ServiceError
from dynabandit.service import api_types
from dynabandit.service.api_types import Event
from dynabandit.service.clock import Clock
from dynabandit.service.domain import changes
from dynabandit.service.domain.decisions import decide
from dynabandit.service.domain.names import read_public_id
from dynabandit.service.domain.rewards import settle_due
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.stores import open_store
from dynabandit.validation import listed
from tools.harness import ARMS, ManualClock, Running, assert_replay_agrees, running, status_of, talking
from tools.waiting import wait_for


def closed(client: Client) -> list[Event]:
    return [event for event in client.events("b") if event.kind == "close"]


def learned(client: Client) -> list[Event]:
    return [event for event in client.events("b") if event.kind == "learn"]


@pytest.mark.promise(15, 16)
def test_concurrent_and_repeated_rewards_count_once(client: Client) -> None:
    client.create("b", ARMS, policy="aff-ots")
    decision = client.decide("b").decision
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: status_of(client.reward, decision, 1), range(24)))
    assert statuses == [200] * 24
    many = client.reward_many([(decision, 1)] * 5)
    assert [one.status for one in many] == [200] * 5
    rewards = [event for event in client.events("b") if event.kind == "reward"]
    assert len(rewards) == 1
    assert client.state("b").arms[0].effective_size == 5.0  # the reward and the prior


@pytest.mark.promise(17)
def test_of_two_different_concurrent_rewards_exactly_one_counts(client: Client) -> None:
    client.create("b", ARMS)
    for _ in range(5):
        decision = client.decide("b").decision
        with ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(lambda i, d=decision: status_of(client.reward, d, i % 2), range(8)))
        assert sorted(statuses) == [200] * 4 + [409] * 4


@pytest.mark.promise(15, 16, 17, 18, 19, 30)
@pytest.mark.promise(140)
def test_a_reward_that_names_its_bandit_counts_as_one_that_does_not(client: Client) -> None:
    """A load balancer can then send it to the replica that decides for this bandit."""
    for name in ("a/b", "c"):
        client.create(name, ARMS)
    first, second, third = (one.decision for one in client.decide_many("a/b", 3))
    other = client.decide("c").decision
    assert status_of(client.reward, first, 1, name="a/b") == 200
    assert status_of(client.reward, first, 1) == 200
    assert status_of(client.reward, first, 0, name="a/b") == 409
    assert [status_of(client.reward, second, 1, name=name) for name in ("c", "nobody")] == [404, 404]
    results = client.reward_many([(second, 1), (other, 1), ("x", 1), (third, 0)], name="a/b")
    assert [one.status for one in results] == [200, 404, 404, 200]
    assert status_of(client.reward_many, [(third, 0)], name="nobody") == 404
    assert [client.state(name).sequence for name in ("a/b", "c")] == [7, 2]


def test_early_late_orphan_and_changed_rewards_get_their_status(
    server: Running, client: Client, clock: ManualClock
) -> None:
    client.create("b", ARMS, reward_window=10, default_reward=0)
    decision = client.decide("b").decision
    bandit = decision.partition("-")[0]
    with contextlib.closing(server.store.reader()) as store:
        ids = store.decision_ids()
    assert status_of(client.reward, ids.make(read_public_id(bandit) or 0, 2), 1) == 404, "early: not decided yet"
    assert status_of(client.reward, ids.make(1, 1), 1) == 404, "orphan: no such bandit"
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


@pytest.mark.promise(6)
def test_many_rewards_get_a_status_each(client: Client, clock: ManualClock) -> None:
    client.create("b", ARMS, reward_window=10)
    old = client.decide("b").decision
    clock.seconds += 11
    first, second = (one.decision for one in client.decide_many("b", 2))
    given = [(first, 1), (first, 1), (first, 0), (second, 0), (old, 1), ("nonsense", 1)]
    assert [one.status for one in client.reward_many(given)] == [200, 200, 409, 200, 410, 404]


@pytest.mark.promise(28)
@pytest.mark.parametrize("default", [0.25, None])
def test_a_decision_without_a_reward_gets_the_default_exactly_once(
    server: Running, client: Client, clock: ManualClock, default: float | None
) -> None:
    client.create("b", ARMS, policy="aff-ots", reward_window=10, default_reward=default)
    forgotten, rewarded = client.decide("b"), client.decide("b")
    client.reward(rewarded.decision, 1)
    clock.seconds += 11
    wait_for(lambda: closed(client))
    assert [(event.decision, event.reward) for event in closed(client)] == [(forgotten.decision, default)]
    clock.seconds += 100
    assert status_of(client.reward, forgotten.decision, 1) == 410
    server.finish_maintenance()
    assert len(closed(client)) == 1
    assert [arm.pending for arm in client.state("b").arms] == [0, 0, 0]
    sizes = {arm.arm: arm.effective_size for arm in client.state("b").arms}
    assert sizes[forgotten.arm] == (4.0 if default is None else 5.0)  # the prior counts 4


@pytest.mark.promise(28)
def test_defaults_are_given_to_every_one_of_many_pages_of_decisions(
    server: Running, client: Client, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynabandit.service.settling.SETTLE_PAGE", 500)
    client.create("b", ARMS, "ucb", reward_window=10, default_reward=0)
    for _ in range(3):
        client.decide_many("b", 400)
    server.finish_maintenance()  # pages are larger directly after decisions
    clock.seconds += 11
    wait_for(lambda: len(closed(client)) == 1200)
    assert client.state("b").sequence == 2401 + len(learned(client))
    assert [event.change for event in learned(client)] == [{"to": to, "age": 10.0} for to in (500, 1000, 1200)]
    assert sum(arm.effective_size or 0.0 for arm in client.state("b").arms) == 1200


@pytest.mark.promise(291)
def test_decisions_of_large_models_are_learned_in_smaller_pages(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynabandit.service.domain.rewards.learning_cost", lambda state: 400)
    store, clock = open_store(sqlite_url), ManualClock()
    store.prepare()
    work = UnitOfWork(store, clock)
    state, _ = changes.create(work, "b", api_types.Create(arms=ARMS, seed=1, reward_window=10, default_reward=0.5))
    decide(work, "b", api_types.Decide(5))
    pages = list[list[str]]()
    clock.seconds = 11.0
    is_due = True
    while is_due:
        store.commit(work.events, work.created)
        work.clear()
        is_due = settle_due(work, state.bandit_number)
        pages.append([row.kind for row in work.events])
    assert pages == [["learn", "close", "close"], ["learn", "close", "close"], ["learn", "close"]]
    store.close()


@pytest.mark.promise(30)
def test_a_decision_is_closed_after_the_end_of_its_window_and_not_at_it(sqlite_url: str) -> None:
    store, clock = open_store(sqlite_url), ManualClock()
    store.prepare()
    work = UnitOfWork(store, clock)
    state, _ = changes.create(work, "b", api_types.Create(arms=ARMS, seed=1, reward_window=10, default_reward=0.5))
    decide(work, "b", api_types.Decide(2))
    store.commit(work.events, work.created)
    work.clear()
    clock.seconds = 10.0
    settle_due(work, state.bandit_number)
    assert work.events == []
    clock.seconds = 10.001
    settle_due(work, state.bandit_number)
    first, *rest = work.events
    assert (first.kind, first.body) == ("learn", '{"to": 2, "age": 10}')
    assert [(row.kind, row.settles, row.value) for row in rest] == [("close", 1, 0.5), ("close", 2, 0.5)]
    store.close()


@pytest.mark.promise(31)
def test_a_jump_of_the_wall_clock_expires_nothing(store_url: str) -> None:
    wall = [1e9]
    with running(open_store(store_url), clock=Clock(wall=lambda: wall[0])) as server:
        with talking(server.url) as (client, _):
            client.create("b", ARMS, reward_window=3600, default_reward=0)
            for jump in (86400, -2 * 86400, 3 * 86400):
                decision = client.decide("b").decision
                wall[0] += jump
                server.finish_maintenance()
                assert status_of(client.reward, decision, 1) == 200
            assert closed(client) == []
            assert [event.wall for event in client.events("b")][-1] == 1e9 + 2 * 86400


@pytest.mark.promise(31)
def test_a_restart_a_day_later_by_the_wall_clock_expires_nothing(store_url: str) -> None:
    with running(open_store(store_url)) as server, talking(server.url) as (client, _):
        client.create("b", ARMS, reward_window=3600, default_reward=0)
        decisions = [client.decide("b").decision for _ in range(2)]
    for decision, later in zip(decisions, (86400, -86400), strict=True):
        clock = Clock(wall=functools.partial(sum, (time.time(), later)))
        with running(open_store(store_url), clock=clock) as server, talking(server.url) as (client, _):
            server.finish_maintenance()
            assert status_of(client.reward, decision, 1) == 200
            assert closed(client) == []


@pytest.mark.parametrize("default", [False, True])
def test_a_negative_zero_is_a_zero_in_the_log_and_in_its_replay(
    store_url: str, clock: ManualClock, default: float | None
) -> None:
    with running(open_store(store_url), clock=clock) as server, talking(server.url) as (client, http):
        client.create("b", ARMS, policy="sw-ucb", parameters={"window": 5}, reward_window=10, default_reward=-0.0)
        decision = client.decide("b").decision
        if default:
            clock.seconds += 11
        answer = http.put(f"/v1/decisions/{decision}/reward", content=b'{"reward": -0.0}',
                          headers={"Content-Type": "application/json"})  # fmt: skip
        assert answer.status_code == (410 if default else 200)
    assert_replay_agrees(store_url)


@pytest.mark.promise(14)
def test_a_reward_must_fit_the_policy_or_the_law_of_its_bandit(client: Client) -> None:
    client.create("b", ARMS)
    client.create("money", ARMS, policy="uniform", rewards="revenue", seed=1)
    client.create("money", ARMS, policy="uniform", rewards="revenue", seed=1)  # the same body again
    click, sale = client.decide("b").decision, client.decide("money").decision
    wrong: list[tuple[Any, str]] = [
        (lambda: client.reward(click, 2), "reward must be a number in [0, 1], got 2"),
        (lambda: client.reward(sale, -1), "reward must be 0 or a number in [1e-100, 1e+100], got -1"),
        (
            lambda: client.reward_many([(sale, 12.5), ("x", 7), (click, 2)]),
            "rewards[2].reward must be a number in [0, 1], got 2",
        ),
        (lambda: client.create("c", ARMS, default_reward=2), "default_reward must be a number in [0, 1], got 2.0"),
        (
            lambda: client.create("c", ARMS, policy="ts", rewards="normal"),
            "policy 'ts' needs rewards that are a number",
        ),
        (
            lambda: client.set_policy("money", "ts"),
            "policy 'ts' needs rewards that are a number in [0, 1], but those of",
        ),
    ]
    for act, problem in wrong:
        with pytest.raises(ServiceError) as caught:
            act()
        assert caught.value.status == 422
        assert problem in str(caught.value)
    for name in ("b", "money"):
        assert [event.kind for event in client.events(name)] == ["create", "decision"]
    assert [one.status for one in client.reward_many([(sale, 12.5), (click, 1), ("x", 7)])] == [200, 200, 404]
    assert [arm.mean for arm in client.state("money").arms if arm.plays] == [12.5]


def test_a_policy_that_cannot_learn_the_logged_rewards_does_not_take_over(client: Client) -> None:
    client.create("b", ARMS, policy="uniform", rewards="counts", seed=1)
    client.create("free", ARMS, policy="uniform", default_reward=0, seed=1)
    client.reward(client.decide("b").decision, 3)
    client.reward(client.decide("free").decision, 1)
    client.set_policy("free", "aff-ots")  # its rewards were in [0, 1]
    client.set_policy("b", "eps-greedy")
    assert status_of(client.reward, client.decide("b").decision, 7) == 200, "it goes on accepting counts"
    assert status_of(client.reward, client.decide("b").decision, 0.5) == 422
    assert status_of(client.reward, client.decide("free").decision, 3) == 422


@pytest.mark.promise(281)
def test_extreme_revenue_is_refused_or_shown(client: Client, server: Running) -> None:
    client.create("b", ARMS, policy="mix-revenue-ts", seed=1)
    for value in (1e-100, 1e100, 0.0, 1e50, 1e-50) * 8:
        client.reward(client.decide("b").decision, value)
    with pytest.raises(ServiceError, match=r"reward must be 0 or a number in \[1e-100, 1e\+100\], got 1e-300"):
        client.reward(client.decide("b").decision, 1e-300)
    assert [arm.plays for arm in client.state("b").arms] != [0] * len(ARMS)


@pytest.mark.promise(281)
def test_an_estimate_that_is_not_finite_is_null_and_named(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.create("b", ARMS, policy="ucb", seed=1)
    monkeypatch.setattr(type(db.policy("ucb")), "belief", lambda *_: math.exp(1000.0))
    state = client.state("b")
    assert [arm.mean for arm in state.arms] == [None] * len(ARMS)
    assert state.problem == f"the estimates of {listed(ARMS)} are not finite numbers"
