"""Thompson sampling and its optimistic form, with a Beta posterior that never forgets."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.errors import keep, number
from dynabandit.estimators.base import Belief
from dynabandit.policies import averaging
from dynabandit.policies.base import Kernels, Now

__all__ = ["OTS", "PLAYS", "TOTAL", "TS", "beta_belief", "checked_prior", "posterior"]

TOTAL = averaging.SLOTS.index("total")
PLAYS = averaging.SLOTS.index("plays")


def checked_prior(prior: tuple[float, float]) -> tuple[float, float]:
    """Return `prior` as a pair of positive floats, or raise an error that says so."""
    if not isinstance(prior, (tuple, list)) or len(prior) != 2:
        raise TypeError(f"prior must be a pair of positive numbers such as (2, 2), got {prior!r}")
    a, b = (number("each number in prior", value, 0.0, float("inf"), open_low=True) for value in prior)
    return a, b


def beta_belief(a: float, b: float, forgetting: float) -> Belief:
    """Return what a Beta(a, b) posterior says of an arm; its effective size counts the prior."""
    mean = a / (a + b)
    return Belief(mean, mean * (1.0 - mean), forgetting, a + b)


@kernel
def posterior(memory: np.ndarray, arm: int, idle: int, now: Now, parameters: np.ndarray) -> tuple[float, float]:
    """The Beta posterior of equations (20) and (21)."""
    total = memory[TOTAL, arm]
    return parameters[0] + total, parameters[1] + memory[PLAYS, arm] - total


@dataclass(frozen=True, kw_only=True)
class TS(averaging.Averaging):
    r"""Thompson sampling: draw a mean for each arm from its posterior and play the largest.

    Parameters
    ----------
    prior
        The Beta prior of every arm, a pair of positive numbers.
    burn_in
        How often each arm is played at first; by default the prior decides from the first step on.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("ts", prior=(1, 1)).label
    'ts(prior=(1, 1))'

    Notes
    -----
    The score of an arm with S successes and F failures is one draw from its posterior:

    .. math:: \theta \sim \mathrm{Beta}(a + S, \; b + F)

    Cost of a step: O(K); with many arms, only those that can win are drawn.

    References
    ----------
    Thompson (1933), On the likelihood that one unknown probability exceeds another. Biometrika 25.
    Chapelle & Li (2011), An empirical evaluation of Thompson sampling. NIPS.
    """

    name: ClassVar[str] = "ts"
    slots: ClassVar[tuple[str, ...]] = averaging.SLOTS
    kernels: ClassVar[Kernels] = Kernels(start=averaging.start, learn=averaging.learn, posterior=posterior)

    burn_in: int = 0
    prior: tuple[float, float] = (2.0, 2.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, prior=checked_prior(self.prior))

    def numbers(self, arms: int) -> np.ndarray:
        return np.array(self.prior, dtype=float)


@dataclass(frozen=True, kw_only=True)
class OTS(TS):
    r"""Optimistic Thompson sampling: a draw below the posterior mean is replaced by that mean.

    Parameters
    ----------
    prior
        The Beta prior of every arm, a pair of positive numbers.
    burn_in
        How often each arm is played at first; by default the prior decides from the first step on.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("ots").parameters
    {'burn_in': 0, 'prior': (2.0, 2.0)}

    Notes
    -----
    The score is a draw from the posterior, or the posterior mean where that is larger:

    .. math:: \max\left( \theta, \; \frac{a + S}{a + b + S + F} \right), \quad \theta \sim \mathrm{Beta}(a + S, \; b +
        F)

    Cost of a step: O(K); with many arms, only those that can win are drawn.

    References
    ----------
    May, Korda, Lee & Leslie (2012), Optimistic Bayesian sampling in contextual-bandit problems. JMLR 13.
    """

    name: ClassVar[str] = "ots"
    kernels: ClassVar[Kernels] = Kernels(
        start=averaging.start, learn=averaging.learn, posterior=posterior, optimistic=True
    )
