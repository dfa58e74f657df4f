"""Shadow policies: they change no decision, replay exactly, are compared with the policy, and can be promoted."""

import json
import re
from typing import Any

import pytest

from dynabandit.bandit import Bandit
from dynabandit.service import api_types
from dynabandit.service.compaction import compact
from dynabandit.service.domain import changes
from dynabandit.service.domain.decision_details import DecisionDetails, read_details
from dynabandit.service.domain.rewards import settle_due
from dynabandit.service.errors import ConflictError, InvalidValueError
from dynabandit.service.verify import verify_bandit
from tools.harness import ARMS, Running, learn, talking
from tools.shop import FEATURES, Shop


def set_shadow(shop: Shop, policy: str, **parameters: Any) -> tuple[int, bool]:
    changed: tuple[int, bool] = shop.run(
        lambda: changes.set_shadow(shop.work, "b", api_types.SetPolicy(policy, parameters))
    )
    return changed


def promote(shop: Shop, keep: bool = False, seed: int | None = None) -> tuple[int, bool]:
    changed: tuple[int, bool] = shop.run(
        lambda: changes.promote_shadow(shop.work, "b", api_types.PromoteShadow(keep, seed))
    )
    return changed


def change_arm(shop: Shop, arm: str, **change: Any) -> None:
    shop.run(lambda: changes.change_arm(shop.work, "b", arm, api_types.ChangeArm(**change)))


def restart(shop: Shop) -> None:
    """Forget all states; they are read again from the latest snapshot and the log."""
    shop.work.states.clear()


@pytest.mark.promise(241)
@pytest.mark.parametrize("learn", ["at-once", "settled"])
@pytest.mark.parametrize(("policy", "other"), [("lin-ucb", "ts"), ("ts", "lin-ucb")])
def test_a_shadow_replays_exactly(make_shop: Any, policy: str, other: str, learn: str) -> None:
    rule = {"reward_window": 20, "default_reward": 0, "learn": learn}
    shop = make_shop(policy=policy, features=FEATURES, rewards="bounded", **rule)
    shop.learn(30)
    assert set_shadow(shop, other)[1]
    shop.learn(20)
    shop.assert_replays()
    change_arm(shop, "red", paused=True)
    change_arm(shop, "blue", max_share=0.8)
    shop.run(lambda: changes.add_arm(shop.work, "b", "pink"))
    shop.learn(10)
    shop.store.save_snapshot(shop.bandit_number, shop.work.snapshot(shop.bandit_number))
    restart(shop)
    shop.learn(10)
    shop.assert_replays()
    shop.store.write([("DELETE FROM snapshots", ())])
    shop.assert_replays()
    [compacted] = compact(shop.store, before=2e12, now=0.0)
    assert (compacted.problem, compacted.removed > 0) == (None, True)
    restart(shop)
    shop.learn(10)
    promote(shop, keep=True)
    shop.learn(10)
    shop.run(lambda: changes.set_policy(shop.work, "b", api_types.SetPolicy("ucb")))
    shop.learn(5)
    shop.assert_replays()
    shop.run(lambda: changes.end_shadow(shop.work, "b"))
    shop.learn(5)
    shop.assert_replays()


@pytest.mark.promise(241)
def test_rewards_that_a_shadow_has_learned_stay_in_the_log_until_it_is_as_old(make_shop: Any) -> None:
    shop = make_shop(policy="ts", features=FEATURES)
    shop.learn(20)
    shop.store.write([("UPDATE events SET wall = 0", ())])
    set_shadow(shop, "ucb")
    shop.learn(5)
    [kept] = compact(shop.store, before=1.0, now=0.0)
    assert (kept.removed, kept.problem) == (
        0,
        "the policy that was set by event 37 learned these rewards; once it is as old, they can go",
    )
    shop.assert_replays()
    promote(shop)
    shop.store.write([("UPDATE events SET wall = 0 WHERE kind = 'shadow'", ())])
    [compacted] = compact(shop.store, before=1.0, now=0.0)
    assert (compacted.problem, compacted.removed > 0) == (None, True), "a promotion learns nothing"
    restart(shop)
    shop.assert_replays()


