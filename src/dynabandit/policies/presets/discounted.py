"""Policies that give older rewards less weight, at a constant rate."""

from dataclasses import dataclass

from dynabandit.policies.memories.discount import Discount
from dynabandit.policies.preset import HorizonPreset
from dynabandit.policies.rules import kl_ucb, thompson, ucb


@dataclass(frozen=True, kw_only=True)
class DUCB(HorizonPreset):
    r"""Discounted UCB, which gives older rewards less weight, at a constant rate. A baseline of the literature for
    changing means; with many arms it explores too much.

    The effective size of an arm is its discounted number of rewards.

    Notes
    -----
    With discounted counts N and means x, and n the sum of all counts:

    .. math:: N_t(a) = \sum_{s \leq t} \gamma^{t - s} \, 1[a_s = a]

    .. math:: \bar{x}_t(a) + 2 \sqrt{\frac{0.6 \, \log n_t}{N_t(a)}}

    References
    ----------
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name = "d-ucb"
    made_of = Discount, ucb.UCB(xi=2.4)


@dataclass(frozen=True, kw_only=True)
class DKLUCB(HorizonPreset):
    r"""KL-UCB that gives older rewards less weight, at a constant rate. Use it if you know how fast the means change.

    Notes
    -----
    With discounted counts N and means x, and n the sum of all counts:

    .. math:: \max \left\{ q : N_t(a) \, \mathrm{kl}(\bar{x}_t(a), q) \leq \log n_t \right\}

    References
    ----------
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT. With the index
    of Garivier & Cappe (2011), as a baseline of Besson, Kaufmann, Maillard & Seznec (2022), Efficient change-point
    detection for tackling piecewise-stationary bandits. JMLR 23.
    """

    name = "d-kl-ucb"
    made_of = Discount, kl_ucb.KLUCBByWidth()


@dataclass(frozen=True, kw_only=True)
class DiscountedTS(HorizonPreset):
    r"""Discounted Thompson sampling, which gives older rewards less weight, at a constant rate. Use it if you know how
    fast the means change.

    The posterior of an idle arm approaches its prior, which is not discounted, so the arm is tried again. A reward
    between 0 and 1 counts as a fraction of a success, where the paper draws a Bernoulli reward. The paper does not
    state the discount.

    Notes
    -----
    The score is a draw from Beta(a + S, b + F); each reward y discounts the counts of all arms:

    .. math:: S \leftarrow \gamma S + y \, 1[\text{played}], \quad F \leftarrow \gamma F + (1 - y) \, 1[\text{played}]

    References
    ----------
    Raj & Kalyani (2017), Taming non-stationary bandits: a Bayesian approach. arXiv 1707.09727.
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name = "d-ts"
    made_of = Discount, thompson.Thompson

    prior: tuple[float, float] = (1.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class DiscountedOTS(HorizonPreset):
    r"""Discounted Thompson sampling that explores slightly less: no draw is below the estimated mean of its arm. Use it
    if you know how fast the means change.

    A draw of `DiscountedTS` below the posterior mean is replaced by the posterior mean.

    References
    ----------
    Raj & Kalyani (2017), Taming non-stationary bandits: a Bayesian approach. arXiv 1707.09727; there dOTS.
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name = "d-ots"
    made_of = Discount, thompson.OptimisticThompson

    prior: tuple[float, float] = (1.0, 1.0)
