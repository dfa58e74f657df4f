"""The argmax tree of a static index finds the arm that a scan of all scores would."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import dynabandit as db
from dynabandit.choosing.argmax_tree import make_fill_tree, make_update_tree, new_trees, tree_argmax
from dynabandit.choosing.choose_arm import make_choose
from dynabandit.core.compilation import kernel
from dynabandit.core.streams import stream
from dynabandit.core.tie_breaking import make_argmax
from dynabandit.policies.base import PolicyState, Step

# Few levels make many ties
SCORES = st.lists(st.sampled_from([-math.inf, -1.0, 0.0, 0.5, math.inf]), min_size=2, max_size=40)
NOTHING = np.zeros(0)

argmax = make_argmax()


@kernel
def written(state: PolicyState, arm: int, step: Step, params: Any) -> float:
    return float(state.memory[0, arm])


FUNCTIONS = db.policy("uniform").functions._replace(score=written)
FILL, UPDATE = make_fill_tree(FUNCTIONS), make_update_tree(FUNCTIONS)


def step_of(arms: int) -> Step:
    return Step(1, arms, 0.0, NOTHING, NOTHING, stream(1))


def state_of(scores: list[float]) -> PolicyState:
    return PolicyState(np.array([scores]), np.zeros(1), np.zeros(len(scores), dtype=np.int64))


def tree_of(scores: list[float]) -> np.ndarray:
    tree = new_trees(FUNCTIONS, 1, len(scores))[0]
    FILL(tree, state_of(scores), step_of(len(scores)), None)
    return tree


@given(SCORES, st.integers(1, 1000))
def test_the_argmax_is_that_of_a_scan_and_ties_break_alike(scores: list[float], step: int) -> None:
    assert tree_argmax(tree_of(scores), step, stream(3)) == argmax(np.array(scores), step, stream(3))


@given(SCORES, st.data())
def test_an_update_of_one_arm_leaves_the_tree_of_all_arms(scores: list[float], data: st.DataObject) -> None:
    tree = tree_of(scores)
    for _ in range(3):
        arm = data.draw(st.integers(0, len(scores) - 1))
        scores[arm] = data.draw(st.sampled_from([-math.inf, 0.0, 0.5, 2.0]))
        UPDATE(tree, state_of(scores), arm, step_of(len(scores)), None)
    assert (tree == tree_of(scores)).all()


@given(SCORES, st.data())
def test_a_score_that_is_no_number_never_wins(scores: list[float], data: st.DataObject) -> None:
    scores[data.draw(st.integers(0, len(scores) - 1))] = math.nan
    scores.append(1.0)
    assert tree_argmax(tree_of(scores), 1, stream(3)) == argmax(np.array(scores), 1, stream(3))


def test_a_policy_without_a_static_index_has_no_tree() -> None:
    assert new_trees(db.policy("ucb").functions, 3, 100).size == 0


def test_a_policy_that_draws_its_scores_has_no_static_index() -> None:
    with pytest.raises(ValueError, match="draws new scores at every step: it has no static index"):
        make_choose(db.policy("ts").functions, scored=True)


@pytest.mark.parametrize(("arms", "leaves"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (8, 8), (9, 16)])
def test_a_tree_has_two_nodes_for_each_leaf_and_as_few_leaves_as_can_be_halved(arms: int, leaves: int) -> None:
    assert new_trees(FUNCTIONS, 3, arms).shape == (3, 2, 2 * leaves)


@pytest.mark.parametrize("arms", [1, 2, 3, 5, 8, 9])
def test_a_tree_used_before_counts_the_arms_that_tie_and_no_empty_leaf(arms: int) -> None:
    for scores in ([-math.inf] * arms, [0.5] * arms, [0.5, *[-math.inf] * (arms - 1)]):
        tree = np.full_like(new_trees(FUNCTIONS, 1, arms)[0], 7.0)
        FILL(tree, state_of(scores), step_of(arms), None)
        assert tree[:, 1].tolist() == [max(scores), scores.count(max(scores))]
        for step in range(1, 9):
            assert tree_argmax(tree, step, stream(3)) == argmax(np.array(scores), step, stream(3)) < arms
