"""The bound of the paper's appendix: Hoeffding's inequality with weighted rewards, at a fixed confidence."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dynabandit.core.bernoulli_kl import negentropy, upper_bound
from dynabandit.core.compilation import kernel
from dynabandit.core.special_functions import exp_negative, exp_positive
from dynabandit.policies.part import Setting
from dynabandit.policies.rules.base import Rule, RuleKernels
from dynabandit.validation import BOUNDED, check_field, number

CONFIDENCE = 0.05  # the appendix bounds the error with this probability
LARGEST_EXPONENT = 50.0  # above this any bonus is at its cap, and exp would soon overflow


class Params(NamedTuple):
    level: float  # -log(confidence) / 2
    largest: float  # the bonus of one observation: w^2 / k = 1


class KLParams(NamedTuple):
    level: float  # -log(confidence)


class StoredIndex(NamedTuple):
    """What is stored for an arm whose bonus does not change while it is idle: its score."""

    bound: float


class Stored(NamedTuple):
    """What is stored for an arm: its mean, and the bonus right after its latest reward."""

    center: float
    bonus: float


class StoredSize(NamedTuple):
    """What is stored for an arm: w^2 / k, and the negative entropy of its mean."""

    size: float
    negentropy: float


def level_for(confidence: float) -> float:
    """Return the factor -log(confidence) / 2 of the squared bonus."""
    return -math.log(confidence) / 2.0


@kernel
def bonus(w: float, k: float, level: float) -> float:
    """Return the exploration bonus of the appendix, sqrt(-log(confidence) / (2 w^2 / k))."""
    return math.sqrt(level * k) / w


@kernel
def score(mean: float, size: float, level: float, params: Params) -> float:
    """Return mean + sqrt(-log(confidence) / (2 size))."""
    return mean + math.sqrt(params.level * size) / size


@kernel
def size_left(size: float, w: float, k: float, kept: float) -> float:
    """Return w~^2 / k~, where both sums are discounted by the same factor."""
    return kept * w * w / k if k > 0.0 else 0.0


@kernel
def printed_size_left(size: float, w: float, k: float, kept: float) -> float:
    """Return w~^2 / k~, where the discounts cancel."""
    return w * w / k if k > 0.0 else 0.0


@kernel
def store(mean: float, size: float, w: float, k: float, params: Params) -> Stored:
    """Return the numbers to store for an arm, which is played first if it has no rewards."""
    return Stored(mean, bonus(w, k, params.level)) if size > 0.0 else Stored(math.inf, 0.0)


@kernel
def from_stored(stored: Stored, level: float, params: Params) -> float:
    """Return the bound right after a reward."""
    return stored.center + stored.bonus


@kernel
def faded(stored: Stored, mean: float, log_kept: float, idle: int, arms: int, level: float, params: Params) -> float:
    """Return the bound of an idle arm, whose bonus is never larger than that of one observation."""
    # w~^2 / k~ = lambda^(idle / K) w^2 / k, and 0.5 / K is one division for all arms
    exponent = min(log_kept * float(idle) * (-0.5 / float(arms)), LARGEST_EXPONENT)
    return stored.center + min(stored.bonus * exp_positive(exponent), params.largest)


@kernel
def store_index(mean: float, size: float, w: float, k: float, params: Params) -> StoredIndex:
    """Return the score of an arm, which is played first if it has no rewards."""
    return StoredIndex(mean + bonus(w, k, params.level) if size > 0.0 else math.inf)


@kernel
def stored_index(stored: StoredIndex, level: float, params: Params) -> float:
    """Return the stored score."""
    return stored.bound


@kernel
def kl_score(mean: float, size: float, level: float, params: KLParams) -> float:
    """Return the largest q with size kl(mean, q) <= -log(confidence)."""
    return upper_bound(mean, negentropy(mean), params.level / size)


@kernel
def store_size(mean: float, size: float, w: float, k: float, params: KLParams) -> StoredSize:
    """Return the numbers to store for an arm."""
    return StoredSize(size, negentropy(mean)) if size > 0.0 else StoredSize(0.0, 0.0)


@kernel
def kl_faded(
    stored: StoredSize, mean: float, log_kept: float, idle: int, arms: int, level: float, params: KLParams
) -> float:
    """Return the bound of an idle arm, whose size is never less than one observation; infinity without rewards."""
    if stored.size == 0.0:
        return math.inf
    size = stored.size * exp_negative(log_kept * (float(idle) / float(arms)))
    return upper_bound(mean, stored.negentropy, params.level / max(size, 1.0))


@dataclass(frozen=True, kw_only=True)
class Hoeffding(Rule):
    r"""Play the arm with the largest bound that its mean exceeds with a fixed probability, by Hoeffding's inequality.

    .. math:: \bar{x} + \sqrt{\frac{- \log \mathrm{confidence}}{2 w^2 / k}}

    If the memory fades while an arm is idle, the bonus grows, up to that of a single reward.

    Parameters
    ----------
    confidence
        The probability that a mean exceeds its bound, in (0, 1]; 0.05 as in the appendix of the paper.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.Hoeffding(confidence=0.1).parameters
    {'confidence': 0.1}

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 3.2.2 and appendix.
    """

    name = "hoeffding"
    first_plays = 1
    rewards = BOUNDED
    kernels: ClassVar[RuleKernels] = RuleKernels(
        score=score,
        stored=Stored,
        store=store,
        from_stored=from_stored,
        faded=faded,
        size_left=size_left,
        static=True,
        params=Params,
    )

    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        check_field(self, "confidence", number, 0.0, 1.0, open_low=True)

    def params(self, setting: Setting) -> Any:
        level = level_for(self.confidence)
        return Params(level, math.sqrt(level))


@dataclass(frozen=True, kw_only=True)
class PrintedHoeffding(Hoeffding):
    r"""The same as the paper prints it: the discounts of w and k for idle steps cancel, so the bonus is constant.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.PrintedHoeffding().parameters
    {'confidence': 0.05}

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, algorithm 3.
    """

    name = "printed-hoeffding"
    variant_of = Hoeffding
    kernels = RuleKernels(
        score=score,
        stored=StoredIndex,
        store=store_index,
        from_stored=stored_index,
        fades=False,
        size_left=printed_size_left,
        static=True,
        params=Params,
    )


@dataclass(frozen=True, kw_only=True)
class KLBound(Hoeffding):
    r"""The same with the Kullback-Leibler divergence of Bernoulli distributions in place of Hoeffding's inequality.

    .. math:: \max \left\{ q : n \, \mathrm{kl}(\bar{x}, q) \leq - \log \mathrm{confidence} \right\}

    Cost per step: one root finding per arm.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.KLBound(confidence=0.1).parameters
    {'confidence': 0.1}

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 3.2.2, with the index of Garivier
    & Cappe (2011).
    """

    name = "kl-bound"
    kernels = RuleKernels(
        score=kl_score,
        stored=StoredSize,
        store=store_size,
        faded=kl_faded,
        static=True,
        params=KLParams,
    )

    def params(self, setting: Setting) -> KLParams:
        return KLParams(-math.log(self.confidence))
