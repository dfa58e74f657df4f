"""Rested arms: formulas of their means, and the regret against the best way to divide the plays among the arms."""

import re
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import dynabandit as db
from dynabandit.environments.rested import RestedEnvironment
from dynabandit.simulation import accuracy, trace
from oracles import accuracy as accuracy_oracle, rested as oracle
from tools.cudasim import cudasim
from tools.interpreted import interpreted

HORIZON, SEED = 9, 4
SMALL: dict[str, RestedEnvironment] = {
    "rotting": db.environments.RestedRotting(arms=3, initial=(0.9, 0.8, 0.7), exponent=(1.5, 0.8, 0.1), scale=2.0),
    "drops": db.environments.RestedDrops(arms=3, initial=(0.5, 0.9, 0.7), final=(0.5, 0.1, 0.3), drop=(9, 2, 3)),
    "rising": db.environments.RestedRising(arms=3, initial=(0.4, 0.1, 0.0), final=(0.5, 0.8, 1.0), scale=(1, 4, 9)),
}
each_environment = pytest.mark.parametrize("name", SMALL)


def run(name: str, policy: str = "eps-greedy", backend: str = "cpu", **options: Any) -> db.Simulation:
    options = {"horizon": HORIZON, "times": HORIZON, "replications": 3, "seed": SEED, **options}
    return db.simulate(policy, SMALL[name], keep=("arms", "rewards"), backend=backend, **options)


@each_environment
def test_regret_is_the_largest_reward_of_any_division_of_the_plays_minus_the_collected_one(name: str) -> None:
    means = SMALL[name].means_by_plays(HORIZON).T.tolist()
    best = [oracle.best_reward(means, steps) for steps in range(1, HORIZON + 1)]
    with interpreted():
        simulation = run(name)
    assert simulation.arms is not None
    for replication, arms in enumerate(simulation.arms.tolist()):
        collected = np.cumsum([means[arm][arms[:step].count(arm)] for step, arm in enumerate(arms)])
        np.testing.assert_allclose(simulation.regret[replication], best - collected, atol=1e-12)


@each_environment
def test_a_selection_is_correct_if_the_best_policy_would_make_it(name: str) -> None:
    means = SMALL[name].means_by_plays(HORIZON)
    with interpreted():
        simulation = run(name)
    assert simulation.arms is not None
    for replication, arms in enumerate(simulation.arms.tolist()):
        for step, arm in enumerate(arms):
            if name == "rising":
                sums = means[: step + 1].sum(axis=0)
                expected = sums[arm] == sums.max()
            else:
                current = [means[arms[:step].count(other), other] for other in range(3)]
                expected = current[arm] == max(current)
            assert simulation.correct_by_replication[replication, step] == expected


@pytest.mark.parametrize("name", ["rotting", "drops"])
def test_the_arm_with_the_largest_current_mean_has_no_regret_if_means_fall(name: str) -> None:
    with interpreted():
        simulation = run(name, "best-arm")
    np.testing.assert_allclose(simulation.regret, 0.0, atol=1e-12)
    assert simulation.correct.tolist() == [1.0] * HORIZON


def test_regret_is_in_the_units_of_the_rewards() -> None:
    law = db.reward_law("normal", low=-10.0, high=30.0, deviation=0.0)
    for name, environment in SMALL.items():
        scaled = type(environment)(**{**environment.parameters, "rewards": law})
        with interpreted():
            plain = run(name, "uniform")
            wide = db.simulate("uniform", scaled, horizon=HORIZON, times=HORIZON, replications=3, seed=SEED)
        np.testing.assert_allclose(wide.regret, 40.0 * plain.regret, atol=1e-10)


def test_blocks_continue_the_plays_of_the_best_policy() -> None:
    with interpreted():
        whole, parts = run("rising"), run("rising", block=2)
        np.testing.assert_array_equal(whole.regret, parts.regret)
        whole, parts = run("rotting"), run("rotting", block=2)
        np.testing.assert_array_equal(whole.regret, parts.regret)


GPU = """
import test_rested as tests
for name in tests.SMALL:
    cpu, gpu = (tests.run(name, backend=backend) for backend in ("cpu", "cuda"))
    assert (cpu.arms == gpu.arms).all() and (cpu.rewards == gpu.rewards).all(), name
    assert (abs(cpu.regret - gpu.regret) < 1e-12).all(), name
    assert (cpu.correct == gpu.correct).all(), name
"""


def test_a_gpu_measures_the_same_regret() -> None:
    here = Path(__file__).parent
    done = cudasim("-c", f"import sys; sys.path[:0] = {[str(here), str(here.parent)]}" + GPU, NUMBA_DISABLE_JIT="1")
    assert done.returncode == 0, done.stderr


