"""The lift over the holdout: what counts, exact replays, and what the API shows."""

import heapq
import json
import math
from typing import Any

import numpy as np
import pytest

from dynabandit.service import api_types, monitoring_types
from dynabandit.service.compaction import compact
from dynabandit.service.decider_contacts import DeciderContacts
from dynabandit.service.domain import changes
from dynabandit.service.domain.decisions import remove_expired_units
from dynabandit.service.domain.rewards import settle_due
from dynabandit.service.http.responses import bandit_view
from dynabandit.service.projections.bandit_history import BanditHistory
from dynabandit.stats.lift import LiftSums, add_reward, estimate_lift
from tools.shop import Shop

HOLDOUT = api_types.HoldoutSettings(0.3, "red")


def serve(shop: Shop, units: list[str], seed: int) -> list[tuple[float, bool]]:
    """Decide for units and reward in another order; return the rewards of the first decisions, in the order sent."""
    rng, waiting, sent = np.random.default_rng(seed), [], []
    for unit in units:
        made = shop.decide(unit=unit)
        waiting.append((made, float(rng.random() < (0.7 if made.arm == "blue" else 0.3))))
        shop.clock.seconds += 1.0
        rng.shuffle(waiting)
        if len(waiting) > 5:
            done, value = waiting.pop()
            shop.reward(done, value)
            sent.append((value, done.holdout))
        shop.run(lambda: settle_due(shop.work, shop.bandit_number))
    return sent


def holdout_of(shop: Shop) -> monitoring_types.HoldoutState:
    shown = bandit_view(shop.state, DeciderContacts())().holdout
    assert shown is not None
    return shown


def sums_of(rewards: list[tuple[float, bool]], share: float = 0.3) -> LiftSums:
    sums = LiftSums()
    for value, held_out in rewards:
        sums = add_reward(sums, share, True, value, held_out)
    return sums


@pytest.mark.promise(160)
def test_the_lift_counts_rewards_in_the_order_in_which_they_are_learned(make_shop: Any) -> None:
    shop = make_shop(policy="ts", holdout=HOLDOUT)
    sent = serve(shop, [f"u{n}" for n in range(200)], 1)
    lift = shop.state.monitoring.lift
    assert lift.sums == sums_of(sent)
    assert sum(lift.decisions) == 200
    assert 30 < lift.decisions[True] < 90
    view = holdout_of(shop)
    assert (view.share, view.control) == (0.3, "red")
    assert (view.policy.rewards, view.holdout.rewards) == (lift.rewards(False), lift.rewards(True))
    assert view.policy.mean == np.mean([value for value, held_out in sent if not held_out])
    expected = estimate_lift(sums_of(sent), 0.3, True)
    assert (view.lift, view.low, view.high) == expected.absolute
    shown = [view.relative_lift, view.relative_low, view.relative_high]
    assert shown == [None if math.isnan(end) else end for end in expected.relative]
    shop.assert_replays()


@pytest.mark.promise(162)
@pytest.mark.parametrize("learn", ["at-once", "settled"])
def test_the_lift_replays_exactly(make_shop: Any, learn: str) -> None:
    shop = make_shop(policy="ts", holdout=HOLDOUT, reward_window=20, default_reward=0, learn=learn, sticky_for=10)
    serve(shop, [f"u{n % 70}" for n in range(90)], 2)
    shop.assert_replays()
    shop.store.save_snapshot(shop.bandit_number, shop.work.snapshot(shop.bandit_number))
    shop.work.states.clear()  # a restart
    serve(shop, [f"v{n}" for n in range(40)], 3)
    shop.run(lambda: changes.set_policy(shop.work, "b", api_types.SetPolicy("ucb")))
    serve(shop, [f"w{n}" for n in range(20)], 4)
    before = shop.state.monitoring.lift.to_plain()
    shop.assert_replays()
    shop.store.write([("DELETE FROM snapshots", ())])
    shop.assert_replays()
    [compacted] = compact(shop.store, before=2e12, now=0.0)
    assert compacted.problem is None
    shop.work.states.clear()
    assert shop.state.monitoring.lift.to_plain() == before
    shop.state.monitoring.lift.sums = sums_of([])
    with pytest.raises(AssertionError):  # the hash of the state covers the lift
        shop.assert_replays()


def test_the_history_of_the_page_has_the_same_lift(make_shop: Any) -> None:
    shop = make_shop(policy="ts", holdout=HOLDOUT, reward_window=20, default_reward=0)
    serve(shop, [f"u{n}" for n in range(60)], 5)
    for compacts in (False, True):
        if compacts:
            compact(shop.store, before=2e12, now=0.0)
            serve(shop, [f"v{n}" for n in range(20)], 6)
        history = BanditHistory.at_start(shop.bandit_number, shop.store)
        for event in shop.store.events(shop.bandit_number, history.sequence, 10_000):
            history.apply(event)
        history = BanditHistory.from_json(shop.bandit_number, history.to_json(), shop.store)
        lift = shop.state.monitoring.lift
        assert history.monitoring.to_plain() == shop.state.monitoring.to_plain()
        series = history.series()
        assert (series.lift[-1], series.lift_low[-1], series.lift_high[-1]) == lift.estimate().absolute


