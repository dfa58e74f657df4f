"""How an arm is chosen, step by step: with few arms and many, one lane and rounds in which a lane has no arm."""

import math
from typing import Any

import numpy as np
import pytest

from dynabandit.choosing.choose_arm import (
    SCRATCH_ROWS,
    Workspace,
    is_pruned,
    make_choose,
    make_count_choices,
    make_mark_candidates,
    make_score_row,
    new_workspace,
)
from dynabandit.core.argmax import MANY
from dynabandit.core.compilation import kernel
from dynabandit.core.draws import beta_odds
from dynabandit.core.lanes import SINGLE_LANE, LaneGroup
from dynabandit.core.largest_beta_draw import draw_above, may_exceed, uniform_prefixes
from dynabandit.core.streams import EXPLORED_ARM, SCORE, TIE, shifted, stream, uniform
from dynabandit.core.tie_breaking import make_argmax, make_break_tie
from dynabandit.policies.base import PolicyFunctions, PolicyState, Step, idle_steps

NOTHING, SHARED = np.zeros(0), np.zeros(1)
SOURCE = stream(4, replication=2)
SIZES = [2, 7, 8, 9, 16, 17, 31, 32, 33, 40, 65]


@kernel
def by_fours(count: int) -> int:
    return (count + 3) // 4 * 4


@kernel
def by_fours_between(start: int, end: int) -> int:
    return (end - start + 3) // 4 * 4


@kernel
def is_inside(arm: int, end: int) -> bool:
    return 0 <= arm < end


FOURS = SINGLE_LANE._replace(rounds=by_fours, rounds_between=by_fours_between, exists=is_inside)


@kernel
def scored(state: PolicyState, arm: int, step: Step, params: Any) -> float:
    return state.memory[0, arm] + 100.0 * idle_steps(state, arm, step) + 0.001 * arm


@kernel
def believed(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float]:
    return state.memory[0, arm] + idle_steps(state, arm, step), state.memory[1, arm]


@kernel
def always(state: PolicyState, leader: int, step: Step, params: Any) -> bool:
    state.memory[0, 0] = idle_steps(state, leader, step)
    return True


def policy(**parts: Any) -> PolicyFunctions:
    return PolicyFunctions(start=lambda *_: None, learn=lambda *_: None, **parts)


