"""Compositions by name, by object and on one line, and what does not fit."""

import importlib
import json
import pickle
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

import dynabandit as db
from dynabandit.core.compilation import kernel
from dynabandit.policies import DETECTORS, MEMORIES, POLICIES, RULES
from dynabandit.policies.compositions import composition_class, named
from dynabandit.policies.detectors import HalvesWithThisStep
from dynabandit.policies.fit import misfit
from dynabandit.policies.memories.regression import AdaptiveRegression
from dynabandit.policies.preset import Preset, kind_of
from dynabandit.policies.rules.prediction import WidthBound

WINDOW = db.memories.Window(window=500)
# The same policy, written in several ways
SAME: list[tuple[Any, ...]] = [
    ("kl-ucb", db.compose(rule="kl-ucb"), db.policy("kl-ucb + sample-mean"), db.policy("sample-mean + kl-ucb")),
    (
        "hoeffding + window:window=500",
        db.policy("hoeffding:confidence=0.05 + window:window=500"),
        db.policy("hoeffding", memory=WINDOW),
        db.policy("hoeffding", memory="window", window=500),
        db.compose(memory=WINDOW, rule=db.rules.Hoeffding()),
        db.compose(memory=db.memories.Window, rule="hoeffding", window=500, confidence=0.05),
    ),
    ("aff-ots", db.policy("ots + adaptive"), db.policy("ots", memory="adaptive"), db.policy("adaptive + ots")),
    (
        "odts:memory=5",
        db.policy("ots + bounded:memory=5"),
        db.policy("ots", memory=db.memories.Bounded(memory=5)),
        db.policy("odts", memory=5),
    ),
    (
        "ots + adaptive + glr:delta=0.01,step_size=0.01",
        db.policy("aff-ots:step_size=0.01 + glr:delta=0.01"),
        db.policy("aff-ots", detector=db.detectors.GLR(delta=0.01), step_size=0.01),
        db.policy("ots", memory=db.memories.Adaptive(step_size=0.01), detector="glr", delta=0.01),
    ),
    ("d-ts:discount=0.9", db.policy("ts", memory="discount", discount=0.9), db.policy("ts + discount:discount=0.9")),
    ("sw-kl-ucb:window=500", db.policy("kl-ucb", memory=WINDOW), db.policy("kl-ucb + window:window=500")),
    ("glr-kl-ucb:delta=0.1", db.policy("kl-ucb + glr:delta=0.1"), db.policy("kl-ucb", detector="glr", delta=0.1)),
    ("ts:prior=[1,3]", db.compose(rule=db.rules.Thompson(prior=(1, 3))), db.policy("ts", rule="ts", prior=(1, 3))),
    (
        "d-ucb:discount=0.9",
        db.policy("ucb + discount:xi=2.4,discount=0.9"),
        db.compose(memory="discount", rule="ucb", xi=2.4, discount=0.9),
        db.compose(memory=db.memories.Discount(discount=0.9), rule=db.rules.UCB(xi=2.4)),
    ),
    ("ucb + sample-mean:xi=0.6", db.compose(rule=db.rules.UCB(xi=0.6)), db.policy("ucb", rule=db.rules.UCB(xi=0.6))),
]


@pytest.mark.parametrize("forms", SAME, ids=lambda forms: forms[0])
def test_all_notations_give_the_same_policy(forms: tuple[Any, ...]) -> None:
    expected = db.policy(forms[0])
    for form in forms[1:]:
        assert (form, form.label, form.functions) == (expected, expected.label, expected.functions)
    assert db.policy(expected.name, **expected.parameters) == expected
    assert db.policy(expected.name, **json.loads(json.dumps(expected.parameters))) == expected
    assert pickle.loads(pickle.dumps(expected)) == expected


def test_a_fixed_part_with_other_parameters_is_a_composition() -> None:
    assert type(db.policy("ucb", rule="ucb")) is db.policies.UCB
    other = db.compose(rule=db.rules.UCB(xi=0.6))
    assert (other.label, db.policy("ucb").parameters) == ("ucb + sample-mean(xi=0.6)", {"burn_in": 1})


