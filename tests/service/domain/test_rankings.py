"""Decisions among some arms, rankings, and rewards for another arm than the first one."""

import io
from typing import Any

import httpx
import pytest

from dynabandit import Bandit
from dynabandit.client import Client
from dynabandit.service import api_types, export
from dynabandit.service.compaction import compact
from dynabandit.service.domain import changes, decisions
from dynabandit.service.domain.rewards import reward, settle_due
from dynabandit.service.errors import ConflictError, InvalidValueError
from dynabandit.service.verify import verify_bandit
from tools.harness import ARMS, Running
from tools.shop import FEATURES, Shop


@pytest.fixture
def server(sqlite_server: Running) -> Running:
    return sqlite_server


def reward_arm(shop: Shop, decision: api_types.Decision, value: float, arm: str | None) -> None:
    shop.run(lambda: reward(shop.work, shop.bandit_number, decision.step, value, arm=arm))


def learn_rankings(shop: Shop, steps: int, features: bool) -> None:
    """Decide with rankings and without, among some arms and all, and reward any arm of a ranking."""
    for step in range(steps):
        context = shop.context() if features else None
        among = [None, ["red", "green"], ["blue", "red", "green"]][step % 3]
        rank = [None, 2, 3, 1][step % 4]
        made = shop.decide(context=context, among=among, rank=rank)
        ranked = [one.arm for one in made.ranking or ()]
        assert set(ranked) <= set(among or ARMS)
        assert len(set(ranked)) == (0 if rank is None else min(rank, len(among or ARMS)))
        arm = ranked[step % len(ranked)] if ranked else None
        if step % 5:
            reward_arm(shop, made, float((arm or made.arm) == "green"), arm)
        shop.clock.seconds += 1.0
        shop.run(lambda: settle_due(shop.work, shop.bandit_number))


@pytest.mark.promise(203)
@pytest.mark.parametrize("learn", ["at-once", "settled"])
@pytest.mark.parametrize("policy", ["lin-ucb", "ts"])
def test_rankings_replay_exactly(make_shop: Any, policy: str, learn: str) -> None:
    features = {"features": FEATURES} if policy == "lin-ucb" else {}
    holdout = api_types.HoldoutSettings(0.2)
    shop = make_shop(policy=policy, reward_window=20, default_reward=0, learn=learn, holdout=holdout, **features)
    learn_rankings(shop, 50, bool(features))
    shop.assert_replays()
    shop.store.save_snapshot(shop.bandit_number, shop.work.snapshot(shop.bandit_number))
    shop.work.states.clear()  # a restart: rankings of open decisions are read from the log
    learn_rankings(shop, 25, bool(features))
    shop.assert_replays()
    shop.run(lambda: changes.set_policy(shop.work, "b", api_types.SetPolicy("ucb")))
    learn_rankings(shop, 10, bool(features))
    shop.store.write([("DELETE FROM snapshots", ())])
    shop.assert_replays()
    [compacted] = compact(shop.store, before=2e12, now=0.0)
    assert (compacted.problem, compacted.removed > 0) == (None, True)
    shop.work.states.clear()
    learn_rankings(shop, 10, bool(features))
    shop.assert_replays()


@pytest.mark.promise(203)
@pytest.mark.promise(291)
@pytest.mark.parametrize("holdout", [None, api_types.HoldoutSettings(0.9, "red")])
def test_each_place_of_a_ranking_with_its_propensity_is_a_step(make_shop: Any, holdout: Any) -> None:
    shop = make_shop(holdout=holdout)
    asked = api_types.Decide(rank=3)
    done = [sum(1 for _ in decisions.decide_in_steps(shop.work, "b", asked)) for _ in range(3)]
    assert done == [2, 2, 2], "two further places"
    assert [event.step for event in shop.work.events] == [1, 2, 3]
    shop.run(lambda: None)
    shop.assert_replays()


