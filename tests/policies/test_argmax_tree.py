"""A tree of scores that stand still names the arm that a scan of all scores would."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import dynabandit as db
from dynabandit.core.compilation import kernel
from dynabandit.core.streams import Stream, stream
from dynabandit.policies.argmax_tree import make_enter, make_enter_all, new_trees, winner
from dynabandit.policies.base import Kernels, Now
from dynabandit.policies.choose_arm import make_choose, make_largest

# Few levels make many ties
SCORES = st.lists(st.sampled_from([-math.inf, -1.0, 0.0, 0.5, math.inf]), min_size=2, max_size=40)
NUMBERS = np.zeros(1)

largest = make_largest()


@kernel
def written(
    memory: np.ndarray, arm: int, idle: int, now: Now, parameters: np.ndarray, table: np.ndarray, source: Stream
) -> float:
    return memory[0, arm]


KERNELS = Kernels(start=db.policy("uniform").kernels.start, learn=db.policy("uniform").kernels.learn, score=written)
ENTER, ENTER_ALL = make_enter(KERNELS), make_enter_all(KERNELS)


def tree_of(scores: list[float]) -> np.ndarray:
    tree = new_trees(KERNELS._replace(still=True), 1, len(scores))[0]
    ENTER_ALL(tree, np.array([scores]), Now(1, len(scores), 0.0), NUMBERS, NUMBERS, stream(1))
    return tree


@given(SCORES, st.integers(1, 1000))
def test_the_winner_is_the_largest_and_ties_break_alike(scores: list[float], step: int) -> None:
    assert winner(tree_of(scores), len(scores), step, stream(3)) == largest(np.array(scores), step, stream(3))


@given(SCORES, st.data())
def test_one_arm_entered_anew_leaves_the_tree_of_all_arms_entered(scores: list[float], data: st.DataObject) -> None:
    tree = tree_of(scores)
    for _ in range(3):
        arm = data.draw(st.integers(0, len(scores) - 1))
        scores[arm] = data.draw(st.sampled_from([-math.inf, 0.0, 0.5, 2.0]))
        ENTER(tree, np.array([scores]), arm, Now(1, len(scores), 0.0), NUMBERS, NUMBERS, stream(1))
    assert (tree == tree_of(scores)).all()


@given(SCORES, st.data())
def test_a_score_that_is_no_number_never_wins(scores: list[float], data: st.DataObject) -> None:
    scores[data.draw(st.integers(0, len(scores) - 1))] = math.nan
    scores.append(1.0)
    assert winner(tree_of(scores), len(scores), 1, stream(3)) == largest(np.array(scores), 1, stream(3))


def test_a_policy_whose_scores_move_gets_no_tree() -> None:
    assert new_trees(db.policy("ucb").kernels, 3, 100).size == 0


def test_a_policy_that_draws_its_scores_cannot_be_still() -> None:
    with pytest.raises(ValueError, match="draws new scores at every step: its kernels cannot be still"):
        make_choose(db.policy("ts").kernels, still=True)


@pytest.mark.parametrize(("arms", "leaves"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (8, 8), (9, 16)])
def test_a_tree_has_two_nodes_for_each_leaf_and_as_few_leaves_as_can_be_halved(arms: int, leaves: int) -> None:
    assert new_trees(KERNELS._replace(still=True), 3, arms).shape == (3, 2, 2 * leaves)


@pytest.mark.parametrize("arms", [1, 2, 3, 5, 8, 9])
def test_a_tree_used_before_counts_the_arms_that_tie_and_no_empty_leaf(arms: int) -> None:
    for scores in ([-math.inf] * arms, [0.5] * arms, [0.5, *[-math.inf] * (arms - 1)]):
        tree = np.full_like(new_trees(KERNELS._replace(still=True), 1, arms)[0], 7.0)
        ENTER_ALL(tree, np.array([scores]), Now(1, arms, 0.0), NUMBERS, NUMBERS, stream(1))
        assert tree[:, 1].tolist() == [max(scores), scores.count(max(scores))]
        for step in range(1, 9):
            assert winner(tree, arms, step, stream(3)) == largest(np.array(scores), step, stream(3)) < arms


def test_an_arm_enters_as_one_just_played() -> None:
    @kernel
    def idle_score(memory, arm, idle, now, parameters, table, source):  # type: ignore[no-untyped-def]
        return 10.0 * arm + idle

    kernels = KERNELS._replace(score=idle_score, still=True)
    tree = new_trees(kernels, 1, 3)[0]
    rest = np.zeros((1, 3)), Now(1, 3, 0.0), NUMBERS, NUMBERS, stream(1)
    make_enter_all(kernels)(tree, *rest)
    assert tree[0, 4:7].tolist() == [0.0, 10.0, 20.0]
    tree[0, 4:7] = 5.0
    make_enter(kernels)(tree, rest[0], 2, *rest[1:])
    assert tree[0, 4:7].tolist() == [5.0, 5.0, 20.0]
