"""UCB: the mean plus a bonus for uncertainty."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.policies.part import Setting
from dynabandit.policies.rules.base import Rule, RuleKernels
from dynabandit.validation import BOUNDED, LARGEST_FACTOR, check_field, number

WIDEST = 1e150  # the width of an arm whose weight has underflowed; times the level it is still finite


class Params(NamedTuple):
    xi: float


class Stored(NamedTuple):
    """What is stored for an arm; the width is 1 / sqrt(N), so that a step needs no root and no division per arm."""

    mean: float
    width: float


@kernel
def level(clock: float, unit: float, params: Params) -> float:
    """Return the factor of all widths; a weight is its stored number times `unit`."""
    return math.sqrt(params.xi * math.log(clock) / unit)


@kernel
def score(mean: float, size: float, level: float, params: Params) -> float:
    """Return the upper confidence bound."""
    return mean + level * (1.0 / math.sqrt(size))


@kernel
def store(mean: float, size: float, w: float, k: float, params: Params) -> Stored:
    """Return the numbers to store for an arm, which is played first if it has no rewards."""
    return Stored(mean, 1.0 / math.sqrt(size) if size > 0.0 else 0.0)


@kernel
def from_stored(stored: Stored, level: float, params: Params) -> float:
    """Return the upper confidence bound of an arm without pending plays."""
    return stored.mean + level * stored.width


@kernel
def rescaled(stored: Stored, factor: float) -> Stored:
    """Return the numbers to store after all weights were multiplied by a factor."""
    return Stored(stored.mean, min(stored.width / math.sqrt(factor), WIDEST))


@dataclass(frozen=True, kw_only=True)
class UCB(Rule):
    r"""Play the arm with the largest upper confidence bound: its mean plus a bonus for its uncertainty.

    .. math:: \bar{x} + \sqrt{\frac{\xi \log t}{N}}

    Parameters
    ----------
    xi
        The exploration constant, at least 0: 2 for UCB, 0.6 with a sliding window, 2.4 with a discount.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.UCB(xi=0.6).parameters
    {'xi': 0.6}

    References
    ----------
    Auer, Cesa-Bianchi & Fischer (2002), Finite-time analysis of the multiarmed bandit problem.
    """

    name = "ucb"
    first_plays = 1
    rewards = BOUNDED
    kernels = RuleKernels(
        score=score,
        level=level,
        stored=Stored,
        store=store,
        from_stored=from_stored,
        rescaled=rescaled,
        params=Params,
    )

    xi: float = 2.0

    def __post_init__(self) -> None:
        check_field(self, "xi", number, 0.0, LARGEST_FACTOR)

    def params(self, setting: Setting) -> Params:
        return Params(self.xi)
