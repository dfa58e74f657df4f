"""The stepper: changes of the best arm, tuning to them, static indices and constant means."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

import dynabandit as db
from dynabandit.core.compilation import compiled_once
from dynabandit.simulation.stepper import add_changes
from oracles import paper as oracle
from tools.interpreted import interpreted

# Few levels make many ties
PATHS = arrays.arrays(
    float, st.tuples(st.integers(1, 40), st.integers(2, 4)), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0])
)


def switches(path: np.ndarray, block: int) -> int:
    incumbent, count = np.full(1, -1), np.zeros(1, dtype=np.int64)
    for first in range(0, len(path), block):
        means = path[np.newaxis, first : first + block].copy()
        compiled_once(add_changes)(means, means.max(axis=2), means.shape[1], incumbent, count)
    return int(count[0])


@given(PATHS, st.integers(1, 50))
def test_switches_are_those_of_the_definition_whatever_the_block(path: np.ndarray, block: int) -> None:
    assert switches(path, block) == oracle.switches(path.tolist())


@pytest.mark.parametrize(
    ("path", "count"),
    [
        ([[0.1, 0.2], [0.1, 0.2]], 0),
        ([[0.1, 0.2], [0.2, 0.1]], 1),
        ([[0.1, 0.2], [0.2, 0.2], [0.1, 0.2]], 0),  # a tie keeps the incumbent
        ([[0.1, 0.2], [0.2, 0.2], [0.2, 0.1], [0.1, 0.2]], 2),
        ([[0.5, 0.5, 0.1], [0.1, 0.1, 0.1]], 0),
    ],
)
def test_switches_of_small_paths(path: list[list[float]], count: int) -> None:
    assert switches(np.array(path), block=1) == oracle.switches(path) == count


def test_replications_are_counted_one_by_one() -> None:
    paths = np.stack([np.tile([[0.1, 0.2], [0.2, 0.1]], (n, 1))[:4] for n in (2, 2)])
    paths[1] = paths[1, 0]
    incumbent, count = np.full(2, -1), np.zeros(2, dtype=np.int64)
    add_changes(paths, paths.max(axis=2), 4, incumbent, count)
    assert count.tolist() == [3, 0]


@given(st.integers(1, 10**6), st.data())
def test_tuned_parameters_are_those_of_the_paper(horizon: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, horizon - 1))
    assert db.policy("d-ucb").tuned(count, horizon).params(2).memory.discount == oracle.tuned_discount(count, horizon)
    window = min(oracle.tuned_window(count, horizon), horizon)  # no path holds more
    assert db.policy("sw-ucb").tuned(count, horizon).params(2).memory.window == window


@pytest.mark.parametrize("name", ["d-ucb", "sw-ucb"])
@pytest.mark.parametrize("world", ["case-1", "case-3"])
def test_a_run_tunes_itself_from_the_switches_of_its_own_path(name: str, world: str) -> None:
    horizon = 400
    environment = db.environment(world, arms=10)
    with interpreted():
        tuned = db.simulate(name, environment, horizon=horizon, replications=4, seed=2, keep="arms", block=37)
    assert tuned.arms is not None
    counts = set()
    for replication in range(4):
        path = environment.path(horizon, seed=2, replication=replication)
        count = oracle.switches(path.tolist())
        counts.add(count)
        by_hand = {"discount": oracle.tuned_discount(count, horizon)}
        if name == "sw-ucb":
            by_hand = {"window": oracle.tuned_window(count, horizon)}
        with interpreted():
            explicit = db.simulate(
                db.policy(name, **by_hand),
                environment,
                horizon=horizon,
                seed=2,
                first_replication=replication,
                keep="arms",
            )
        assert explicit.arms is not None
        assert (tuned.arms[replication] == explicit.arms[0]).all()
    assert len(counts) > 1


@pytest.mark.parametrize("name", ["d-ucb", "sw-ucb"])
def test_a_given_parameter_is_not_tuned(name: str) -> None:
    parameters: dict[str, dict[str, Any]] = {"d-ucb": {"discount": 0.9}, "sw-ucb": {"window": 30}}
    policy = db.policy(name, **parameters[name])
    assert not policy.needs_tuning
    assert policy.tuned(5, 1000) == policy
    assert db.policy(name).needs_tuning


STATIC = ["aff-d-greedy", "uniform"]  # one that explores, and one whose scores all tie


def asked_at_every_step(policy: db.policies.Policy) -> db.policies.Policy:
    """The same policy, without the statement that its index is static."""
    kind = type(policy)
    return type(kind.__name__, (kind,), {"functions": kind.functions._replace(static_index=False)})(**policy.parameters)


@pytest.mark.parametrize("name", STATIC)
@pytest.mark.parametrize("arms", [2, 3, 13, 100])
def test_the_tree_chooses_as_a_scan_of_all_arms_does_at_every_step(name: str, arms: int) -> None:
    # Whole numbers of wins and equal arms make ties; without burn-in, all scores tie at first
    worlds = [db.environment("case-1", arms=arms), db.environment("fixed", means=[0.5] * arms)]
    for world, burn_in in itertools.product(worlds, [0, 3]):
        policy = db.policy(name, burn_in=burn_in)
        runs = db.compare(
            {"tree": policy, "scan": asked_at_every_step(policy)},
            world, horizon=burn_in * arms + 400, replications=7, seed=1, keep=("arms", "rewards"), block=170,
        )  # fmt: skip
        assert np.array_equal(np.asarray(runs["tree"].arms), np.asarray(runs["scan"].arms))
        assert np.array_equal(np.asarray(runs["tree"].rewards), np.asarray(runs["scan"].rewards))


@pytest.mark.parametrize("name", ["aff-ucb2", "ucb", "aff-ots"])
def test_constant_means_are_written_once_and_change_nothing(name: str) -> None:
    world = db.environment("piecewise", starts=[1, 700, 705, 2600], means=[[0.2, 0.3], [0.3, 0.2], [0.9, 0.1], [0, 1]])
    path = db.environment("path", means=world.path(4000, seed=1))
    assert path.constant_until(1) == 1
    short, long = (db.simulate(name, one, horizon=4000, replications=3, seed=4, keep="arms") for one in (world, path))
    assert np.array_equal(np.asarray(short.arms), np.asarray(long.arms))
    assert (short.regret == long.regret).all()
    assert (short.correct == long.correct).all()
