"""The kernels of regressions against the recursions of the oracle, with dense algebra."""

import math

import numpy as np
import pytest

from dynabandit.policies.memories import linear_model, links, regression_kernels
from dynabandit.policies.memories.linear_model import theta_at
from dynabandit.policies.memories.regression_kernels import (
    Kind,
    RegressionParams,
    make_regression,
    matrix_at,
    number_at,
    vector_at,
)
from oracles.regression import AdaptiveRegression, Regression, data

LINKS = {"identity": links.identity, "logistic": links.logistic, "log": links.log}
LIMITS = (regression_kernels.SHORTEST_MEMORY, regression_kernels.LONGEST_MEMORY)


@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("forgetting", [1.0, 0.97, "adaptive"])
def test_a_regression_follows_the_recursions(link: str, dimension: int, forgetting: float | str) -> None:
    adaptive = forgetting == "adaptive"
    params = RegressionParams(0.7, 0.98 if adaptive else float(forgetting), 0.2)
    kind = Kind(squared=True, adaptive=adaptive)
    kernels, model = make_regression(LINKS[link], kind), regression_kernels.initial(dimension, kind, params)
    if adaptive:
        expected: Regression = AdaptiveRegression(dimension, 0.7, link, 0.2, 50.0, LIMITS)
    else:
        expected = Regression(dimension, 0.7, link, float(forgetting))
    step = 0
    for x, reward, steps, late in data(link, dimension):
        step += steps
        kernels.learn(model, x, reward, 0.3, (step - late, step), params)
        expected.learn(x, reward, steps, offset=0.3, late=late)
        np.testing.assert_allclose(model[theta_at(dimension) :][:dimension], expected.theta, rtol=1e-7, atol=1e-9)
        assert kernels.variance(model, x) == pytest.approx(expected.variance(x), rel=1e-7)
        if adaptive:
            psi = model[vector_at(regression_kernels.PSI, dimension) :][:dimension]
            np.testing.assert_allclose(psi, expected.psi, rtol=1e-6, atol=1e-6)
            assert model[number_at(regression_kernels.FORGETTING, dimension)] == pytest.approx(
                expected.forgetting, rel=1e-7
            )
    assert not adaptive or expected.forgetting != 0.98


def test_without_squared_weights_the_variance_is_that_of_the_inverse() -> None:
    params = RegressionParams(0.7, 0.97, 0.0)
    kernels, model = make_regression(links.identity, Kind()), regression_kernels.initial(3, Kind(), params)
    expected = Regression(3, 0.7, "identity", 0.97)
    for step, (x, reward, *_) in enumerate(data("identity", 3), start=1):
        kernels.learn(model, x, reward, 0.0, (step, step), params)
        expected.learn(x, reward, 1)
        assert kernels.variance(model, x) == pytest.approx(x @ np.linalg.inv(expected.precision()) @ x, rel=1e-9)


@pytest.mark.parametrize("kind", [Kind(), Kind(squared=True), Kind(adaptive=True)])
def test_a_model_that_was_idle_for_very_long_is_as_new_but_for_its_forgetting_factor(kind: Kind) -> None:
    params = RegressionParams(0.7, 0.9, 0.5)
    kernels = make_regression(links.identity, kind)
    model, new = (regression_kernels.initial(2, kind, params) for _ in range(2))
    x, y = np.array([1.0, 2.0]), np.array([0.5, -1.0])
    for step in range(1, 6):
        kernels.learn(model, x, float(step % 2), 0.0, (step, step), params)
    forgetting = model[number_at(regression_kernels.FORGETTING, 2)]
    assert bool(forgetting != 0.9) is kind.adaptive
    kernels.learn(model, y, 3.0, 0.0, (10**6, 10**6), params)
    kernels.learn(new, y, 3.0, 0.0, (0, 0), params)
    np.testing.assert_array_equal(model[theta_at(2) :][:2], new[theta_at(2) :][:2])
    assert kernels.variance(model, x) == kernels.variance(new, x)
    np.testing.assert_array_equal(
        model[vector_at(regression_kernels.PSI, 2) :][:2], new[vector_at(regression_kernels.PSI, 2) :][:2]
    )


