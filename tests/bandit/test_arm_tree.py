"""Bandits with many arms choose in a draw tree, which follows from what they save."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy import stats

import dynabandit as db
from dynabandit import Bandit
from dynabandit.bandit import arm_tree, serialization
from dynabandit.bandit.block_decisions import choose_columns
from dynabandit.choosing import draw_search, draw_tree
from dynabandit.choosing.draw_cells import HEAD_ROWS
from dynabandit.core.draws import not_empty
from dynabandit.core.streams import stream
from dynabandit.policies.base import PolicyState, Step
from oracles.largest_draw import probabilities
from tools.interpreted import interpreted
from tools.trees_of_few_arms import remembered_distributions, trees_from  # noqa: F401  # a fixture of this module

ARMS = [f"arm {number}" for number in range(11)]


@pytest.fixture(autouse=True)
def _trees() -> Iterator[None]:
    with trees_from(10):
        yield


def grown(name: str, steps: int = 30) -> Bandit:
    bandit, rng = Bandit(name, arms=ARMS, seed=3), np.random.default_rng(5)
    for _ in range(steps):
        arm = bandit.choose()
        bandit.reward(arm, float(rng.random() < 0.5))
    return bandit


@pytest.mark.parametrize("steps", [None, 0, 7])
@pytest.mark.parametrize("name", ["ts", "mix-ts"])
def test_it_chooses_as_the_simulator_does(name: str, steps: int | None) -> None:
    world = db.environment("fixed", means=np.linspace(0.2, 0.8, len(ARMS)))
    delay = None if steps is None else db.delay("fixed", steps=steps)
    with interpreted():
        run = db.simulate(name, world, horizon=60, seed=5, keep=("arms", "rewards"), threads=1, delay=delay)
    assert run.arms is not None
    assert run.rewards is not None
    bandit, late = Bandit(name, arms=ARMS, seed=5), steps or 0
    arms, rewards = run.arms[0].tolist(), run.rewards[0].tolist()
    for place, arm in enumerate(arms):
        assert bandit.choose_column() == arm
        if place >= late:
            bandit.reward_column(arms[place - late], float(rewards[place - late]), decided_at=place - late + 1)
    assert "cells" in json.loads(bandit.to_json())


@pytest.mark.parametrize("name", ["ts", "aff-ots"])
def test_a_bandit_that_is_restored_at_any_time_makes_the_same_choices(name: str) -> None:
    bandit, rng = Bandit(name, arms=ARMS, seed=3), np.random.default_rng(1)
    others: list[Bandit] = []
    changes: dict[int, Callable[[Bandit], object]] = {
        8: lambda one: one.pause_arm("arm 4"),
        14: lambda one: one.add_arm("new"),
        20: lambda one: one.limit_arm("arm 2", max_share=0.05),
        26: lambda one: one.resume_arm("arm 4"),
        32: lambda one: one.limit_arm("arm 2", max_share=1.0),
        36: lambda one: one.remove_arm("arm 3"),
        42: lambda one: one.pause_arm("arm 0"),
        43: lambda one: one.pause_arm("arm 1"),  # too few for a tree
        47: lambda one: one.resume_arm("arm 0"),
        48: lambda one: one.resume_arm("arm 1"),
    }
    for step in range(54):
        for one in (bandit, *others):
            if step in changes:
                changes[step](one)
        if step % 12 == 0:
            others = [*others[-1:], Bandit.from_json(bandit.to_json())]
        value, ranked = float(rng.random() < 0.5), step % 3 == 2
        chosen = [one.ranked_columns(3)[0] if ranked else one.choose_column() for one in (bandit, *others)]
        assert len(set(chosen)) == 1
        for one in (bandit, *others):
            if ranked:
                one.play_column(chosen[0])
            if step % 5 != 4:
                one.reward_column(chosen[0], value)
        assert len({one.state_hash() for one in (bandit, *others)}) == 1


@pytest.mark.parametrize("name", ["ts", "aff-ots", "mix-ts"])
def test_a_restored_bandit_places_boundaries_again_as_the_others_do(name: str) -> None:
    bandit, rng = Bandit(name, arms=ARMS, seed=3), np.random.default_rng(1)
    bandit.choose()
    placed = 0
    with mock.patch.object(draw_tree, "EXCESS_PER_ARM", 0.02), mock.patch.object(draw_search, "USUAL_VISITS", 0.5):
        for step in range(60):
            restored = [bandit.copy(), Bandit.from_json(bandit.to_json())]
            restored[1].build_tree()  # before the reward
            value, before = float(rng.random() < 0.5), json.loads(bandit.to_json()).get("cells", [])
            for one in (bandit, *restored):
                one.reward_column(step % len(ARMS), value, max(bandit.step, 1))
            assert len({one.choose_column() for one in (bandit, *restored)}) == 1
            assert len({one.state_hash() for one in (bandit, *restored)}) == 1
            placed += json.loads(bandit.to_json()).get("cells", [])[1:] != before[1:]
    assert placed > 3


def test_choices_without_the_best_arm_have_the_law_of_the_policy() -> None:
    """The probability that this fails by chance is 1e-4; the seeds are fixed."""
    bandit = grown("ts")
    known = bandit.exact_probabilities()
    assert known is not None
    left = np.delete(known.columns, np.argmax(known.probabilities))
    expected = bandit.exact_probabilities(among=left)
    assert expected is not None
    counts: Counter[int] = Counter()
    for seed in range(600):
        bandit._signed_seed = seed
        counts[bandit._by_policy(left, bandit.step + 1, None)[0]] += 1
    assert set(counts) <= set(left.tolist())
    chosen, often = np.array([counts[column] for column in left]), expected.probabilities * 600 >= 5.0
    often[np.argmin(expected.probabilities)] = False  # rare choices are counted together, at least one
    observed = [*chosen[often], chosen[~often].sum()]
    wanted = 600 * np.array([*expected.probabilities[often], expected.probabilities[~often].sum()])
    assert stats.chisquare(observed, wanted).pvalue > 1e-4


def test_blocks_use_the_tree_and_a_tree_that_is_built_in_advance_is_the_same() -> None:
    one, other = grown("ts"), grown("ts")
    columns = choose_columns(one, 10)
    assert columns == [other.choose_column() for _ in range(10)]
    for column in columns:
        one.reward_column(column, 1.0)
    one.build_tree()
    other = Bandit.from_json(one.to_json())
    assert [one.choose_column() for _ in range(5)] == [other.choose_column() for _ in range(5)]


def test_another_policy_places_the_cells_again_and_a_change_in_bulk_computes_all() -> None:
    bandit = grown("ts")
    swapped = bandit.swapped("ots", [(column, 1.0, 1) for column in range(5)])
    assert "cells" not in json.loads(swapped.to_json())
    warm = bandit.swapped("ots", ())
    warm.reward_columns([(column, 1.0, 1) for column in range(5)])
    adopted = bandit.adopting(warm)
    assert adopted is not None
    assert [adopted.choose() for _ in range(10)] == [swapped.choose() for _ in range(10)]
    before = bandit.copy()
    bandit.reward_columns([(column, 1.0, 1) for column in range(5)])
    for column in range(5):
        before.reward_column(column, 1.0, 1)
    assert bandit.choose() == before.choose()


@pytest.mark.parametrize("cells", [[], [0.0] * 32, [1.0, "inf"] + [float(-i) for i in range(30)]])
def test_damaged_cells_are_refused(cells: list[float]) -> None:
    content = json.loads(grown("ts", 3).to_json())
    del content["checksum"], content["format"], content["version"]
    with pytest.raises(ValueError, match="cells must be the numbers of a tree"):
        Bandit.from_json(serialization.write({**content, "cells": cells}))


@pytest.mark.parametrize("estimated", [False, True], ids=["choices", "propensities"])
def test_arms_that_a_decision_leaves_out_count_as_arms(estimated: bool) -> None:
    """The probability that this fails by chance is 1e-4; the seeds are fixed."""
    bandit, left, draws = Bandit("aff-ots", arms=ARMS, seed=3), np.array([1, 4, 8]), 1200
    for number in range(220):
        bandit.play_column(number % len(ARMS))
        bandit.reward_column(number % len(ARMS), float((number // 55 + number % len(ARMS)) % 2))
    bandit._step += 30_000  # idle steps, divided by the number of arms, decide how much is forgotten
    functions, played = bandit.policy.functions, bandit._arms
    state = PolicyState(bandit._memory, bandit._shared, played.last_played, played.pending, None)
    params, nothing = bandit.policy.params(len(ARMS)), np.zeros(0)
    step = Step(
        bandit.step + 1, len(ARMS), functions.common(state, bandit.step + 1, params), nothing, nothing, stream(1)
    )
    assert functions.posterior is not None
    shapes = np.array([not_empty(functions.posterior(state, column, step, params)) for column in left.tolist()])
    expected = draws * probabilities(*shapes.T, optimistic=True)
    assert expected.min() > 5.0
    with mock.patch("dynabandit.choosing.draw_tree.MANY_ARMS", 2):
        if estimated:
            with mock.patch.object(Bandit, "_exact_probabilities", return_value=None):
                shares = bandit.propensities(draws=draws, among=left)
            counts = draws * np.array([shares[ARMS[column]] for column in left])
        else:
            chosen = []
            for seed in range(draws):
                bandit._signed_seed = seed
                chosen.append(bandit._by_policy(left, bandit.step + 1, None)[0])
            counts = np.array([chosen.count(column) for column in left])
    assert stats.chisquare(counts, expected).pvalue > 1e-4


def test_a_choice_that_ends_with_an_error_leaves_no_trace() -> None:
    bandit = grown("ts")
    before = bandit.state_hash()
    with mock.patch.object(draw_search, "USUAL_VISITS", 0.5):
        with mock.patch.object(Bandit, "_exact_probabilities", side_effect=ArithmeticError):
            for decide in (bandit.decide, lambda: bandit.rank(3)):
                with pytest.raises(ArithmeticError):
                    decide()
        assert bandit.state_hash() == before
        bandit.rank(3)
        assert bandit.state_hash() != before


def test_invalid_requests_do_not_let_the_tree_be_built_again() -> None:
    bandit = grown("ts")
    bandit.pause_arm("arm 1")
    bandit.choose()
    for invalid in ({"context": {"hour": 1}}, {"among": ["arm 1"]}):
        with pytest.raises((TypeError, ValueError)):
            bandit.rank(2, **invalid)
        assert bandit.unbuilt_arms == 0


def test_what_is_compiled_ahead_is_what_decides_between_many_arms() -> None:
    bandit = grown("ts")
    bandit.pause_arm("arm 0")
    before, scan, sizes = bandit.state_hash(), mock.Mock(return_value=0), list[int]()

    def new_draw_trees(replications: int, arms: int) -> np.ndarray:
        sizes.append(arms)
        return np.zeros((replications, *draw_tree.tree_shape(arms)))

    with (
        mock.patch.object(draw_tree, "new_draw_trees", new_draw_trees),
        mock.patch.object(arm_tree, "compiled_mark_arm", wraps=arm_tree.compiled_mark_arm) as mark_arm,
        mock.patch.object(arm_tree, "compiled_close_arm", wraps=arm_tree.compiled_close_arm) as close_arm,
        mock.patch.object(bandit, "_compiled_functions", return_value=(scan, bandit._learn)),
    ):
        bandit.compile()
    assert (scan.called, mark_arm.called, close_arm.called) == (True, True, True)
    assert sizes == [2], "a whole tree would take long"
    assert bandit.state_hash() == before


@pytest.mark.parametrize("name", ["ts", "mix-ts"])
def test_a_tree_knows_which_plays_of_new_arms_are_pending(name: str) -> None:
    """Else it would differ from the tree that a restored bandit builds."""
    bandit, earlier = Bandit(name, arms=ARMS, seed=3), 0
    for step in range(1, 61):
        again = Bandit.from_json(bandit.to_json())
        column = bandit.choose_column()
        assert again.choose_column() == column
        rows: list[Any] = [one._tree and one._tree._tree for one in (bandit, again)]
        np.testing.assert_array_equal(rows[0][HEAD_ROWS:], rows[1][HEAD_ROWS:])
        if step % 3 == 0:
            bandit.close_column(earlier)
        elif step % 10 == 0:
            bandit.reward_column(earlier, 1.0)
        earlier = column


@pytest.mark.parametrize("counted", [True, False])
def test_shares_in_a_tree_can_be_those_without_pending_plays(counted: bool) -> None:
    bandit, left = Bandit("ts", arms=ARMS, seed=3), np.arange(8)
    bandit.play_column(0)
    bandit.reward_column(0, 1.0)
    for _ in range(40):
        bandit.play_column(1)
    with mock.patch.object(Bandit, "_exact_probabilities", return_value=None):
        shares = bandit.propensities(count_pending=counted, draws=400, among=[ARMS[column] for column in left])
    assert (shares["arm 1"] > 0.05) is not counted


def test_a_tree_that_could_not_be_built_changes_nothing() -> None:
    new, bandit = Bandit("ts", arms=ARMS, seed=3), grown("ts")
    with mock.patch.object(draw_search, "USUAL_VISITS", 0.5):
        bandit.choose()
    bandit.pause_arm("arm 4")
    for one in (new, bandit):
        again, before = one.copy(), one.state_hash()
        with mock.patch.object(one._tree, "_choose", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
            one.choose()
        assert (one.state_hash(), one.unbuilt_arms) == (before, again.unbuilt_arms)
        assert Bandit.from_json(one.to_json()).choose() == again.choose() == one.choose()
        assert one.state_hash() == again.state_hash()


def test_arms_are_open_again_after_an_error() -> None:
    bandit, left = grown("ts"), np.arange(10)
    again = bandit.copy()
    assert bandit._tree is not None
    choose, calls = bandit._tree._choose, []

    def failing(*arguments: Any) -> int:
        calls.append(arguments[-1])
        if not arguments[-1]:
            raise ArithmeticError
        return choose(*arguments)

    with mock.patch.object(bandit._tree, "_choose", failing), pytest.raises(ArithmeticError):
        bandit.choose_column(among=left)
    assert calls == [True, False]
    assert [bandit.choose_column() for _ in range(30)] == [again.choose_column() for _ in range(30)]