def test_a_trace_shows_the_means_after_the_plays() -> None:
    with interpreted():
        simulation = run("drops", "uniform")
    assert simulation.arms is not None
    truth = trace(simulation, times=HORIZON).truth
    means, arms = SMALL["drops"].means_by_plays(HORIZON), simulation.arms[0].tolist()
    for step in range(HORIZON):
        assert truth[step].tolist() == [means[arms[:step].count(arm), arm] for arm in range(3)]


def test_an_estimator_of_a_rested_arm_plays_it_at_every_step() -> None:
    environment, estimator = SMALL["drops"], db.estimators.SampleMean()
    with mock.patch.object(accuracy, "compiled_estimate", accuracy.make_estimate):
        result = db.estimation(estimator, environment, 2, horizon=HORIZON, arm=1, seed=SEED, times=HORIZON)
    means = environment.means_by_plays(HORIZON)[:, 1].tolist()
    for replication in range(2):
        rewards = accuracy_oracle.bernoulli_rewards(means, SEED, replication, arm=1)
        expected = accuracy_oracle.errors(lambda ys: sum(ys) / len(ys), means, rewards)
        np.testing.assert_allclose(result.errors[replication], expected, atol=1e-12)


@pytest.mark.parametrize("name", ["rested-rotting", "rested-drops", "rested-rising"])
def test_means_of_many_plays_are_probabilities_that_move_in_one_direction(name: str) -> None:
    means = db.environment(name, arms=4).means_by_plays(1500)  # type: ignore[attr-defined]
    assert ((means >= 0.0) & (means <= 1.0)).all()
    steps = np.diff(means, axis=0) * (1 if name == "rested-rising" else -1)
    assert (steps >= 0.0).all()
    assert (means[-1] != means[0]).all()
    if name == "rested-rising":
        assert (np.diff(steps, axis=0) <= 1e-15).all()  # concave


def test_formulas() -> None:
    rotting, drops, rising = (environment.means_by_plays(4) for environment in SMALL.values())
    assert rotting[3].tolist() == pytest.approx([0.9 * 2.5**-1.5, 0.8 * 2.5**-0.8, 0.7 * 2.5**-0.1])
    assert drops[:, 2].tolist() == [0.7, 0.7, 0.7, 0.3]
    assert rising[3, 1] == pytest.approx(0.8 - 0.7 * np.exp(-3 / 4))
    assert db.environments.RestedDrops(arms=3).params().drop.tolist() == [200.0, 400.0, 600.0]
    assert db.environments.RestedRotting(arms=4).params().exponent.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert db.environments.RestedRising(arms=3).params().final.tolist() == pytest.approx([0.5, 0.7, 0.9])
    assert db.environments.RestedRising(arms=3).params().scale.tolist() == pytest.approx([100, 10**2.5, 1000])


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("rested-rotting", {"initial": 1.2}, "initial must be a number in [0, 1], got 1.2"),
        ("rested-rotting", {"exponent": [0.1]}, "exponent must be a number or one for each of 2 arms, got [0.1]"),
        ("rested-rotting", {"exponent": [0.1, -1]}, "exponent[1] must be a number in [0, inf), got -1"),
        ("rested-rotting", {"scale": 0}, "scale must be a number in (0, inf), got 0"),
        ("rested-drops", {"final": 0.9}, "final must not be above initial, got 0.9 and 0.8 for arm 0"),
        ("rested-drops", {"initial": 2}, "initial must be a number in [0, 1], got 2"),
        ("rested-drops", {"drop": -1}, "drop must be a number in [0, "),
        ("rested-drops", {"final": float("nan")}, "final must be a number in [0, 1], got nan"),
        ("rested-rising", {"final": [0.5, 0.05]}, "initial must not be above final, got 0.1 and 0.05 for arm 1"),
        ("rested-rising", {"initial": -0.1}, "initial must be a number in [0, 1], got -0.1"),
        ("rested-rising", {"final": 1.1}, "final must be a number in [0, 1], got 1.1"),
        ("rested-rising", {"scale": -5}, "scale must be a number in (0, inf), got -5"),
    ],
)
def test_impossible_parameters_are_refused(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        db.environment(name, **parameters)


def test_means_are_asked_for_at_least_one_play_and_the_default_scale_is_100() -> None:
    rotting: Any = db.environment("rested-rotting")
    assert rotting.means_by_plays(1).shape == (1, rotting.arms)
    assert rotting.parameters["scale"] == 100.0
    with pytest.raises(ValueError, match="plays must be a whole number of at least 1"):
        rotting.means_by_plays(0)
