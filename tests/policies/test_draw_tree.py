"""The draw tree: its choices have the law of drawing all arms, and it is a function of the state, step and cells."""

import functools
import math
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy import stats

import dynabandit as db
from dynabandit.choosing import draw_search, draw_tree
from dynabandit.choosing.draw_cells import (
    BOUNDARIES,
    BOUNDARY,
    CELLS,
    EXCESS,
    EXPIRY,
    FAMILY,
    FILLED,
    HEAD_ROWS,
    LEVELS,
    NEW,
    REFERENCE,
    SAVED,
    first_leaf_of,
    is_placed,
    place_first,
)
from dynabandit.choosing.draw_tree import (
    make_bring_up_to_date,
    make_choose_in_tree,
    mark_all,
    mark_arm,
    new_draw_trees,
    sum_of,
    uses_draw_tree,
)
from dynabandit.core.beta_cells import log_distribution
from dynabandit.core.compilation import kernel
from dynabandit.core.draws import not_empty
from dynabandit.core.streams import TIE, pick, stream
from dynabandit.policies import POLICIES as ALL_POLICIES
from dynabandit.policies.base import CONSTANT, LARGEST_COLUMN, PolicyFunctions, PolicyState, Reward, Step, new_state
from oracles import draw_tree as oracle
from oracles.largest_draw import probabilities
from tools.interpreted import interpreted
from tools.trees_of_few_arms import remembered_distributions  # noqa: F401  # a fixture of this module

ALPHA = 1e-6  # the probability that a correct law fails its test, over random seeds
NOTHING = np.zeros(0)
POLICIES = ["ts", "ots", "dts", "aff-ts", "aff-ots", "mix-ts"]


class Many:
    """A policy with a draw tree, played by hand, interpreted."""

    def __init__(self, name: str, arms: int, seed: int = 1, **parameters: Any) -> None:
        self.policy, self.arms = db.policy(name, **parameters), arms
        self.functions, self.params = self.policy.functions, self.policy.params(arms)
        self.state = new_state(self.policy, arms, self.params)
        self.tree, self.scratch = new_draw_trees(1, arms)[0], np.full((5, arms), np.nan)
        self.number, self.rng = 0, np.random.default_rng(seed)
        self.means = self.rng.uniform(0.1, 0.9, arms)

    def step(self, replication: int = 0, number: int | None = None) -> Step:
        number = self.number + 1 if number is None else number
        common = self.functions.common(self.state, number, self.params)
        return Step(number, self.arms, common, NOTHING, NOTHING, stream(1, replication))

    def choose(self, replication: int = 0) -> int:
        step = self.step(replication)
        return make_choose_in_tree(self.functions)(self.tree, self.state, step, self.params, self.scratch)

    def play(self, arm: int) -> None:
        self.number += 1
        self.state.last_played[arm] = self.number
        value = float(self.rng.random() < self.means[arm])
        self.functions.learn(self.state, arm, Reward(value, self.number, self.number), self.params)
        mark_arm(self.tree, arm, self.arms)

    def counts(self, draws: int) -> np.ndarray:
        return np.bincount([self.choose(replication) for replication in range(draws)], minlength=self.arms)

    def shapes(self) -> np.ndarray:
        posterior, step = self.functions.posterior, self.step()
        assert posterior is not None
        return np.array([not_empty(posterior(self.state, arm, step, self.params)) for arm in range(self.arms)]).T

    def posterior_at(self, arm: int, number: int) -> tuple[float, float]:
        assert self.functions.posterior is not None
        return not_empty(self.functions.posterior(self.state, arm, self.step(number=number), self.params))

    def up_to_date(self) -> np.ndarray:
        make_bring_up_to_date(self.functions)(self.tree, self.state, self.step(), self.params)
        return self.tree[HEAD_ROWS:].copy()


def assert_law(counts: np.ndarray, expected: np.ndarray) -> None:
    """Chi-square test; arms with few expected choices are put together."""
    order = np.argsort(expected)
    rare = order[np.cumsum(expected[order]) * counts.sum() < 5.0]
    groups = [*([rare] if len(rare) else []), *([arm] for arm in np.setdiff1d(order, rare))]
    seen, hoped = (np.array([of[group].sum() for group in groups]) for of in (counts, expected))
    assert stats.chisquare(seen, hoped / hoped.sum() * seen.sum()).pvalue > ALPHA