def test_burn_in_and_horizon_are_parameters_of_a_composition() -> None:
    policy = db.policy("ucb + discount", burn_in=3, changes=2)
    assert policy.label == "ucb + discount(burn_in=3, changes=2)"
    assert policy.tuned(5, 1000).label == "ucb + discount(burn_in=3, changes=2, horizon=1000)"
    practical = db.policy("hoeffding + window").practical()
    assert practical.label == "hoeffding + window(changes=1, horizon=doubling)"
    runs = db.compare([practical, "ucb"], "case-1", horizon=300, replications=1, seed=1)
    assert list(runs) == [practical.label, "ucb"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ucb + no-memory", "unknown memory, rule or detector 'no-memory'"),
        ("ots + adaptive + window:window=5", "a policy has one memory"),
        ("ucb + ts", "a policy has one rule, got 'ucb \\+ ts'"),
        ("window + glr", "a composition needs a rule"),
        ("ucb + no-memory", "A part of your own must be registered first"),
        ("normal-ts + glr", "is a rule, and also the policy 'student-ts \\+ sample-moments': write 'student-ts"),
        ("uniform + window", "unknown memory, rule or detector 'uniform'"),
        ("ucb + window:window=0", "window must be a whole number of at least 1"),
        ("ucb + window:size=3", "has no parameter 'size'"),
        ("ucb:xi=1 + window:xi=2", "every parameter must be given once, got 'xi' twice"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(text: str, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        db.policy(text)


def test_what_is_no_part_is_refused() -> None:
    with pytest.raises(ValueError, match="is not made of a memory and a rule"):
        db.policy("exp3-s", memory="window")
    with pytest.raises(TypeError, match="memory must be a Memory, its class or its name, got 5"):
        db.compose(memory=5, rule="ucb")
    for role in ("memory", "rule", "detector"):
        with pytest.raises(TypeError, match=f"{role} must be a .*, its class or its name, got 3"):
            db.policy("ucb", **{role: 3})
    with pytest.raises(TypeError, match="'prior' is given twice"):
        db.policy("ts:prior=[1, 1]", prior=(2, 2))
    with pytest.raises(ValueError, match=r"memory 'window' has none\. Memories that fit: .*unit-free") as error:
        db.policy("normal-ots + window")
    for role, fitting in re.findall(r"(Memories|Rules) that fit: ([^.]*)", str(error.value)):
        for name in fitting.split(", "):
            db.policy(f"normal-ots + {name}" if role == "Memories" else f"{name} + window")
    with pytest.raises(ValueError, match="rule 'ucb' does not compare predictions from features"):
        db.compose(memory=AdaptiveRegression(), rule="ucb")
    with pytest.raises(ValueError, match=r"rule 'width-bound' compares predictions .* memory 'sample-mean' makes none"):
        db.compose(rule=WidthBound())
    assert db.compose(memory=AdaptiveRegression(), rule=WidthBound()).label == "aff-lin-ucb"
    with pytest.raises(ValueError, match=r"'poisson-mixture' learns from rewards .*, but 'glr' from rewards .*0, 1"):
        db.policy("gamma-ots + poisson-mixture + glr")


def test_parameters_with_the_same_name_get_the_name_of_their_part() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Other(db.rules.UCB):
        name = "other-ucb"
        window: int = 7

    kind: Any = composition_class(db.memories.Window, Other)
    policy = kind(window=5, other_ucb_window=9)
    memory, rule, _ = policy.parts()
    assert (memory.parameters["window"], rule.parameters["window"]) == (5, 9)


class Recent(NamedTuple):
    mean: float
    rewards: float


class RecentParams(NamedTuple):
    rate: float


@kernel
def observe(numbers: Recent, reward: float, params: RecentParams) -> Recent:
    rate = max(params.rate, 1.0 / (numbers.rewards + 1.0))
    return Recent(numbers.mean + rate * (reward - numbers.mean), numbers.rewards + 1.0)


@kernel
def mean(numbers: Recent) -> float:
    return numbers.mean


@kernel
def size(numbers: Recent) -> float:
    return min(numbers.rewards, 50.0)


@dataclass(frozen=True, kw_only=True)
class RecentRewards(db.memories.Memory):
    """An exponentially weighted mean.

    Parameters
    ----------
    rate
        The weight of the newest reward.
    """

    name = "recent"
    kernels = db.memories.per_arm(Recent(0.0, 0.0), observe, mean, size, params=RecentParams)

    rate: float = 0.05

    def params(self, setting: Any) -> RecentParams:
        return RecentParams(self.rate)


@pytest.mark.parametrize("rule", sorted(name for name, kind in RULES.items() if misfit(RecentRewards, kind) is None))
def test_an_own_memory_works_in_every_rule(rule: str) -> None:
    policy = db.compose(memory=RecentRewards(rate=0.1), rule=rule)
    db.checks.check_policy(policy)
    run = db.simulate(policy, "fixed:means=[0.2, 0.8]", horizon=400, seed=1)
    assert run.total_regret[0] < 0.6 * 200 * 0.6, "an arm chosen at random would have 120"


def test_a_registered_memory_is_known_by_name() -> None:
    db.policies.register(RecentRewards)
    try:
        policy = db.policy("ots + recent:rate=0.2")
        assert policy == db.compose(memory=RecentRewards(rate=0.2), rule="ots")
        bandit = db.Bandit(policy, arms=["a", "b"], seed=1)
        for reward in (1, 0, 1):
            bandit.reward(bandit.choose(), reward)
        assert db.Bandit.from_json(bandit.to_json()).choose() == bandit.choose()
        again = type("RecentRewards", (RecentRewards,), {"__module__": RecentRewards.__module__})
        assert db.policies.register(again) is MEMORIES["recent"] is again  # as in a notebook
        with pytest.raises(ValueError, match="must not be that of another part"):
            db.policies.register(type("Other", (RecentRewards,), {"name": "window"}))
    finally:
        del MEMORIES["recent"]
    assert named("ots") is None


def test_every_preset_with_one_part_replaced_is_read_again_as_the_same_policy() -> None:
    """What a saved bandit names is what it was: no two parts share a name, and each is in a registry."""
    registries: tuple[dict[str, Any], ...] = (MEMORIES, RULES, DETECTORS)
    for registry in registries:
        assert all(kind.name == name for name, kind in registry.items())
    read = 0
    for preset in POLICIES.values():
        if not issubclass(preset, Preset):
            continue
        for place, registry in enumerate(registries):
            for kind in registry.values():
                parts = [*preset.made_of, None][:3]
                parts[place] = kind
                if misfit(*(kind_of(part) for part in parts if part is not None)) is None:
                    policy = db.compose(memory=parts[0], rule=parts[1], detector=parts[2], burn_in=1)
                    again = db.policy(policy.name, **policy.parameters)
                    assert (again, again.functions) == (policy, policy.functions), policy.label
                    assert [type(part) for part in again.parts()] == [type(part) for part in policy.parts()]  # type: ignore[attr-defined]
                    read += 1
    assert read > 500


def test_a_part_that_differs_in_details_is_not_taken_for_another() -> None:
    halves = db.compose(rule="kl-ucb", detector=HalvesWithThisStep())
    assert (halves.name, type(halves.parts()[2])) == (
        "kl-ucb + sample-mean + halves-with-this-step",
        HalvesWithThisStep,
    )
    by_width = db.compose(rule=db.rules.KLUCBByWidth())
    assert (by_width.name, type(by_width.parts()[1])) == ("kl-ucb-by-width + sample-mean", db.rules.KLUCBByWidth)
    assert db.policy("glr-kl-ucb", detector=None) == db.policy("kl-ucb")
    with pytest.raises(ValueError, match="a policy has one memory"):
        db.policy("ots + adaptive + window:window=5")
    with pytest.raises(ValueError, match="no detector watches these"):
        db.compose(memory=AdaptiveRegression(), rule=WidthBound(), detector="glr")
    for policy in (db.compose(memory="window", rule="hoeffding", horizon="doubling"), db.policy("sw-ucb").practical()):
        assert pickle.loads(pickle.dumps(policy)) == policy


def test_an_arm_whose_weight_has_underflowed_is_played_again() -> None:
    bandit = db.Bandit("hoeffding + discount", discount=0.5, arms=["a", "b"], seed=1)
    for arm in ("a", "b", *["b"] * 1200):
        bandit.reward(arm, 0.5)
    assert "a" in {bandit.choose() for _ in range(3)}


def test_the_grid_has_every_combination_once() -> None:
    memories = ["sample-mean", WINDOW, db.memories.Discount(discount=0.99)]
    policies = db.grid(memories, ["ucb", "ts"])
    assert len({policy.label for policy in policies}) == len(policies) == 6
    assert [policy.label for policy in policies[:2]] == ["ucb", "ts"]


def test_the_module_paths_that_release_0_2_0_documents_still_work() -> None:
    for name, member in (("base", "Policy"), ("pending_plays", "pending_plays"), ("tuning_rules", "HorizonTuned"),
                         ("score_laws", "normal_scores"), ("learned_draws", "draw")):  # fmt: skip
        assert hasattr(importlib.import_module(f"dynabandit.policies.{name}"), member)