@pytest.mark.promise(241)
def test_the_hash_of_a_state_depends_on_the_shadow_and_its_comparison(make_shop: Any) -> None:
    shop = make_shop(policy="ts", features=FEATURES)
    set_shadow(shop, "ucb")
    shop.learn(20)
    hashes = {shop.state.state_hash()}
    for change in (
        lambda state: state.shadow.bandit.play_column(0, shop.context()),
        lambda state: setattr(state.shadow, "agreed", 0),
        lambda state: setattr(state.shadow, "since", 3),
        lambda state: setattr(state.shadow, "sums", state.shadow.sums._replace(total=9.0)),
        lambda state: setattr(state, "shadow", None),
    ):
        other = shop.state.copy()
        assert other.state_hash() in hashes
        change(other)
        hashes.add(other.state_hash())
    assert len(hashes) == 6


@pytest.mark.promise(242)
def test_only_the_first_rewards_of_decisions_since_the_start_are_compared(make_shop: Any) -> None:
    shop = make_shop(policy="ts", reward_window=20, default_reward=0, learn="settled")
    set_shadow(shop, "ts")
    before = shop.decide()
    set_shadow(shop, "ucb")
    after = [shop.decide() for _ in range(2)]
    shop.reward(before, 1.0)
    shop.reward(after[0], 1.0)
    shop.clock.seconds += 20.5 + shop.clock.grace_seconds
    shop.run(lambda: settle_due(shop.work, shop.bandit_number))
    sums = shop.state.shadow.sums
    assert (sums.rewards + sums.uncovered, sums.unknown) == (2, 0)
    shop.assert_replays()


@pytest.mark.promise(240)
@pytest.mark.parametrize("shadow", [None, "ts"])
def test_a_shadow_changes_no_decision(make_shop: Any, shadow: str | None) -> None:
    shop = make_shop(policy="ts", features=FEATURES)
    shop.learn(20)
    if shadow is not None:
        set_shadow(shop, shadow)
    shop.learn(30)
    chosen = "".join(str(one.arm) for one in shop.store.log(shop.bandit_number, kinds=("decision",)))
    assert chosen == "21012210200000020122022201022220210202202221222020"


@pytest.mark.promise(240)
def test_a_shadow_has_learned_the_history_and_learns_what_the_policy_learns(make_shop: Any) -> None:
    shop = make_shop(policy="ts", features=FEATURES)
    shop.learn(30)
    set_shadow(shop, "ucb")
    shop.run(lambda: changes.set_policy(shop.work, "b", api_types.SetPolicy("ucb")))
    for _ in range(2):
        policy, shadow = shop.state.bandits
        assert policy.seed != shadow.seed
        assert policy.reseeded(1).state_hash() == shadow.reseeded(1).state_hash()
        shop.learn(30)
    assert set_shadow(shop, "ucb") == (shop.state.sequence, False)
    assert shop.state.shadow.decisions == 60, "since the policy changed"


@pytest.mark.promise(243)
@pytest.mark.parametrize("keep", [True, False])
def test_a_promoted_shadow_decides_with_exactly_the_state_that_it_had(make_shop: Any, keep: bool) -> None:
    shop = make_shop(policy="ts", features=FEATURES, rewards="bounded")
    shop.learn(30)
    set_shadow(shop, "lin-ucb")
    shop.learn(30)
    policy, shadow = (one.state_hash() for one in shop.state.bandits)
    before, seed = shop.state.sequence, shop.state.shadow.bandit.seed
    with pytest.raises(ConflictError, match=f"seed must be {seed}, that of the shadow policy, got 5"):
        promote(shop, keep, seed=5)
    assert promote(shop, keep, seed) == (before + 1, True)
    assert promote(shop, keep, seed) == (before + 1, False), "the same request again"
    assert [one.state_hash() for one in shop.state.bandits] == [shadow, *([policy] if keep else [])]
    [event] = shop.store.events(shop.bandit_number, before)
    assert (event.kind, json.loads(event.body)["policy"]) == ("policy", "lin-ucb")
    shop.learn(10)
    shop.assert_replays()


