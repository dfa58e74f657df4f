import numpy as np
import pytest

import dynabandit as db
from dynabandit.environments import ENVIRONMENTS

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
    "seasonal": {"arms": 5, "period": 33.3},
    "rotting": {"arms": 5, "fastest": 3, "slowest": 300},
    "burst": {"arms": 4, "first": 30, "length": 60, "rate": 0.1},
    "needle": {"arms": 40, "period": 25},
    "recorded": {"rates": np.random.default_rng(2).random((20, 4)), "period": 7},
}
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
