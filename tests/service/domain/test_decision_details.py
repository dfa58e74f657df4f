"""Decisions with a context, for a unit, or in the holdout: exact replays, and errors that change nothing."""

from typing import Any

import pytest

from dynabandit.service import api_types
from dynabandit.service.compaction import compact
from dynabandit.service.domain import changes
from dynabandit.service.domain.decision_details import MAX_CONTEXT
from dynabandit.service.domain.log_start import LogStart
from dynabandit.service.domain.warm_start import WarmStart
from dynabandit.service.errors import ConflictError, InvalidValueError
from dynabandit.service.stores.unit_table import count_units, remove_units
from tools.harness import ARMS
from tools.shop import FEATURES


@pytest.mark.promise(220, 221)
@pytest.mark.parametrize("learn", ["at-once", "settled"])
@pytest.mark.parametrize("policy", ["lin-ucb", "ts"])
def test_decisions_with_contexts_replay_exactly(make_shop: Any, policy: str, learn: str) -> None:
    shop = make_shop(policy=policy, features=FEATURES, reward_window=20, default_reward=0, learn=learn)
    shop.learn(60)
    shop.assert_replays()
    shop.store.save_snapshot(shop.bandit_number, shop.work.snapshot(shop.bandit_number))
    shop.work.states.clear()  # a restart: contexts of open decisions are read from the log
    shop.learn(30)
    shop.run(lambda: changes.set_policy(shop.work, "b", api_types.SetPolicy("lin-ucb" if policy == "ts" else "ts")))
    shop.learn(20)
    shop.assert_replays()
    shop.store.write([("DELETE FROM snapshots", ())])
    shop.assert_replays()
    [compacted] = compact(shop.store, before=2e12, now=0.0)
    assert compacted.problem is None
    assert compacted.removed > 0
    shop.work.states.clear()
    shop.learn(20)
    shop.assert_replays()


@pytest.mark.promise(221)
def test_a_policy_change_learns_contexts_with_the_statistics_that_are_logged(make_shop: Any) -> None:
    shop = make_shop(policy="ts", features=FEATURES)
    shop.learn(30)
    warm = WarmStart(shop.state.copy(), api_types.SetPolicy("lin-ucb"), LogStart())
    warm.learn(shop.store, shop.state.sequence)
    shop.learn(30)  # the means and variances of the features change while the policy learns
    shop.run(lambda: changes.set_policy(shop.work, "b", api_types.SetPolicy("lin-ucb"), warm))
    shop.learn(10)
    shop.assert_replays()


def test_the_policy_learns_from_the_context(make_shop: Any) -> None:
    shop = make_shop(policy="lin-ucb", features=FEATURES)
    shop.learn(300)
    chosen = {new: shop.decide(context={"hour": 12, "new": new}).arm for new in (True, False)}
    assert chosen[True] == "blue" != chosen[False]
    [event] = shop.store.events(shop.bandit_number, shop.state.sequence - 1)
    assert event.body == '{"context":{"hour":12,"new":false}}'


@pytest.mark.promise(223)
def test_a_new_arm_starts_from_what_a_shared_model_knows(make_shop: Any) -> None:
    features = {"red": {"price": 1.0}, "green": {"price": 2.0}, "blue": {"price": 3.0}}
    shop = make_shop(policy="lin-ucb", arm_features=features)
    for _ in range(200):
        made = shop.decide()
        shop.reward(made, features[made.arm]["price"] / 4)
    before = shop.state.state_hash()
    for wrong in (None, {"size": 1.0}, {"price": "high"}):
        with pytest.raises(InvalidValueError, match="new"):
            shop.run(lambda wrong=wrong: changes.add_arm(shop.work, "b", "new", wrong))
    assert shop.state.state_hash() == before
    shop.run(lambda: changes.add_arm(shop.work, "b", "new", {"price": 4.0}))
    assert shop.decide().arm == "new"
    shop.assert_replays()


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({}, "context must be given"),
        ({"context": {"hour": "noon"}}, "context: feature 'hour'"),
        ({"context": {"hours": 3}}, "context: unknown feature 'hours'"),
        ({"context": {"country": "NO", "new": 3}}, "context: feature 'new'"),
        ({"context": {"hour": 1}, "count": 2, "unit": "u"}, "count must be 1 with a unit"),
    ],
)
def test_a_context_that_does_not_fit_changes_nothing(make_shop: Any, asked: dict[str, Any], problem: str) -> None:
    shop = make_shop(features=FEATURES)
    shop.learn(3)
    before = shop.state.state_hash()
    with pytest.raises(InvalidValueError, match=problem):
        shop.decide(**asked)
    shop.work.clear()
    assert shop.state.state_hash() == before


def test_a_context_without_features_is_refused(make_shop: Any) -> None:
    with pytest.raises(InvalidValueError, match="context must be None: the bandit was made without features"):
        make_shop(policy="ts").decide(context={"hour": 1})


@pytest.mark.promise(232)
def test_a_context_must_not_be_too_large(make_shop: Any) -> None:
    shop = make_shop(features={"text": "category"})
    with pytest.raises(InvalidValueError, match="context must have at most 16384 bytes as JSON, got 16395"):
        shop.decide(context={"text": "x" * MAX_CONTEXT})


