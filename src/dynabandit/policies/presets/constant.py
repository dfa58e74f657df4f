"""Policies for constant means, which never forget: the baselines that the others are compared with."""

from dataclasses import dataclass

from dynabandit.policies.memories.sample_mean import SampleMean
from dynabandit.policies.preset import Preset
from dynabandit.policies.rules import greedy, kl_ucb, thompson, ucb
from dynabandit.validation import BOUNDED


@dataclass(frozen=True, kw_only=True)
class EpsGreedy(Preset):
    r"""Play the arm with the best average reward so far, and with probability epsilon a random arm. A simple baseline:
    it never forgets, and it explores at the end as much as at the beginning.

    Notes
    -----
    With probability epsilon a random arm, otherwise the arm with the largest sample mean:

    .. math:: a_t = \arg\max_a \bar{x}_t(a)

    References
    ----------
    Watkins (1989), Learning from delayed rewards. PhD thesis, Cambridge.
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 3.1.
    """

    name = "eps-greedy"
    made_of = SampleMean, greedy.Greedy
    live_rewards = BOUNDED


@dataclass(frozen=True, kw_only=True)
class UCB(Preset):
    r"""Play the arm whose mean could be the largest: its average reward plus a bonus, which is large for arms with few
    plays. A baseline for constant means: it never forgets, so it reacts slowly to changes.

    Notes
    -----
    The score of an arm with N plays and the sample mean x, at step t:

    .. math:: \bar{x} + \sqrt{\frac{2 \log (t - 1)}{N}}

    The logarithm of t - 1 is our reading. The formula of Lu, Adams & Kantas (section 3.2) has log t next to the plays
    up to time t, and Auer et al. take the logarithm of the plays so far; at the decision of step t, these are t - 1.

    References
    ----------
    Auer, Cesa-Bianchi & Fischer (2002), Finite-time analysis of the multiarmed bandit problem.
    """

    name = "ucb"
    made_of = SampleMean, ucb.UCB()


@dataclass(frozen=True, kw_only=True)
class KLUCB(Preset):
    r"""Play the arm whose mean could be the largest, given its rewards: UCB with a tighter bound, above all for means
    near 0 or 1. A baseline for constant means: it never forgets.

    The bound never exceeds 1. For constant means the policy is asymptotically optimal. In the equation, N is the number
    of plays of an arm, x its sample mean, and t the number of steps so far.

    References
    ----------
    Garivier & Cappe (2011), The KL-UCB algorithm for bounded stochastic bandits and beyond. COLT.
    """

    name = "kl-ucb"
    made_of = SampleMean, kl_ucb.KLUCB


@dataclass(frozen=True, kw_only=True)
class TS(Preset):
    r"""Thompson sampling: draw a plausible mean for each arm, given its rewards, and play the arm with the largest
    draw. A baseline for constant means: it never forgets, so it reacts slowly to changes.

    References
    ----------
    Thompson (1933), On the likelihood that one unknown probability exceeds another. Biometrika 25.
    Chapelle & Li (2011), An empirical evaluation of Thompson sampling. NIPS.
    """

    name = "ts"
    made_of = SampleMean, thompson.Thompson


@dataclass(frozen=True, kw_only=True)
class OTS(Preset):
    r"""Optimistic Thompson sampling, which explores slightly less: no draw is below the estimated mean of its arm. Use
    it if means are constant; it never forgets.

    A draw of `TS` below the posterior mean is replaced by the posterior mean.

    References
    ----------
    May, Korda, Lee & Leslie (2012), Optimistic Bayesian sampling in contextual-bandit problems. JMLR 13.
    """

    name = "ots"
    made_of = SampleMean, thompson.OptimisticThompson