def test_decisions_take_long_by_their_number_arms_places_models_and_context(make_shop: Any) -> None:
    shop = make_shop(features={"x": "number", "words": {"kind": "hashed", "columns": 4}})
    hundred = api_types.Create(arms=[str(number) for number in range(100)], policy="ucb")
    large = api_types.Create(
        arms=[str(number) for number in range(100)], policy="lin-ucb",
        features={"taste": {"kind": "vector", "size": 150, "required": True}},
    )  # fmt: skip
    for name, body in (("hundred", hundred), ("large", large)):
        changes.create(shop.work, name, body)
    context = {"x": 1.0}
    words = {"x": 1.0, "words": {f"word {number}": 1 for number in range(500)}}

    def takes_long(name: str, **asked: Any) -> bool:
        return decisions.takes_long(shop.work, name, api_types.Decide(**asked))

    assert not takes_long("hundred", count=20)
    assert takes_long("hundred", count=21)
    assert not takes_long("hundred", rank=5)
    assert takes_long("hundred", rank=20)
    assert not takes_long("b", count=20, context=context)
    assert takes_long("b", context=words)
    assert takes_long("large", context={"taste": [0.0] * 150})
    shop.run(lambda: None)


@pytest.mark.parametrize("body", ['{"ranking":[0,1,2]}', '{"ranking":[1,0,7]}', '{"ranking":[1,0,2,0]}', "{}"])
def test_another_ranking_in_the_log_is_noticed(make_shop: Any, body: str) -> None:
    shop = make_shop(policy="ucb")
    first, second, third = (ARMS.index(one.arm) for one in shop.decide(rank=3).ranking)
    changed = body.translate(str.maketrans("012", f"{first}{third}{second}"))
    shop.store.write([("UPDATE events SET body = ? WHERE step = 1", (changed,))])
    found = verify_bandit(shop.store, shop.bandit_number, "b")
    assert (found.problem is None) == (body == "{}"), "without a ranking, the same arm is chosen"


@pytest.mark.promise(200, 201, 202)
def test_a_ranking_and_its_reward_are_those_of_the_library(make_shop: Any) -> None:
    shop, bandit = make_shop(policy="ts"), Bandit("ts", ARMS, seed=11)
    for step in range(40):
        among = ["blue", "green"] if step % 3 == 0 else None
        made = shop.decide(among=among, rank=2)
        first, second = bandit.rank(2, among=among)
        assert [one.arm for one in made.ranking] == [first.arm, second.arm]
        assert made.arm == first.arm
        taken = (first, second)[step % 2].arm
        reward_arm(shop, made, float(taken == "blue"), taken)
        bandit.reward(taken, float(taken == "blue"), step=bandit.step, chosen=first.arm)
        assert shop.state.bandit.state_hash() == bandit.state_hash()


@pytest.mark.promise(202)
def test_held_decisions_are_learned_with_the_arm_that_was_taken(make_shop: Any) -> None:
    shop = make_shop(policy="ucb", reward_window=10, default_reward=0)
    made = [shop.decide(rank=3) for _ in range(2)]
    first, second = (one.arm for one in made[0].ranking[:2])
    reward_arm(shop, made[0], 1.0, second)
    assert sum(one.pending for one in shop.state.bandit.arms.values()) == 2
    shop.clock.seconds = 11.0
    shop.run(lambda: settle_due(shop.work, shop.bandit_number))
    arms = shop.state.bandit.arms
    assert (arms[second].mean, arms[first].effective_size) == (1.0 if made[1].arm != second else 0.5, 0.0)
    assert sum(one.pending for one in arms.values()) == 0
    shop.assert_replays()


@pytest.mark.promise(202)
def test_a_reward_for_an_arm_that_is_not_in_the_ranking_changes_nothing(make_shop: Any) -> None:
    shop = make_shop(policy="ucb")
    ranked, single = shop.decide(rank=2), shop.decide()
    other = next(arm for arm in ARMS if arm not in [one.arm for one in ranked.ranking])
    before = shop.state.state_hash()
    for decision, arm in ((ranked, other), (ranked, "none"), (single, next(arm for arm in ARMS if arm != single.arm))):
        with pytest.raises(InvalidValueError, match=f"arm must be one of the ranking of the decision, .*, got '{arm}'"):
            reward_arm(shop, decision, 1.0, arm)
    assert shop.state.state_hash() == before
    first, second = (one.arm for one in ranked.ranking)
    for _ in range(2):
        reward_arm(shop, ranked, 1.0, second)
        shop.work.clear()
    assert shop.state.sequence == 4, "the same reward again is not counted again"
    for value, taken in ((1.0, first), (1.0, None), (0.5, second)):
        with pytest.raises(ConflictError, match=r"has the reward 1( for arm '.*')? already, got"):
            reward_arm(shop, ranked, value, taken)
    reward_arm(shop, single, 1.0, single.arm)


