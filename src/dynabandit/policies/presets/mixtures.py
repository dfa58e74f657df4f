"""Policies with a mixture of memories, whose weights are learned: the recommended policies."""

from dataclasses import dataclass
from typing import ClassVar

from dynabandit.policies.memories import mixture
from dynabandit.policies.preset import Preset
from dynabandit.policies.rules import thompson


@dataclass(frozen=True, kw_only=True)
class MixTS(Preset):
    r"""The recommended policy: Thompson sampling with memories of several lengths for each arm, which learns how much
    weight each memory deserves. It needs no tuning, whether means change fast, slowly or never.

    It needs no horizon, no number of changes and no step size. ``db.policy("auto")`` is this policy. The parameters are
    there for experiments; the defaults are made for 2 to 1,000 arms and for fast, slow and no changes.

    Examples
    --------
    >>> import dynabandit as db
    >>> bandit = db.Bandit("mix-ts", arms=["old", "new"], seed=1)
    >>> for reward in [1] * 30 + [0] * 8:
    ...     bandit.reward("old", reward)
    >>> bandit.arms["old"].mean < 0.4
    True

    Notes
    -----
    Memory i = 0, ..., 6 of an arm has capacity :math:`C_i = 4 \cdot 375^{i / 6}`, that is 4, 11, 29, 77, 208, 559 and
    1500, and the last one infinity. It holds the sum :math:`S_i` and the number :math:`N_i` of the arm's rewards. With
    the mean :math:`\mu` of the latest rewards of all arms, of which :math:`y_0` is the newest, a discount of 0.999 per
    reward and the strength :math:`\nu`, it predicts the mean

    .. math:: q_i = \frac{S_i + \nu \mu}{N_i + \nu}, \quad \mu = \frac{1 + \sum_{j \ge 0} 0.999^j y_j}{2 + \sum_{j
        \ge 0} 0.999^j}

    When a reward y arrives, the arm's memories first forget for the d steps during which the arm was idle: those
    between the arm's latest decision with a known reward and the decision of y, 0 if that of y is earlier. Then y
    changes the weights :math:`w_i` of the arm's memories and the weights :math:`v_i` that all arms share, all 1/8 at
    first, and is stored:

    .. math::

        (S_i, N_i) &\leftarrow \frac{(S_i, N_i)}{1 + \kappa d / (K C_i)} \\
        (w_i, v_i) &\leftarrow (w_i, v_i) \, \left( y q_i + (1 - y) (1 - q_i) \right), \text{ normalised} \\
        v_i &\leftarrow (1 - \beta) v_i + \beta / 8, \quad w_i \leftarrow (1 - \alpha) w_i + \alpha v_i \\
        (S_i, N_i) &\leftarrow (S_i + y, N_i + 1) \min\left( 1, \frac{C_i}{N_i + 1} \right)

    with :math:`\alpha` the share, :math:`\beta` the shared share and :math:`\kappa` the parameter `idle`. With the new
    :math:`\mu`, the mixture of the memories' posteriors has the mean m and the variance :math:`s^2`, which is the
    uncertainty after n rewards, and forgets at the rate r. These numbers are constant until the next reward of the arm:

    .. math:: m = \sum_i w_i q_i, \quad s^2 = \sum_i w_i \left( q_i^2 + \frac{q_i (1 - q_i)}{N_i + \nu} \right) - m^2,
        \quad n = \frac{m (1 - m)}{s^2}, \quad r = \sum_i \frac{w_i}{C_i}

    At step t, the score of an arm that has been idle for d steps is a draw from Beta(x m, x (1 - m)), or m if it is
    larger, with sharpness :math:`\sigma` and surplus :math:`\gamma`:

    .. math:: x = \sigma n' \left( 1 + \gamma K n' \left( \tfrac{1}{t} + r \right) \right), \quad n' = \max\left( 1,
        \frac{n}{1 + \kappa r d / K} \right)

    An arm without rewards has :math:`m = \mu` and :math:`x = \sigma \nu`. With p pending plays, which count as zeros,
    it has :math:`m = \nu / (2 (\nu + p))` and :math:`x = \sigma (\nu + p)`.

    References
    ----------
    Our own. Weights that are multiplied by likelihoods and mixed: Herbster & Warmuth (1998), Tracking the best expert.
    Machine Learning 32. Draws that are never below the mean: May, Korda, Lee & Leslie (2012), Optimistic Bayesian
    sampling in contextual-bandit problems. JMLR 13. Bounded memories: Gupta, Granmo & Agrawala (2011), Thompson
    sampling for dynamic multi-armed bandits. ICMLA. Bounds that shrink with n K / t: Audibert & Bubeck (2009), Minimax
    policies for adversarial and stochastic bandits. COLT.
    """

    name = "mix-ts"
    made_of = mixture.Mixture, thompson.OptimisticThompson()


