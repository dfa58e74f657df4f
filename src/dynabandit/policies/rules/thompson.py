"""Thompson sampling: draw a plausible mean for each arm, and play the arm with the largest draw."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from dynabandit.policies.beta_posterior import Prior, checked_prior
from dynabandit.policies.part import Setting
from dynabandit.policies.rules.base import Rule, RuleKernels
from dynabandit.validation import BOUNDED, COUNTS, NORMAL, set_fields


class Params(NamedTuple):
    prior: Prior


@dataclass(frozen=True, kw_only=True)
class Thompson(Rule):
    r"""Thompson sampling: draw a mean from the Beta posterior of each arm, and play the arm with the largest draw.

    With S successes and F failures in the memory of an arm, its score is

    .. math:: \theta \sim \mathrm{Beta}(a + S, \; b + F)

    Pending plays of an arm without a reward in its memory count as failures.

    Parameters
    ----------
    prior
        The Beta prior of each arm, a pair of numbers in [1e-12, 1e12].

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.Thompson(prior=(1, 3)).parameters
    {'prior': (1.0, 3.0)}

    References
    ----------
    Thompson (1933), On the likelihood that one unknown probability exceeds another. Biometrika 25.
    Chapelle & Li (2011), An empirical evaluation of Thompson sampling. NIPS.
    """

    name = "ts"
    rewards = BOUNDED
    kernels: ClassVar[RuleKernels] = RuleKernels(family="beta", params=Params)

    prior: tuple[float, float] = (2.0, 2.0)

    def __post_init__(self) -> None:
        set_fields(self, prior=checked_prior(self.prior))

    def params(self, setting: Setting) -> Params:
        return Params(Prior(*self.prior))


@dataclass(frozen=True, kw_only=True)
class OptimisticThompson(Thompson):
    r"""Optimistic Thompson sampling: a draw below the mean of its posterior is replaced by this mean.

    With S successes and F failures in the memory of an arm, its score is

    .. math:: \max\left( \theta, \; \frac{a + S}{a + b + S + F} \right), \quad \theta \sim \mathrm{Beta}(a + S, \; b +
        F)

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.OptimisticThompson().parameters
    {'prior': (2.0, 2.0)}

    References
    ----------
    May, Korda, Lee & Leslie (2012), Optimistic Bayesian sampling in contextual-bandit problems. JMLR 13.
    """

    name = "ots"
    kernels = Thompson.kernels._replace(optimistic=True)


@dataclass(frozen=True, kw_only=True)
class NormalThompson(Rule):
    r"""Thompson sampling for rewards in any unit: draw a mean from a normal law for each arm, with the mean and the
    deviation that the memory tells, and play the arm with the largest draw.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.NormalThompson().name
    'normal-ts'

    References
    ----------
    Thompson (1933), On the likelihood that one unknown probability exceeds another. Biometrika 25.
    """

    name = "normal-ts"
    rewards = NORMAL
    kernels: ClassVar[RuleKernels] = RuleKernels(family="normal")


@dataclass(frozen=True, kw_only=True)
class OptimisticNormalThompson(NormalThompson):
    """Optimistic Thompson sampling for rewards in any unit: a draw below the mean of its law is replaced by this mean.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.OptimisticNormalThompson().parameters
    {}

    References
    ----------
    May, Korda, Lee & Leslie (2012), Optimistic Bayesian sampling in contextual-bandit problems. JMLR 13.
    """

    name = "normal-ots"
    kernels = NormalThompson.kernels._replace(optimistic=True)


@dataclass(frozen=True, kw_only=True)
class GammaThompson(Rule):
    """Thompson sampling for counts: draw a mean from the gamma posterior of each arm, and play the arm with the largest
    draw.

    Pending plays of an arm without a count are taken as zeros.

    Parameters
    ----------
    prior
        The gamma prior of each arm, a pair of numbers in [1e-12, 1e12]: it counts as b counts whose sum is a. The
        default assumes little, a tenth of a count.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.GammaThompson(prior=(2, 1)).parameters
    {'prior': (2.0, 1.0)}

    References
    ----------
    Thompson (1933), On the likelihood that one unknown probability exceeds another. Biometrika 25.
    """

    name = "gamma-ts"
    rewards = COUNTS
    kernels: ClassVar[RuleKernels] = RuleKernels(family="gamma", params=Params)

    prior: tuple[float, float] = (0.5, 0.1)

    def __post_init__(self) -> None:
        set_fields(self, prior=checked_prior(self.prior))

    def params(self, setting: Setting) -> Params:
        return Params(Prior(*self.prior))


@dataclass(frozen=True, kw_only=True)
class OptimisticGammaThompson(GammaThompson):
    """Optimistic Thompson sampling for counts: a draw below the mean of its posterior is replaced by this mean.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.OptimisticGammaThompson().parameters
    {'prior': (0.5, 0.1)}

    References
    ----------
    May, Korda, Lee & Leslie (2012), Optimistic Bayesian sampling in contextual-bandit problems. JMLR 13.
    """

    name = "gamma-ots"
    kernels = GammaThompson.kernels._replace(optimistic=True)


@dataclass(frozen=True, kw_only=True)
class StudentThompson(Rule):
    """Thompson sampling for rewards in any unit: draw a mean from the Student posterior of each arm, whose variance is
    unknown, and play the arm with the largest draw.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.StudentThompson().name
    'student-ts'

    References
    ----------
    Honda & Takemura (2014), Optimality of Thompson sampling for Gaussian bandits depends on priors. AISTATS.
    """

    name = "student-ts"
    rewards = NORMAL
    kernels: ClassVar[RuleKernels] = RuleKernels(family="student")
