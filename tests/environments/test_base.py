import math

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.compilation import kernel
from dynabandit.core.lanes import SINGLE_LANE
from dynabandit.core.streams import REWARD, stream, uniform
from dynabandit.environments import ENVIRONMENTS, Bernoulli, RewardStep
from dynabandit.environments.base import PathArrays, cells_per_step, make_write_path
from dynabandit.environments.reward_laws import mean_of_path

EXAMPLES: dict[str, dict[str, object]] = {
    "small-changes": {},
    "case-1": {"arms": 3},
    "case-2": {"arms": 50},
    "case-3": {"arms": 3},
    "case-4": {"arms": 3},
    "fixed": {"means": [0.2, 0.8, 0.0, 1.0]},
    "piecewise": {"starts": [1, 3, 50], "means": [[0.1, 0.2], [0.3, 0.4], [1.0, 0.0]]},
    "exponential-clock": {"rates": [0.1, 0.5], "low": [0.1, 0.0], "high": [0.9, 1.0], "arms": 5},
    "reflected-walk": {"arms": 4, "variance": 0.3},
    "logistic-walk": {"arms": 4, "variance": 2.0},
    "path": {"means": np.random.default_rng(1).random((60, 4))},
    "pb-1": {"segment": 20},
    "pb-2": {"segment": 7},
    "pb-3": {"segment": 6},
    "pb-4": {"segment": 5},
    "random-breakpoints": {"arms": 3, "rate": 0.2, "changed": "one"},
    "ar-1": {"arms": 3, "persistence": 0.9},
    "seasonal": {"arms": 5, "period": 33.3},
    "rotting": {"arms": 5, "fastest": 3, "slowest": 300},
    "rested-rotting": {"arms": 3, "exponent": [0.5, 1.0, 0.0], "scale": 10},
    "rested-drops": {"arms": 3, "drop": [5, 10, 20]},
    "rested-rising": {"arms": 3, "scale": 10},
    "burst": {"arms": 4, "first": 30, "length": 60, "rate": 0.1},
    "needle": {"arms": 40, "period": 25},
    "recorded": {"rates": np.random.default_rng(2).random((20, 4)), "period": 7},
}
NEEDED: dict[str, tuple[str, ...]] = {  # parameters without a default
    "fixed": ("means",),
    "piecewise": ("starts", "means"),
    "exponential-clock": ("rates", "low", "high"),
    "path": ("means",),
    "recorded": ("rates",),
}
DEFAULTS: dict[str, dict[str, object]] = {
    "small-changes": {"arms": 3},
    **{name: {"arms": 2} for name in ("case-1", "case-2", "case-3", "case-4")},
    **{name: {} for name in ("fixed", "piecewise", "path")},
    "exponential-clock": {"arms": 2},  # as many as there are rates
    "reflected-walk": {"arms": 2, "variance": 0.0001},
    "logistic-walk": {"arms": 2, "variance": 0.001},
    **{name: {"arms": 3, "segment": 1000} for name in ("pb-1", "pb-2")},
    "pb-3": {"arms": 3, "segment": 1250},
    "pb-4": {"arms": 3, "segment": 625},
    "random-breakpoints": {"arms": 2, "rate": 0.0005, "changed": "all", "low": 0.0, "high": 1.0},
    "ar-1": {"arms": 2, "persistence": 0.999, "spread": 1.0},
    "seasonal": {"arms": 2, "period": 2000.0, "middle": 0.5, "amplitude": 0.4},
    "rotting": {"arms": 2, "low": 0.5, "high": 1.0, "fastest": 500.0, "slowest": 50_000.0},
    "rested-rotting": {"arms": 2, "initial": 1.0, "exponent": None, "scale": 100.0},
    "rested-drops": {"arms": 2, "initial": 0.8, "final": 0.2, "drop": None},
    "rested-rising": {"arms": 2, "initial": 0.1, "final": None, "scale": None},
    "burst": {"arms": 2, "first": 4000, "length": 1000, "rate": 0.02},
    "needle": {"arms": 200, "low": 0.2, "high": 0.8, "period": 5000},
    "recorded": {"period": 1},
}
LINEAR = db.environment("lin-abrupt", arms=4, dimension=2, segment=20)
each_environment = pytest.mark.parametrize("name", EXAMPLES)


def example(name: str) -> db.Environment:
    return db.environment(name, **EXAMPLES[name])


def test_every_environment_of_the_registry_has_an_example_here() -> None:
    assert EXAMPLES.keys() == ENVIRONMENTS.keys()


@each_environment
def test_every_environment_keeps_the_contract(name: str) -> None:
    db.checks.check_environment(example(name))


@each_environment
def test_an_environment_knows_the_name_it_is_called_by(name: str) -> None:
    assert ENVIRONMENTS[name].name == name


@each_environment
def test_an_environment_is_remade_from_its_name_and_parameters(name: str) -> None:
    environment = example(name)
    remade = db.environment(name, **environment.parameters)
    assert (remade.path(50, seed=3) == environment.path(50, seed=3)).all()


@each_environment
def test_the_parameters_of_an_environment_and_their_defaults_are_those_that_are_documented(name: str) -> None:
    needed = {parameter: EXAMPLES[name][parameter] for parameter in NEEDED.get(name, ())}
    parameters = db.environment(name, **needed).parameters
    assert parameters.keys() == needed.keys() | DEFAULTS[name].keys()
    assert {parameter: parameters[parameter] for parameter in DEFAULTS[name]} == DEFAULTS[name]


