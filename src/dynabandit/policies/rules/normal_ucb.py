"""UCB for rewards in any unit: the bonus is in units of the standard deviation."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.policies.part import Setting
from dynabandit.policies.rules.base import Rule, RuleKernels
from dynabandit.validation import NORMAL, check_field, number


class Params(NamedTuple):
    level: float  # -2 log(confidence)


@kernel
def bound(mean: float, variance: float, size: float, params: Params) -> float:
    """Return the bound that a normal mean exceeds with a fixed probability."""
    variance_of_mean = variance / size
    return mean + math.sqrt(params.level * variance_of_mean)


@dataclass(frozen=True, kw_only=True)
class NormalUCB(Rule):
    r"""Play the arm with the largest bound of its mean, for rewards in any unit: a multiple of its standard error above
    its mean.

    .. math:: \bar{x} + \sqrt{\frac{- 2 \log(\mathrm{confidence}) \, s^2}{n}}

    Pending plays count in n.

    Parameters
    ----------
    confidence
        The probability that a mean exceeds its bound, in (0, 1]; 0.05 as in the appendix of the paper.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.NormalUCB(confidence=0.1).parameters
    {'confidence': 0.1}

    References
    ----------
    The bound of a normal mean; for rewards in [0, 1], whose variance is at most 1/4, it is at most that of `Hoeffding`.
    """

    name = "normal-ucb"
    first_plays = 2  # so that a variance can be estimated
    rewards = NORMAL
    kernels = RuleKernels(family="moments", bound=bound, params=Params)

    confidence: float = 0.05

    def __post_init__(self) -> None:
        check_field(self, "confidence", number, 0.0, 1.0, open_low=True)

    def params(self, setting: Setting) -> Params:
        return Params(-2.0 * math.log(self.confidence))