@pytest.mark.parametrize("pending", [0, 1, 3])
@pytest.mark.parametrize("all_played", [True, False], ids=["all played", "some new"])
@pytest.mark.parametrize("name", POLICIES)
def test_choices_have_the_law_of_drawing_all_arms(name: str, all_played: bool, pending: int) -> None:
    """Some of the new arms, and arms with rewards, may have pending plays."""
    many = Many(name, arms=11)
    for arm in many.rng.integers(11 if all_played else 7, size=60):
        many.play(int(arm))
    many.choose()
    for arm in (0, 1, 8, 9) if pending else ():
        many.state.pending[arm] = pending
        mark_arm(many.tree, arm, many.arms)
    for _ in range(30):  # while one arm is played, the masses of the others stay as they are
        many.play(0)
    assert bool(sum_of(many.tree, NEW) == 0.0) is all_played
    expected = probabilities(*many.shapes(), optimistic=many.functions.optimistic)
    with mock.patch.object(draw_tree, "LARGEST_SHIFT", 100.0):  # long windows, whose masses are far too large
        mark_all(many.tree)
        assert_law(many.counts(500), expected)


@kernel
def given(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float]:
    return state.memory[0, arm], state.memory[1, arm]


@pytest.mark.parametrize("optimistic", [False, True], ids=["drawn", "optimistic"])
@pytest.mark.parametrize(
    "shapes",
    [
        [(2.0, 2.0)] * 9,
        [(0.02, 0.03), (0.5, 0.5), (3.0, 1.0), (1.0, 4.0), (0.02, 0.03)],
        [(5000.0, 5000.0), (5050.0, 4950.0), (5030.0, 4950.0), (1.0, 30.0), (5050.0, 4950.0)],
        [(1.0, 1.0), (1.0, 1.0)],
        [(1e4, 1e-12), (1e-12, 3.0), (1e9, 1e9)],
    ],
    ids=["equal", "small", "large", "two", "extreme"],
)
def test_any_shapes_have_the_law_of_drawing_all_arms(shapes: list[tuple[float, float]], optimistic: bool) -> None:
    many = Many("dts", arms=len(shapes))
    many.functions = PolicyFunctions(
        start=many.functions.start, learn=many.functions.learn, posterior=given, idle_posterior=CONSTANT,
        optimistic=optimistic,
    )  # fmt: skip
    many.state.memory[:] = np.array(shapes).T
    expected = probabilities(*many.shapes(), optimistic=optimistic)
    assert_law(many.counts(50 * len(shapes)), expected)
    many.tree[0, BOUNDARY:SAVED] = np.linspace(600.0, 500.0, BOUNDARIES)  # all draws are in the last cell
    mark_all(many.tree)
    with mock.patch.object(draw_tree, "EXCESS_PER_ARM", math.inf):
        assert_law(many.counts(50 * len(shapes)), expected)


