"""Bayesian regression with forgetting, and the derivative of its coefficients with respect to the forgetting factor.

With the inverse link mu, eta = theta' x, p = mu(eta), e = r - p and the weight v of a reward, which is mu'(eta) but for
large counts, a reward that comes m steps after the previous one is learnt by one Newton step. The prior alpha is
not forgotten: it fades with the data, but one coordinate per reward, in turn, gets it back (all of them at once if less
than half of the data are kept). With the prior C that is left on the diagonal:

    D <- lambda^m D + v x x',  b <- lambda^m b + (v eta + e) x,  theta = (D + C)^-1 b

D2 is D with the squares of the weights, and C2 = C^2 / alpha. D', b', C' and psi are the derivatives of D, b, C and
theta with respect to lambda, when all past forgetting factors change by the same amount:

    D' <- lambda^m D' + m lambda^(m - 1) D + v' z x x',
    b' <- lambda^m b' + m lambda^(m - 1) b + (v' eta + v - mu'(eta)) z x,
    psi = (D + C)^-1 (b' - (D' + C') theta),  where z = psi' x and v' is the derivative of v

A reward that arrives l steps after its decision has the weight lambda^l, in which lambda counts as a constant: v, v', e
and mu' are multiplied by it.

The forgetting factor follows the gradient e z (1 - lambda) of the log-likelihood in the logarithm s of the memory.
All of it also holds for complex lambda, so that tests can differentiate by a complex step.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from oracles.prior_turns import turns


class Link(NamedTuple):
    """An inverse link and its derivative, functions of eta; the weight and its derivative, also of the reward."""

    mean: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    weight: Callable[[Any, float], Any]
    weight_slope: Callable[[Any, float], Any]


def sigmoid(eta: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-eta))


def variance(eta: Any, reward: float = 0.0) -> Any:
    return sigmoid(eta) * (1.0 - sigmoid(eta))


def count_weight(eta: Any, reward: float) -> Any:
    """The mean, or, for a larger count, the average of exp between eta and the logarithm of the count."""
    if reward <= np.exp(eta).real:
        return np.exp(eta)
    return (reward - np.exp(eta)) / (np.log(reward) - eta)


def count_weight_slope(eta: Any, reward: float) -> Any:
    if reward <= np.exp(eta).real:
        return np.exp(eta)
    return (count_weight(eta, reward) - np.exp(eta)) / (np.log(reward) - eta)


LINKS = {
    "identity": Link(lambda eta: eta, lambda eta: 1.0, lambda eta, reward: 1.0, lambda eta, reward: 0.0),
    "logistic": Link(sigmoid, variance, variance, lambda eta, reward: variance(eta) * (1.0 - 2.0 * sigmoid(eta))),
    "log": Link(np.exp, np.exp, count_weight, count_weight_slope),
}


class Regression:
    """The recursions for a constant forgetting factor, or, with a step size, for one that follows the gradient."""

    def __init__(self, dimension: int, ridge: float, link: str, forgetting: Any = 1.0) -> None:
        self.ridge, self.link, self.forgetting = ridge, LINKS[link], forgetting
        self.D, self.D1, self.D2 = np.zeros((3, dimension, dimension), dtype=type(forgetting))
        self.b, self.b1, self.theta, self.psi, self.left, self.left1 = np.zeros((6, dimension), dtype=type(forgetting))
        self.left += ridge
        self.turn = 0

    def precision(self) -> np.ndarray:
        return self.D + np.diag(self.left)

    def covariance(self) -> np.ndarray:
        """L^-1 L2 L^-1."""
        inverse = np.linalg.inv(self.precision())
        prior = self.left**2 / self.ridge if self.ridge > 0.0 else np.zeros(self.left.size)
        return inverse @ (self.D2 + np.diag(prior)) @ inverse

    def variance(self, x: np.ndarray) -> float:
        return float(x @ self.covariance() @ x)

    def restore(self, kept: float) -> None:
        """Give the coordinates whose turn it is their prior back."""
        if kept < 1.0:
            for _ in range(turns(self.left.size, kept)):
                self.left[self.turn], self.left1[self.turn] = self.ridge, 0.0
                self.turn = (self.turn + 1) % self.left.size

    def learn(self, x: np.ndarray, reward: float, steps: int = 1, offset: Any = 0.0, late: int = 0) -> Any:
        """Learn a reward and return the gradient of its log-likelihood with respect to the forgetting factor."""
        weight = self.forgetting**late
        eta, z = self.theta @ x, self.psi @ x
        if abs(z) <= 1e-10 * abs(eta):
            z = 0.0  # rounding error
        v, v_slope = (
            weight * self.link.weight(offset + eta, reward),
            weight * self.link.weight_slope(offset + eta, reward),
        )
        error, slope = weight * (reward - self.link.mean(offset + eta)), weight * self.link.slope(offset + eta)
        kept = self.forgetting**steps
        change = steps * self.forgetting ** (steps - 1) if steps > 0 else 0.0
        outer = np.outer(x, x)
        self.D1 = kept * self.D1 + change * self.D + v_slope * z * outer
        self.b1 = kept * self.b1 + change * self.b + (v_slope * eta + v - slope) * z * x
        self.D = kept * self.D + v * outer
        self.D2 = kept**2 * self.D2 + weight * v * outer
        self.b = kept * self.b + (v * eta + error) * x
        self.left1 = kept * self.left1 + change * self.left
        self.left = kept * self.left
        self.restore(np.real(kept))
        inverse = np.linalg.inv(self.precision())
        self.theta = inverse @ self.b
        self.psi = inverse @ (self.b1 - (self.D1 + np.diag(self.left1)) @ self.theta)
        return error * z


class AdaptiveRegression(Regression):
    """The same, and s <- s + eta g / sqrt(G) within limits, with g = e z (1 - lambda); G is the mean of all g^2 so far,
    in which the weight of a square falls by the factor 0.99 per reward.
    """

    def __init__(
        self, dimension: int, ridge: float, link: str, step_size: float, memory: float, limits: tuple[float, float]
    ) -> None:
        super().__init__(dimension, ridge, link, 1.0 - 1.0 / memory)
        self.step_size, self.limits = step_size, limits
        self.log_memory = np.log(memory)
        self.gradients: list[float] = []

    def learn(self, x: np.ndarray, reward: float, steps: int = 1, offset: Any = 0.0, late: int = 0) -> Any:
        gradient = super().learn(x, reward, steps, offset, late) * (1.0 - self.forgetting)
        self.gradients.append(gradient)
        weights = 0.99 ** np.arange(len(self.gradients))[::-1]
        squares = np.average(np.square(self.gradients), weights=weights)
        if squares > 0.0:
            self.log_memory += self.step_size * gradient / np.sqrt(squares)
        low, high = self.limits
        self.log_memory = min(max(self.log_memory, np.log(low)), np.log(high))
        self.forgetting = 1.0 - np.exp(-self.log_memory)
        return gradient


def data(link: str, dimension: int, count: int = 60) -> list[tuple[np.ndarray, float, int, int]]:
    """Return features, reward, steps since the previous one and since its decision; coefficients change sign once."""
    drawn = np.random.default_rng(7)
    found = []
    for number in range(count):
        x = drawn.normal(size=dimension) / np.sqrt(dimension)
        eta = 1.5 * x.sum() * (1.0 if number < count // 2 else -1.0)
        rewards = {
            "identity": eta + drawn.normal(),
            "logistic": float(drawn.random() < sigmoid(eta)),
            "log": float(drawn.poisson(np.exp(eta))),
        }
        found.append((x, rewards[link], int(drawn.choice([0, 1, 1, 2, 90])), int(drawn.choice([0, 0, 1, 30]))))
    return found
