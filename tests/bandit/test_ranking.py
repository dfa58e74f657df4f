"""Rankings: compared with repeated choices among the arms that are left."""

from collections import Counter
from typing import Any
from unittest import mock

import pytest

from dynabandit import Bandit
from dynabandit.core.streams import LARGEST_SEED, seed_of_place
from dynabandit.features import FeatureEncoder

ARMS = ["a", "b", "c", "d", "e"]
CONTEXT = {"hour": 18.0, "new": True}
CONTEXTUAL = ("lin-ucb", "sw-lin-ucb", "square-cb")  # the last two note in their state what they compute for a choice


def trained(name: str, steps: int = 25, **options: Any) -> Bandit:
    """A bandit after the rewards of some decisions, one of which is pending."""
    if name in CONTEXTUAL:
        options["features"] = {"hour": "number", "new": "boolean"}
    bandit = Bandit(name, arms=ARMS, seed=5, **options)
    context = (lambda: {"hour": bandit.step % 24, "new": bandit.step % 3 == 0}) if name in CONTEXTUAL else lambda: None
    for _ in range(steps):
        arm = bandit.choose(context())
        bandit.reward(arm, float((bandit.step + ord(arm)) % 3 == 0))
    bandit.choose(context())
    return bandit


def context_of(bandit: Bandit) -> dict[str, Any] | None:
    return None if bandit.features is None else CONTEXT


def without(bandit: Bandit, arms: list[str], place: int) -> Bandit:
    """A copy whose next choice is for a place of a ranking: other arms are taken, and its random numbers differ."""
    other = bandit.copy()
    for arm in arms:
        other.pause_arm(arm)
    other._seed = seed_of_place(bandit.seed, place)
    other._prepare()
    return other


def limited(bandit: Bandit) -> Bandit:
    bandit.limit_arm("a", min_share=0.3)
    bandit.limit_arm("c", max_share=0.1)
    bandit.play_column(2, context_of(bandit))  # which is then at its maximum
    return bandit


@pytest.mark.parametrize("name", ["ucb", "ts", "mix-ts", "eps-greedy", *CONTEXTUAL])
@pytest.mark.parametrize("change", [lambda one: one, limited, lambda one: one.pause_arm("b") or one])
def test_a_place_is_the_choice_among_the_arms_that_are_left(name: str, change: Any) -> None:
    bandit = change(trained(name))
    for _ in range(4):
        context = context_of(bandit)
        taken: list[str] = []
        expected: list[float] = []
        for place in range(4):
            other = without(bandit, taken, place)
            propensities = other.propensities(context)
            taken.append(other.choose(context))
            expected.append(propensities[taken[-1]])
        chosen, decided = bandit.copy(), bandit.copy()
        known = bandit.exact_propensities(context)
        assert chosen.choose(context) == taken[0]
        decision = decided.decide(context)
        assert (decision.arm, decision.step) == (taken[0], chosen.step)
        assert decision.propensity == known[taken[0]], "to the last bit"
        assert decided.state_hash() == chosen.state_hash()
        assert bandit.copy().decide(context, propensity=False).probabilities is None
        ranking = bandit.rank(4, context)
        assert [one.arm for one in ranking] == taken
        assert [one.propensity for one in ranking] == pytest.approx(expected, abs=1e-6)
        assert bandit.state_hash() == chosen.state_hash(), "a ranking is one decision, for its first arm"


@pytest.mark.parametrize("name", ["ucb", "lin-ucb"])
def test_a_decision_and_its_propensity_take_one_choice_and_one_encoding(name: str) -> None:
    bandit = trained(name)
    context = context_of(bandit)
    with (
        mock.patch.object(bandit, "_choose", wraps=bandit._choose) as choose,
        mock.patch.object(FeatureEncoder, "encode", autospec=True, side_effect=FeatureEncoder.encode) as encode,
    ):
        assert bandit.decide(context).propensity == 1.0
    assert (choose.call_count, encode.call_count) == (1, 0 if context is None else 1)


def test_a_ranking_is_one_of_the_asked_arms_and_has_each_of_them_once() -> None:
    bandit = trained("ts")
    for _ in range(20):
        assert sorted(one.arm for one in bandit.rank(5, among=["d", "a", "e"])) == ["a", "d", "e"]
        assert bandit.choose(among=["c"]) == "c"
    assert sum(bandit.propensities(among=["b", "e"]).values()) == pytest.approx(1.0)
    bandit.pause_arm("c")
    before = bandit.state_hash()
    for wrong, problem in ((["x"], "unknown arm 'x'"), ([], "no arm can be chosen"), (["c"], "of among is paused")):
        with pytest.raises(ValueError, match=problem):
            bandit.rank(2, among=wrong)
        with pytest.raises(ValueError, match=problem):
            bandit.choose(among=wrong)
    for count in (0, 6):
        with pytest.raises(ValueError, match=f"count must be .* got {count}"):
            bandit.rank(count)
    assert bandit.state_hash() == before


def test_the_places_of_a_ranking_have_independent_random_numbers() -> None:
    """With a uniform policy, all 60 rankings of 3 of 5 arms are equally likely: a chi-squared test at 0.1 %."""
    bandit, rankings = Bandit("uniform", arms=ARMS, seed=1), Counter[tuple[int, ...]]()
    for _ in range(6000):
        columns = bandit.ranked_columns(3)
        bandit.play_column(columns[0])
        rankings[tuple(columns)] += 1
    assert len(rankings) == 60
    assert sum((count - 100) ** 2 / 100 for count in rankings.values()) < 98.3  # of 59 degrees of freedom


@pytest.mark.parametrize("name", ["ucb", "lin-ucb"])
def test_a_reward_of_another_arm_of_the_ranking_ends_the_play_of_the_first(name: str) -> None:
    bandit = Bandit(name, ARMS, seed=2, features={"x": "boolean"} if name == "lin-ucb" else None)
    contexts: list[Any] = [{"x": True}, {"x": False}] if name == "lin-ucb" else [None, None]
    first, second, _ = (one.arm for one in bandit.rank(3, contexts[0]))
    step = bandit.step
    later = bandit.choose(contexts[1], among=[second])
    expected = bandit.copy()
    expected.close(first, step=step)
    expected.reward_column(ARMS.index(second), 1.0, step, ends_play=False, context=contexts[0])
    bandit.reward(second, 1, step=step, chosen=first)
    assert bandit.state_hash() == expected.state_hash()
    assert {arm: one.pending for arm, one in bandit.arms.items() if one.pending} == {later: 1}
    bandit.reward(first, 1, chosen=later)  # by default, the latest decision for the chosen arm
    assert not any(one.pending for one in bandit.arms.values())


def test_a_reward_names_the_chosen_arm_of_its_decision() -> None:
    bandit = Bandit("lin-ucb", ARMS, seed=2, features={"x": "boolean"})
    bandit.rank(2, {"x": True})
    before = bandit.state_hash()
    with pytest.raises(ValueError, match="step 1 chose another arm"):
        bandit.reward("c", 1, step=1, chosen="b")
    with pytest.raises(ValueError, match="unknown arm 'x'"):
        bandit.reward("b", 1, step=1, chosen="x")
    assert bandit.state_hash() == before


def test_the_seeds_of_places_are_seeds() -> None:
    seeds = [seed_of_place(LARGEST_SEED, place) for place in range(1000)]
    assert seeds[0] == LARGEST_SEED
    assert len(set(seeds)) == 1000
    assert all(0 <= seed <= LARGEST_SEED for seed in seeds)