def played(name: str, arms: int, plays: int) -> Many:
    """Return a policy that has played some of its arms, one of them often."""
    many = Many(name, arms)
    for arm in many.rng.integers(arms - 3, size=plays):
        many.play(int(arm))
    for _ in range(plays // 2):
        many.play(1)
    return many


@pytest.mark.parametrize("cells", ["usual", "wide", "above all draws", "below all draws"])
@pytest.mark.parametrize("name", ["ts", "ots", "aff-ots", "mix-ts"])
def test_choices_are_those_of_looking_at_the_masses_of_all_arms(name: str, cells: str) -> None:
    many = played(name, arms=11, plays=60)
    if cells != "usual":
        ends = {"wide": (20.5, -39.5), "above all draws": (600.0, 500.0), "below all draws": (-500.0, -600.0)}[cells]
        many.tree[0, BOUNDARY:SAVED] = np.linspace(*ends, BOUNDARIES)
    many.up_to_date()
    boundaries, shapes = many.tree[0, BOUNDARY:SAVED].copy(), [(float(a), float(b)) for a, b in many.shapes().T]
    bound = draw_tree.make_bound(many.functions)
    bounds = [bound(many.tree, many.state, arm, many.step(), many.params)[:2] for arm in range(8)] + shapes[8:]
    chosen, visited, drawn, excess = set(), 0, 0, 0.0
    many.tree[0, EXCESS] = 0.0
    for replication in range(20 if "all" in cells else 30):
        random, optimistic = stream(1, replication), many.functions.optimistic
        arm, visits, draws = oracle.choose(boundaries, shapes, bounds, optimistic, random, many.number + 1)
        assert many.choose(replication) == arm
        for one in visits:
            excess = max(excess + one - 3.0, 0.0)
        assert many.tree[0, EXCESS] == excess
        chosen.add(arm)
        visited, drawn = visited + sum(visits), drawn + draws
    assert len(chosen) > 2
    assert drawn > (30 if cells == "usual" else 50)  # there are several draws in the cell of the largest
    assert visited >= drawn


@pytest.mark.parametrize("name", ["aff-ots", "mix-ts", "aff-ts"])
def test_windows_of_idle_arms_are_as_long_as_their_shapes_allow(name: str) -> None:
    many = played(name, arms=30, plays=200)
    many.up_to_date()
    bound, lengths = draw_tree.make_bound(many.functions), set()
    for boundary in (many.tree[0, BOUNDARY + REFERENCE], -1.0, 8.0):
        many.tree[0, BOUNDARY + REFERENCE] = boundary
        top = 1.0 / (1.0 + math.exp(-boundary))
        for number in (many.number + 1, many.number + 999):
            for arm in range(27):  # the others are new
                found = bound(many.tree, many.state, arm, many.step(number=number), many.params)
                since = int(many.state.last_played[arm]) + 1
                posterior = functools.partial(many.posterior_at, arm)
                expected = oracle.largest_shapes(posterior, number, arm, since, top, 30)
                assert found == pytest.approx(expected, rel=1e-12)
                assert number < found[2]
                lengths.add(found[2] - number)
    assert len(lengths) > 20


def test_masses_of_idle_arms_are_bounds_that_hold_for_their_window() -> None:
    many = Many("aff-ots", arms=20)
    for arm in many.rng.integers(20, size=100):
        many.play(int(arm))
    stored = many.up_to_date()
    loose = 0
    for _ in range(40):
        many.play(3)
        fresh = Many("aff-ots", arms=20)
        fresh.state, fresh.number = many.state, many.number
        fresh.tree[0, :SAVED] = many.tree[0, :SAVED]
        with mock.patch.object(draw_tree, "LONGEST_WINDOW", 0):
            draw_tree.make_bound.cache_clear()
            now = make_fresh_nodes(fresh)
        stored = many.up_to_date()
        masses, exact = (of[:, : CELLS * FAMILY] for of in (stored, now))
        assert (masses >= exact * (1.0 - 1e-9)).all()
        loose += int((masses > exact * 1.01).sum())
    assert loose > 0


def make_fresh_nodes(many: Many) -> np.ndarray:
    """Return the nodes computed by functions that are made anew."""
    bring = draw_tree.make_bring_up_to_date.__wrapped__
    write = draw_tree.make_write_arm.__wrapped__
    with mock.patch.object(draw_tree, "make_write_arm", write):
        bring(many.functions)(many.tree, many.state, many.step(), many.params)
    return many.tree[HEAD_ROWS:].copy()


@pytest.mark.parametrize("excess", [0.0, 1e6], ids=["usual", "boundaries placed again"])
@pytest.mark.parametrize("arms", [5, 8, 9, 70])
@pytest.mark.parametrize("name", ["ts", "aff-ots", "mix-ts"])
def test_after_many_steps_the_tree_is_the_one_made_from_the_state_and_the_saved_numbers(
    name: str, arms: int, excess: float
) -> None:
    many = Many(name, arms)
    for _ in range(20):
        for _ in range(3):
            many.play(many.choose())
        many.tree[0, EXCESS] += excess
        again = Many(name, arms)
        again.state, again.number = many.state, many.number
        again.tree[0, :SAVED] = many.tree[0, :SAVED]
        nodes = many.up_to_date()
        assert np.array_equal(again.up_to_date(), nodes)
        assert np.array_equal(again.tree[0, :SAVED], many.tree[0, :SAVED])
        assert [again.choose(i) for i in range(3)] == [many.choose(i) for i in range(3)]
        many.tree[0, :SAVED] = again.tree[0, :SAVED]


@pytest.mark.parametrize("arms", [9, 64, 65, 73])
def test_the_masses_of_all_arms_add_up_also_if_the_last_family_has_one_arm(arms: int) -> None:
    many = Many("ts", arms=arms)
    for arm in (0, arms - 2, arms - 1, arms - 1):
        many.play(arm)
    nodes, leaf = many.up_to_date(), first_leaf_of(arms)
    for field in range(NEW + 1):
        each = [nodes[leaf + arm // FAMILY, field * FAMILY + arm % FAMILY] for arm in range(arms)]
        assert sum_of(many.tree, field) == pytest.approx(sum(each), rel=1e-12)
    assert sum_of(many.tree, NEW) == arms - 3


@pytest.mark.parametrize("arms", [64, 70, 513])
def test_every_arm_with_a_draw_in_a_cell_is_found(arms: int) -> None:
    """The search skips families without a draw; here all arms are looked at one after the other."""
    many, leaf, cell, new_mass = Many("ts", arms), first_leaf_of(arms), 4, 0.25
    masses = many.rng.choice([0.0, 0.03125, 0.5, 3.0], arms, p=[0.5, 0.4, 0.05, 0.05])
    new = many.rng.random(arms) < 0.1
    for arm in range(arms):
        row, node = many.tree[HEAD_ROWS + leaf + arm // FAMILY], arm % FAMILY
        row[cell * FAMILY + node], row[NEW * FAMILY + node] = (0.0, 1.0) if new[arm] else (masses[arm], 0.0)
    for family in range(leaf + (arms - 1) // FAMILY, 0, -1):
        draw_tree.write_sums(many.tree, family)
    step, expected, rest = many.step(), [], 0.2
    for arm, mass in enumerate(np.where(new, new_mass, masses)):
        if rest < mass:
            expected.append((arm, rest))
            rest = draw_search.exponential(step.random, step.number, arm, cell)
        else:
            rest -= mass
    find_draws = draw_search.make_find_draws(many.functions)
    within = draw_search.Range(cell, 1.0, 0.0, new_mass)
    found = find_draws(many.tree, many.state, step, many.params, within, 0.2, many.scratch)
    arms_with_draws = many.scratch[:2, :found].T
    assert arms_with_draws == pytest.approx(np.array(expected), rel=1e-12)
    assert many.tree[0, EXCESS] == max(found - 3.0, 0.0)


def test_the_only_new_arm_is_chosen_as_often_as_others_and_cells_are_placed_for_it() -> None:
    many = Many("ts", arms=3)
    for arm in [0, 2] * 10:
        many.play(arm)
    assert_law(many.counts(150), probabilities(*many.shapes(), optimistic=False))
    assert sum_of(many.tree, NEW) == 1.0
    x = 1.0 / (1.0 + np.exp(-many.tree[0, BOUNDARY : SAVED - 1, np.newaxis]))
    assert -stats.beta.logcdf(x, *many.shapes()).sum(axis=1) == pytest.approx(LEVELS[:-1], rel=0.3)


def test_after_a_play_only_its_arm_and_the_sums_above_it_are_computed() -> None:
    many = Many("ts", arms=20)
    for arm in (0, 1, 9):
        many.play(arm)
    many.up_to_date()
    root, first, second = many.tree[HEAD_ROWS : HEAD_ROWS + 3]
    first[1], second[1], root[1] = 5.0, 6.0, 7.0  # arm 1, arm 9 and the sum of the second family, in the first cell
    many.play(0)
    many.up_to_date()
    assert (first[1], second[1], root[1]) == (5.0, 6.0, 7.0)
    assert root[0] == pytest.approx(first[:FAMILY].sum(), rel=1e-12)


def test_an_arm_that_starts_again_has_no_masses() -> None:
    many = Many("ts", arms=9)
    many.play(2)
    many.up_to_date()
    many.state.memory[:, 2] = many.state.memory[:, 3]
    mark_arm(many.tree, 2, 9)
    many.up_to_date()
    assert sum_of(many.tree, NEW) == 9.0
    assert [sum_of(many.tree, cell) for cell in range(CELLS)] == [0.0] * CELLS


def test_two_draws_in_an_unbounded_cell_are_compared_after_few_steps() -> None:
    """Their log-odds are beyond 10^9, so that steps of one length would be too many."""
    calls = 0

    def counted(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float]:
        nonlocal calls
        calls += 1
        assert calls < 500
        return 1.0, 1e-9

    many = Many("dts", arms=2)
    largest_draw = draw_search.make_largest_draw.__wrapped__(many.functions._replace(posterior=counted))
    places = {0: 2e9, 1: 1.5e9}
    for order in ([0, 1], [1, 0]):
        calls = 0
        below = [-log_distribution(1.0, 1e-9, places[arm]) for arm in order]
        scratch = np.array([order, below, [0.0, 0.0], [0.0, 0.0]])
        assert largest_draw(many.state, many.step(), many.params, scratch, 2, 0.0, math.inf) == 0


def test_two_equal_scores_are_chosen_at_random() -> None:
    many = Many("ots", arms=2)
    largest_draw = draw_search.make_largest_draw(many.functions)
    for number in range(1, 20):
        step = many.step(number=number)
        for found in (1, 2):
            scratch = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 0.0], [0.0, 0.0]])
            chosen = largest_draw(many.state, step, many.params, scratch, found, 0.25, 0.25)
            assert chosen == 1 - pick(step.random, TIE, number, 0, found)


def test_a_marked_arm_expires_with_all_families_above_it_and_nothing_else_changes() -> None:
    tree = np.full(draw_tree.new_draw_trees(1, 513)[0].shape, 7.0)
    mark_arm(tree, 500, 513)
    # arm 500 is node 4 of leaf 73 + 62; families have 8 children, 1 + 8 f and so on
    expected = {(73 + 62, 4), (16, 134 % 8), (1, 15 % 8), (0, 0)}
    changed = {(int(row) - HEAD_ROWS, int(place) - EXPIRY * FAMILY) for row, place in np.argwhere(tree != 7.0)}
    assert changed == expected
    assert (tree[tree != 7.0] == 0.0).all()


def test_a_tree_is_filled_when_all_arms_are_written() -> None:
    many = Many("ts", 100)
    with mock.patch.object(draw_tree, "write_sums", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        many.choose()
    assert many.tree[0, FILLED] == 0.0
    many.choose()
    assert many.tree[0, FILLED] == 1.0


def test_no_masses_expire_without_a_play_if_posteriors_are_constant() -> None:
    many = Many("ts", arms=9)
    for arm in range(9):
        many.play(arm)
    assert np.isinf(many.up_to_date()[:, EXPIRY * FAMILY :]).all()
    fading = Many("aff-ts", arms=9)
    for arm in range(9):
        fading.play(arm)
    assert np.isfinite(fading.up_to_date()[:, EXPIRY * FAMILY :]).any()


def test_cells_are_placed_where_the_largest_draw_is_and_again_if_too_many_arms_are_visited() -> None:
    many = Many("ts", arms=30)
    for arm in many.rng.integers(30, size=90):
        many.play(int(arm))
    assert not is_placed(many.tree[0])
    many.choose()
    first = many.tree[0, BOUNDARY:SAVED].copy()
    a, b = many.shapes()
    hazard = -stats.beta.logcdf(1.0 / (1.0 + np.exp(-first[:, np.newaxis])), a, b).sum(axis=1)
    assert hazard == pytest.approx(LEVELS, rel=0.3)
    many.tree[0, BOUNDARY:SAVED] = np.linspace(20.0, 10.0, BOUNDARIES)  # no draw is there: all arms are visited
    mark_all(many.tree)
    for replication in range(200):
        many.choose(replication)
    low, high = many.tree[0, SAVED - 1], many.tree[0, BOUNDARY]
    assert low < first[-1] < first[0] < high < 20.0
    assert many.tree[0, EXCESS] < 30.0


def test_boundaries_are_placed_twice_at_first_and_again_beyond_four_arms_too_many_per_arm() -> None:
    many, slow = (played("ts", arms=11, plays=40) for _ in range(2))
    many.up_to_date()
    place_first(slow.tree[0])
    for _ in range(3):
        slow.up_to_date()
        slow.tree[0, EXCESS] = 4.0 * (8 + 64)  # three arms are new; not too many
        before = slow.tree.copy()
        slow.up_to_date()
        assert np.array_equal(slow.tree, before)
        slow.tree[0, EXCESS] += 1e-9
    slow.tree[0, EXCESS] = 0.0
    assert np.array_equal(slow.tree[0], many.tree[0])
    assert np.array_equal(slow.tree[HEAD_ROWS:], many.tree[HEAD_ROWS:])


def test_a_closed_arm_is_not_chosen_until_it_is_marked() -> None:
    many = played("aff-ots", arms=70, plays=90)
    full = many.up_to_date()
    for arm in (0, 7, 8, 60, 66):
        draw_tree.close_arm(many.tree, arm, 70)
        family, node = 9 + arm // 8, arm % 8
        expected = full[family].copy()
        expected[[field * FAMILY + node for field in range(EXPIRY)]] = 0.0
        assert many.tree[HEAD_ROWS + family].tolist() == expected.tolist()
        for field in range(EXPIRY):
            leaves = many.tree[HEAD_ROWS + 9 :, field * FAMILY : (field + 1) * FAMILY]
            with np.errstate(invalid="ignore"):
                assert sum_of(many.tree, field) == pytest.approx(leaves.sum(), rel=1e-9)
        mark_arm(many.tree, arm, 70)
        assert np.array_equal(many.up_to_date(), full)


def test_cells_follow_draws_with_very_large_log_odds() -> None:
    many = Many("dts", arms=60)
    many.functions = many.functions._replace(posterior=given)
    many.state.memory[:] = np.array([(4.0, 1e-4)] * 60).T
    for replication in range(150):
        many.choose(replication)
    many.tree[0, EXCESS] = 0.0
    for replication in range(30):
        many.choose(replication)
    assert many.tree[0, EXCESS] < 60.0  # all arms are visited 30 times if the cells are not where the draws are


def test_the_saved_numbers_are_32() -> None:
    assert (EXCESS, BOUNDARY, SAVED, CELLS, len(LEVELS)) == (0, 1, 32, 32, 31)


def test_only_many_arms_and_known_posteriors_use_the_tree() -> None:
    assert [uses_draw_tree(db.policy("ts").functions, arms) for arms in (1000, 1001)] == [False, True]
    using = {name for name in ALL_POLICIES if uses_draw_tree(ALL_POLICIES[name].functions, 10**6)}
    assert using == {*POLICIES, "odts", "aff-dts1", "aff-dts2"}
    exploring = db.policy("ts").functions._replace(explore=lambda *_: True)
    assert not uses_draw_tree(exploring, 1001)


def test_a_column_of_a_policy_fits_into_a_row_of_the_tree() -> None:
    assert new_draw_trees(1, 9).shape[2] == LARGEST_COLUMN
    policy = db.policy("ts")
    for size in ("memory_size", "shared_size"):
        with mock.patch.object(type(policy), size, return_value=272):
            new_state(policy, 9, policy.params(9))
        with mock.patch.object(type(policy), size, return_value=273), pytest.raises(ValueError, match="more than 272"):
            new_state(policy, 9, policy.params(9))


@pytest.mark.parametrize("delay", [None, db.delay("fixed", steps=5)], ids=["at once", "late"])
@pytest.mark.parametrize("name", ["ots", "mix-ts"])
def test_a_play_and_a_reward_change_the_tree_as_computing_it_anew_does(name: str, delay: Any) -> None:
    world = db.environment("case-1", arms=12)

    @kernel
    def change_all(tree: np.ndarray, state: PolicyState, arm: int, step: Step, params: Any) -> None:
        mark_all(tree)

    def simulated() -> np.ndarray:
        run = db.simulate(name, world, horizon=90, seed=2, delay=delay, keep="arms", threads=1)
        assert run.arms is not None
        return run.arms

    with interpreted(), mock.patch.object(draw_tree, "MANY_ARMS", 11):
        usual = simulated()
        with mock.patch("dynabandit.simulation.stepper.change_tree", change_all):
            assert np.array_equal(simulated(), usual)
        with mock.patch.object(draw_tree, "MANY_ARMS", 12):
            assert not np.array_equal(simulated(), usual)
