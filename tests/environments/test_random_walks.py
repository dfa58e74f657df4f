import math

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from scipy import stats
from scipy.special import logit

import dynabandit as db
from dynabandit.core.compilation import compiled
from dynabandit.environments import LogisticWalk, ReflectedWalk
from dynabandit.environments.random_walks import logistic, reflect
from oracles import paper as oracle
from tools.laws import assert_law, assert_uncorrelated, size

ANYWHERE = st.floats(-10.0, 10.0) | st.floats(allow_nan=False, allow_infinity=False)
REFLECT = {"interpreted": reflect, "compiled": compiled(reflect)}
LOGISTIC = {"interpreted": logistic, "compiled": compiled(logistic)}


@pytest.mark.parametrize("backend", REFLECT)
def test_reflection_folds_the_line_as_equation_27_says(backend: str) -> None:
    @given(ANYWHERE)
    @example(0.0)
    @example(1.0)
    @example(-1.0)
    @example(2.0)
    @example(3.0)
    def holds(x: float) -> None:
        folded = REFLECT[backend](x)
        assert folded == oracle.reflect(x)
        assert 0.0 <= folded <= 1.0

    holds()


@pytest.mark.parametrize(
    ("x", "folded"), [(0.25, 0.25), (-0.25, 0.25), (1.25, 0.75), (2.25, 0.25), (-1.25, 0.75), (7.5, 0.5)]
)
def test_reflection_mirrors_at_both_walls(x: float, folded: float) -> None:
    assert reflect(x) == folded


@pytest.mark.parametrize("backend", LOGISTIC)
def test_the_logistic_function_never_overflows_and_is_symmetric(backend: str) -> None:
    @given(st.floats(-1e300, 1e300))
    def holds(z: float) -> None:
        mean = LOGISTIC[backend](z)
        assert 0.0 <= mean <= 1.0
        assert mean + LOGISTIC[backend](-z) == pytest.approx(1.0, abs=1e-15)
        assert mean == pytest.approx(0.5 * (1.0 + math.tanh(z / 2.0)), abs=1e-15)

    holds()


def snapshots(environment: db.Environment, step: int, replications: int) -> np.ndarray:
    """Means at one step, over replications and arms: independent of each other."""
    paths = [environment.path(horizon=step, seed=1, replication=n)[-1] for n in range(replications)]
    return np.concatenate(paths)


@pytest.mark.parametrize("step", [1, 100])
def test_case_3_is_uniform_from_the_first_step_on(step: int) -> None:
    sample = snapshots(db.environment("case-3", arms=50), step, size(400, least=20))
    assert_law(sample, stats.uniform.cdf)


def test_a_reflected_walk_that_has_crossed_its_interval_many_times_is_still_uniform() -> None:
    walk = ReflectedWalk(arms=50, variance=0.5)
    assert_law(snapshots(walk, 20, size(400, least=20)), stats.uniform.cdf)


def test_a_step_of_case_3_is_normal_with_variance_one_in_ten_thousand() -> None:
    path = db.environment("case-3", arms=10).path(horizon=size(20_000), seed=2)
    inside = (path[:-1] > 0.1) & (path[:-1] < 0.9)  # ten deviations from the walls: no reflection
    steps = np.diff(path, axis=0)[inside]
    assert steps.size > path.size / 2
    assert_law(steps, stats.norm(0.0, 0.01).cdf)


@pytest.mark.parametrize("variance", [1e-6, 1e-4])
def test_the_variance_of_a_step_is_the_one_asked_for(variance: float) -> None:
    path = ReflectedWalk(arms=50, variance=variance).path(horizon=size(5_000), seed=3)
    inside = (path[:-1] > 0.1) & (path[:-1] < 0.9)
    assert_law(np.diff(path, axis=0)[inside], stats.norm(0.0, math.sqrt(variance)).cdf)


@pytest.mark.parametrize("name", ["reflected-walk", "logistic-walk"])
def test_steps_are_independent_in_time_and_between_arms(name: str) -> None:
    walk = db.environment(name, arms=2, variance=1e-9)  # too little to reach a wall
    steps = np.diff(logit(walk.path(horizon=size(50_000, least=500), seed=4)), axis=0)
    for lag in (1, 2, 3):  # odd and even steps share one pair of normal numbers
        assert_uncorrelated(steps[lag:, 0], steps[:-lag, 0])
        assert_uncorrelated(steps[lag:, 0] ** 2, steps[:-lag, 0] ** 2)
    assert_uncorrelated(steps[:, 0], steps[:, 1])


def test_the_logit_of_case_4_is_a_normal_walk_with_variance_one_in_a_thousand() -> None:
    path = db.environment("case-4", arms=50).path(horizon=size(2_000), seed=5)
    assert_law(np.diff(logit(path), axis=0).ravel(), stats.norm(0.0, math.sqrt(0.001)).cdf)


def test_case_4_starts_from_a_uniform_logit() -> None:
    still = LogisticWalk(arms=50, variance=0.0)
    assert_law(logit(snapshots(still, 1, size(200, least=20))), stats.uniform.cdf)


@pytest.mark.parametrize("name", ["reflected-walk", "logistic-walk"])
def test_no_variance_is_no_change(name: str) -> None:
    path = db.environment(name, variance=0.0).path(horizon=100, seed=6)
    assert (path == path[0]).all()


@pytest.mark.parametrize("name", ["reflected-walk", "logistic-walk"])
@pytest.mark.parametrize("variance", [1.0, 1e6, 1e300])
def test_large_steps_stay_between_zero_and_one(name: str, variance: float) -> None:
    path = db.environment(name, variance=variance).path(horizon=1000, seed=7)
    assert ((path >= 0.0) & (path <= 1.0)).all()


@pytest.mark.parametrize("name", ["reflected-walk", "logistic-walk"])
@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"variance": -1e-9}, ValueError, r"variance must be a number in \[0, inf\), got -1e-09"),
        ({"variance": math.inf}, ValueError, r"variance must be a number in \[0, inf\), got inf"),
        ({"variance": math.nan}, ValueError, r"variance must be a number in \[0, inf\), got nan"),
        ({"variance": "0.1"}, TypeError, r"variance must be a number in \[0, inf\), got '0.1'"),
        ({"arms": 1}, ValueError, "arms must be a whole number of at least 2, got 1"),
    ],
)
def test_parameters_that_make_no_walk_are_refused(
    name: str, parameters: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        db.environment(name, **parameters)


@pytest.mark.parametrize("name", ["case-3", "case-4"])
def test_the_variance_of_a_case_of_the_paper_is_fixed(name: str) -> None:
    with pytest.raises(TypeError, match=f"environment '{name}' has no parameter 'variance'. Its parameters: arms"):
        db.environment(name, variance=0.1)


def test_ar_1_is_stationary_from_the_first_step_and_forgets_at_its_rate() -> None:
    world = db.environment("ar-1", arms=200, persistence=0.9, spread=0.7)
    for step in (1, 2, 51):
        assert_law(logit(snapshots(world, step, size(50, 5))) / 0.7, stats.norm.cdf)
    position = logit(world.path(horizon=size(2000), seed=1))
    noise = position[1:] - 0.9 * position[:-1]
    assert_law(noise[:, :20].ravel() / (0.7 * math.sqrt(1.0 - 0.81)), stats.norm.cdf)
    assert_uncorrelated(noise[:-1, :20].ravel(), noise[1:, :20].ravel())
