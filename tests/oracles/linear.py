"""Linear contextual policies, literally: weighted least squares over the whole history, with NumPy's dense algebra.

A play says which model learnt from it. Each function returns what a model knows before step len(plays) + 1. Papers: Li,
Chu, Langford & Schapire (2010) for LinUCB; Agrawal & Goyal (2013) for Thompson sampling; Russac, Vernade & Cappé (2019)
for D-LinUCB, with both matrices; Cheung, Simchi-Levi & Zhu (2019) for the window; Wang, Zhao & Zhou (2023) for
WeightUCB; Zhao, Zhang, Jiang & Zhou (2020) for restarts; Foster & Rakhlin (2020) for SquareCB.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oracles.prior_turns import turns


class Play(NamedTuple):
    model: int
    x: np.ndarray
    reward: float


class Fit(NamedTuple):
    """theta = V^-1 b, the precision matrix V, and V~, in which the weights are squared."""

    theta: np.ndarray
    precision: np.ndarray
    squared: np.ndarray


def fit(plays: Sequence[Play], weights: Sequence[float], left: np.ndarray, ridge: float) -> Fit:
    """Ridge regression in which each play has a weight; `left` are the weights of the prior (see `prior_left`)."""
    precision, squared, b = np.diag(left), np.diag(left**2 / ridge), np.zeros(left.size)
    for play, weight in zip(plays, weights, strict=True):
        precision += weight * np.outer(play.x, play.x)
        squared += weight**2 * np.outer(play.x, play.x)
        b += weight * play.reward * play.x
    return Fit(np.linalg.inv(precision) @ b, precision, squared)


def all_equal(plays: Sequence[Play], model: int) -> list[float]:
    """LinUCB and LinTS: all plays of the model count."""
    return [float(play.model == model) for play in plays]


def discounted(plays: Sequence[Play], model: int, discount: float) -> list[float]:
    """D-LinUCB, D-LinTS and WeightUCB: gamma^(t - s), where t is the last step at which the model learnt."""
    last = idle_since(plays, model)
    return [float(play.model == model) * discount ** max(last - step, 0) for step, play in enumerate(plays, start=1)]


def in_window(plays: Sequence[Play], model: int, window: int) -> list[float]:
    """SW-LinUCB: the last `window` steps count."""
    return [float(play.model == model and step > len(plays) - window) for step, play in enumerate(plays, start=1)]


def since_restart(plays: Sequence[Play], model: int, period: int) -> list[float]:
    """RestartUCB: the steps of the current period count; the first step of a period starts without data."""
    first = len(plays) // period * period
    return [float(play.model == model and step > first) for step, play in enumerate(plays, start=1)]


def prior_left(plays: Sequence[Play], model: int, discount: float, dimension: int, ridge: float) -> np.ndarray:
    """Our rule: the prior fades with the data, but one or a few coordinates per reward, in turn, get it back.

    The papers keep the whole prior.
    """
    left, last, turn = np.full(dimension, ridge), 0, 0
    for step, play in enumerate(plays, start=1):
        if play.model == model:
            kept, last = discount ** (step - last), step
            left *= kept
            for _ in range(turns(dimension, kept)):
                left[turn] = ridge
                turn = (turn + 1) % dimension
    return left


def idle_since(plays: Sequence[Play], model: int) -> int:
    """The last step at which a model learnt, or 0."""
    return max((step for step, play in enumerate(plays, start=1) if play.model == model), default=0)


def bonus(found: Fit, x: np.ndarray) -> float:
    """sqrt(x' V^-1 x)."""
    return float(np.sqrt(x @ np.linalg.inv(found.precision) @ x))


def discounted_bonus(found: Fit, x: np.ndarray) -> float:
    """sqrt(x' V^-1 V~ V^-1 x) of D-LinUCB."""
    inverse = np.linalg.inv(found.precision)
    return float(np.sqrt(x @ inverse @ found.squared @ inverse @ x))


def idle_prediction(mean: float, variance: float, prior_variance: float, kept: float) -> tuple[float, float]:
    """Our rule for an idle model: its precision along x fades to that of the prior, whose mean is 0."""
    precision = kept / variance + (1.0 - kept) / prior_variance
    return kept / variance * mean / precision, 1.0 / precision


def drawn_theta(theta: np.ndarray, covariance: np.ndarray, scale: float, normals: np.ndarray) -> np.ndarray:
    """One draw from N(theta, scale^2 covariance)."""
    return theta + scale * np.linalg.cholesky(covariance) @ normals


def weight_ucb_radius(
    step: int, dimension: int, discount: float, ridge: float, noise: float, bound: float, delta: float
) -> float:
    """The radius of WeightUCB before a step, with the sum of the squared weights of all earlier steps."""
    weight = sum(discount ** (2 * age) for age in range(step - 1))
    growth = dimension * np.log(1.0 + weight / (ridge * dimension))
    return float(np.sqrt(ridge) * bound + noise * np.sqrt(2.0 * np.log(1.0 / delta) + growth))


def square_cb_probabilities(predictions: Sequence[float], gamma: float) -> list[float]:
    """Inverse gap weighting: 1 / (K + gamma gap), and the rest for the best arm."""
    best = int(np.argmax(predictions))
    chances = [1.0 / (len(predictions) + gamma * (predictions[best] - value)) for value in predictions]
    chances[best] = 1.0 - (sum(chances) - chances[best])
    return chances
