"""Our policies in river's own loops."""

from typing import Any

import gymnasium
import pytest
from river import bandit

import dynabandit as db
import dynabandit.integrations.gymnasium
from dynabandit.integrations.river import ContextualPolicy, Policy


def test_it_is_one_of_rivers_policies_and_runs_in_its_evaluation_beside_them() -> None:
    env = gymnasium.make("dynabandit/SmallChanges-v0", horizon=300)
    policies = [
        Policy("aff-ots", seed=1),
        bandit.UCB(delta=1, seed=1),
        Policy(db.policy("ts", prior=(1.0, 1.0)), seed=1),
    ]
    trace = list(bandit.evaluate(policies=policies, env=env, n_episodes=2, seed=42))
    assert len(trace) == 3 * 2 * 300
    assert {step["arm"] for step in trace if step["policy_idx"] == 0} == {0, 1, 2}
    again = list(bandit.evaluate(policies=policies, env=env, n_episodes=2, seed=42))
    assert trace == again


def test_it_chooses_as_a_bandit_with_the_same_seed_does() -> None:
    ours, bare = Policy("aff-ots", seed=3), db.Bandit("aff-ots", arms=["0", "1", "2"], seed=3)
    for step in range(200):
        arm = ours.pull([0, 1, 2])
        assert str(arm) == bare.choose()
        reward = float((step * 7 + int(arm)) % 3 == 0)
        ours.update(arm, reward)
        bare.reward(str(arm), reward)


def test_a_clone_has_the_parameters_and_no_data() -> None:
    policy = Policy("ucb", seed=3)
    first = [policy.pull(["a", "b"]) for _ in range(4)]
    policy.update("a", 1)
    clone = policy.clone()
    assert (clone.policy, clone.seed, clone._n) == ("ucb", 3, 0)
    assert [clone.pull(["a", "b"]) for _ in range(4)] == first


def test_the_ranking_and_the_counts_are_rivers() -> None:
    policy = Policy("ts", seed=1)
    for _ in range(60):
        arm = policy.pull(["bad", "good"])
        policy.update(arm, 1 if arm == "good" else 0)
    assert policy.ranking == ["good", "bad"]
    assert policy._n == 60
    assert "good" in repr(policy)


def test_arms_may_be_added_dropped_and_offered_again() -> None:
    policy = Policy("ucb", seed=1)
    assert {policy.pull(["a", "b"]) for _ in range(4)} == {"a", "b"}
    assert policy.pull(["a", "b", "c"]) == "c"
    assert {policy.pull(["b", "c"]) for _ in range(20)} <= {"b", "c"}
    assert policy.pull(["a"]) == "a"


def test_it_runs_in_rivers_offline_evaluation() -> None:
    history: list[Any] = [(["a", "b"], {}, "ab"[n % 2], float(n % 2)) for n in range(200)]
    total, count = bandit.evaluate_offline(policy=Policy("aff-ots", seed=1), history=iter(history))
    assert 60 < count < 140
    assert (total.get() or 0.0) > 0.7 * count


def test_wrong_use_is_named() -> None:
    with pytest.raises(ValueError, match="unknown policy 'aff-otz'"):
        Policy("aff-otz")
    with pytest.raises(ValueError, match="arm_id must be one that was pulled before, got 'a'"):
        Policy("ts").update("a", 1)
    policy = Policy("ts")
    policy.pull(["a", "b"])
    with pytest.raises(ValueError, match="unknown arm 'c'"):
        policy.update("c", 1)
    with pytest.raises(ValueError, match=r"reward must be a number in \[0, 1\], got 2"):
        policy.update("a", 2)
    assert policy._n == 0


def clicks(rows: int) -> list[Any]:
    """Return a log in which "a" is clicked at night and "b" during the day."""
    arms = ["a", "b"]
    log = []
    for row in range(rows):
        night, arm = row % 3 == 0, arms[row * 7 % 5 % 2]
        log.append((arms, {"bias": 1.0, "night": float(night)}, arm, float((arm == "a") == night)))
    return log


@pytest.mark.parametrize(
    "policy",
    [
        ContextualPolicy("lin-ucb", seed=1),
        ContextualPolicy("auto", {"night": "number", "bias": "number"}, seed=1),
        bandit.LinUCBDisjoint(seed=1),
    ],
)
def test_contextual_policies_run_in_rivers_offline_evaluation_as_its_own_does(policy: Any) -> None:
    total, count = bandit.evaluate_offline(policy=policy, history=iter(clicks(600)))
    assert 200 < count == policy._n < 400
    assert (total.get() or 0.0) > 0.85 * count


def test_with_a_context_it_chooses_as_a_bandit_does() -> None:
    features = {"hour": "number", "country": "category"}
    ours = ContextualPolicy("lin-ucb", features, seed=3)
    bare = db.Bandit("lin-ucb", arms=["0", "1", "2"], features=features, seed=3)
    for step in range(60):
        context = {"hour": step * 5 % 24, "country": "NO" if step % 4 else "SE"}
        arm = ours.pull([0, 1, 2], context)
        assert str(arm) == bare.choose(context)
        reward = float((step * 7 + int(arm)) % 3 == 0)
        ours.update(arm, None if step % 2 else context, reward)
        assert ours._adapter is not None
        assert ours._adapter.bandit.pending(int(arm)) == 0
        bare.reward(str(arm), reward, step=step + 1, context=None if step % 2 else context)
    clone = ours.clone()
    assert (clone.policy, clone.features, clone.seed, clone._n) == ("lin-ucb", features, 3, 0)


def test_the_first_context_decides_the_features_and_bad_ones_are_named() -> None:
    policy = ContextualPolicy("lin-ucb", seed=1)
    with pytest.raises(ValueError, match="arm_id must be one that was pulled before, got 'a'"):
        policy.update("a", {}, 1)
    with pytest.raises(TypeError, match="context must be a mapping"):
        policy.pull(["a", "b"])
    arm = policy.pull(["a", "b"], {"hour": 1})
    with pytest.raises(ValueError, match=r"unknown feature 'hours'. Did you mean 'hour'"):
        policy.pull(["a", "b"], {"hours": 1})
    with pytest.raises(ValueError, match="must be a finite number"):
        policy.update(arm, {"hour": float("nan")}, 1)
    assert policy._n == 0
    assert policy.pull(["c"], {"hour": 1}) == "c"