@pytest.mark.promise(241)
def test_a_replay_finds_another_choice_of_the_shadow(make_shop: Any) -> None:
    shop = make_shop(policy="ts", features=FEATURES)
    set_shadow(shop, "ucb")
    shop.learn(5)
    [*_, event] = shop.store.log(shop.bandit_number, kinds=("decision",))
    choice = read_details(event.body).shadow
    assert choice is not None
    found = re.search(r'"shadow":\[[^]]*\]', event.body)
    assert found is not None
    for other in (f'"shadow":[{choice.column + 1},{choice.propensity}]', '"unit":"u"'):
        body = event.body.replace(found[0], other)
        shop.store.write(
            [
                (
                    "UPDATE events SET body = ? WHERE bandit = ? AND sequence = ?",
                    (body, shop.bandit_number, event.sequence),
                )
            ]
        )
        problem = verify_bandit(shop.store, shop.bandit_number, "b").problem
        assert problem is not None
        assert "as the shadow's choice" in problem


# Over HTTP, on each store


@pytest.mark.promise(240, 243)
def test_a_shadow_is_started_compared_and_promoted_over_http(server: Running) -> None:
    with talking(server.url) as (client, http):
        client.create("b", ARMS, policy="ts", seed=1)
        learn(client, "b", 20)
        started = client.set_shadow("b", "ucb")
        assert client.set_shadow("b", "ucb") == started, "nothing changed"
        learn(client, "b", 10)
        shadow = client.state("b").shadow
        assert shadow is not None
        assert (shadow.policy, shadow.since, shadow.decisions) == ("ucb", 20, 10)
        chosen = [event.shadow for event in client.events("b", kind="decision")]
        assert chosen[:20] == [None] * 20
        assert {one.arm: one.chosen for one in shadow.arms} == {arm: chosen.count(arm) for arm in ARMS}
        assert 'dynabandit_shadow_decisions_total{bandit="b"} 10.0' in http.get("/metrics").text
        assert f'dynabandit_shadow_agreements_total{{bandit="b"}} {shadow.agreed}.0' in http.get("/metrics").text
        changed = client.promote_shadow("b", keep=True)
        after = client.state("b")
        assert (after.policy, after.seed, after.sequence) == ("ucb", shadow.seed, changed.sequence)
        assert after.shadow is not None
        assert (after.shadow.policy, after.shadow.decisions) == ("ts", 0)
        body = {"keep": True, "seed": shadow.seed}
        assert http.post("/v1/bandits/b/shadow/promote", json=body).json()["sequence"] == changed.sequence
        client.end_shadow("b")
        assert client.state("b").shadow is None
        answer = http.post("/v1/bandits/b/shadow/promote", json={})
        assert (answer.status_code, answer.json()["problem"]) == (409, "bandit 'b' has no shadow policy")
        kinds = [event.kind for event in client.events("b", kind="change")]
        assert kinds == ["create", "shadow", "policy", "shadow"]


# The comparison


@pytest.mark.promise(242)
def test_the_comparison_estimates_what_the_shadow_would_have_earned(make_shop: Any) -> None:
    shop = make_shop(policy="uniform", rewards="bounded")
    set_shadow(shop, "ucb")
    assert shop.state.shadow.view().problem == (
        "no decision that was made since the shadow policy began has a reward yet"
    )
    for step in range(1500):
        made = shop.decide()
        shop.reward(made, float(step % 10 < {"red": 2, "green": 4, "blue": 8}[made.arm]))
    found: Any = shop.state.shadow.view()
    assert (found.decisions, found.rewards, found.uncovered, found.unknown) == (1500, 1500, 0, 0)
    share = {one.arm: one.chosen / 1500 for one in found.arms}
    truth = 0.2 * share["red"] + 0.4 * share["green"] + 0.8 * share["blue"]
    assert truth > 0.6
    assert found.policy_mean == pytest.approx(1.4 / 3, abs=0.04)  # three standard errors
    assert found.mean.value == pytest.approx(truth, abs=0.06)
    assert found.mean.low < truth < found.mean.high
    assert found.difference.low > 0.0, "the shadow is better"
    assert found.agreed / 1500 == pytest.approx(1 / 3, abs=0.04)
    assert sum(one.decided for one in found.arms) == 1500


