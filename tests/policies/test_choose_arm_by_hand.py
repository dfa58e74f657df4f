"""How an arm is picked, step by step: for few arms and many, alone and where walkers have turns without an arm."""

import math

import numpy as np
import pytest

from dynabandit.core.compilation import kernel
from dynabandit.core.draws import beta
from dynabandit.core.lanes import ALONE
from dynabandit.core.largest_beta_draw import draw_above, may_exceed, uniform_prefixes
from dynabandit.core.streams import EXPLORED_ARM, SCORE, TIE, shifted, stream, uniform
from dynabandit.policies.base import Kernels, Now
from dynabandit.policies.choose_arm import (  # fmt: skip
    SCRATCH_ROWS,
    is_contest,
    make_choose,
    make_count_choices,
    make_enter_row,
    make_largest,
    make_mark_open,
    one_of_ties,
)

NUMBERS, SHARED = np.zeros(1), np.zeros(1)
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


FOURS = ALONE._replace(rounds=by_fours, turns=by_fours_between, inside=is_inside)  # its last turns may have no arm


@kernel
def scored(memory, arm, idle, now, parameters, table, source):  # type: ignore[no-untyped-def]
    return memory[0, arm] + 100.0 * idle + 0.001 * arm


@kernel
def believed(memory, arm, idle, now, parameters):  # type: ignore[no-untyped-def]
    return memory[0, arm] + idle, memory[1, arm]


@kernel
def always(memory, leader, idle, now, parameters, source):  # type: ignore[no-untyped-def]
    memory[0, 0] = idle
    return True


def policy(**parts: object) -> Kernels:
    return Kernels(start=lambda: None, learn=lambda: None, **parts)  # type: ignore[arg-type]


