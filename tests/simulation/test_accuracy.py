"""`db.estimation` against literal estimates from all rewards (oracles/accuracy.py), interpreted unless stated."""

import re
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.compilation import kernel
from dynabandit.estimators import AdaptiveForgetting, Estimator, FixedForgetting, SampleMean, SlidingWindow
from dynabandit.simulation import accuracy
from oracles import accuracy as oracle, paper

JUMP = [0.2] * 20 + [0.9] * 20
SEED, REPLICATIONS = 3, 6

ESTIMATES: dict[str, tuple[Estimator, oracle.Estimate]] = {
    "sample mean": (SampleMean(), lambda ys: paper.fixed_forgetting_mean(ys, 1.0)),
    "window": (SlidingWindow(7), lambda ys: paper.window_mean(ys, 7)),
    "window of one": (SlidingWindow(1), lambda ys: paper.window_mean(ys, 1)),
    "long window": (SlidingWindow(100), lambda ys: paper.window_mean(ys, 100)),
    "fixed": (FixedForgetting(0.8), lambda ys: paper.fixed_forgetting_mean(ys, 0.8)),
    "adaptive": (AdaptiveForgetting(0.05), lambda ys: paper.aff(ys, 0.05).mean),
    "scaled": (AdaptiveForgetting("variance-scaled"), lambda ys: paper.aff(ys, "variance-scaled").mean),
}


@pytest.fixture
def _interpreted() -> Iterator[None]:
    with mock.patch.object(accuracy, "compiled_estimate", accuracy.make_estimate):
        yield


def literal_errors(estimate: oracle.Estimate, paths: list[list[float]], arm: int = 0) -> list[list[float]]:
    rewards = [oracle.bernoulli_rewards(path, SEED, number, arm) for number, path in enumerate(paths)]
    return [oracle.errors(estimate, path, ys) for path, ys in zip(paths, rewards, strict=True)]


@pytest.mark.usefixtures("_interpreted")
@pytest.mark.parametrize("name", ESTIMATES)
def test_bias_and_mean_squared_error_are_those_of_literal_estimates(name: str) -> None:
    estimator, estimate = ESTIMATES[name]
    result = db.estimation(estimator, JUMP, REPLICATIONS, seed=SEED, times=[1, 15, 21, 40])
    expected = literal_errors(estimate, [JUMP] * REPLICATIONS)
    assert result.times.tolist() == [1, 15, 21, 40]
    for place, step in enumerate(result.times):
        bias, mse = oracle.bias(expected, step), oracle.mean_squared_error(expected, step)
        assert (result.bias[place], result.bias_standard_error[place]) == pytest.approx(bias, abs=1e-12)
        assert (result.mse[place], result.mse_standard_error[place]) == pytest.approx(mse, abs=1e-12)


@pytest.mark.usefixtures("_interpreted")
def test_each_replication_has_its_own_path_of_an_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accuracy, "PATH_CELLS", 2 * 3 * 30)  # two replications per task
    environment = db.environment("case-3", arms=3)
    result = db.estimation(FixedForgetting(0.8), environment, 5, horizon=30, arm=2, seed=SEED, times=30)
    paths = [environment.path(30, SEED, replication)[:, 2].tolist() for replication in range(5)]
    expected = literal_errors(ESTIMATES["fixed"][1], paths, arm=2)
    np.testing.assert_allclose(result.errors, expected, atol=1e-12)


def test_a_task_has_fewer_replications_if_steps_have_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accuracy, "PATH_CELLS", 2 * (3 + 4) * 30)
    environment = db.environment("logistic-drift", arms=3, dimension=4)
    assert accuracy._of_environment(environment, 30, 0, None).per_task == 2


@pytest.mark.usefixtures("_interpreted")
def test_errors_are_measured_in_the_units_of_the_rewards_and_of_their_law() -> None:
    law = db.reward_law("bounded", concentration=5)
    result = db.estimation(SlidingWindow(1), JUMP, 4, rewards=law, seed=SEED, times=40)
    environment = db.environment("path", means=[[mean, 0.0] for mean in JUMP], rewards=law)
    again = db.estimation(SlidingWindow(1), environment, 4, horizon=40, seed=SEED, times=40)
    last_rewards = result.errors + np.array(JUMP)
    assert ((last_rewards > 0.0) & (last_rewards < 1.0)).all()
    np.testing.assert_array_equal(result.errors, again.errors)


