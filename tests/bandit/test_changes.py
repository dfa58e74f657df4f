"""Changes to a bandit while it runs: paused arms, traffic limits, another policy."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dynabandit as db
from dynabandit.bandit.traffic_limits import TrafficLimits
from tools.ready import READY, TRIED

ARMS = ["red", "green", "blue"]
PARAMETERS: dict[str, dict[str, Any]] = {"d-ucb": {"discount": 0.99}, "sw-ucb": {"window": 50}, **READY}
SWAPPED = ["ucb", "aff-ots", "d-ts", "sw-kl-ucb", "glr-kl-ucb", "changepoint-ts"]  # one of each kind of state


def go_on(bandit: db.Bandit, steps: int) -> list[str]:
    chosen = []
    for _ in range(steps):
        chosen.append(bandit.choose())
        bandit.reward(chosen[-1], chosen[-1] == "blue")
    return chosen


def played(policy: str = "aff-ots", steps: int = 60, seed: int = 3) -> db.Bandit:
    bandit = db.Bandit(policy, ARMS, seed=seed, **PARAMETERS.get(policy, {}))
    go_on(bandit, steps)
    return bandit


@pytest.mark.parametrize("policy", [one for one in TRIED if one != "lm-dsee"])  # which learns only while it explores
def test_a_paused_arm_is_not_chosen_but_still_learns(policy: str) -> None:
    bandit = played(policy)
    bandit.pause_arm("blue")
    assert "blue" not in go_on(bandit, 100)
    before = bandit.state_hash()
    bandit.reward("blue", 0)
    assert bandit.state_hash() != before
    assert bandit.arms["blue"].paused
    bandit.resume_arm("blue")
    assert "blue" in go_on(bandit, 300)


def test_pausing_chooses_as_a_bandit_without_that_arm_would() -> None:
    paused, removed = played(), played()
    paused.pause_arm("red")
    removed_names = [name for name in ARMS if name != "red"]
    removed.add_arm("extra")
    removed.remove_arm("red")
    removed.remove_arm("extra")
    assert [paused.choose() for _ in range(50)] == [removed.choose() for _ in range(50)]
    assert set(paused.active) == set(ARMS)
    assert set(removed.active) == set(removed_names)


def test_with_every_arm_paused_choosing_is_an_error_that_changes_nothing() -> None:
    bandit = played()
    for arm in ARMS:
        bandit.pause_arm(arm)
    before = bandit.state_hash()
    with pytest.raises(ValueError, match="every arm is paused"):
        bandit.choose()
    assert bandit.state_hash() == before


def test_json_keeps_pauses_and_shares_and_reads_text_without_them() -> None:
    bandit = played()
    bandit.pause_arm("red")
    bandit.limit_arm("blue", min_share=0.1, max_share=0.6)
    again = db.Bandit.from_json(bandit.to_json())
    assert again.state_hash() == bandit.state_hash()
    assert [again.choose() for _ in range(100)] == [bandit.choose() for _ in range(100)]
    assert again.shares("blue") == (0.1, 0.6)
    assert json.loads(played().to_json())["shares"] is None


def test_a_copy_goes_on_by_itself() -> None:
    bandit = played()
    bandit.limit_arm("blue", max_share=0.5)
    before = bandit.state_hash()
    other = bandit.copy()
    other.reward(other.choose(), 1)
    assert bandit.state_hash() == before
    assert other.state_hash() != before


@settings(max_examples=40, deadline=None)
@given(most=st.floats(0.05, 1.0), seed=st.integers(0, 1000))
def test_a_most_share_holds_after_every_decision(most: float, seed: int) -> None:
    bandit = played(seed=seed)
    bandit.limit_arm("blue", max_share=most)
    count = 0
    for step in range(1, 120):
        count += bandit.choose() == "blue"
        assert count <= np.ceil(most * step - 1e-9)


def test_a_least_share_is_kept_by_chance_and_leaves_the_rest_to_the_policy() -> None:
    bandit = played("ucb", steps=200)
    bandit.limit_arm("red", min_share=0.3)
    chosen = Counter(go_on(bandit, 4000))
    # A fair draw of 4000 at 0.3 is off by 0.03 with probability under 1e-4; UCB adds a few plays of its own
    assert 0.27 < chosen["red"] / 4000 < 0.35
    assert chosen["blue"] > chosen["green"]


def test_limits_that_cannot_be_kept_are_refused_by_name() -> None:
    bandit = played()
    bandit.limit_arm("red", min_share=0.6)
    with pytest.raises(ValueError, match=r"min_share must be at most 0.4"):
        bandit.limit_arm("green", min_share=0.5)
    with pytest.raises(ValueError, match="min_share must be at most max_share"):
        bandit.limit_arm("red", min_share=0.6, max_share=0.5)
    with pytest.raises(ValueError, match="max_share"):
        bandit.limit_arm("red", max_share=0.0)
    bandit.limit_arm("red")
    assert bandit.shares("red") == (0.0, 1.0)


def test_lifting_the_last_limit_leaves_no_trace() -> None:
    free, limited = played(), played()
    limited.limit_arm("red", max_share=0.5)
    limited.limit_arm("red")
    assert limited.state_hash() == free.state_hash()


def test_where_every_arm_is_at_its_most_all_may_be_chosen() -> None:
    limits = TrafficLimits(2)
    active = np.array([True, True])
    for column in range(2):
        limits.limit(column, 0.0, 0.1, active)
    limits.plays[:] = (5, 5)
    assert limits.allowed(np.array([0, 1])).tolist() == [0, 1]


@pytest.mark.parametrize("policy", SWAPPED)
def test_a_swapped_policy_knows_what_it_would_have_learned(policy: str) -> None:
    old = db.Bandit("ucb", ARMS, seed=1)
    rewards = []
    for step in range(60):
        column = old.choose_column()
        rewards.append((column, float(step % 3 == 0), old.step))
        old.reward_column(*rewards[-1])
    new = old.swapped(policy, rewards, **PARAMETERS.get(policy, {}))
    assert (new.step, new.policy.name) == (old.step, policy)
    assert [arm.plays for arm in new.arms.values()] == [arm.plays for arm in old.arms.values()]
    taught = db.Bandit(policy, ARMS, seed=1, **PARAMETERS.get(policy, {}))
    for reward in rewards:
        taught.reward_column(*reward)
    assert [arm[:4] for arm in new.arms.values()] == [arm[:4] for arm in taught.arms.values()]


def test_a_late_reward_leaves_the_idle_time_counting_from_the_choice() -> None:
    bandit = db.Bandit("aff-ots", ARMS, seed=1)
    arm = bandit.choose()
    for _ in range(5):
        bandit.choose()
    idle = bandit.arms[arm].idle
    bandit.reward(arm, 1)
    assert bandit.arms[arm].idle == idle


def test_propensities_can_be_called_as_in_release_0_1_0() -> None:
    bandit = db.Bandit("ucb", arms=["a", "b"], seed=1)
    bandit.reward(bandit.choose(), 1)
    bandit.reward(bandit.choose(), 0.9)
    for _ in range(3):
        bandit.choose()  # rewards in flight
    counted = bandit.propensities(draws=1, count_pending=True)
    not_counted = bandit.propensities(draws=1, count_pending=False)
    assert counted != not_counted
    assert bandit.propensities(1, False) == bandit.propensities(np.int64(1), count_pending=False) == not_counted
    assert bandit.propensities(np.int64(1)) == bandit.propensities(1, True) == counted
    with pytest.raises(TypeError, match="draws must be a whole number"):
        bandit.propensities(True)


def test_propensities_agree_with_how_often_arms_are_chosen() -> None:
    """Many bandits in one state that differ in their seeds alone choose an arm as often as its propensity says."""
    bandit = played("ts", steps=20)
    expected = bandit.propensities(20_000)
    chosen: Counter[str] = Counter()
    for seed in range(4000):
        other = bandit.copy()
        other._seed = seed + 10_000
        other._prepare()
        chosen[other.choose()] += 1
    for arm in ARMS:  # 4000 draws: a share is off by 0.04 with probability under 1e-6
        assert abs(chosen[arm] / 4000 - expected[arm]) < 0.04