@pytest.mark.promise(70)
def test_open_decisions_with_large_contexts_are_read_from_the_log(
    make_shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynabandit.service.domain.open_decisions.MAX_SIZE", 1_000)
    shop = make_shop(policy="lin-ucb", features={"text": "category"})
    made = [shop.decide(context={"text": "x" * 100 + str(number)}) for number in range(30)]
    assert 3 < len(shop.state.open) < 10
    for one in made:
        shop.reward(one, 1.0)
    assert not shop.state.open
    assert shop.decide(context={"text": "y"}).step in shop.state.open, "their size was subtracted"
    shop.assert_replays()


def test_an_idempotency_key_with_another_context_or_unit_is_a_conflict(make_shop: Any) -> None:
    shop = make_shop(features=FEATURES)
    made = shop.decide("key", context={"hour": 1})
    assert shop.decide("key", context={"hour": 1}) == made
    for asked in ({"context": {"hour": 2}}, {"context": {"hour": 1}, "unit": "u"}):
        with pytest.raises(ConflictError, match="must be the same as when this Idempotency-Key came first"):
            shop.decide("key", **asked)


# Units


@pytest.mark.promise(224)
def test_a_unit_keeps_its_arm_and_its_decision_for_the_given_time(make_shop: Any) -> None:
    shop = make_shop(policy="uniform", sticky_for=100)
    first = {unit: shop.decide(unit=unit) for unit in map(str, range(20))}
    assert not any(made.repeated for made in first.values())
    steps = shop.state.bandit.step
    shop.clock.seconds += 99.5
    shop.work.states.clear()  # a restart
    for unit, made in first.items():
        again = shop.decide(unit=unit)
        assert again.repeated
        assert (again.decision, again.arm, again.step) == (made.decision, made.arm, made.step)
    assert shop.state.bandit.step == steps, "it counts as one decision"
    shop.clock.seconds += 0.5
    later = {unit: shop.decide(unit=unit) for unit in first}
    assert not any(made.repeated for made in later.values())
    assert count_units(shop.store, shop.bandit_number, 100.0, 100) == 20
    remove_units(shop.store, shop.bandit_number, 100.0, 10)
    assert shop.decide(unit="0").repeated
    remove_units(shop.store, shop.bandit_number, 100.1, 15)
    assert sum(shop.decide(unit=unit).repeated for unit in first) == 5
    shop.assert_replays()


@pytest.mark.promise(225)
@pytest.mark.parametrize("change", [{"paused": True}, {"retired": True}])
def test_units_of_an_arm_that_is_paused_or_retired_are_assigned_again(make_shop: Any, change: dict[str, Any]) -> None:
    shop = make_shop(policy="uniform", sticky_for=100)
    first = {unit: shop.decide(unit=unit).arm for unit in map(str, range(20))}
    shop.run(lambda: changes.change_arm(shop.work, "b", "red", api_types.ChangeArm(**change)))
    for unit, arm in first.items():
        made = shop.decide(unit=unit)
        assert made.repeated == (arm != "red")
        assert (made.arm == arm) == made.repeated
        assert shop.decide(unit=unit).arm == made.arm
    shop.assert_replays()


def test_without_sticky_for_each_decision_for_a_unit_is_a_new_one(make_shop: Any) -> None:
    shop = make_shop(policy="uniform")
    made = [shop.decide(unit="u") for _ in range(20)]
    assert [one.step for one in made] == list(range(1, 21))
    assert len({one.arm for one in made}) == 3


# Holdout


@pytest.mark.promise(228, 229)
def test_the_holdout_gets_the_control_arm_whatever_the_policy(make_shop: Any) -> None:
    shop = make_shop(policy="ts", holdout=api_types.HoldoutSettings(0.3, "red"))
    units = [f"user-{n}" for n in range(300)]
    held = set()
    for unit in units:
        made = shop.decide(unit=unit)
        held |= {unit} if made.holdout else set()
        assert made.arm == "red" or not made.holdout
        shop.reward(made, made.arm == "blue")
    assert 0.3 * 300 - 40 < len(held) < 0.3 * 300 + 40, "within five standard errors: the id of the bandit is random"
    shop.run(lambda: changes.set_policy(shop.work, "b", api_types.SetPolicy("ucb")))
    assert {unit for unit in units if shop.decide(unit=unit).holdout} == held
    shop.run(lambda: changes.change_arm(shop.work, "b", "red", api_types.ChangeArm(paused=True)))
    assert not any(shop.decide(unit=unit).holdout for unit in units[:50]), "the control arm cannot be chosen"
    shop.assert_replays()


def test_a_holdout_without_control_gets_the_arms_in_equal_parts(make_shop: Any) -> None:
    shop = make_shop(policy="ucb", holdout=api_types.HoldoutSettings(0.5))
    made = [shop.decide(unit=f"u{n}") for n in range(600)]
    counts = [sum(one.holdout and one.arm == arm for one in made) for arm in ARMS]
    assert all(50 < count < 150 for count in counts), "within five standard errors"
    assert sum(counts) == sum(one.holdout for one in made)


def test_decisions_without_a_unit_are_in_the_holdout_by_their_step(make_shop: Any) -> None:
    shop = make_shop(policy="ucb", holdout=api_types.HoldoutSettings(0.5, "red"))
    held = [shop.decide().holdout for _ in range(100)]
    assert 25 < sum(held) < 75
    shop.assert_replays()


def test_the_control_must_be_an_arm(make_shop: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"holdout\.control must be one of the arms, got 'pink'"):
        make_shop(holdout=api_types.HoldoutSettings(0.5, "pink"))


def test_the_same_body_creates_the_same_bandit_and_another_one_is_a_conflict(make_shop: Any) -> None:
    given: dict[str, Any] = {"features": FEATURES, "sticky_for": 10.0, "holdout": api_types.HoldoutSettings(0.5, "red")}
    shop = make_shop(**given)
    asked = api_types.Create(arms=ARMS, seed=11, **given)
    assert changes.create(shop.work, "b", asked)[1] is False
    for field in given:
        other = api_types.Create(arms=ARMS, seed=11, **{key: given[key] for key in given if key != field})
        with pytest.raises(ConflictError, match=f"other .*{field}"):
            changes.create(shop.work, "b", other)
