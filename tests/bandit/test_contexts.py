"""Bandits with features: the same choices as the policy's functions, exact replay, and errors that change nothing."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit import Bandit
from dynabandit.bandit import contexts, live_policies
from dynabandit.bandit.serialization import checksum
from dynabandit.choosing.choose_arm import make_choose, new_workspace
from dynabandit.core.context import Context
from dynabandit.core.streams import stream
from dynabandit.features import ArmFeatures, FeatureEncoder
from dynabandit.policies import CONTEXTUAL_POLICIES, Reward
from dynabandit.policies.auto import RECOMMENDED_WITH_FEATURES
from dynabandit.policies.base import new_state
from tools.laws import INTERPRETED

ARMS = ["red", "green", "blue"]
KINDS = {
    "hour": {"kind": "number", "required": True},
    "country": {"kind": "category", "values": ["NO", "SE"]},
    "returning": "boolean",
}
PRICES = {"red": {"price": 1}, "green": {"price": 2}, "blue": {"price": 4}}


each_policy = pytest.mark.parametrize("name", list(CONTEXTUAL_POLICIES) if INTERPRETED else ["lin-ucb"])


def context(step: int) -> dict[str, Any]:
    return {"hour": step * 7 % 24, "country": ("NO", "SE", "DK", None)[step % 4], "returning": step % 3 == 0}


def reward(arm: str, step: int) -> float:
    return float((len(arm) + step) % 3 == 0)


def make(policy: str = "lin-ucb", **options: Any) -> Bandit:
    return Bandit(policy, arms=ARMS, features=KINDS, seed=7, **options)


def play(bandit: Bandit, steps: int) -> list[str]:
    chosen = []
    for _ in range(steps):
        arm = bandit.choose(context(bandit.step + 1))
        bandit.reward(arm, reward(arm, bandit.step))
        chosen.append(arm)
    return chosen


@each_policy
def test_fed_the_same_features_and_rewards_it_chooses_as_the_simulator_does(name: str) -> None:
    world = db.environment("logistic-drift", arms=3, dimension=4)
    run = db.simulate(name, world, horizon=200, seed=5, keep=("arms", "rewards"))
    assert run.arms is not None
    assert run.rewards is not None
    encoder = FeatureEncoder({"x": {"kind": "vector", "size": 4, "required": True}}, constant=False)
    bandit = Bandit(name, arms=["0", "1", "2"], features=encoder, seed=5)
    for step, features in enumerate(world.features(200, seed=5)):
        if step == 100:
            bandit = Bandit.from_json(bandit.to_json())
        assert bandit.choose({"x": features[0]}) == str(run.arms[0, step])
        bandit.reward(str(run.arms[0, step]), float(run.rewards[0, step]))


@pytest.mark.parametrize("shared", [False, True])
def test_it_chooses_as_the_functions_of_the_policy_do(shared: bool) -> None:
    policy, steps = db.policy("lin-ucb", discount=0.95), 100
    bandit = Bandit(policy, arms=ARMS, features=KINDS, arm_features=PRICES if shared else None, seed=7)
    encoder = FeatureEncoder(KINDS)
    arm_features = ArmFeatures.of(ARMS, PRICES)
    dimension = arm_features.dimension(encoder.dimension) if shared else encoder.dimension
    params = policy.params(3)
    state = new_state(policy, 3, params, Context(dimension, per_arm=shared))
    choose, space = make_choose(policy.functions), new_workspace(policy.functions, 3, 1)
    late: list[tuple[int, int, np.ndarray]] = []
    for step in range(1, steps + 1):
        vector = encoder.encode(context(step))
        features = arm_features.combined(vector, np.arange(3)) if shared else vector[np.newaxis]
        column = int(choose(state, step, params, space._replace(features=features), stream(7)))
        encoder.learn(context(step))
        assert bandit.choose(context(step)) == ARMS[column]
        state.last_played[column] = step
        late.append((column, step, features[column if shared else 0]))
        if step % 3 == 0:  # the rewards of three decisions arrive together
            for rewarded, decided_at, own in late:
                value = reward(ARMS[rewarded], decided_at)
                policy.functions.learn(state, rewarded, Reward(value, decided_at, step, own), params)
                bandit.reward(ARMS[rewarded], value, step=decided_at)
            late.clear()
    assert bandit._models is not None
    assert np.allclose(bandit._models, state.models, rtol=1e-9, atol=1e-12)
    assert len(set(play(bandit, 30))) > 1


@pytest.mark.parametrize("arm_features", [None, PRICES])
@pytest.mark.parametrize("names_only", [False, True])
def test_json_and_copies_continue_with_the_same_choices(arm_features: Any, names_only: bool) -> None:
    features: Any = list(KINDS) if names_only else KINDS
    bandit = Bandit("lin-ucb", arms=ARMS, features=features, arm_features=arm_features, seed=7)
    first = {**context(1), "country": "NO"}
    for steps in (0, 1, 20):
        again, copy = Bandit.from_json(bandit.to_json()), bandit.copy()
        assert again.state_hash() == copy.state_hash() == bandit.state_hash()
        assert again.to_json() == bandit.to_json()
        pending = bandit.choose(first)
        assert again.choose(first) == copy.choose(first) == pending
        saved = Bandit.from_json(bandit.to_json())  # with a decision without a reward
        for one in (bandit, again, copy, saved):
            one.reward(pending, 1)
        hashes = {one.state_hash() for one in (bandit, again, copy, saved)}
        assert len(hashes) == 1
        for step in range(steps):
            arm = bandit.choose(context(step))
            bandit.reward(arm, reward(arm, step))


def test_a_bandit_without_features_is_saved_as_before() -> None:
    bandit = Bandit("ucb", arms=ARMS, seed=7)
    bandit.reward(bandit.choose(), 1)
    assert {"features", "models"}.isdisjoint(json.loads(bandit.to_json()))
    assert bandit.state_hash() == "393a73aa3fa88e65934c2b98fd14d3dd22cf5518c3ad6f66dd42119d72977669"


def test_statistics_change_once_per_decision_and_not_by_propensities_or_rewards() -> None:
    bandit, encoder = make(), FeatureEncoder(KINDS)
    for step in range(1, 6):
        before = bandit.state_hash()
        shares = bandit.propensities(context(step), draws=5)
        assert bandit.state_hash() == before
        arm = bandit.choose(context(step))
        assert shares[arm] > 0.0
        bandit.reward(arm, 1, context=context(step + 1))
        encoder.learn(context(step))
    assert bandit.features is not None
    assert bandit.features.to_json() == encoder.to_json()


def test_a_reward_is_learned_with_the_context_of_its_decision() -> None:
    late, at_once = make(), make()
    vectors = []
    for step in (1, 2, 3):
        arm = late.choose(context(step))
        vectors.append((arm, late.step))
        at_once.choose(context(step))
    for arm, step in reversed(vectors):
        late.reward(arm, 1, step=step)
        at_once.reward(arm, 1, step=step)
    assert late.state_hash() == at_once.state_hash()
    given = make()
    arm = given.choose(context(1))
    latest = given.copy()
    given.reward(arm, 1, step=1, context=context(2))
    latest.reward(arm, 1)
    assert given.state_hash() != latest.state_hash()
    assert given.arms[arm].pending == latest.arms[arm].pending == 0


@pytest.mark.parametrize("name", ["d-lin-ucb", "ucb"])
def test_a_context_without_a_step_is_of_a_decision_elsewhere_now(name: str) -> None:
    bandit = make(name)
    arm = bandit.choose(context(1))
    never = next(one for one in ARMS if one != arm)
    expected = bandit.copy()
    for one in (arm, never):
        bandit.reward(one, 1, context=context(2))
        assert bandit.arms[one].pending == (one == arm)
        expected.reward_column(ARMS.index(one), 1.0, 1, ends_play=False, context=context(2))
    assert bandit.state_hash() == expected.state_hash()
    bandit.reward(arm, 0, step=1)  # of the bandit's own decision
    assert bandit.arms[arm].pending == 0


def test_the_context_of_a_decision_is_forgotten_with_its_reward_when_closed_and_if_too_many_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contexts, "KEPT_DECISIONS", 3)
    bandit = make()
    arms = [bandit.choose(context(step)) for step in range(1, 6)]
    for step, arm in enumerate(arms[:2], start=1):
        with pytest.raises(ValueError, match=f"the context of step {step} is not known: .* give context="):
            bandit.reward(arm, 1, step=step)
    bandit.close(arms[2], step=3)
    bandit.reward(arms[3], 1, step=4)
    for step in (3, 4):
        with pytest.raises(ValueError, match=f"the context of step {step} is not known"):
            bandit.reward(arms[step - 1], 1, step=step)
    other = next(arm for arm in ARMS if arm != arms[4])
    with pytest.raises(ValueError, match="step 5 chose another arm"):
        bandit.reward(other, 1, step=5)
    bandit.reward(arms[0], 1, step=1, context=context(1))
    bandit.reward(arms[4], 1)
    assert json.loads(bandit.to_json())["features"]["decisions"] == []


WRONG: list[tuple[Any, type[Exception], str]] = [
    (None, TypeError, "context must be given: the bandit has the features 'hour', 'country', 'returning'"),
    (7.5, TypeError, "context must be a mapping from the names of features to their values, got 7.5"),
    ({"hours": 1}, ValueError, "feature 'hour' is required"),
    ({"hour": 1, "hours": 1}, ValueError, "unknown feature 'hours'. Did you mean 'hour'?"),
    ({"hour": "1"}, TypeError, "feature 'hour' must be a finite number, got '1'"),
    ({"hour": math.nan}, ValueError, "feature 'hour' must be a finite number, got nan"),
]


@pytest.mark.parametrize(("wrong", "kind", "message"), WRONG)
def test_a_bad_context_is_named_and_changes_nothing(wrong: Any, kind: type[Exception], message: str) -> None:
    bandit = make()
    play(bandit, 5)
    before = bandit.state_hash()
    calls: list[Callable[[], Any]] = [
        lambda: bandit.choose(wrong),
        lambda: bandit.propensities(wrong),
        lambda: bandit.play_column(0, wrong),
    ]
    if wrong is not None:
        calls.append(lambda: bandit.reward("red", 1, context=wrong))
    for call in calls:
        with pytest.raises(kind) as caught:
            call()
        assert message in str(caught.value)
    assert bandit.state_hash() == before
    assert bandit.step == 5


def test_a_bad_first_context_leaves_the_kinds_open() -> None:
    bandit = Bandit("lin-ucb", arms=ARMS, features=list(KINDS), seed=7)
    before = bandit.state_hash()
    for wrong in (
        {"hour": 1},
        {**context(1), "hour": math.inf},
        {"hour": 1, "country": "NO", "returning": [0.0] * 4096},
    ):
        with pytest.raises(ValueError, match=r"feature 'country' is missing|must be a finite number|the features have"):
            bandit.choose(wrong)
    assert bandit.propensities(context(1), draws=3) == bandit.propensities(context(1), draws=3)
    assert bandit.state_hash() == before
    bandit.choose(context(1))
    assert [one.kind for one in bandit.features.features] == ["number", "category", "boolean"]  # type: ignore[union-attr]


def test_features_and_policies_must_fit() -> None:
    with pytest.raises(ValueError, match="policy 'lin-ucb' decides by features: give features="):
        Bandit("lin-ucb", arms=ARMS)
    with pytest.raises(ValueError, match="features must be at least one feature, got none"):
        Bandit("lin-ucb", arms=ARMS, features=[])
    plain = Bandit("ucb", arms=ARMS, seed=1)
    with pytest.raises(TypeError, match="context must be None: the bandit was made without features="):
        plain.choose({"hour": 1})
    with pytest.raises(TypeError, match="context must be None"):
        plain.reward("red", 1, context={"hour": 1})
    with pytest.raises(TypeError, match="features must be None: the bandit was made without arm_features="):
        plain.add_arm("new", features={})
    with pytest.raises(TypeError, match="features must be None"):
        make().add_arm("new", features={})
    assert plain.step == 0
    assert plain.features is None
    vector = {"v": {"kind": "vector", "size": 1023, "required": True}}
    with pytest.raises(ValueError, match=r"would keep .* numbers for 100 arms with 1024 columns of features"):
        Bandit("lin-ucb", arms=[str(arm) for arm in range(100)], features=vector)
    with pytest.raises(ValueError, match="the features have 1026 columns, but a bandit has at most 1024"):
        Bandit("ucb", arms=ARMS, features={**vector, "returning": "boolean"})


def test_the_size_of_the_models_is_checked_with_each_new_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    bandits = {model: make(model=model) for model in ("separate", "hybrid")} | {"shared": make(arm_features=PRICES)}
    for model, bandit in bandits.items():
        assert bandit._models is not None
        monkeypatch.setattr(live_policies, "LARGEST_STATE", bandit._models.size)
        bandit._reset()
        before = bandit.state_hash()
        if model == "shared":
            bandit.add_arm("new", {"price": 3})
            continue
        with pytest.raises(ValueError, match=r"would keep .* numbers for 4 arms"):
            bandit.add_arm("new")
        assert bandit.state_hash() == before


def test_ready_features_of_arms_are_those_of_the_named_arms() -> None:
    other_order = make(arm_features=ArmFeatures.of(["blue", "red", "green"], PRICES))
    assert other_order._contexts is not None
    assert other_order._contexts.arms is not None
    assert np.allclose(other_order._contexts.arms.vectors, ArmFeatures.of(ARMS, PRICES).vectors)
    with pytest.raises(ValueError, match="arm_features must have features of the arms 'red', 'green', 'blue', got"):
        make(arm_features=ArmFeatures.of(ARMS[:2], {name: PRICES[name] for name in ARMS[:2]}))
    encoder = FeatureEncoder({"returning": "boolean"}, constant=False)
    ready: list[Any] = [ArmFeatures.of(ARMS, PRICES), PRICES]
    bandits = [Bandit("lin-ucb", ARMS, seed=1, features=encoder, arm_features=one) for one in ready]
    assert bandits[0].state_hash() == bandits[1].state_hash()
    assert bandits[0]._models is not None
    assert bandits[1]._models is not None
    assert bandits[0]._models.shape == bandits[1]._models.shape


def test_a_policy_without_context_ignores_features() -> None:
    with_features, without = make("ucb"), Bandit("ucb", arms=ARMS, seed=7)
    for step in range(30):
        arm = with_features.choose(context(step))
        assert arm == without.choose()
        for bandit in (with_features, without):
            bandit.reward(arm, reward(arm, step))
    again = Bandit.from_json(with_features.to_json())
    assert again.state_hash() == with_features.state_hash()
    assert again.choose(context(1)) == with_features.choose(context(2))
    assert again.state_hash() != with_features.state_hash()  # features are part of the state nevertheless


def test_auto_with_features_is_the_recommended_contextual_policy() -> None:
    assert make("auto").policy.name == RECOMMENDED_WITH_FEATURES
    assert db.policy(make("auto").policy.name).functions.contextual


@each_policy
@pytest.mark.parametrize("arm_features", [None, PRICES])
def test_arms_are_added_removed_paused_and_limited(arm_features: Any, name: str) -> None:
    bandit = make(name, arm_features=arm_features)
    play(bandit, 20)
    before, models = bandit.state_hash(), bandit._models
    if arm_features is not None:
        for wrong in (None, {"prize": 3}, {"price": "3"}):
            with pytest.raises(
                (TypeError, ValueError), match=r"arm 'new'(: unknown feature 'prize'|: feature| must be a mapping)"
            ):
                bandit.add_arm("new", features=wrong)
        with pytest.raises(ValueError, match="got 'red' twice"):
            bandit.add_arm("red", features={"price": 3})
        assert bandit.state_hash() == before
    bandit.add_arm("new", features=None if arm_features is None else {"price": 3})
    assert models is not None
    assert bandit._models is not None
    if arm_features is None:
        assert np.array_equal(bandit._models[:3], models)
        assert np.array_equal(bandit._models[3], make(name)._models[0])  # type: ignore[index]
    else:
        assert np.array_equal(bandit._models, models)
    bandit.pause_arm("red")
    bandit.remove_arm("green")
    assert {*play(bandit, 20)} <= {"blue", "new"}
    assert set(bandit.propensities(context(1))) == {"blue", "new"}
    bandit.resume_arm("red")
    bandit.limit_arm("red", min_share=1.0)
    assert play(bandit, 5) == ["red"] * 5
    assert Bandit.from_json(bandit.to_json()).state_hash() == bandit.state_hash()


@pytest.mark.parametrize("model", ["separate", "hybrid"])
def test_paused_arms_do_not_change_what_others_choose(model: str) -> None:
    bandit = make(model=model)
    play(bandit, 30)
    scores = bandit.copy()
    chosen = [scores.choose(context(31))]
    for _ in range(2):
        bandit.pause_arm(chosen[-1])
        assert bandit.copy().choose(context(31)) not in chosen
        chosen.append(bandit.copy().choose(context(31)))
        bandit.resume_arm(chosen[0])
        assert bandit.copy().choose(context(31)) == chosen[0]
        bandit.pause_arm(chosen[0])


def test_a_new_arm_of_a_hybrid_has_a_model_before_the_one_of_all_arms() -> None:
    bandit = make(model="hybrid")
    play(bandit, 30)
    models = bandit._models
    bandit.add_arm("new")
    assert models is not None
    assert bandit._models is not None
    assert np.array_equal(bandit._models[[0, 1, 2, 4]], models)
    assert np.array_equal(bandit._models[3], make(model="hybrid")._models[0])  # type: ignore[index]
    again = Bandit.from_json(bandit.to_json())
    assert play(again, 20) == play(bandit, 20)


def test_a_new_arm_of_a_shared_model_starts_from_what_is_known() -> None:
    bandit = Bandit(
        "lin-ucb", arms=["low", "high"], arm_features={"low": {"x": 0.0}, "high": {"x": 1.0}}, seed=1, width=0
    )
    for _ in range(40):
        for arm, value in (("low", 0.0), ("high", 1.0)):
            bandit.reward(arm, value, context={})
    bandit.add_arm("higher", features={"x": 2.0})
    assert bandit.choose() == "higher"


def test_a_change_of_policy_learns_the_contexts_of_earlier_rewards() -> None:
    bandit, rewards = make("ucb"), []
    for step in range(1, 31):
        arm = bandit.choose(context(step))
        bandit.reward(arm, reward(arm, step))
        rewards.append((ARMS.index(arm), reward(arm, step), step, context(step)))
    waiting = bandit.choose(context(31))
    rewards.append((ARMS.index(waiting), 0.0, 31, context(31)))
    swapped = bandit.swapped("lin-ucb", iter(rewards))
    one_by_one = bandit.swapped("lin-ucb", [])
    for column, value, step, given in rewards:
        one_by_one._step = step
        one_by_one.reward_column(column, value, step, ends_play=False, context=given)
    assert swapped.state_hash() == one_by_one.state_hash()
    swapped.reward(waiting, 1)  # the decision before the change is still known
    adopted = bandit.adopting(bandit.swapped("lin-ucb", iter(rewards)))
    assert adopted is not None
    assert adopted.state_hash() == one_by_one.state_hash()
    back = swapped.swapped("ucb", [one[:3] for one in rewards])
    assert back.choose(context(32)) in ARMS


@pytest.mark.parametrize("name", ["aff-lin-ucb", "d-lin-ucb", "restart-lin-ucb"] if INTERPRETED else ["lin-ucb"])
def test_a_change_of_policy_learns_rewards_as_they_arrived(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynabandit.bandit.bandit.MANY_REWARDS", 7)
    bandit = Bandit(name, arms=ARMS, features={"returning": "boolean"}, seed=7)
    rewards: list[Any] = []
    late: list[Any] = []
    for step in range(1, 61):
        given = {"returning": step % 3 == 0}
        late.append((ARMS.index(bandit.choose(given)), float(given["returning"] == (step > 30)), step, given))
        for column, value, decided_at, _ in late[::-1] if step % 3 == 0 else []:  # the latest of three comes first
            bandit.reward(ARMS[column], value, step=decided_at)
        if step % 3 == 0:
            rewards += late[::-1]
            late.clear()
    swapped = bandit.swapped(name, rewards)
    assert bandit._models is not None
    assert swapped._models is not None
    assert np.array_equal(swapped._models, bandit._models)
    saved, latest = bandit.swapped(name, []), 0
    for first in range(0, len(rewards), 7):
        some = rewards[first : first + 7]
        restored = Bandit.from_json(saved.to_json())
        assert restored.reward_columns(some, latest) == saved.reward_columns(some, latest)
        latest = max(latest, *(one[2] for one in some))
        assert restored.state_hash() == saved.state_hash()
    assert saved._models is not None
    assert np.array_equal(saved._models, bandit._models)


def test_the_first_context_keeps_what_was_learned_before_it() -> None:
    for policy in ("ucb", "lin-ucb"):
        bandit = Bandit(policy, arms=ARMS, features=["hour"], seed=7)
        swapped = bandit.swapped("lin-ucb", [])
        if policy == "ucb":
            bandit.reward("red", 1)
        memory = bandit._memory.copy()
        bandit.choose({"hour": 1})
        assert np.array_equal(bandit._memory, memory)
        assert bandit.adopting(swapped) is None  # its models have no columns of the features
        assert bandit.adopting(bandit.swapped("lin-ucb", [])) is not None


def test_compilation_ahead_changes_nothing() -> None:
    for bandit in (make(), Bandit("lin-ucb", arms=ARMS, features=["hour"], seed=7), make(arm_features=PRICES)):
        before = bandit.state_hash()
        bandit.compile()
        assert bandit.state_hash() == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda saved: saved["features"]["decisions"][0][2].pop(),
        lambda saved: saved["features"]["decisions"][0].__setitem__(0, 99),
        lambda saved: saved["features"]["decisions"][0].__setitem__(1, 3),
        lambda saved: saved["features"]["context"]["moments"].pop(),
        lambda saved: saved["features"]["context"]["features"]["hour"].__setitem__("kind", "numbr"),
        lambda saved: saved["features"]["arms"]["vectors"].pop(),
        lambda saved: saved["features"]["arms"]["vectors"][0].pop(),
        lambda saved: saved["models"].pop(),
        lambda saved: saved.pop("models"),
        lambda saved: saved.pop("features"),
    ],
)  # fmt: skip
def test_a_damaged_state_is_refused(damage: Callable[[Any], Any]) -> None:
    bandit = make(arm_features=PRICES)
    bandit.choose(context(1))
    saved = json.loads(bandit.to_json())
    damage(saved)
    del saved["checksum"]
    with pytest.raises(ValueError, match=r"text must be what Bandit.to_json wrote"):
        Bandit.from_json(json.dumps({**saved, "checksum": checksum(saved)}))