@pytest.mark.promise(163)
def test_each_unit_counts_once_and_only_while_there_is_a_holdout(make_shop: Any) -> None:
    shop = make_shop(policy="ts", holdout=HOLDOUT)
    for _ in range(3):  # without sticky_for, each is another decision
        for n in range(20):
            shop.reward(shop.decide(unit=f"u{n}"), 1.0)
    lift = shop.state.monitoring.lift
    assert sum(lift.decisions) == 60
    assert lift.sums.policy_count + lift.sums.holdout_count == 20
    shop.run(lambda: changes.change_arm(shop.work, "b", "red", api_types.ChangeArm(paused=True)))
    for n in range(20):
        shop.reward(shop.decide(unit=f"v{n}"), 1.0)
    assert lift.sums.policy_count + lift.sums.holdout_count == 20, "all decisions are those of the policy"
    for _ in range(20):
        shop.reward(shop.decide(), 1.0)
    shop.run(lambda: changes.change_arm(shop.work, "b", "red", api_types.ChangeArm(paused=False)))
    for _ in range(20):
        shop.reward(shop.decide(), 1.0)
    assert lift.sums.policy_count + lift.sums.holdout_count == 40, "decisions without a unit count each"
    shop.assert_replays()


@pytest.mark.promise(163)
def test_units_of_a_holdout_are_remembered_after_their_time(make_shop: Any) -> None:
    shop = make_shop(policy="ts", holdout=HOLDOUT, sticky_for=10)
    shop.reward(shop.decide(unit="u"), 1.0)
    shop.clock.seconds += 100.0
    remove_expired_units(shop.work)
    shop.reward(shop.decide(unit="u"), 1.0)
    lift = shop.state.monitoring.lift
    assert sum(lift.decisions) == 2
    assert lift.sums.policy_count + lift.sums.holdout_count == 1


@pytest.mark.promise(161, 162)
@pytest.mark.parametrize("compacts", [False, True])
def test_a_reward_counts_however_late_it_arrives_in_its_window(make_shop: Any, compacts: bool) -> None:
    """Both groups click alike, but half of the clicks of the holdout take 200 seconds."""
    shop = make_shop(
        policy="uniform", holdout=api_types.HoldoutSettings(0.1, "red"), reward_window=600, default_reward=0
    )
    rng, start = np.random.default_rng(3), shop.clock.seconds
    coming: list[tuple[float, int, api_types.Decision]] = []
    true, late = [], 0

    def settle() -> None:
        while shop.run(lambda: settle_due(shop.work, shop.bandit_number)):
            pass

    for n in range(300):
        shop.clock.seconds = start + n
        made = shop.decide(unit=f"u{n}")
        clicked = bool(rng.random() < 0.5)
        true.append((float(clicked), made.holdout))
        if clicked:
            heapq.heappush(coming, (n + (200.0 if made.holdout and rng.random() < 0.5 else 1.0), n, made))
        while coming and (coming[0][0] <= n or n == 299):
            arrives, _, rewarded = heapq.heappop(coming)
            shop.clock.seconds = start + max(n, arrives)
            late += rewarded.holdout and rewarded.step <= shop.state.learner.learned_to
            shop.reward(rewarded, 1.0)
        if n % 10 == 0:
            settle()
        if n == 250 and compacts:
            assert shop.state.learner.learned_to > 100
            compact(shop.store, before=2e12, now=0.0)
            shop.work.states.clear()
    assert late > 0, "rewards of the holdout came after their decisions were learned"
    assert shop.state.monitoring.lift.sums == LiftSums(), "no window has ended"
    shop.clock.seconds = start + 750.0
    settle()
    assert 0 < sum(map(shop.state.monitoring.lift.rewards, (False, True))) < 300, "the windows of some have ended"
    shop.clock.seconds = start + 901.0
    settle()
    assert shop.state.monitoring.lift.sums == sums_of(true, 0.1)
    shop.assert_replays()


def test_a_lift_of_release_0_2_0_continues_with_the_decisions_that_it_has_not_counted(make_shop: Any) -> None:
    shop = make_shop(policy="uniform", holdout=HOLDOUT, reward_window=100, default_reward=0)

    def counted() -> int:
        return sum(map(shop.state.monitoring.lift.rewards, (False, True)))

    for one in [shop.decide(unit=f"u{n}") for n in range(30)]:
        shop.reward(one, 1.0)
    shop.clock.seconds += 5.0
    shop.run(lambda: settle_due(shop.work, shop.bandit_number))
    assert (shop.state.learner.learned_to, shop.state.learner.final_to, counted()) == (30, 0, 0)
    shop.store.write([("UPDATE events SET body = json_remove(body, '$.final') WHERE kind = 'learn'", ())])
    shop.work.states.clear()  # the store of 0.2.0, which counted decisions when they were learned
    assert (shop.state.learner.final_to, counted()) == (30, 30)
    snapshot = json.loads(shop.state.to_json())
    del snapshot["learner"]["final_to"]
    older = type(shop.state).from_json(shop.bandit_number, json.dumps(snapshot), shop.store)
    assert older.learner.final_to == 30
    for one in [shop.decide(unit=f"v{n}") for n in range(20)]:
        shop.reward(one, 1.0)
    shop.clock.seconds += 5.0
    shop.run(lambda: settle_due(shop.work, shop.bandit_number))
    assert (shop.state.learner.learned_to, counted()) == (50, 30)
    shop.clock.seconds += 100.0
    shop.run(lambda: settle_due(shop.work, shop.bandit_number))
    assert counted() == 50
    shop.assert_replays()


def test_rewards_outside_0_and_1_have_an_asymptotic_interval(make_shop: Any) -> None:
    shop = make_shop(policy="normal-ts", rewards="normal", holdout=HOLDOUT)
    shop.reward(shop.decide(unit="u"), 17.0)
    assert not shop.state.monitoring.lift.is_bounded
    assert holdout_of(shop).low is None