@pytest.mark.promise(242)
def test_without_propensities_or_overlap_there_is_a_reason_and_no_estimate(
    make_shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bandit, "_exact_probabilities", lambda *_: None)
    shop = make_shop(policy="ucb", features=FEATURES)
    set_shadow(shop, "ts")
    shop.learn(20)
    found: Any = shop.state.shadow.view()
    assert found.problem == "the propensities of most decisions are not known"
    assert (found.rewards, found.unknown, found.mean, found.difference) == (0, 15, None, None)
    monkeypatch.undo()
    shop.learn(100)
    found = shop.state.shadow.view()
    assert found.uncovered > 0
    assert found.problem is not None
    assert "rarely or never" in found.problem
    shop.assert_replays()


def test_the_holdout_is_not_compared(make_shop: Any) -> None:
    shop = make_shop(policy="ts", holdout=api_types.HoldoutSettings(0.5, "red"))
    set_shadow(shop, "ucb")
    made = [shop.decide() for _ in range(40)]
    for one in made:
        shop.reward(one, 1.0)
    ours = sum(not one.holdout for one in made)
    assert 0 < ours < 40
    found: Any = shop.state.shadow.view()
    assert (found.decisions, found.unknown) == (ours, 0)
    assert shop.state.shadow.bandit.step == 40
    shop.assert_replays()


def test_a_local_decision_of_an_arm_that_was_paused_has_no_choice_of_the_shadow(make_shop: Any) -> None:
    shop = make_shop(policy="ts")
    set_shadow(shop, "ucb")
    for arm in ARMS:
        change_arm(shop, arm, paused=True)
    details = DecisionDetails(decider="d", local_step=1)
    shop.run(lambda: shop.work.events.append(shop.state.take(1, 1.0, 1.0, "d\t1", details)))
    assert shop.state.shadow.decisions == 0
    assert shop.state.shadow.bandit.step == 1
    shop.assert_replays()


# Errors


@pytest.mark.promise(244)
def test_a_shadow_that_is_not_valid_changes_nothing(make_shop: Any) -> None:
    shop = make_shop(policy="lin-ucb", features=FEATURES)
    shop.learn(3)
    before = shop.state.state_hash()
    for policy, problem in (
        ("nonsense", "nonsense"),
        ("ts", r"every reward that the bandit accepts, a number in \[-1e"),
    ):
        with pytest.raises(InvalidValueError, match=problem):
            set_shadow(shop, policy)
        shop.store.rollback()
    with pytest.raises(ConflictError, match="bandit 'b' has no shadow policy"):
        promote(shop)
    assert shop.run(lambda: changes.end_shadow(shop.work, "b")) == (shop.state.sequence, False)
    assert shop.state.state_hash() == before


@pytest.mark.promise(244)
def test_a_policy_with_more_rewards_than_the_shadow_learns_is_a_conflict(make_shop: Any) -> None:
    shop = make_shop(policy="ts", features=FEATURES)
    set_shadow(shop, "ucb")
    shop.learn(10)
    with pytest.raises(ConflictError, match="the shadow policy learns only rewards that are a number in"):
        shop.run(lambda: changes.set_policy(shop.work, "b", api_types.SetPolicy("lin-ucb")))
    shop.store.rollback()
    set_shadow(shop, "lin-ucb")
    with pytest.raises(ConflictError, match="keep must be false: policy 'ts' learns only a number in"):
        promote(shop, keep=True)
    shop.learn(10)
    promote(shop)
    shop.assert_replays()
