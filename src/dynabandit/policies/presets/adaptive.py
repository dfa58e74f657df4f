"""The policies of the paper, whose estimates forget old rewards faster when an arm seems to change."""

from dataclasses import dataclass
from typing import ClassVar

from dynabandit.policies.memories.adaptive import Adaptive
from dynabandit.policies.memories.bounded import Bounded, BoundedByVariance, BoundedByWeight
from dynabandit.policies.preset import Preset
from dynabandit.policies.rules import hoeffding, thompson

FOR_A_VARIANCE = (
    "The number of plays of each arm before the policy decides, so that a variance can be estimated; 10 in the paper."
)


@dataclass(frozen=True, kw_only=True)
class AffTS(Preset):
    r"""Thompson sampling that forgets old rewards faster when an arm seems to change, and slowly those of idle arms,
    too. It needs no tuning; AFF-OTS usually has slightly less regret.

    Notes
    -----
    The score is a draw from a posterior whose data, but not its prior, are discounted while the arm is idle:

    .. math:: \mathrm{Beta}\left( a + \tilde{m}, \; b + \tilde{w} - \tilde{m} \right), \quad (\tilde{m}, \tilde{w}) =
        \lambda^{\mathrm{idle} / K} (m, w)

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, algorithm 4.
    """

    name = "aff-ts"
    made_of = Adaptive, thompson.Thompson


@dataclass(frozen=True, kw_only=True)
class AffOTS(Preset):
    r"""Thompson sampling that forgets old rewards faster when an arm seems to change and explores slightly less than
    AFF-TS. It needs no tuning and does well in all cases of the paper; its worst case is an abrupt change after a long
    constant period.

    A draw of `AffTS` below the posterior mean is replaced by the posterior mean.

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, algorithm 5.
    """

    name = "aff-ots"
    made_of = Adaptive, thompson.OptimisticThompson


@dataclass(frozen=True, kw_only=True)
class AffUCB2(Preset):
    r"""UCB that forgets old rewards faster when an arm seems to change, with little exploration. Use it with 50 arms or
    more; with few arms it rarely tries an idle arm again.

    This is UCB on the adaptive mean with the effective size w^2 / k, as printed in the paper, which discounts w by
    lambda and k by lambda^2 while an arm is idle, so that its bonus grows. The two discounts cancel, and the bonus
    stays constant. `AffUCB2Growing` implements what the text of the paper describes.

    Notes
    -----
    The score of an arm, where the discounts of w and k for idle steps cancel:

    .. math:: \frac{m}{w} + \sqrt{\frac{- \log 0.05}{2 w^2 / k}}

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, algorithm 3.
    """

    name = "aff-ucb2"
    made_of = Adaptive, hoeffding.PrintedHoeffding()


@dataclass(frozen=True, kw_only=True)
class AffUCB2Growing(Preset):
    r"""AFF-UCB2 with a bonus that grows while an arm is idle, so that idle arms are tried again. Use it in place of
    AFF-UCB2 with few arms.

    Notes
    -----
    While an arm is idle, k is discounted by lambda, as w is. The score of an arm has a bonus that grows, but never
    exceeds that of a single observation:

    .. math:: \frac{m}{w} + \lambda^{- \mathrm{idle} / (2 K)} \sqrt{\frac{- \log 0.05}{2 w^2 / k}}

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 3.2.2, and ``docs/paper-notes.md``
    for the correction.
    """

    name = "aff-ucb2-growing"
    made_of = Adaptive, hoeffding.Hoeffding()


@dataclass(frozen=True, kw_only=True)
class AffKLUCB(Preset):
    r"""UCB with a tight bound that forgets old rewards faster when an arm seems to change. Use it with 50 arms or more;
    after a long constant period it may never notice that the worst arm has become the best.

    It is `AffUCB2Growing` with a Kullback-Leibler bound in place of the Hoeffding bound.

    Notes
    -----
    The score of an arm, with an effective size n that decreases towards 1 while the arm is idle:

    .. math:: \max \left\{ q : n \, \mathrm{kl}\left( \frac{m}{w}, q \right) \leq - \log \mathrm{confidence} \right\},
        \quad n = \max\left( 1, \; \lambda^{\mathrm{idle} / K} \frac{w^2}{k} \right)

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 3.2.2, with the index of Garivier
    & Cappe (2011).
    """

    name = "aff-kl-ucb"
    made_of = Adaptive, hoeffding.KLBound


@dataclass(frozen=True, kw_only=True)
class DTS(Preset):
    r"""Dynamic Thompson sampling: each arm remembers about a given number of its latest rewards, its memory. Use it for
    steady drift if you know a suitable memory.

    `AffDTS1` and `AffDTS2` set the memory, C, from the data.

    Notes
    -----
    The score is a draw from Beta(a, b).

    References
    ----------
    Gupta, Granmo & Agrawala (2011), Thompson sampling for dynamic multi-armed bandits. ICMLA.
    """

    name = "dts"
    made_of = Bounded, thompson.Thompson


@dataclass(frozen=True, kw_only=True)
class OptimisticDTS(Preset):
    r"""Optimistic dynamic Thompson sampling, which explores slightly less: no draw is below the estimated mean of its
    arm. Use it for steady drift if you know a suitable memory.

    No paper has this combination: the posterior is that of `DTS`, the optimistic draw that of `OTS`.

    Notes
    -----
    The score is a draw, or the mean of the posterior if that is larger:

    .. math:: \max\left( \theta, \; \frac{a}{a + b} \right), \quad \theta \sim \mathrm{Beta}(a, b)

    References
    ----------
    Gupta, Granmo & Agrawala (2011), Thompson sampling for dynamic multi-armed bandits. ICMLA. With the draw of May,
    Korda, Lee & Leslie (2012), Optimistic Bayesian sampling in contextual-bandit problems. JMLR 13.
    """

    name = "odts"
    made_of = Bounded, thompson.OptimisticThompson


@dataclass(frozen=True, kw_only=True)
class AffDTS1(Preset):
    r"""Dynamic Thompson sampling that sets the memory of each arm itself, from the estimated variance of its rewards.
    It needs no tuning; AFF-DTS2 has less regret in most environments.

    Notes
    -----
    The score is that of `DTS`, where the memory of an arm is C.

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 3.3.2.
    """

    name = "aff-dts1"
    made_of = BoundedByVariance, thompson.Thompson
    described: ClassVar[dict[str, str]] = {"burn_in": FOR_A_VARIANCE}


@dataclass(frozen=True, kw_only=True)
class AffDTS2(Preset):
    r"""Dynamic Thompson sampling that sets the memory of each arm itself: short when the arm seems to change, long
    otherwise. It needs no tuning and is the best of the paper's policies on the leaderboard.

    Of the paper's policies this one has the least regret on the leaderboard, both on average and in its worst
    environment; the recommended policy is `MixTS`.

    Notes
    -----
    The score is that of `DTS`, where the memory of an arm is C.

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 3.3.2.
    """

    name = "aff-dts2"
    made_of = BoundedByWeight, thompson.Thompson
