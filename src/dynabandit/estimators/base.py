"""The estimator contract: the rewards of one arm -> an estimate of its mean."""

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.validation import BOUNDED, RewardDomain


class Belief(NamedTuple):
    """What an estimator knows about one arm.

    Before the first reward the mean is NaN, and variance and effective size are 0. A policy that draws from a posterior
    returns the values of its posterior (`Policy.belief`), which before the first reward is its prior.

    Examples
    --------
    >>> from dynabandit.estimators import SampleMean
    >>> SampleMean().update(1).belief
    Belief(mean=1.0, variance=0.0, forgetting=1.0, effective_size=1.0)
    """

    mean: float  # the estimated mean reward
    variance: float  # the estimated variance of a reward
    forgetting: float  # the latest forgetting factor; 1 if nothing is forgotten
    effective_size: float  # the number of equally weighted rewards that would give an estimate of the same precision


@kernel
def keep_all(state: Any, reward: float) -> Any:
    """Keep the oldest reward."""
    return state


class EstimatorFunctions(NamedTuple):
    """The kernels of an estimator, which its objects and compiled code call.

    Examples
    --------
    >>> from dynabandit.estimators import FixedForgetting
    >>> functions, estimate = FixedForgetting.functions, FixedForgetting(0.5)
    >>> functions.mean(functions.observe(estimate.state, 1.0, *estimate.params))
    1.0
    """

    observe: Callable[..., Any]
    """observe(state, reward, *params): return the next state, of the same type; `state` is a named tuple of floats."""
    mean: Callable[[Any], float]
    """mean(state): return the estimated mean after at least one reward."""
    retract: Callable[[Any, float], Any] = keep_all
    """retract(state, reward): return the state without its oldest reward, for an estimator with a window."""


class Estimator:
    """Base class of the estimator objects.

    A subclass sets `state` in its constructor, defines `functions`, `belief` and `weight`, and sets `params` if
    `functions.observe` has parameters.

    Examples
    --------
    >>> from dynabandit.estimators import FixedForgetting
    >>> estimate = FixedForgetting(0.5).update(1).update(0)
    >>> isinstance(estimate, Estimator), estimate
    (True, FixedForgetting(mean 0.3333, weight 1.5))
    """

    functions: ClassVar[EstimatorFunctions]
    rewards: ClassVar[RewardDomain] = BOUNDED  # which rewards it accepts
    state: Any
    """What the estimator remembers, a named tuple of floats."""
    params: tuple[Any, ...] = ()
    """The further arguments of `functions.observe`."""
    window: int = 0
    """How many of the latest rewards count, if `functions.retract` removes older ones."""

    def update(self, reward: float) -> "Estimator":
        """Update the estimator with a reward.

        Parameters
        ----------
        reward
            A number, by default in [0, 1], or a bool.

        Returns
        -------
        Estimator
            The estimator itself, so that calls can be chained.
        """
        self.state = self._observe(self.rewards.check(reward))
        return self

    def _observe(self, reward: float) -> Any:
        return self.functions.observe(self.state, reward, *self.params)

    @property
    def belief(self) -> Belief:
        """Mean, variance, forgetting and effective size."""
        raise NotImplementedError

    @property
    def mean(self) -> float:
        """The estimated mean reward; NaN before the first reward."""
        return self.belief.mean

    @property
    def variance(self) -> float:
        """The estimated variance of a reward; 0 if there is too little data."""
        return self.belief.variance

    @property
    def forgetting(self) -> float:
        """The factor by which the next reward discounts earlier ones; 1 forgets nothing."""
        return self.belief.forgetting

    @property
    def effective_size(self) -> float:
        """The number of equally weighted rewards whose mean has the same precision."""
        return self.belief.effective_size

    @property
    def weight(self) -> float:
        """The sum of the weights of all rewards so far."""
        raise NotImplementedError

    def __repr__(self) -> str:
        mean = "nothing observed" if math.isnan(self.mean) else f"mean {self.mean:.4g}"
        return f"{type(self).__name__}({mean}, weight {self.weight:.4g})"
