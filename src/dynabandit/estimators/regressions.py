"""Regressions of rewards on features as objects: least squares, logistic and Poisson, with or without forgetting."""

import functools
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dynabandit.core.compilation import compiled
from dynabandit.core.docstrings import inherit_parameters
from dynabandit.policies.memories import linear_model, links, regression_kernels
from dynabandit.policies.memories.regression_kernels import Kind, Regression, RegressionParams, make_regression
from dynabandit.validation import BOUNDED, COUNTS, LARGEST_FACTOR, LEAST_FACTOR, NORMAL, RewardDomain, integer, number

ADAPTIVE = "adaptive"
LARGEST_DIMENSION = 256
FEW_FEATURES = 4  # with more, the kernels are compiled


class Prediction(NamedTuple):
    """What a regression predicts for a vector of features.

    Examples
    --------
    >>> from dynabandit.estimators import LeastSquares
    >>> LeastSquares(2, prior=4).predict([1, 2])
    Prediction(mean=0.0, variance=1.25)
    """

    mean: float
    variance: float  # of the predictor theta' x; for least squares in units of the variance of a reward


@functools.cache
def kernels_of(link: Callable[..., Any], kind: Kind, is_compiled: bool) -> Regression:
    """Return the kernels of a regression."""
    found = make_regression(link, kind)
    if not is_compiled:
        return found
    return found._replace(learn=compiled(found.learn), variance=compiled(found.variance))


class RegressionEstimator:
    r"""Base class of the regressions.

    Parameters
    ----------
    dimension
        The number of features, at most 256. No constant is added: make one of the features 1.
    prior
        The precision of the prior of every coefficient, positive; for least squares it is the ridge penalty, in
        rewards. It is not forgotten.
    forgetting
        The factor by which the data fade per step, in (0, 1], or ``"adaptive"``.
    step_size, memory
        If it is adaptive: the step size of the logarithm of the memory :math:`1 / (1 - \lambda)`, and the memory at
        first.
    """

    link: ClassVar[Callable[..., Any]]
    rewards: ClassVar[RewardDomain]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherit_parameters(cls, RegressionEstimator)

    def __init__(
        self,
        dimension: int,
        prior: float = 1.0,
        forgetting: float | str = 1.0,
        step_size: float = 0.2,
        memory: float = 1000.0,
    ) -> None:
        self.dimension = integer("dimension", dimension, 1, LARGEST_DIMENSION)
        adaptive = forgetting == ADAPTIVE
        if isinstance(forgetting, str) and not adaptive:
            raise ValueError(f"forgetting must be a number in (0, 1] or {ADAPTIVE!r}, got {forgetting!r}")
        memory = number("memory", memory, regression_kernels.SHORTEST_MEMORY, regression_kernels.LONGEST_MEMORY)
        first = 1.0 - 1.0 / memory if adaptive else number("forgetting", forgetting, 0.0, 1.0, open_low=True)
        prior = number("prior", prior, LEAST_FACTOR, LARGEST_FACTOR)
        self.params = RegressionParams(prior, first, number("step_size", step_size, 0.0, 1.0))
        kind = Kind(squared=first < 1.0, adaptive=adaptive)
        self._kernels = kernels_of(type(self).link, kind, dimension > FEW_FEATURES)
        self.model = regression_kernels.initial(dimension, kind, self.params)
        self.step = 0

    def update(self, features: Any, reward: float, steps: int = 1) -> "RegressionEstimator":
        """Learn a reward, and return the estimator.

        Parameters
        ----------
        features
            The vector of features.
        reward
            The reward that was observed with these features.
        steps
            How many steps after the previous reward it was observed.
        """
        x, value = self._checked(features), self.rewards.check(reward)
        self.step += integer("steps", steps, 0)
        self._kernels.learn(self.model, x, value, 0.0, (self.step, self.step), self.params)
        return self

    def predict(self, features: Any) -> Prediction:
        """Return the mean reward that is predicted for these features, and the variance of the predictor."""
        x = self._checked(features)
        eta = float(self.coefficients @ x)
        return Prediction(float(type(self).link(eta, 0.0)[0]), max(float(self._kernels.variance(self.model, x)), 0.0))

    @property
    def coefficients(self) -> np.ndarray:
        """The coefficients theta."""
        return self.model[linear_model.theta_at(self.dimension) :][: self.dimension].copy()

    @property
    def forgetting(self) -> float:
        """The factor by which the data fade per step; 1 forgets nothing."""
        return float(self.model[regression_kernels.number_at(regression_kernels.FORGETTING, self.dimension)])

    def _checked(self, features: Any) -> np.ndarray:
        try:
            x = np.ascontiguousarray(features, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(f"features must be {self.dimension} numbers, got {features!r}") from None
        if x.shape != (self.dimension,) or not np.isfinite(x).all():
            raise ValueError(f"features must be {self.dimension} finite numbers, got {features!r}")
        return x

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dimension} features, forgetting {self.forgetting:.4g})"


class LeastSquares(RegressionEstimator):
    r"""Recursive least squares: Bayesian linear regression, updated with each reward in O(d^2).

    Examples
    --------
    >>> from dynabandit.estimators import LeastSquares
    >>> estimate = LeastSquares(2, prior=0.01, forgetting="adaptive")
    >>> for step in range(250):
    ...     x = [1.0, step % 5]
    ...     _ = estimate.update(x, 2.0 + x[1] if step < 150 else 2.0 - x[1])
    >>> estimate.coefficients.round(1).tolist(), estimate.forgetting < 0.95
    ([2.0, -1.0], True)

    Notes
    -----
    The recursions are those of `memories.regression_kernels`. Features that never vary are harmless: the prior bounds
    the variance in all directions.

    References
    ----------
    Haykin (2002), Adaptive filter theory, chapters 9 and 14; the prior and the normalised step are our own.
    """

    link = staticmethod(links.identity)
    rewards = NORMAL


class LogisticRegression(RegressionEstimator):
    r"""Bayesian logistic regression of rewards in [0, 1]: one Newton step per reward, in O(d^2).

    Examples
    --------
    >>> from dynabandit.estimators import LogisticRegression
    >>> estimate = LogisticRegression(1)
    >>> for reward in [1, 1, 0] * 50:
    ...     _ = estimate.update([1.0], reward)
    >>> round(estimate.predict([1.0]).mean, 2)
    0.66

    References
    ----------
    Chapelle & Li (2011), An empirical evaluation of Thompson sampling. NIPS, algorithm 3, with one step per reward.
    """

    link = staticmethod(links.logistic)
    rewards = BOUNDED


class PoissonRegression(RegressionEstimator):
    r"""Bayesian Poisson regression of counts: the logarithm of the mean is linear; one step per count, in O(d^2).

    Examples
    --------
    >>> from dynabandit.estimators import PoissonRegression
    >>> estimate = PoissonRegression(1, prior=0.1)
    >>> for count in [4, 6, 5] * 50:
    ...     _ = estimate.update([1.0], count)
    >>> round(estimate.predict([1.0]).mean, 1)
    5.0

    References
    ----------
    Our own, in analogy to `LogisticRegression`; `memories.links` explains the weight of large counts.
    """

    link = staticmethod(links.log)
    rewards = COUNTS
