"""What Thompson sampling policies share: the Beta prior, and the belief of a Beta posterior."""

from typing import NamedTuple

from dynabandit.policies.belief import Belief
from dynabandit.validation import LARGEST_FACTOR, LEAST_FACTOR, ParameterError, number


class Prior(NamedTuple):
    """The Beta prior of every arm."""

    a: float
    b: float


def checked_prior(prior: tuple[float, float]) -> tuple[float, float]:
    """Return `prior` as a pair of positive floats, or raise an error."""
    if not isinstance(prior, (tuple, list)) or len(prior) != 2:
        raise TypeError(f"prior must be a pair of positive numbers such as (2, 2), got {prior!r}")
    try:
        a, b = (number("each number in prior", value, LEAST_FACTOR, LARGEST_FACTOR) for value in prior)
    except ValueError as error:
        raise ParameterError(str(error)) from None
    return a, b


def beta_belief(a: float, b: float, forgetting: float) -> Belief:
    """Return the belief of a Beta(a, b) posterior; its effective size a + b includes the prior."""
    mean = a / (a + b)
    return Belief(mean, mean * (1.0 - mean), forgetting, a + b)