class Choice:
    """One decision at a step, for arms that were last played some steps ago."""

    def __init__(self, arms: int, step: int = 60) -> None:
        rng = np.random.default_rng(arms + step)
        self.arms, self.step = arms, step
        self.memory = rng.uniform(1.0, 6.0, (2, arms))
        self.idle = rng.integers(0, 5, arms)
        self.state = PolicyState(self.memory, SHARED, step - 1 - self.idle)
        self.scratch = np.full((SCRATCH_ROWS, arms), math.nan)
        self.space = Workspace(self.scratch, NOTHING, NOTHING, NOTHING)

    def made(self, functions: PolicyFunctions, lanes: LaneGroup = SINGLE_LANE, **options: Any) -> int:
        return make_choose(functions, lanes, **options)(self.state, self.step, None, self.space, SOURCE)

    def drawn(self, optimistic: bool) -> np.ndarray:
        a, b = self.memory[0] + self.idle, self.memory[1]
        draws = np.array([beta_odds(a[i], b[i], SOURCE, SCORE, self.step, i) for i in range(self.arms)])
        return np.maximum(draws, a / b) if optimistic else draws

    def pruned(self, optimistic: bool) -> np.ndarray:
        """The scores of pruned draws, in groups of 32 against the best of the groups before."""
        a, b = self.memory[0] + self.idle, self.memory[1]
        mean = a / (a + b)
        incumbent = int(np.argmax(mean))
        best = beta_odds(a[incumbent], b[incumbent], SOURCE, SCORE, self.step, incumbent)
        best = max(best, a[incumbent] / b[incumbent]) if optimistic else best
        scores = np.full(self.arms, -1.0)
        scores[incumbent] = best
        for start in range(0, self.arms, 32):
            group = range(start, min(start + 32, self.arms))
            for arm in group:
                bits = uniform_prefixes(SOURCE, self.step, arm // 8)[arm % 8]
                if arm != incumbent and may_exceed(a[arm], b[arm], mean[arm], best / (1.0 + best), bits):
                    rest = (SOURCE, self.step, arm)
                    scores[arm] = draw_above(a[arm], b[arm], mean[arm], best, bits, *rest)
            best = max(best, scores[start : start + 32].max())
        return np.where(mean == mean.max(), np.maximum(scores, a / b), scores) if optimistic else scores


def test_draws_are_pruned_for_more_than_eight_arms() -> None:
    assert [is_pruned(arms) for arms in (1, 7, 8, 9, 100)] == [False, False, False, True, True]
    assert SCRATCH_ROWS == 4


@pytest.mark.parametrize("lanes", [SINGLE_LANE, FOURS], ids=["single", "by fours"])
@pytest.mark.parametrize("arms", SIZES)
def test_the_largest_score_is_chosen_with_the_idle_time_of_each_arm(arms: int, lanes: LaneGroup) -> None:
    for step in (60, 61, 62):
        choice = Choice(arms, step)
        expected = choice.memory[0] + 100.0 * choice.idle + 0.001 * np.arange(arms)
        assert choice.made(policy(score=scored), lanes) == np.argmax(expected)
        assert (choice.scratch[0] == expected).all()


@pytest.mark.parametrize("lanes", [SINGLE_LANE, FOURS], ids=["single", "by fours"])
@pytest.mark.parametrize("optimistic", [False, True])
@pytest.mark.parametrize("arms", SIZES)
def test_few_arms_are_all_drawn_and_many_are_pruned(arms: int, optimistic: bool, lanes: LaneGroup) -> None:
    functions = policy(posterior=believed, optimistic=optimistic)
    for step in (60, 61, 62):
        choice = Choice(arms, step)
        drawn, pruned = choice.drawn(optimistic), choice.pruned(optimistic)
        for option, expected in ((None, pruned if arms > 8 else drawn), (True, pruned), (False, drawn)):
            assert choice.made(functions, lanes, pruned=option) == np.argmax(expected)
            assert (choice.scratch[0] == expected).all()


@pytest.mark.parametrize("best", [0, 5, 8, 32, 39])
def test_the_incumbent_may_be_any_arm(best: int) -> None:
    choice = Choice(40)
    choice.memory[:, best] = 5000.0, 1.0
    assert choice.made(policy(posterior=believed)) == best
    assert (choice.scratch[0] == choice.pruned(optimistic=False)).all()


def test_an_arm_whose_uniform_number_begins_with_sixteen_zeros_is_drawn_too() -> None:
    choice = Choice(33, step=84)
    choice.idle[:], choice.state.last_played[:] = 0, 83
    choice.memory[0], choice.memory[1], choice.memory[:, 7] = 3.0, 5.0, (200.0, 20.0)  # arm 7 is the incumbent
    assert uniform_prefixes(SOURCE, 84, 3)[0] == 0.0  # of arm 24
    assert choice.made(policy(posterior=believed)) == 24
    assert (choice.scratch[0] == choice.pruned(optimistic=False)).all()


@pytest.mark.parametrize("lanes", [SINGLE_LANE, FOURS], ids=["single", "by fours"])
def test_an_arm_is_marked_if_its_draw_may_exceed_the_best(lanes: LaneGroup) -> None:
    a, b, bits = np.full(40, 3.0), np.full(40, 5.0), np.linspace(0.0, 65535.0, 40)
    mean, marks = a / (a + b), bits.copy()
    make_mark_candidates(lanes)(marks, a, b, mean, 0.7)
    assert marks.tolist() == [bit if may_exceed(3.0, 5.0, 0.375, 0.7, bit) else -1.0 for bit in bits]
    assert min(marks) == -1.0 < 0.0 == marks[0]


@kernel
def nan(value: float) -> float:
    return math.nan


@pytest.mark.parametrize("arms", [9, 16, 33])
def test_if_lanes_do_not_agree_on_the_largest_mean_the_last_arm_is_drawn_first(arms: int) -> None:
    # Fast arithmetic need not know that a number equals itself; what is drawn must still be an arm
    choice = Choice(arms)
    choice.made(policy(posterior=believed), SINGLE_LANE._replace(highest=nan), pruned=True)
    a, b = choice.memory[0, -1] + choice.idle[-1], choice.memory[1, -1]
    assert choice.scratch[0, -1] == beta_odds(a, b, SOURCE, SCORE, choice.step, arms - 1)


@pytest.mark.parametrize("lanes", [SINGLE_LANE, FOURS], ids=["single", "by fours"])
def test_a_static_index_is_stored_in_the_first_row(lanes: LaneGroup) -> None:
    choice = Choice(9)
    step = Step(60, 9, 0.0, NOTHING, NOTHING, SOURCE)
    fill, update = make_score_row(policy(score=scored), lanes)
    fill(choice.scratch, choice.state, step, None)
    assert (choice.scratch[0] == choice.memory[0] + 100.0 * choice.idle + 0.001 * np.arange(9)).all()
    assert np.isnan(choice.scratch[1:]).all()
    choice.memory += 10.0
    before = choice.scratch[0].copy()
    update(choice.scratch, choice.state, 4, step, None)
    before[4] = choice.memory[0, 4] + 100.0 * choice.idle[4] + 0.001 * 4
    assert (choice.scratch[0] == before).all()
    assert np.isnan(choice.scratch[1:]).all()


def test_stored_scores_are_used_as_they_are() -> None:
    choice = Choice(9)
    choice.scratch[0] = np.arange(9) % 7.0
    assert choice.made(policy(score=scored, static_index=True), FOURS, scored=True) == 6


@pytest.mark.parametrize("step", range(1, 20))
def test_who_explores_takes_an_arm_by_its_own_uniform_number(step: int) -> None:
    choice = Choice(6, step)
    leader = int(np.argmax(choice.memory[0] + 100.0 * choice.idle + 0.001 * np.arange(6)))
    explored = choice.made(policy(score=scored, explore=always))
    assert explored == int(uniform(SOURCE, EXPLORED_ARM, step, 0) * 6)
    assert choice.memory[0, 0] == choice.idle[leader]


def test_a_policy_that_chooses_itself_is_given_the_step_without_a_common_number() -> None:
    given: list[Step] = []
    choice = Choice(5)

    def choose(state: PolicyState, step: Step, params: Any) -> int:
        given.append(step)
        return 3

    assert choice.made(policy(choose=choose)) == 3
    assert given == [Step(60, 5, 0.0, NOTHING, NOTHING, SOURCE)]


@pytest.mark.parametrize("optimistic", [False, True])
def test_room_for_more_arms_stays_unused(optimistic: bool) -> None:
    choice = Choice(11)
    for best in (3, 10):  # a tie
        choice.memory[:, best], choice.idle[best], choice.state.last_played[best] = (90.0, 9.0), 0, 59
    choice.scratch = np.full((SCRATCH_ROWS, 14), math.nan)
    choice.space = choice.space._replace(scratch=choice.scratch)
    expected = choice.pruned(optimistic)
    assert choice.made(policy(posterior=believed, optimistic=optimistic)) == np.argmax(expected)
    assert (choice.scratch[0, :11] == expected).all()
    assert np.isnan(choice.scratch[:, 11:]).all()


@pytest.mark.parametrize("draws", [0, 1, 2, 50])
def test_other_replications_are_counted_each_once(draws: int) -> None:
    choose = make_choose(policy(posterior=believed))
    for step in range(60, 70):
        choice = Choice(4, step)
        rest = choice.state, step, None, choice.space
        counts = np.zeros(4, dtype=np.int64)
        make_count_choices(choose)(*rest, SOURCE, counts, draws)
        expected = [choose(*rest, shifted(SOURCE, 1 + draw)) for draw in range(draws)]
        assert counts.tolist() == [expected.count(arm) for arm in range(4)]


@pytest.mark.parametrize(
    "scores", [[1.0, 1.0], [0.0, 2.0, 2.0, 1.0, 2.0], [math.inf, 0.0, math.inf], [3.0], [4.0, 0.0, 1.0, 4.0]]
)
def test_a_tie_goes_to_the_arm_that_its_uniform_number_counts_to(scores: list[float]) -> None:
    tied = [arm for arm, score in enumerate(scores) if score == max(scores)]
    for step in range(1, 30):
        expected = tied[int(uniform(SOURCE, TIE, step, 0) * len(tied))]
        assert make_argmax()(np.array(scores), step, SOURCE) == expected
        for lanes in (SINGLE_LANE, FOURS):
            assert make_break_tie(lanes)(np.array(scores), max(scores), step, SOURCE) == expected
        many = np.array([-1.0] * MANY + scores)  # another method
        assert make_argmax()(many, step, SOURCE) == MANY + expected


def test_a_single_lane_has_the_only_best_arm_or_several() -> None:
    assert [SINGLE_LANE.unique(3, *given) for given in ((True, False), (True, True), (False, False))] == [3, -1, -1]


@pytest.mark.parametrize(
    ("scores", "asked"), [([3.0, 1.0], (0, True, False)), ([1.0, 3.0, 3.0], (1, True, True)), ([2.0], (0, True, False))]
)
def test_a_group_is_asked_for_the_only_best_arm_and_its_answer_is_used(
    scores: list[float], asked: tuple[int, bool, bool]
) -> None:
    given = []

    def unique(arm: int, holds: bool, several: bool) -> int:
        given.append((arm, holds, several))
        return 0

    assert make_argmax(SINGLE_LANE._replace(unique=unique))(np.array(scores), 1, SOURCE) == 0
    make_argmax(SINGLE_LANE._replace(unique=unique, highest=lambda own: own + 1.0))(np.array(scores), 1, SOURCE)
    assert given == [asked, (asked[0], False, asked[2])]


@pytest.mark.parametrize(("arms", "columns"), [(0, 1), (1, 1), (2, 2), (9, 9)])
def test_a_workspace_has_a_column_for_each_arm_and_at_least_one(arms: int, columns: int) -> None:
    space = new_workspace(policy(table=lambda arms, horizon: np.full(2, 10.0 * arms + horizon)), arms, 7)
    assert space.scratch.shape == (SCRATCH_ROWS, columns)
    assert (space.tree.size, space.features.size) == (0, 0)
    assert (space.table == 10.0 * columns + 7).all()


def test_where_no_score_is_a_number_the_first_arm_is_chosen() -> None:
    assert make_argmax()(np.full(3, math.nan), 1, SOURCE) == 0
    assert make_argmax()(np.full(3 * MANY, math.nan), 1, SOURCE) == 0
    for lanes in (SINGLE_LANE, FOURS):
        assert make_break_tie(lanes)(np.full(3, math.nan), -math.inf, 1, SOURCE) == 0
