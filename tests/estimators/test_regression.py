"""The kernels of regressions against the recursions of the oracle, with dense algebra."""

import numpy as np
import pytest

from dynabandit.estimators import linear_model, links, regression
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
