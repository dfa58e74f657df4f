"""PB1 to PB4 and other benchmarks of the field: exact where they are deterministic, else by their laws."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

import dynabandit as db
from dynabandit.core.streams import LARGEST_STEP, PATH, START, stream, uniform, uniform_pair, words
from dynabandit.environments import Burst, EnvironmentStep, Needle, Rotting, Seasonal, seasonal
from dynabandit.environments.piecewise_benchmarks import FOR_ALL
from tools.laws import ERROR_RATE, assert_law, assert_share, assert_uncorrelated, size


def changed(path: np.ndarray) -> np.ndarray:
    """The steps, counted from 1, at which each arm has another mean than before."""
    return np.argwhere(np.diff(path, axis=0) != 0.0) + np.array([2, 0])


# --- PB1 and PB2 --------------------------------------------------------------------------------------------


def test_every_change_of_pb_1_is_of_one_arm_and_every_change_of_pb_2_of_all() -> None:
    for name, count in (("pb-1", 1), ("pb-2", 3)):
        steps, arms = np.unique(changed(db.environment(name).path(5000, seed=1))[:, 0], return_counts=True)
        assert steps.tolist() == [1001, 2001, 3001, 4001]
        assert arms.tolist() == [count] * 4


def test_each_segment_of_pb_1_and_pb_2_has_its_best_arm() -> None:
    best = {name: db.environment(name).path(5000, seed=1)[::1000].argmax(axis=1).tolist() for name in ("pb-1", "pb-2")}
    assert best == {"pb-1": [0, 0, 2, 1, 1], "pb-2": [0, 0, 2, 2, 2]}


@pytest.mark.parametrize(("name", "units"), [("pb-1", 5), ("pb-2", 5), ("pb-3", 4), ("pb-4", 8)])
def test_all_segments_of_a_benchmark_end_before_the_last_step(name: str, units: int) -> None:
    longest = LARGEST_STEP // units
    assert db.environment(name, segment=longest).parameters["segment"] == longest
    for segment in (0, longest + 1):
        with pytest.raises(ValueError, match="segment must be"):
            db.environment(name, segment=segment)


def test_a_longer_segment_stretches_a_benchmark_and_nothing_else() -> None:
    short, long = (db.environment("pb-2", segment=segment).path(5 * segment, seed=1) for segment in (10, 40))
    assert (np.repeat(short, 4, axis=0) == long).all()


def test_pb_3_has_four_equal_segments_and_pb_4_a_long_one_and_four_short_ones() -> None:
    starts = {name: db.environment(name, segment=10).starts for name in ("pb-3", "pb-4")}  # type: ignore[attr-defined]
    assert starts == {"pb-3": (1, 11, 21, 31), "pb-4": (1, 41, 51, 61, 71)}
    best = {name: db.environment(name).path(5000, seed=1)[::625].argmax(axis=1).tolist() for name in starts}
    assert best == {"pb-3": [2, 2, 1, 1, 0, 0, 2, 2], "pb-4": [2, 2, 2, 2, 1, 0, 0, 1]}


def test_breakpoints_are_common_to_all_arms_and_every_new_mean_is_uniform() -> None:
    rate, path = 0.05, db.environment("random-breakpoints", arms=4, rate=0.05).path(size(20_000, 2000), seed=1)
    moved = np.diff(path, axis=0) != 0.0
    assert (moved.all(axis=1) == moved.any(axis=1)).all()
    assert_share(int(moved[:, 0].sum()), len(moved), rate)
    drawn = np.concatenate([path[:1], path[1:][moved[:, 0]]])
    assert_law(drawn.ravel(), stats.uniform.cdf)
    bounded = db.environment("random-breakpoints", arms=2, rate=0.5, low=0.2, high=0.3).path(horizon=200, seed=1)
    assert 0.2 <= bounded.min() <= 0.21
    assert 0.29 <= bounded.max() <= 0.3
    always = db.environment("random-breakpoints", arms=2, rate=1.0).path(horizon=2, seed=1)
    roles = (START, 0), (PATH, 2)  # the first step has the first means, although every step is a breakpoint
    assert always.tolist() == [[uniform(stream(1), role, step, arm) for arm in range(2)] for role, step in roles]


@pytest.mark.parametrize("changed", ["all", "one"])
def test_a_pair_of_uniform_numbers_decides_on_a_breakpoint_and_its_arm(changed: str) -> None:
    path = db.environment("random-breakpoints", arms=3, rate=0.5, changed=changed).path(30, seed=1)
    means = [uniform(stream(1), START, 0, arm) for arm in range(3)]
    for step in range(1, 31):
        chance, which = uniform_pair(words(stream(1), PATH, step, FOR_ALL, 0))
        if step > 1 and chance < 0.5:
            for arm in range(3) if changed == "all" else [int(3 * which)]:
                means[arm] = uniform(stream(1), PATH, step, arm)
        assert path[step - 1].tolist() == means


def test_one_changed_arm_is_any_arm() -> None:
    path = db.environment("random-breakpoints", arms=4, rate=0.2, changed="one").path(size(20_000, 2000), seed=1)
    moved = np.diff(path, axis=0) != 0.0
    assert moved.sum(axis=1).max() == 1
    for arm in range(4):
        assert_share(int(moved[:, arm].sum()), len(moved), 0.05)


# --- Seasons ------------------------------------------------------------------------------------------------


def test_seasons_are_sines_spread_over_the_period() -> None:
    path = Seasonal(arms=3, period=12.5, middle=0.4, amplitude=0.3).path(horizon=100, seed=1)
    for step in range(1, 101):
        for arm in range(3):
            assert path[step - 1, arm] == pytest.approx(0.4 + 0.3 * math.sin(2 * math.pi * (step / 12.5 + arm / 3)))


def test_every_arm_has_its_season_and_all_seasons_are_equally_long() -> None:
    best = Seasonal(arms=7, period=700).path(horizon=7000, seed=1).argmax(axis=1)
    assert np.bincount(best) == pytest.approx([1000] * 7, abs=10)  # two arms tie where a season ends: 10 times


def test_seasons_come_back_after_ten_million_periods() -> None:
    path = Seasonal(arms=2, period=64).path(horizon=64, seed=1)
    state, world = np.zeros((1, 2)), Seasonal(arms=2, period=64)
    steps = [EnvironmentStep(64 * 10**7 + number, 2, world.table(), stream(1), np.zeros((1, 1))) for number in (5, 9)]
    later = [world.functions.advance(state, 1, step, world.params()) for step in steps]
    assert later == path[[4, 8], 1].tolist()


def test_seasons_reach_zero_and_one_but_do_not_leave() -> None:
    path = Seasonal(arms=4, period=8, middle=0.5, amplitude=0.5).path(horizon=64, seed=1)
    assert (path.min(), path.max()) == (0.0, 1.0)
    step = EnvironmentStep(1, 2, np.zeros((0, 0)), stream(1), np.zeros((1, 1)))
    for middle, clipped in ((1.5, 1.0), (-0.5, 0.0)):  # as if by rounding, with the sine 0
        params = seasonal.Params(*np.array([[middle], [0.1], [1.0], [0.0]]))
        assert Seasonal.functions.advance(np.zeros((1, 1)), 0, step, params) == clipped


# --- Rot ----------------------------------------------------------------------------------------------------


def test_every_arm_rots_by_the_same_factor_at_each_step() -> None:
    path = Rotting(arms=20, fastest=50, slowest=5000).path(horizon=400, seed=1)
    factors = path[1:] / path[:-1]
    np.testing.assert_allclose(factors, np.broadcast_to(factors[0], factors.shape), rtol=1e-12)
    half_lives = -math.log(2) / np.log(factors[0])
    assert ((half_lives > 50) & (half_lives < 5000)).all()


def test_first_means_are_uniform_and_half_lives_log_uniform() -> None:
    """Each of the three tests fails a right implementation once in 10,000 seeds."""
    world = Rotting(arms=size(5000, least=200), low=0.25, high=0.75, fastest=10, slowest=1000)
    path = world.path(horizon=2, seed=2)
    half_lives = -math.log(2) / np.log(path[1] / path[0])
    assert_law(path[0], stats.uniform(0.25, 0.5).cdf)
    assert_law(np.log(half_lives), stats.uniform(math.log(10), math.log(100)).cdf)
    assert_uncorrelated(path[0], np.log(half_lives))


def test_the_freshest_arm_is_not_always_the_last_one_standing() -> None:
    paths = [Rotting(arms=5).path(horizon=10_000, seed=seed) for seed in range(20)]
    assert sum(path[0].argmax() != path[-1].argmax() for path in paths) > 5


# --- A burst ------------------------------------------------------------------------------------------------


def test_nothing_moves_outside_a_burst() -> None:
    steps = changed(Burst(arms=20, first=50, length=100, rate=0.2).path(horizon=500, seed=1))[:, 0]
    assert (steps.min(), steps.max()) == (50, 149)


def test_a_burst_changes_each_arm_at_its_rate() -> None:
    """Each of the three tests fails a right implementation once in 10,000 seeds."""
    arms, length, rate = 50, size(1000, least=100), 0.1
    path = Burst(arms=arms, first=2, length=length, rate=rate).path(horizon=length + 1, seed=3)
    moved = changed(path)
    assert_share(len(moved), arms * length, rate)
    assert_law(path[moved[:, 0] - 1, moved[:, 1]], stats.uniform.cdf)
    assert_law(np.concatenate([Burst(arms=arms).path(1, seed=seed)[0] for seed in range(20)]), stats.uniform.cdf)


@pytest.mark.parametrize("still", [{"length": 0}, {"rate": 0.0}])
def test_a_burst_without_length_or_rate_is_no_burst(still: dict[str, float]) -> None:
    path = db.environment("burst", first=1, **still).path(horizon=100, seed=1)
    assert (path == path[0]).all()
    assert db.environment("burst", first=20, **still).constant_until(1) == LARGEST_STEP


def test_a_burst_knows_where_it_starts_and_ends() -> None:
    for rate in (1.0, 0.01):
        burst = Burst(arms=3, first=20, length=10, rate=rate)
        ends = [burst.constant_until(step) for step in (1, 19, 20, 29, 30, 31)]
        assert ends == [19, 19, 20, 29, LARGEST_STEP, LARGEST_STEP]
    assert Burst(first=20, length=1).constant_until(1) == 19


def test_an_arm_changes_where_its_uniform_number_is_below_the_rate() -> None:
    level, chance = uniform_pair(words(stream(1), PATH, 5, 1, 0))
    for rate, mean in ((chance, uniform(stream(1), START, 0, 1)), (math.nextafter(chance, 1.0), level)):
        assert Burst(arms=2, first=5, length=1, rate=rate).path(horizon=9, seed=1)[-1, 1] == mean


def test_a_burst_that_starts_the_world_and_always_changes_draws_a_mean_a_step() -> None:
    path = Burst(arms=3, first=1, length=100, rate=1.0).path(horizon=100, seed=1)
    assert len(np.unique(path)) == 300


# --- A needle -----------------------------------------------------------------------------------------------


def test_there_is_one_needle_at_a_time_and_it_moves_between_periods_only() -> None:
    path = Needle(arms=200, low=0.1, high=0.2, period=10).path(horizon=95, seed=1)
    assert ((path == 0.2).sum(axis=1) == 1).all()
    assert ((path == 0.1).sum(axis=1) == 199).all()
    assert set(changed(path)[:, 0]) <= set(range(11, 96, 10))


def test_every_arm_is_the_needle_equally_often_and_periods_are_independent() -> None:
    """Each of the two tests fails a right implementation once in 10,000 seeds."""
    arms, stretches = 8, size(8000, least=400)
    needles = Needle(arms=arms, period=1).path(horizon=stretches, seed=4).argmax(axis=1)
    counts = np.bincount(needles, minlength=arms)
    assert stats.chisquare(counts).pvalue > ERROR_RATE
    assert_share(sum(left == right for left, right in pairwise(needles)), stretches - 1, 1 / arms)


def test_replications_look_for_needles_of_their_own() -> None:
    world = Needle(arms=1000)
    assert len({int(world.path(1, seed=1, replication=r)[0].argmax()) for r in range(20)}) > 15


def test_bounds_may_be_equal() -> None:
    assert (Needle(arms=5, low=0.3, high=0.3).path(horizon=3, seed=1) == 0.3).all()
    path = Rotting(arms=5, low=0.8, high=0.8, fastest=10, slowest=10).path(horizon=11, seed=1)
    assert path[-1] == pytest.approx(0.4, rel=1e-12)


# --- Bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("pb-1", {"arms": 4}, "arms must be 3, got 4"),
        ("pb-2", {"segment": 0}, "segment must be a whole number of at least 1 .*, got 0"),
        ("pb-1", {"means": [[0.1, 0.2]]}, "environment 'pb-1' has no parameter 'means'"),
        ("random-breakpoints", {"rate": 2}, r"rate must be a number in \[0, 1\], got 2"),
        ("random-breakpoints", {"changed": "two"}, "unknown value of changed 'two'"),
        ("random-breakpoints", {"low": 0.5, "high": 0.4}, r"high must be a number in \[0.5, 1\], got 0.4"),
        ("ar-1", {"persistence": 1.1}, r"persistence must be a number in \[0, 1\], got 1.1"),
        ("ar-1", {"spread": -1}, r"spread must be a number in \[0, 1e\+300\], got -1"),
        ("seasonal", {"arms": 1}, "arms must be a whole number of at least 2, got 1"),
        ("seasonal", {"period": 0.5}, r"period must be a number in \[1, inf\), got 0.5"),
        ("seasonal", {"middle": 1.5}, r"middle must be a number in \[0, 1\], got 1.5"),
        ("seasonal", {"amplitude": 0.6}, "amplitude must be at most 0.5, the room around middle=0.5, got 0.6"),
        ("seasonal", {"middle": 0.9, "amplitude": 0.2}, "amplitude must be at most 0.1, .*, got 0.2"),
        ("seasonal", {"amplitude": -0.1}, r"amplitude must be a number in \[0, 1\], got -0.1"),
        ("rotting", {"low": 0.9, "high": 0.8}, "low must not be above high, got 0.9 and 0.8"),
        ("rotting", {"low": -0.1}, r"low must be a number in \[0, 1\], got -0.1"),
        ("rotting", {"low": 1.1}, r"low must be a number in \[0, 1\], got 1.1"),
        ("rotting", {"fastest": 10, "slowest": 9}, "fastest must not be above slowest, got 10.0 and 9.0"),
        ("rotting", {"fastest": 0}, r"fastest must be a number in \[1, inf\), got 0"),
        ("rotting", {"high": math.nan}, r"high must be a number in \[0, 1\], got nan"),
        ("burst", {"first": 0}, "first must be a whole number of at least 1 .*, got 0"),
        ("burst", {"length": -1}, "length must be a whole number of at least 0 .*, got -1"),
        ("burst", {"rate": 1.1}, r"rate must be a number in \[0, 1\], got 1.1"),
        ("needle", {"low": 0.9}, "low must not be above high, got 0.9 and 0.8"),
        ("needle", {"low": -0.1}, r"low must be a number in \[0, 1\], got -0.1"),
        ("needle", {"low": 1.1}, r"low must be a number in \[0, 1\], got 1.1"),
        ("needle", {"high": -0.1}, r"high must be a number in \[0, 1\], got -0.1"),
        ("needle", {"high": 1.1}, r"high must be a number in \[0, 1\], got 1.1"),
        ("needle", {"period": 0}, "period must be a whole number of at least 1 .*, got 0"),
        ("needle", {"period": 1.5}, "period must be a whole number .*, got 1.5"),
    ],
)
def test_parameters_that_make_no_world_are_refused(name: str, parameters: dict[str, object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        db.environment(name, **parameters)
