"""What is known about an arm."""

from typing import NamedTuple


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
