"""Policies for rewards in any unit, without and with forgetting, whose memories need no constant in that unit."""

from dataclasses import dataclass
from typing import ClassVar

from dynabandit.policies.memories.sample_moments import SampleMoments
from dynabandit.policies.memories.unit_free import UnitFree
from dynabandit.policies.preset import Preset
from dynabandit.policies.rules import normal_ucb, thompson

FOR_A_VARIANCE = "The number of plays of each arm before the policy decides, so that a variance can be estimated."


@dataclass(frozen=True, kw_only=True)
class NormalTS(Preset):
    r"""Thompson sampling for rewards in any unit. A baseline for constant means: it never forgets, so it reacts slowly
    to changes.

    The mean of each arm is drawn from its Student posterior, for normal rewards whose means and variances are constant;
    `AffNormalTS` forgets. All rewards times a constant give the same choices.

    Notes
    -----
    With a uniform prior of the mean and of the standard deviation, the posterior of the mean of n rewards x is

    .. math:: \bar{x} + \sqrt{\frac{\sum (x - \bar{x})^2}{n (n - 2)}} \; t_{n - 2}

    Before an arm has three different rewards, its score is a draw from the normal distribution with its mean and the
    variance of the rewards of all arms, divided by n; an arm without rewards takes their mean too.

    References
    ----------
    Honda & Takemura (2014), Optimality of Thompson sampling for Gaussian bandits depends on priors. AISTATS; the prior
    with alpha = -1/2.
    """

    name = "normal-ts"
    made_of = SampleMoments, thompson.StudentThompson
    described: ClassVar[dict[str, str]] = {
        "burn_in": "The number of plays of each arm before the policy decides; 4 as in the reference."
    }

    burn_in: int = 4


@dataclass(frozen=True, kw_only=True)
class AffNormalTS(Preset):
    r"""Thompson sampling for rewards in any unit that forgets old rewards faster when an arm seems to change. Use it
    for rewards without bounds: amounts, times, temperatures.

    The draws are from a normal posterior whose data are discounted. All rewards times a constant give the same choices.

    Notes
    -----
    The score of an arm is a draw from a normal distribution, where s^2 is its adaptive variance:

    .. math:: N\left( \frac{m}{w}, \; \frac{s^2}{n} \right), \quad n = \max\left( 1, \; \lambda^{\mathrm{idle} / K}
        \frac{w^2}{k} \right)

    References
    ----------
    The estimator of Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 2, whose
    recursions hold for all rewards, with the step size eta_4 of section 4.3.1; the posterior is our own.
    """

    name = "aff-normal-ts"
    made_of = UnitFree, thompson.NormalThompson
    described: ClassVar[dict[str, str]] = {"burn_in": FOR_A_VARIANCE}


@dataclass(frozen=True, kw_only=True)
class AffNormalUCB(Preset):
    r"""UCB for rewards in any unit that forgets old rewards faster when an arm seems to change. Use it for rewards
    without bounds: amounts, times, temperatures.

    The score is the adaptive mean plus a multiple of its standard error. The bonus grows while an arm is idle, up to
    that of a single reward. All rewards times a constant give the same choices.

    Notes
    -----
    The score of an arm, where s^2 is its adaptive variance; for rewards in [0, 1], whose variance is at most 1/4, it is
    at most that of `AffUCB2Growing`:

    .. math:: \frac{m}{w} + \sqrt{\frac{- 2 \log(\mathrm{confidence}) \, s^2}{n}}, \quad n = \max\left( 1, \;
        \lambda^{\mathrm{idle} / K} \frac{w^2}{k} \right)

    References
    ----------
    The estimator of Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 2, whose
    recursions hold for all rewards, with the step size eta_4 of section 4.3.1; the bound is that of a normal mean.
    """

    name = "aff-normal-ucb"
    made_of = UnitFree, normal_ucb.NormalUCB
    described: ClassVar[dict[str, str]] = {"burn_in": FOR_A_VARIANCE}


@dataclass(frozen=True, kw_only=True)
class AffPoissonTS(Preset):
    r"""Thompson sampling for counts, such as sales, visits or items, that forgets old rewards faster when an arm seems
    to change. The recommended policy for counts is mix-poisson-ts.

    Notes
    -----
    The score is a draw from the posterior of a Poisson mean, whose data, but not its prior, are discounted while the
    arm is idle, to not less than one count:

    .. math:: \mathrm{Gamma}\left( a + \tilde{m}, \; b + \tilde{w} \right), \quad (\tilde{m}, \tilde{w}) =
        \max\left( \lambda^{\mathrm{idle} / K}, \; \frac{1}{w} \right) (m, w)

    References
    ----------
    The estimator of Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 2, with the step
    size eta_4 of section 4.3.1; the posterior of a Poisson mean in place of that of a probability.
    """

    name = "aff-poisson-ts"
    made_of = UnitFree, thompson.GammaThompson

    burn_in: int = 1
