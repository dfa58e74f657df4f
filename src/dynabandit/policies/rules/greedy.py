"""Greedy: the largest mean, or a random arm with a fixed probability."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyState, Step
from dynabandit.policies.part import Setting
from dynabandit.policies.rules.base import Rule, RuleKernels
from dynabandit.validation import check_field, number


class Params(NamedTuple):
    epsilon: float


class Stored(NamedTuple):
    """What is stored for an arm."""

    mean: float


@kernel
def score(mean: float, size: float, level: float, params: Params) -> float:
    """Return the mean."""
    return mean


@kernel
def store(mean: float, size: float, w: float, k: float, params: Params) -> Stored:
    """Return the numbers to store for an arm."""
    return Stored(mean)


@kernel
def from_stored(stored: Stored, level: float, params: Params) -> float:
    """Return the mean of an arm without pending plays."""
    return stored.mean


@kernel
def predicted(mean: float, variance: float, clock: float, step: Step, prior: float, params: Params) -> float:
    """Return the mean that is predicted from features."""
    return mean


@kernel
def rescaled(stored: Stored, factor: float) -> Stored:
    """Return the same mean: it is a ratio of weights."""
    return stored


@kernel
def exploration(state: PolicyState, leader: int, step: Step, params: Any) -> float:
    """Return the probability of playing a random arm."""
    return params.rule.epsilon


@dataclass(frozen=True, kw_only=True)
class Greedy(Rule):
    r"""Play the arm with the largest mean, and with probability epsilon a random arm.

    Parameters
    ----------
    epsilon
        The probability of exploring, in [0, 1].

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.Greedy(epsilon=0.2).parameters
    {'epsilon': 0.2}

    References
    ----------
    Watkins (1989), Learning from delayed rewards. PhD thesis, Cambridge.
    """

    name = "eps-greedy"
    first_plays = 1
    kernels = RuleKernels(
        score=score,
        stored=Stored,
        store=store,
        from_stored=from_stored,
        fades=False,
        rescaled=rescaled,
        static=True,
        predicted=predicted,
        exploration=exploration,
        params=Params,
    )

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        check_field(self, "epsilon", number, 0.0, 1.0)

    def params(self, setting: Setting) -> Params:
        return Params(self.epsilon)
