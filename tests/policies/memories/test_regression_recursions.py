"""The recursions of regression with forgetting, as the oracle states them: derivatives and special cases."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dynabandit.policies.memories import adaptive as adaptive_forgetting
from dynabandit.policies.memories.adaptive import START, make_params, observe
from oracles.regression import LINKS, Regression


def example(link: str, steps: int, dimension: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, rewards and the steps between them, from coefficients that change once."""
    drawn = np.random.default_rng(5)
    features = drawn.normal(size=(steps, dimension)) / np.sqrt(dimension)
    theta = np.where(np.arange(steps)[:, np.newaxis] < steps // 2, 1.0, -0.5)
    means = LINKS[link].mean((features * theta).sum(axis=1))
    rewards = {
        "identity": means + drawn.normal(size=steps),
        "logistic": (drawn.random(steps) < means).astype(float),
        "log": drawn.poisson(np.abs(means)).astype(float),
    }
    return features, rewards[link], drawn.integers(1, 4, size=steps)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("forgetting", [0.8, 0.97, 1.0])
def test_psi_is_the_derivative_of_the_whole_recursion(link: str, forgetting: float) -> None:
    # The difference quotient (f(x + ih) - f(x - ih)) / 2ih has no cancellation, so h can be tiny
    features, rewards, idle = example(link, 60, 3)
    h = 1e-30
    shifted, model = (Regression(3, 0.7, link, value) for value in (forgetting + h * 1j, forgetting))
    for x, reward, steps in zip(features, rewards, idle, strict=True):
        shifted.learn(x, reward, int(steps))
        model.learn(x, reward, int(steps))
        np.testing.assert_allclose(model.psi, shifted.theta.imag / h, rtol=1e-9, atol=1e-12)
    assert np.abs(model.psi).max() > 0.1


@pytest.mark.parametrize("link", LINKS)
def test_the_gradient_is_that_of_the_log_likelihood(link: str) -> None:
    features, rewards, _ = example(link, 40, 3)
    model, h = Regression(3, 0.7, link, 0.95), 1e-30
    shifted = Regression(3, 0.7, link, 0.95 + h * 1j)
    log_likelihoods: dict[str, Callable[[Any, float], Any]] = {
        "identity": lambda eta, r: -((r - eta) ** 2) / 2,
        "logistic": lambda eta, r: r * eta - np.log(1 + np.exp(eta)),
        "log": lambda eta, r: r * eta - np.exp(eta),
    }
    for x, reward in zip(features, rewards, strict=True):
        expected = log_likelihoods[link](shifted.theta @ x, reward).imag / h
        shifted.learn(x, reward)
        assert model.learn(x, reward) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_a_constant_feature_without_prior_has_the_slope_of_the_papers_equation_9() -> None:
    _, rewards, _ = example("identity", 50, 1)
    state, model = START, Regression(1, 0.0, "identity", 1.0)
    smallest = 1.0
    for reward in rewards:
        model.forgetting = state.forgetting
        gradient = model.learn(np.ones(1), reward)
        new = observe(state, float(reward), make_params(0.01))
        # the loss of the paper is the squared error, twice the negative log-likelihood
        assert new.forgetting == pytest.approx(np.clip(state.forgetting + 0.01 * 2.0 * gradient, 0.0, 1.0), rel=1e-9)
        state = new
        assert model.theta[0] == pytest.approx(state.mean, rel=1e-9)
        assert model.psi[0] == pytest.approx(adaptive_forgetting.slope(state), rel=1e-9, abs=1e-12)
        assert model.variance(np.ones(1)) == pytest.approx(state.k / state.w**2, rel=1e-9)
        smallest = min(smallest, state.forgetting)
    assert smallest < 0.99


@pytest.mark.parametrize("link", LINKS)
def test_without_prior_a_reward_moves_the_coefficients_by_the_error_times_the_gain(link: str) -> None:
    # The form theta <- theta + e u, psi <- psi - v z u - e L^-1 L' u, in which nothing pulls to a prior
    features, rewards, _ = example(link, 60, 2)
    model = Regression(2, 1e-9, link, 0.9)
    for x, reward in zip(features, rewards, strict=True):
        theta, psi = model.theta, model.psi
        eta, z = theta @ x, psi @ x
        model.learn(x, reward)
        if np.linalg.cond(model.precision()) < 1e4:
            u = np.linalg.solve(model.precision(), x)
            error = reward - model.link.mean(eta)
            np.testing.assert_allclose(model.theta, theta + error * u, rtol=1e-4, atol=1e-6)
            moved = psi - model.link.slope(eta) * z * u - error * np.linalg.solve(model.precision(), model.D1 @ u)
            np.testing.assert_allclose(model.psi, moved, rtol=1e-3, atol=1e-5)