@dataclass(frozen=True, kw_only=True)
class MixNormalTS(Preset):
    r"""The recommended policy for rewards in any unit, such as amounts, times or temperatures. Thompson sampling with
    memories of several lengths for each arm, whose weights are learned; it needs no tuning.

    `MixTS` for rewards that are not in [0, 1]. All rewards times a positive constant, or plus a constant, give the same
    choices.

    Examples
    --------
    >>> import dynabandit as db
    >>> bandit = db.Bandit("mix-normal-ts", arms=["old", "new"], seed=1)
    >>> for reward in [20.5, 19.5] * 20 + [-3.5, -4.5] * 8:
    ...     bandit.reward("old", reward)
    >>> bandit.arms["old"].mean < 0
    True

    Notes
    -----
    Memories, weights and the numbers m, n, r and x of an arm are those of `MixTS`, with three differences. Rewards are
    measured from the first one. The prior mean is :math:`\mu = \sum_j 0.999^j y_j / \sum_j 0.999^j`. The law of rewards
    is normal, with the variance v of the noise: the factor of a weight for a reward y, and the size of the mixture, are

    .. math:: \frac{1}{\sqrt{1 + 1 / n_i}} \exp\left( - \frac{(y - q_i)^2}{2 v (1 + 1 / n_i)} \right), \quad n =
        \frac{v}{\sum_i w_i (q_i^2 + v / n_i) - m^2}, \quad n_i = N_i + \nu

    and the exponent is at least -60. The score is a draw from N(m, v / x), or m if it is larger.

    The noise is estimated from the errors :math:`e^2 = (y - m)^2 n / (n + 1)` of the arm's predictions, discounted by
    0.999 per reward, together with the mean error of all arms, which counts as two of them. The first reward of an arm
    has no prediction of its own: its error is :math:`(y - \mu)^2` and counts only for all arms, with the weight 0.01.

    References
    ----------
    Our own, see `MixTS`.
    """

    name = "mix-normal-ts"
    made_of = mixture.NormalMixture, thompson.OptimisticNormalThompson()
    described: ClassVar[dict[str, str]] = {
        "burn_in": "The number of plays of each arm before the policy decides, so that a variance can be estimated."
    }

    burn_in: int = 2


@dataclass(frozen=True, kw_only=True)
class MixPoissonTS(Preset):
    r"""The recommended policy for counts, such as sales, visits or items. Thompson sampling with memories of several
    lengths for each arm, whose weights are learned; it needs no tuning.

    `MixTS` for rewards 0, 1, 2, ...

    Examples
    --------
    >>> import dynabandit as db
    >>> bandit = db.Bandit("mix-poisson-ts", arms=["old", "new"], seed=1)
    >>> for count in [9, 11] * 20 + [2, 3] * 8:
    ...     bandit.reward("old", count)
    >>> bandit.arms["old"].mean < 4
    True

    Notes
    -----
    Memories, weights and the numbers m, n, r and x of an arm are those of `MixTS`, with the prior mean
    :math:`\mu = (1/2 + \sum_j 0.999^j y_j) / (1 + \sum_j 0.999^j)` and the Poisson law of rewards. The factor of a
    weight is the negative binomial probability of a count y whose mean has the law Gamma(:math:`a_i, n_i`). It and the
    size of the mixture are

    .. math:: \frac{\Gamma(a_i + y)}{\Gamma(a_i) \, y!} \left( \frac{n_i}{n_i + 1} \right)^{a_i} \left( \frac{1}{n_i +
        1} \right)^y, \quad n = \frac{m}{\sum_i w_i (q_i^2 + q_i / n_i) - m^2}, \quad a_i = n_i q_i, \quad n_i = N_i +
        \nu

    If y > 30, the factor is the normal density with the same mean and variance. The score is a draw from
    Gamma(x m) / x, or m if it is larger.

    References
    ----------
    Our own, see `MixTS`.
    """

    name = "mix-poisson-ts"
    made_of = mixture.PoissonMixture, thompson.OptimisticGammaThompson()

    burn_in: int = 1
