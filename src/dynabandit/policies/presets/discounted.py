"""Policies that give older rewards less weight, at a constant rate."""

from dataclasses import dataclass
from typing import ClassVar

from dynabandit.policies.composition import HorizonPreset
from dynabandit.policies.memories.discount import Discount
from dynabandit.policies.rules import kl_ucb, thompson, ucb

UNDISCOUNTED_PRIOR = "The Beta prior of each arm, a pair of numbers in [1e-12, 1e12]; it is not discounted."
DISCOUNT_OF_D_UCB = (
    "The discount factor per reward of any arm, in (0, 1]. The paper does not state it; the default is the rule of "
    "D-UCB, 1 - sqrt(changes / horizon) / 4."
)


@dataclass(frozen=True, kw_only=True)
class DUCB(HorizonPreset):
    r"""Discounted UCB, which gives older rewards less weight, at a constant rate. A baseline of the literature for
    changing means; with many arms it explores too much.

    The rewards of all arms are discounted, whether they are played or not. The discount is applied with each reward of
    any arm; a decision whose reward has not arrived yet discounts nothing. The effective size of an arm is its
    discounted number of rewards.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("d-ucb", changes=4, horizon=10_000).params(arms=2).memory.discount
    0.995

    Notes
    -----
    With discounted counts N and means x, and n the sum of all counts:

    .. math:: N_t(a) = \sum_{s \leq t} \gamma^{t - s} \, 1[a_s = a]

    .. math:: \bar{x}_t(a) + 2 \sqrt{\frac{0.6 \, \log n_t}{N_t(a)}}

    Cost per step: O(K).

    References
    ----------
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name = "d-ucb"
    made_of = Discount, ucb.UCB(xi=2.4)

    burn_in: int = 1


@dataclass(frozen=True, kw_only=True)
class DKLUCB(HorizonPreset):
    r"""KL-UCB that gives older rewards less weight, at a constant rate. Use it if you know how fast the means change.

    The means and counts of all arms are discounted, whether they are played or not, with each reward of any arm, as in
    `DUCB`.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("d-kl-ucb", changes=1).label
    'd-kl-ucb(changes=1)'
    >>> db.policy("d-kl-ucb", changes=4, horizon=10_000).params(arms=2).memory.discount
    0.995

    Notes
    -----
    With discounted counts N and means x, and n the sum of all counts:

    .. math:: \max \left\{ q : N_t(a) \, \mathrm{kl}(\bar{x}_t(a), q) \leq \log n_t \right\}

    Cost per step: O(K), with one root finding per arm.

    References
    ----------
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT. With the index
    of Garivier & Cappe (2011), as a baseline of Besson, Kaufmann, Maillard & Seznec (2022), Efficient change-point
    detection for tackling piecewise-stationary bandits. JMLR 23.
    """

    name = "d-kl-ucb"
    made_of = Discount, kl_ucb.KLUCBByWidth()

    burn_in: int = 1


@dataclass(frozen=True, kw_only=True)
class DiscountedTS(HorizonPreset):
    r"""Discounted Thompson sampling, which gives older rewards less weight, at a constant rate. Use it if you know how
    fast the means change.

    All arms are discounted, whether they are played or not. The posterior of an idle arm approaches its prior, so the
    arm is tried again. The discount is applied with each reward of any arm, as in `DUCB`. A reward between 0 and 1
    counts as a fraction of a success, where the paper draws a Bernoulli reward.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("d-ts", changes=1, horizon=10_000).params(arms=2).memory.discount
    0.9975

    Notes
    -----
    The score is a draw from Beta(a + S, b + F); each reward y discounts the counts of all arms:

    .. math:: S \leftarrow \gamma S + y \, 1[\text{played}], \quad F \leftarrow \gamma F + (1 - y) \, 1[\text{played}]

    Pending plays of an arm without any reward count as failures.

    Cost per step: O(K); with many arms, only arms that can have the largest draw are drawn.

    References
    ----------
    Raj & Kalyani (2017), Taming non-stationary bandits: a Bayesian approach. arXiv 1707.09727.
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name = "d-ts"
    made_of = Discount, thompson.Thompson
    described: ClassVar[dict[str, str]] = {"discount": DISCOUNT_OF_D_UCB, "prior": UNDISCOUNTED_PRIOR}

    prior: tuple[float, float] = (1.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class DiscountedOTS(HorizonPreset):
    r"""Discounted Thompson sampling that explores slightly less: no draw is below the estimated mean of its arm. Use it
    if you know how fast the means change.

    A draw of `DiscountedTS` below the posterior mean is replaced by the posterior mean.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("d-ots", changes=1, horizon=10_000).params(arms=2).memory.discount
    0.9975

    Notes
    -----
    With the discounted counts S and F of D-TS, the score is

    .. math:: \max\left( \theta, \; \frac{a + S}{a + b + S + F} \right), \quad \theta \sim \mathrm{Beta}(a + S, \; b +
        F)

    Pending plays of an arm without any reward count as failures.

    Cost per step: O(K); with many arms, only arms that can have the largest draw are drawn.

    References
    ----------
    Raj & Kalyani (2017), Taming non-stationary bandits: a Bayesian approach. arXiv 1707.09727; there dOTS.
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name = "d-ots"
    made_of = Discount, thompson.OptimisticThompson
    described: ClassVar[dict[str, str]] = {"discount": DISCOUNT_OF_D_UCB, "prior": UNDISCOUNTED_PRIOR}

    prior: tuple[float, float] = (1.0, 1.0)