class Choice:
    """One decision at a step, for arms that were last played some steps ago."""

    def __init__(self, arms: int, step: int = 60) -> None:
        rng = np.random.default_rng(arms + step)
        self.arms, self.step = arms, step
        self.memory = rng.uniform(1.0, 6.0, (2, arms))
        self.last = step - 1 - rng.integers(0, 5, arms)
        self.idle = step - 1 - self.last
        self.scratch = np.full((SCRATCH_ROWS, arms), math.nan)

    def made(self, kernels: Kernels, walk: object = ALONE, **options: bool) -> int:
        choose = make_choose(kernels, walk, **options)  # type: ignore[arg-type]
        return choose(self.memory, SHARED, self.last, self.scratch, self.step, NUMBERS, NUMBERS, SOURCE)

    def drawn(self, optimistic: bool) -> np.ndarray:
        a, b = self.memory[0] + self.idle, self.memory[1]
        draws = np.array([beta(a[i], b[i], SOURCE, SCORE, self.step, i) for i in range(self.arms)])
        return np.maximum(draws, a / (a + b)) if optimistic else draws

    def contest(self, optimistic: bool) -> np.ndarray:
        """The scores after a contest, in groups of 32 against the best of the groups before."""
        a, b = self.memory[0] + self.idle, self.memory[1]
        mean = a / (a + b)
        favourite = int(np.argmax(mean))
        best = beta(a[favourite], b[favourite], SOURCE, SCORE, self.step, favourite)
        best = max(best, mean[favourite]) if optimistic else best
        scores = np.full(self.arms, -1.0)
        scores[favourite] = best
        for start in range(0, self.arms, 32):
            group = range(start, min(start + 32, self.arms))
            for arm in group:
                bits = uniform_prefixes(SOURCE, self.step, arm // 8)[arm % 8]
                if arm != favourite and may_exceed(a[arm], b[arm], mean[arm], best, bits):
                    rest = (SOURCE, self.step, arm)
                    scores[arm] = draw_above(a[arm], b[arm], mean[arm], best, bits, *rest)
            best = max(best, scores[start : start + 32].max())
        return np.maximum(scores, mean) if optimistic else scores


def test_more_than_eight_arms_hold_a_contest() -> None:
    assert [is_contest(arms) for arms in (1, 7, 8, 9, 100)] == [False, False, False, True, True]
    assert SCRATCH_ROWS == 5


@pytest.mark.parametrize("walk", [ALONE, FOURS], ids=["alone", "by fours"])
@pytest.mark.parametrize("arms", SIZES)
def test_the_largest_score_is_chosen_with_the_idle_time_of_each_arm(arms: int, walk: object) -> None:
    for step in (60, 61, 62):
        choice = Choice(arms, step)
        expected = choice.memory[0] + 100.0 * choice.idle + 0.001 * np.arange(arms)
        assert choice.made(policy(score=scored), walk) == np.argmax(expected)
        assert (choice.scratch[0] == expected).all()


@pytest.mark.parametrize("walk", [ALONE, FOURS], ids=["alone", "by fours"])
@pytest.mark.parametrize("optimistic", [False, True])
@pytest.mark.parametrize("arms", SIZES)
def test_few_arms_are_all_drawn_and_many_hold_a_contest(arms: int, optimistic: bool, walk: object) -> None:
    kernels = policy(posterior=believed, optimistic=optimistic)
    for step in (60, 61, 62):
        choice = Choice(arms, step)
        drawn, contest = choice.drawn(optimistic), choice.contest(optimistic)
        for option, expected in ((None, contest if arms > 8 else drawn), (True, contest), (False, drawn)):
            options = {} if option is None else {"contest": option}
            assert choice.made(kernels, walk, **options) == np.argmax(expected)
            assert (choice.scratch[0] == expected).all()


@pytest.mark.parametrize("best", [0, 5, 8, 32, 39])
def test_the_favourite_may_stand_anywhere_in_a_contest(best: int) -> None:
    choice = Choice(40)
    choice.memory[:, best] = 5000.0, 1.0
    assert choice.made(policy(posterior=believed)) == best
    assert (choice.scratch[0] == choice.contest(optimistic=False)).all()


def test_an_arm_is_marked_by_one_where_it_may_win_and_as_a_loser_where_not() -> None:
    a, b, bits = np.full(40, 3.0), np.full(40, 5.0), np.linspace(0.0, 65535.0, 40)
    mean, marks = a / (a + b), np.full(40, math.nan)
    make_mark_open(FOURS)(marks, a, b, mean, 0.7, bits)
    assert marks.tolist() == [1.0 if may_exceed(3.0, 5.0, 0.375, 0.7, bit) else -1.0 for bit in bits]
    assert set(marks) == {1.0, -1.0}


@kernel
def nan(value: float) -> float:
    return math.nan


@pytest.mark.parametrize("arms", [9, 16, 33])
def test_where_walkers_cannot_agree_on_the_largest_mean_the_last_arm_is_drawn_first(arms: int) -> None:
    # Fast arithmetic need not know that a number equals itself; what is drawn must still be an arm
    choice = Choice(arms)
    choice.made(policy(posterior=believed), ALONE._replace(highest=nan), contest=True)
    a, b = choice.memory[0, -1] + choice.idle[-1], choice.memory[1, -1]
    assert choice.scratch[0, -1] == beta(a, b, SOURCE, SCORE, choice.step, arms - 1)


@pytest.mark.parametrize("walk", [ALONE, FOURS], ids=["alone", "by fours"])
def test_scores_that_stand_still_are_entered_as_of_arms_just_played(walk: object) -> None:
    choice = Choice(9)
    rest = Now(60, 9, 0.0), NUMBERS, NUMBERS, SOURCE
    enter_all, enter = make_enter_row(policy(score=scored), walk)  # type: ignore[arg-type]
    enter_all(choice.scratch, choice.memory, *rest)
    assert (choice.scratch[0] == choice.memory[0] + 0.001 * np.arange(9)).all()
    assert np.isnan(choice.scratch[1:]).all()
    choice.memory += 10.0
    before = choice.scratch[0].copy()
    enter(choice.scratch, choice.memory, 4, *rest)
    before[4] = choice.memory[0, 4] + 0.001 * 4
    assert (choice.scratch[0] == before).all()
    assert np.isnan(choice.scratch[1:]).all()


def test_still_scores_are_kept_as_they_are_in_the_first_row() -> None:
    choice = Choice(9)
    choice.scratch[0] = np.arange(9) % 7.0
    assert choice.made(policy(score=scored, still=True), FOURS, still=True) == 6


@pytest.mark.parametrize("step", range(1, 20))
def test_who_explores_takes_an_arm_by_its_own_uniform_number(step: int) -> None:
    choice = Choice(6, step)
    leader = int(np.argmax(choice.memory[0] + 100.0 * choice.idle + 0.001 * np.arange(6)))
    explored = choice.made(policy(score=scored, explore=always))
    assert explored == int(uniform(SOURCE, EXPLORED_ARM, step, 0) * 6)
    assert choice.memory[0, 0] == choice.idle[leader]


@pytest.mark.parametrize("draws", [0, 1, 2, 50])
def test_other_replications_are_counted_each_once(draws: int) -> None:
    choose = make_choose(policy(posterior=believed))
    for step in range(60, 70):
        choice = Choice(4, step)
        rest = choice.memory, SHARED, choice.last, choice.scratch, step, NUMBERS, NUMBERS
        counts = np.zeros(4, dtype=np.int64)
        make_count_choices(choose)(*rest, SOURCE, counts, draws)
        expected = [choose(*rest, shifted(SOURCE, 1 + draw)) for draw in range(draws)]
        assert counts.tolist() == [expected.count(arm) for arm in range(4)]


@pytest.mark.parametrize("scores", [[1.0, 1.0], [0.0, 2.0, 2.0, 1.0, 2.0], [math.inf, 0.0, math.inf], [3.0]])
def test_a_tie_goes_to_the_arm_that_its_uniform_number_counts_to(scores: list[float]) -> None:
    tied = [arm for arm, score in enumerate(scores) if score == max(scores)]
    for step in range(1, 30):
        expected = tied[int(uniform(SOURCE, TIE, step, 0) * len(tied))]
        assert make_largest()(np.array(scores), step, SOURCE) == expected
        assert one_of_ties(np.array(scores), max(scores), step, SOURCE) == expected


def test_who_walks_alone_holds_the_only_best_arm_or_several() -> None:
    assert [ALONE.only(3, *given) for given in ((True, False), (True, True), (False, False))] == [3, -1, -1]


def test_where_no_score_is_a_number_the_first_arm_is_chosen() -> None:
    assert make_largest()(np.full(3, math.nan), 1, SOURCE) == 0
    assert one_of_ties(np.full(3, math.nan), -math.inf, 1, SOURCE) == 0
