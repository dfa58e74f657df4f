"""The estimator contract: the rewards of one arm -> an estimate of its mean."""

import math
from typing import Any, NamedTuple

from dynabandit.validation import reward as checked


class Belief(NamedTuple):
    """What an estimator holds of one arm.

    Where nothing was observed yet the mean is NaN, and variance and effective size are 0; a policy with a prior
    tells that of its prior.

    Examples
    --------
    >>> from dynabandit.estimators import SampleMean
    >>> SampleMean().update(1).belief
    Belief(mean=1.0, variance=0.0, forgetting=1.0, effective_size=1.0)
    """

    mean: float
    variance: float
    forgetting: float
    effective_size: float


class Estimator:
    """Base of the estimator objects: keeps the state, and asks the subclass for three small functions.

    A subclass sets `state` in its constructor and defines `_observe` (the next state, from the same pure
    function that the compiled policies call), `belief` and `weight`.

    Examples
    --------
    >>> from dynabandit.estimators import FixedForgetting
    >>> estimate = FixedForgetting(0.5).update(1).update(0)
    >>> isinstance(estimate, Estimator), estimate
    (True, FixedForgetting(mean 0.3333, weight 1.5))
    """

    state: Any

    def update(self, reward: float) -> "Estimator":
        """Take in one reward in [0, 1], or yes or no, and return the estimator itself."""
        self.state = self._observe(checked(reward))
        return self

    def _observe(self, reward: float) -> Any:
        raise NotImplementedError

    @property
    def belief(self) -> Belief:
        """All of the below at once."""
        raise NotImplementedError

    @property
    def mean(self) -> float:
        """The estimated mean reward; NaN before the first reward."""
        return self.belief.mean

    @property
    def variance(self) -> float:
        """The estimated variance of a reward; 0 while there is too little data to tell."""
        return self.belief.variance

    @property
    def forgetting(self) -> float:
        """The factor by which the next reward will discount the past; 1 forgets nothing."""
        return self.belief.forgetting

    @property
    def effective_size(self) -> float:
        """How many equally weighted rewards would give a mean of the same precision."""
        return self.belief.effective_size

    @property
    def weight(self) -> float:
        """The sum of the weights of all rewards so far."""
        raise NotImplementedError

    def __repr__(self) -> str:
        mean = "nothing observed" if math.isnan(self.mean) else f"mean {self.mean:.4g}"
        return f"{type(self).__name__}({mean}, weight {self.weight:.4g})"