def test_compiled_and_interpreted_estimates_agree() -> None:
    estimator = AdaptiveForgetting(0.05)
    fast = db.estimation(estimator, JUMP, REPLICATIONS, seed=SEED, times=40)
    expected = literal_errors(ESTIMATES["adaptive"][1], [JUMP] * REPLICATIONS)
    np.testing.assert_allclose(fast.errors, expected, atol=1e-12)


@kernel
def keep_latest(state: accuracy.FreshEstimator, reward: float) -> accuracy.FreshEstimator:
    return accuracy.FreshEstimator(reward, (), 0)


@kernel
def latest(state: accuracy.FreshEstimator) -> float:
    return float(state.state)


class Latest(SampleMean):
    functions = db.estimators.EstimatorFunctions(keep_latest, latest)

    def __init__(self) -> None:
        self.state: Any = accuracy.FreshEstimator(0.0, (), 0)

    @property
    def weight(self) -> float:
        return 0.0


@pytest.mark.usefixtures("_interpreted")
def test_an_estimator_of_your_own_needs_two_functions() -> None:
    own = db.estimation(Latest(), JUMP, REPLICATIONS, seed=SEED)
    window = db.estimation(SlidingWindow(1), JUMP, REPLICATIONS, seed=SEED)
    np.testing.assert_array_equal(own.errors, window.errors)


class WithoutFunctions(Estimator):
    weight = 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimator": "sample-mean"}, "estimator must be an estimator such as"),
        ({"estimator": WithoutFunctions.__new__(WithoutFunctions)}, "set WithoutFunctions.functions to"),
        ({"estimator": SampleMean().update(1)}, "estimator must have no rewards yet, got SampleMean(mean 1, weight 1)"),
        ({"path": []}, "path must be an environment or a sequence of numbers in [0, 1], got []"),
        ({"path": [0.5, 1.5]}, "path must be an environment or a sequence of numbers in [0, 1], got [0.5, 1.5]"),
        ({"path": [0.5, float("nan")]}, "path must be an environment or a sequence of numbers in [0, 1]"),
        ({"path": [[0.5]]}, "path must be an environment or a sequence of numbers in [0, 1], got [[0.5]]"),
        ({"path": object}, "path must be an environment or a sequence of numbers in [0, 1]"),
        ({"path": "case-9"}, "unknown environment 'case-9'"),
        ({"path": "case-3", "arm": 2}, "arm must be a whole number of at least 0 and at most 1, got 2"),
        ({"path": "case-3", "rewards": "bounded"}, "rewards go with a sequence of means; environment 'case-3' has"),
        ({"arm": 1}, "arm must be 0, got 1"),
        ({"horizon": 3}, "horizon must be a whole number of at least 1 and at most 2, got 3"),
        ({"rewards": "normal"}, "an estimator needs rewards in [0, 1], but law 'normal' draws a number in"),
        ({"replications": 1}, "replications must be a whole number of at least 2"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"times": [3]}, "times must be whole numbers that rise"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        db.estimation(**{"estimator": SampleMean(), "path": [0.5, 0.5], "replications": 2, **arguments})


def test_a_frame_has_one_row_per_time() -> None:
    result = accuracy.Estimation(
        estimator=SampleMean(), seed=1, times=np.array([5, 9]), errors=np.array([[0.1, -0.2], [0.3, 0.2]])
    )
    frame = result.to_pandas()
    assert frame.to_dict("list") == {
        "step": [5, 9],
        "bias": pytest.approx([0.2, 0.0]),
        "bias_standard_error": pytest.approx([0.1, 0.2]),
        "mse": pytest.approx([0.05, 0.04]),
        "mse_standard_error": pytest.approx([0.04, 0.0]),
    }
    assert repr(result) == (
        "Estimation(SampleMean, 9 steps, 2 replications: at the end bias 0, mean squared error 0.04)"
    )