@pytest.mark.promise(200, 201)
def test_a_key_and_a_unit_get_the_same_ranking_again(make_shop: Any) -> None:
    shop = make_shop(policy="ts", sticky_for=100)
    first = shop.decide(key="k", among=["red", "blue"], rank=5)
    assert len(first.ranking) == 2
    shop.work.states.clear()
    assert shop.decide(key="k", among=["red", "blue"], rank=5) == first
    for other in ({"rank": 5}, {"among": ["red", "blue"]}, {"among": ["blue", "red"], "rank": 5}):
        with pytest.raises(ConflictError, match=r"(among|rank) must be the same as when this Idempotency-Key came"):
            shop.decide(key="k", **other)
    assigned = shop.decide(unit="u", rank=2)
    again = shop.decide(unit="u", rank=2)
    assert (again.repeated, again.ranking, again.step) == (True, assigned.ranking, assigned.step)
    others = [arm for arm in ARMS if arm != assigned.arm]
    assert shop.decide(unit="u", among=others).arm in others, "an arm that is not among them is not given again"


@pytest.mark.promise(200)
def test_arms_that_cannot_be_chosen_are_an_error_that_changes_nothing(client: Client, http: httpx.Client) -> None:
    client.create("b", ARMS, "ucb", seed=1)
    client.change_arm("b", "red", paused=True)
    before = client.state("b")
    for body, status, problem in (
        ({"among": ["red"]}, 409, "every arm of among is paused"),
        ({"among": ["x"]}, 422, "among: unknown arm 'x'"),
        ({"among": ["blue", "blue"]}, 422, "among must have different arms, got 'blue' twice"),
        ({"among": []}, 422, "among must be a list of 1 to 1000 items"),
        ({"rank": 0}, 422, "rank must be a whole number from 1 to 50"),
        ({"rank": 51}, 422, "rank must be a whole number from 1 to 50"),
    ):
        answer = http.post("/v1/bandits/b/decisions", json=body)
        assert (answer.status_code, problem in answer.json()["problem"]) == (status, True), answer.text
    assert client.state("b") == before


@pytest.mark.promise(201, 202, 203)
def test_rankings_over_http_are_in_the_log_and_in_the_export(client: Client, http: httpx.Client) -> None:
    client.create("b", ARMS, "ucb", seed=1)
    made = client.decide("b", among=["green", "blue"], rank=3)
    assert made.ranking is not None
    assert [(one.arm, one.propensity) for one in made.ranking] == [("green", 1.0), ("blue", 1.0)]
    assert client.reward(made.decision, 1, arm="blue").arm == "blue"
    other = client.decide("b", rank=2)
    results = client.reward_many([(other.decision, 1, other.arm), (made.decision, 1)])
    assert [one.status for one in results] == [200, 409]
    wrong = http.put(f"/v1/decisions/{made.decision}/reward", json={"reward": 1, "arm": "red"})
    assert wrong.status_code == 422
    decided, rewarded = (next(client.events("b", kind=kind)) for kind in ("decision", "reward"))
    assert (decided.among, decided.ranking) == (["green", "blue"], ["green", "blue"])
    assert (rewarded.arm, rewarded.reward, rewarded.change) == ("blue", 1.0, None)
    first, second = client.export("b")
    assert (first.arm, first.reward, first.closed) == ("green", None, False)
    assert (first.ranking, first.taken, first.position, first.taken_reward) == (["green", "blue"], "blue", 2, 1.0)
    assert (second.reward, second.taken, second.position) == (1.0, None, None)


def test_parquet_has_rankings(make_shop: Any) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    shop = make_shop(policy="ucb")
    made = shop.decide(rank=2)
    reward_arm(shop, made, 1.0, made.ranking[1].arm)
    [row] = pq.read_table(io.BytesIO(b"".join(export.parquet_pieces(shop.store, shop.bandit_number, 5)))).to_pylist()
    ranked = [one.arm for one in made.ranking]
    assert (row["ranking"], row["taken"], row["position"], row["taken_reward"]) == (ranked, ranked[1], 2, 1.0)