def test_a_late_reward_weighs_less() -> None:
    params, kind = RegressionParams(1.0, 0.5, 0.0), Kind(squared=True)
    kernels, model = make_regression(links.identity, kind), regression_kernels.initial(1, kind, params)
    kernels.learn(model, np.ones(1), 3.0, 0.0, (1, 3), params)
    weight = 0.5**2
    assert model[theta_at(1)] == pytest.approx(3.0 * weight / (1.0 + weight))
    assert kernels.variance(model, np.ones(1)) == pytest.approx((1.0 + weight**2) / (1.0 + weight) ** 2)
    assert model[linear_model.CLOCK] == 3
    assert [regression_kernels.kept_until(model, 1, number) for number in (1, 2, 3, 4, 5)] == [1.0, 1.0, 1.0, 0.5, 0.25]
    kernels.learn(model, np.ones(1), 3.0, 0.0, (1, 1), params)  # nothing fades if a reward is said to be earlier
    assert model[theta_at(1)] == pytest.approx(3.0 * (weight + 1.0) / (1.0 + weight + 1.0))
    assert model[linear_model.CLOCK] == 3


def test_a_large_count_does_not_move_the_predicted_mean_beyond_it() -> None:
    params = RegressionParams(1e-3, 1.0, 0.0)
    kernels, model = make_regression(links.log, Kind()), regression_kernels.initial(1, Kind(), params)
    kernels.learn(model, np.ones(1), 1e6, 0.0, (1, 1), params)
    assert 10.0 < model[theta_at(1)] < np.log(1e6)


@pytest.mark.parametrize("varying", [True, False])
def test_a_long_run_agrees_with_dense_algebra(varying: bool) -> None:
    # A difference between Q and its transpose would grow by the factor 0.9^-1200, if nothing removed it
    params, kind, drawn = RegressionParams(0.7, 0.9, 0.0), Kind(adaptive=True), np.random.default_rng(3)
    kernels, model = make_regression(links.identity, kind), regression_kernels.initial(2, kind, params)
    expected = Regression(2, 0.7, "identity", 0.9)
    x = np.array([1.0, 2.0])
    for step in range(1, 1201):
        x = drawn.normal(size=2) if varying else x
        reward = drawn.normal()
        kernels.learn(model, x, reward, 0.0, (step, step), params)
        expected.learn(x, reward)
    np.testing.assert_allclose(model[theta_at(2) :][:2], expected.theta, rtol=1e-8)
    np.testing.assert_allclose(model[vector_at(regression_kernels.PSI, 2) :][:2], expected.psi, rtol=1e-6)
    for y in (x, np.array([2.0, -1.0])):
        assert kernels.variance(model, y) == pytest.approx(expected.variance(y), rel=1e-8)


def test_if_data_fade_fast_the_slope_of_the_inverse_is_symmetric_after_every_reward() -> None:
    drawn, kind, d = np.random.default_rng(3), Kind(adaptive=True), 5
    for steps, always in ((1, False), (2, True)):  # 0.92 or 0.92^2 of the data are kept
        params = RegressionParams(0.7, 0.92, 0.0)
        kernels, model = make_regression(links.identity, kind), regression_kernels.initial(d, kind, params)
        symmetric = []
        for step in range(1, 21):
            kernels.learn(model, drawn.normal(size=d), drawn.normal(), 0.0, (step * steps, step * steps), params)
            slope = model[matrix_at(regression_kernels.Q, d) :][: d * d].reshape(d, d)
            symmetric.append(bool((slope == slope.T).all()))
        assert symmetric[d - 1 :: d] == [True] * 4  # once all coordinates had their turn
        assert all(symmetric) is always


@pytest.mark.parametrize("gap", [1e-9, 1e-6, 0.99e-4, 1.01e-4, 1e-3])
@pytest.mark.parametrize("eta", [-3.0, 0.2, 4.0])
def test_the_weight_of_a_count_near_its_mean_is_the_limit_of_the_logarithmic_mean(eta: float, gap: float) -> None:
    mean, count = np.exp(eta), np.exp(eta + gap)
    p, p_slope, v, v_slope = links.log(eta, count)
    assert (p, p_slope) == (mean, mean)
    assert v == pytest.approx(mean * (1.0 + gap / 2.0 + gap**2 / 6.0), rel=2e-9)
    assert v_slope == pytest.approx(mean * (0.5 + gap / 6.0), rel=1e-4)


@pytest.mark.parametrize(("eta", "log_mean"), [(49.5, 49.5), (50.0, 50.0), (50.5, 50.0), (1e9, 50.0)])
def test_the_mean_of_counts_is_at_most_e_to_the_50(eta: float, log_mean: float) -> None:
    assert links.log(eta, 0.0) == (math.exp(log_mean),) * 4
    assert links.log(eta, math.exp(log_mean)) == (math.exp(log_mean),) * 4
