"""KL-UCB: upper confidence bounds from the Kullback-Leibler divergence of Bernoulli distributions."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from dynabandit.core.bernoulli_kl import negentropy, upper_bound
from dynabandit.core.compilation import kernel
from dynabandit.policies.part import Setting
from dynabandit.policies.rules import ucb
from dynabandit.policies.rules.base import Rule, RuleKernels
from dynabandit.validation import BOUNDED, check_field, number

UNSEEN = 2.0  # a mean above this is infinite; fast arithmetic on a GPU need not compare infinities correctly


class Params(NamedTuple):
    loglog: float


class Stored(NamedTuple):
    """What is stored for an arm; `inverse` is 1 / N."""

    mean: float
    negentropy: float
    inverse: float


class StoredWidth(NamedTuple):
    """The same with 1 / sqrt(N), as UCB stores it."""

    mean: float
    width: float
    negentropy: float


@kernel
def level(clock: float, unit: float, params: Params) -> float:
    """Return log t + c log log t, where t is the clock; a weight is its stored number times `unit`."""
    level = math.log(clock)
    if params.loglog > 0.0:  # a logarithm for each arm would take long where each has a clock of its own
        level += params.loglog * math.log(max(level, 1.0))
    return level / unit


@kernel
def bound(mean: float, negentropy: float, level: float) -> float:
    """Return the largest q with kl(mean, q) <= level; infinity for an arm without rewards."""
    return mean if mean > UNSEEN else upper_bound(mean, negentropy, level)


@kernel
def score(mean: float, size: float, level: float, params: Any) -> float:
    """Return the largest q with N kl(mean, q) <= level."""
    return upper_bound(mean, negentropy(mean), level * (1.0 / size))


@kernel
def store(mean: float, size: float, w: float, k: float, params: Any) -> Stored:
    """Return the numbers to store for an arm, which is played first if it has no rewards."""
    if size == 0.0:
        return Stored(math.inf, 0.0, 0.0)
    inner = min(mean, 1.0)
    return Stored(inner, negentropy(inner), 1.0 / size)


@kernel
def from_stored(stored: Stored, level: float, params: Any) -> float:
    """Return the index of an arm without pending plays."""
    return bound(stored.mean, stored.negentropy, level * stored.inverse)


@kernel
def score_by_width(mean: float, size: float, level: float, params: Any) -> float:
    """Return the largest q with N kl(mean, q) <= level, to the last bit as `from_stored_width`."""
    width = 1.0 / math.sqrt(size)
    return upper_bound(mean, negentropy(mean), level * width * width)


@kernel
def store_width(mean: float, size: float, w: float, k: float, params: Any) -> StoredWidth:
    """Return the numbers to store for an arm, which is played first if it has no rewards."""
    width = 1.0 / math.sqrt(size) if size > 0.0 else 0.0
    return StoredWidth(mean, width, negentropy(mean))


@kernel
def from_stored_width(stored: StoredWidth, level: float, params: Any) -> float:
    """Return the index of an arm without pending plays."""
    return bound(stored.mean, stored.negentropy, level * stored.width * stored.width)


@kernel
def rescaled(stored: StoredWidth, factor: float) -> StoredWidth:
    """Return the numbers to store after all weights were multiplied by a factor."""
    return StoredWidth(stored.mean, min(stored.width / math.sqrt(factor), ucb.WIDEST), stored.negentropy)


@dataclass(frozen=True, kw_only=True)
class KLUCB(Rule):
    r"""Play the arm with the largest mean that its rewards allow, by the Kullback-Leibler divergence: a tighter bound
    than that of UCB, above all for means near 0 or 1.

    .. math:: \max \left\{ q : N \, \mathrm{kl}(\bar{x}, q) \leq \log t + c \log \log t \right\}

    .. math:: \mathrm{kl}(p, q) = p \log \frac{p}{q} + (1 - p) \log \frac{1 - p}{1 - q}

    Cost per step: one root finding per arm.

    Parameters
    ----------
    loglog
        The paper's c in log t + c log log t, at least 0. The theory uses 3, the experiments 0.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.KLUCB(loglog=3).parameters
    {'loglog': 3.0}

    References
    ----------
    Garivier & Cappe (2011), The KL-UCB algorithm for bounded stochastic bandits and beyond. COLT.
    """

    name = "kl-ucb"
    first_plays = 1
    rewards = BOUNDED
    kernels = RuleKernels(score=score, level=level, stored=Stored, store=store, from_stored=from_stored, params=Params)

    loglog: float = 0.0

    def __post_init__(self) -> None:
        check_field(self, "loglog", number, 0.0, math.inf)

    def params(self, setting: Setting) -> Params:
        return Params(self.loglog)


@dataclass(frozen=True, kw_only=True)
class KLUCBByWidth(KLUCB):
    """KL-UCB that multiplies by 1 / sqrt(N) twice, as releases up to 0.2.0 did with discounts and windows.

    Its scores differ from those of `KLUCB` in the last bit.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.KLUCBByWidth().name
    'kl-ucb-by-width'

    References
    ----------
    Garivier & Cappe (2011), The KL-UCB algorithm for bounded stochastic bandits and beyond. COLT.
    """

    name = "kl-ucb-by-width"
    variant_of = KLUCB
    kernels = RuleKernels(
        score=score_by_width,
        level=level,
        stored=StoredWidth,
        store=store_width,
        from_stored=from_stored_width,
        rescaled=rescaled,
        params=Params,
    )
