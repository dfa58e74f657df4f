"""The kernels of regressions against the recursions of the oracle, with dense algebra."""

from typing import Any

import numpy as np
import pytest

from dynabandit.estimators import LeastSquares, LogisticRegression, PoissonRegression, linear_model, links, regression
from dynabandit.estimators.linear_model import theta_at
from dynabandit.estimators.regression import Kind, RegressionParams, make_regression, number_at, vector_at
from oracles import regression as oracle
from oracles.regression import AdaptiveRegression, Regression

LINKS = {"identity": links.identity, "logistic": links.logistic, "log": links.log}
LIMITS = (regression.SHORTEST_MEMORY, regression.LONGEST_MEMORY)


def data(link: str, dimension: int, count: int = 60) -> list[tuple[np.ndarray, float, int]]:
    """Return features, reward and steps since the previous one; the coefficients change sign once."""
    drawn = np.random.default_rng(7)
    found = []
    for number in range(count):
        x = drawn.normal(size=dimension) / np.sqrt(dimension)
        eta = 1.5 * x.sum() * (1.0 if number < count // 2 else -1.0)
        rewards = {
            "identity": eta + drawn.normal(),
            "logistic": float(drawn.random() < oracle.sigmoid(eta)),
            "log": float(drawn.poisson(np.exp(eta))),
        }
        found.append((x, rewards[link], int(drawn.choice([0, 1, 1, 2, 90]))))
    return found


@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("forgetting", [1.0, 0.97, "adaptive"])
def test_a_regression_follows_the_recursions(link: str, dimension: int, forgetting: float | str) -> None:
    adaptive = forgetting == "adaptive"
    params = RegressionParams(0.7, 0.98 if adaptive else float(forgetting), 0.2)
    kind = Kind(squared=True, adaptive=adaptive)
    kernels, model = make_regression(LINKS[link], kind), regression.initial(dimension, kind, params)
    if adaptive:
        expected: Regression = AdaptiveRegression(dimension, 0.7, link, 0.2, 50.0, LIMITS)
    else:
        expected = Regression(dimension, 0.7, link, float(forgetting))
    step = 0
    for x, reward, steps in data(link, dimension):
        step += steps
        kernels.learn(model, x, reward, 0.3, (step, step), params)
        expected.learn(x, reward, steps, offset=0.3)
        np.testing.assert_allclose(model[theta_at(dimension) :][:dimension], expected.theta, rtol=1e-7, atol=1e-9)
        assert kernels.variance(model, x) == pytest.approx(expected.variance(x), rel=1e-7)
        if adaptive:
            psi = model[vector_at(regression.PSI, dimension) :][:dimension]
            np.testing.assert_allclose(psi, expected.psi, rtol=1e-6, atol=1e-6)
            assert model[number_at(regression.FORGETTING, dimension)] == pytest.approx(expected.forgetting, rel=1e-7)
    assert not adaptive or expected.forgetting != 0.98


def test_without_squared_weights_the_variance_is_that_of_the_inverse() -> None:
    params = RegressionParams(0.7, 0.97, 0.0)
    kernels, model = make_regression(links.identity, Kind()), regression.initial(3, Kind(), params)
    expected = Regression(3, 0.7, "identity", 0.97)
    for step, (x, reward, _) in enumerate(data("identity", 3), start=1):
        kernels.learn(model, x, reward, 0.0, (step, step), params)
        expected.learn(x, reward, 1)
        assert kernels.variance(model, x) == pytest.approx(x @ np.linalg.inv(expected.precision()) @ x, rel=1e-9)


def test_a_model_that_was_idle_for_very_long_is_as_new_but_for_its_forgetting_factor() -> None:
    params, kind = RegressionParams(0.7, 0.9, 0.5), Kind(adaptive=True)
    kernels = make_regression(links.identity, kind)
    model, new = (regression.initial(2, kind, params) for _ in range(2))
    x, y = np.array([1.0, 2.0]), np.array([0.5, -1.0])
    for step in range(1, 6):
        kernels.learn(model, x, float(step % 2), 0.0, (step, step), params)
    forgetting = model[number_at(regression.FORGETTING, 2)]
    assert forgetting != 0.9
    kernels.learn(model, y, 3.0, 0.0, (10**6, 10**6), params)
    kernels.learn(new, y, 3.0, 0.0, (0, 0), params)
    np.testing.assert_array_equal(model[theta_at(2) :][:2], new[theta_at(2) :][:2])
    assert kernels.variance(model, x) == kernels.variance(new, x)
    np.testing.assert_array_equal(model[vector_at(regression.PSI, 2) :][:2], new[vector_at(regression.PSI, 2) :][:2])


def test_a_late_reward_weighs_less() -> None:
    params, kind = RegressionParams(1.0, 0.5, 0.0), Kind(squared=True)
    kernels, model = make_regression(links.identity, kind), regression.initial(1, kind, params)
    kernels.learn(model, np.ones(1), 3.0, 0.0, (1, 3), params)
    weight = 0.5**2
    assert model[theta_at(1)] == pytest.approx(3.0 * weight / (1.0 + weight))
    assert kernels.variance(model, np.ones(1)) == pytest.approx((1.0 + weight**2) / (1.0 + weight) ** 2)
    assert model[linear_model.CLOCK] == 3


def test_a_large_count_does_not_move_the_predicted_mean_beyond_it() -> None:
    params = RegressionParams(1e-3, 1.0, 0.0)
    kernels, model = make_regression(links.log, Kind()), regression.initial(1, Kind(), params)
    kernels.learn(model, np.ones(1), 1e6, 0.0, (1, 1), params)
    assert 10.0 < model[theta_at(1)] < np.log(1e6)


@pytest.mark.parametrize("varying", [True, False])
def test_a_long_run_agrees_with_dense_algebra(varying: bool) -> None:
    # A difference between Q and its transpose would grow by the factor 0.9^-1200, if nothing removed it
    params, kind, drawn = RegressionParams(0.7, 0.9, 0.0), Kind(adaptive=True), np.random.default_rng(3)
    kernels, model = make_regression(links.identity, kind), regression.initial(2, kind, params)
    expected = Regression(2, 0.7, "identity", 0.9)
    x = np.array([1.0, 2.0])
    for step in range(1, 1201):
        x = drawn.normal(size=2) if varying else x
        reward = drawn.normal()
        kernels.learn(model, x, reward, 0.0, (step, step), params)
        expected.learn(x, reward)
    np.testing.assert_allclose(model[theta_at(2) :][:2], expected.theta, rtol=1e-8)
    np.testing.assert_allclose(model[vector_at(regression.PSI, 2) :][:2], expected.psi, rtol=1e-6)
    for y in (x, np.array([2.0, -1.0])):
        assert kernels.variance(model, y) == pytest.approx(expected.variance(y), rel=1e-8)


ESTIMATORS = [(LeastSquares, "identity"), (LogisticRegression, "logistic"), (PoissonRegression, "log")]


@pytest.mark.parametrize(("estimator", "link"), ESTIMATORS)
@pytest.mark.parametrize("forgetting", [1.0, 0.9, "adaptive"])
def test_an_object_follows_the_recursions(estimator: Any, link: str, forgetting: float | str) -> None:
    found = estimator(3, prior=0.7, forgetting=forgetting, memory=50)
    if forgetting == "adaptive":
        expected: Regression = AdaptiveRegression(3, 0.7, link, 0.2, 50.0, LIMITS)
    else:
        expected = Regression(3, 0.7, link, float(forgetting))
    for x, reward, steps in data(link, 3, 20):
        assert found.update(x.tolist(), reward, steps) is found
        expected.learn(x, reward, steps)
        mean = expected.link.mean(expected.theta @ x)
        assert found.predict(x) == pytest.approx((mean, expected.variance(x)), rel=1e-7, abs=1e-9)
        assert found.forgetting == pytest.approx(expected.forgetting, rel=1e-7)
    np.testing.assert_allclose(found.coefficients, expected.theta, rtol=1e-7)
    assert repr(found) == f"{estimator.__name__}(3 features, forgetting {expected.forgetting:.4g})"


@pytest.mark.parametrize("features", [[1.0], [1.0, 2.0, 3.0], [1.0, np.nan], [1.0, np.inf], [[1.0, 2.0]]])
def test_features_of_the_wrong_length_or_not_finite_are_errors_and_nothing_is_learnt(features: Any) -> None:
    estimate = LeastSquares(2)
    before = estimate.model.copy()
    with pytest.raises(ValueError, match="features must be 2 finite numbers, got"):
        estimate.update(features, 1.0)
    assert (estimate.model == before).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dimension": 0}, "dimension must be a whole number of at least 1 and at most 256, got 0"),
        ({"dimension": 257}, "dimension must be a whole number of at least 1 and at most 256, got 257"),
        ({"forgetting": 0.0}, r"forgetting must be a number in \(0, 1\], got 0.0"),
        ({"forgetting": "slow"}, r"forgetting must be a number in \(0, 1\] or 'adaptive', got 'slow'"),
        ({"prior": 0.0}, "prior must be a number in"),
        ({"memory": 9.0}, "memory must be a number in"),
        ({"step_size": 1.5}, "step_size must be a number in"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LeastSquares(**{"dimension": 2, **arguments})
    with pytest.raises(TypeError, match="features must be 2 numbers, got 'no'"):
        LeastSquares(2).predict("no")
    with pytest.raises(ValueError, match="reward must be a whole number"):
        PoissonRegression(2).update([1.0, 2.0], 0.5)