@each_environment
def test_the_functions_of_an_environment_use_only_the_slots_that_it_declares(name: str) -> None:
    environment = example(name)
    state = np.zeros((environment.state_size() + 1, environment.arms))
    state[-1] = math.nan
    path = PathArrays(*(part[0] for part in environment.empty_paths(1, 50)))
    means, best, _ = path
    write_path = make_write_path(environment.functions, SINGLE_LANE)
    write_path(state, np.array(environment.params()), environment.table(), path, 1, 50, stream(3))
    assert np.isnan(state[-1]).all()
    assert (means == environment.path(50, seed=3)).all()
    assert (best == means.max(axis=1)).all()


def test_an_environment_without_parameters_and_table_has_a_row_of_zeros_and_an_empty_table() -> None:
    assert np.array(example("path").params()).tolist() == [[0.0] * 4]
    assert example("case-3").table().shape == (0, 0)


@pytest.mark.parametrize("name", ["path", "recorded"])
def test_an_environment_does_not_print_a_table_of_means(name: str) -> None:
    assert "0." not in repr(example(name))
    assert "rewards" not in repr(example(name))


@kernel
def two_more(arms: int) -> int:
    return arms + 2


@kernel
def is_inside(arm: int, end: int) -> bool:
    assert arm >= 0
    return arm < end


@pytest.mark.parametrize("steps", [50, 49])
@pytest.mark.parametrize("leads", [True, False])
@pytest.mark.parametrize("environment", [example("case-3"), example("needle"), LINEAR], ids=lambda one: one.name)
def test_lanes_write_the_means_of_arms_that_exist_and_the_leader_writes_the_best(
    environment: db.Environment, leads: bool, steps: int
) -> None:
    lanes = SINGLE_LANE._replace(rounds=two_more, exists=is_inside, is_leader=lambda: leads)
    state = np.full((len(environment.slots), environment.arms), math.nan)
    means, best = np.empty((steps, environment.arms)), np.full(steps, math.nan)
    write_path = make_write_path(environment.functions, lanes)
    features = environment.empty_paths(1, steps).features[0]
    path = PathArrays(means, best, features)
    write_path(state, np.array(environment.params()), environment.table(), path, 1, steps, stream(3))
    assert (means == environment.path(steps, seed=3)).all()
    assert np.array_equal(best, means.max(axis=1) if leads else np.full(steps, math.nan), equal_nan=True)
    if environment.context is not None:
        assert (features == environment.features(steps, seed=3)).all()


@pytest.mark.parametrize(
    ("environment", "cells"),
    [(example("case-1"), 3), (LINEAR, 4 + 4 * 2), (db.environment("lin-drift", arms=4, dimension=3), 4 + 3)],
    ids=lambda one: getattr(one, "name", str(one)),
)
def test_a_step_of_a_path_has_a_mean_per_arm_and_the_features(environment: db.Environment, cells: int) -> None:
    assert cells_per_step(environment) == cells
    means, _, features = environment.empty_paths(1, 1)
    assert cells == means.size + (0 if environment.context is None else features.size)


def test_a_bernoulli_reward_is_one_where_its_uniform_number_is_below_the_mean() -> None:
    source, law = stream(7, replication=2), Bernoulli.functions
    for number, arm in ((1, 0), (9, 0), (9, 4)):
        u = uniform(source, REWARD, number, arm)
        for mean, reward in ((0.0, 0.0), (u, 0.0), (math.nextafter(u, 1.0), 1.0), (1.0, 1.0)):
            assert law.draw(mean, arm, RewardStep(number, source), None) == reward


def test_a_law_observes_plays_unless_its_mean_is_that_of_the_path() -> None:
    functions = Bernoulli.functions
    assert functions.mean(0.3, 8, 1, None) == mean_of_path(0.3, 8, 1, None) == 0.3
    assert not functions.observes_plays
    assert functions._replace(mean=lambda value, plays, arm, params: value / (1 + plays)).observes_plays


@pytest.mark.parametrize("name", ["case-1", "case-3", "case-4"])
def test_seeds_and_replications_have_paths_of_their_own(name: str) -> None:
    environment = db.environment(name)
    starts = {tuple(environment.path(1, seed=seed, replication=n)[0]) for seed in range(5) for n in range(5)}
    assert len(starts) == 25


@pytest.mark.parametrize("name", ["case-1", "case-3", "case-4"])
def test_more_arms_leave_the_first_ones_as_they_were(name: str) -> None:
    few, many = db.environment(name, arms=2), db.environment(name, arms=10)
    assert (few.path(100, seed=1) == many.path(100, seed=1)[:, :2]).all()


def test_an_environment_object_is_returned_as_it_is() -> None:
    environment = db.environment("case-3", arms=4)
    assert db.environment(environment) is environment
    with pytest.raises(TypeError, match=r"parameters \['arms'\] go with an environment's name, not with Case3"):
        db.environment(environment, arms=5)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"horizon": 0, "seed": 1}, ValueError, "horizon must be a whole number of at least 1 .*, got 0"),
        ({"horizon": 2**32, "seed": 1}, ValueError, "horizon must be .* at most 4294967295, got 4294967296"),
        ({"horizon": 1.5, "seed": 1}, TypeError, "horizon must be a whole number .*, got 1.5"),
        ({"horizon": 5, "seed": -1}, ValueError, "seed must be a whole number of at least 0 .*, got -1"),
        ({"horizon": 5, "seed": 1, "replication": -1}, ValueError, "replication must be .* at least 0 .*, got -1"),
    ],
)
def test_a_path_that_cannot_be_is_refused(arguments: dict[str, int], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        db.environment("case-3").path(**arguments)
