"""MIX-TS: Thompson sampling from a mixture of memories; the recommended policy."""

from dataclasses import dataclass

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import MONOTONE, PolicyFunctions, PolicyState, Step
from dynabandit.policies.memories import mix_weights
from dynabandit.policies.memories.mix_weights import MixPolicy, Params

# The prior mean of an arm that has pending plays but no reward: that of all rewards changes with every reward, but the
# posterior of an arm that was played may not, so that it can be kept in a draw tree
MEAN_WITH_ZEROS = 0.5


@kernel
def likelihood(value: float, mean: float, size: float, noise: float) -> float:
    return value * mean + (1.0 - value) * (1.0 - mean)


@kernel
def variance(mean: float, noise: float) -> float:
    return mean * (1.0 - mean)


@kernel
def posterior(state: PolicyState, arm: int, step: Step, params: Params) -> tuple[float, float]:
    mean, size = mix_weights.estimate_with_zeros(state, arm, step, params, MEAN_WITH_ZEROS)
    return size * mean, size * (1.0 - mean)


@dataclass(frozen=True, kw_only=True)
class MixTS(MixPolicy):
    r"""The recommended policy: Thompson sampling with memories of several lengths for each arm, which learns how much
    weight each memory deserves. It needs no tuning, whether means change fast, slowly or never.

    It needs no horizon, no number of changes and no step size. ``db.policy("auto")`` is this policy. The parameters are
    there for experiments; the defaults are made for 2 to 1,000 arms and for fast, slow and no changes.

    Parameters
    ----------
    strength
        The number of rewards that the prior of each arm counts as, in [1e-9, 1e6]. Its mean is that of the latest
        rewards of all arms.
    share
        The share of its weights that an arm takes over from all arms after each of its rewards, in [0, 1].
    shared_share
        The share of the weights of all arms that is spread evenly after each reward, in [0, 1].
    sharpness
        The factor by which the draws are narrower than the posterior, as if there were so many times the rewards.
    surplus
        How much narrower the draws of an arm become with its share of the remembered rewards of all arms, at least 0.
    idle
        How much the memories of an idle arm forget, at least 0: in K steps as much as with this number of rewards.
    burn_in
        The number of plays of each arm before the policy decides; by default 0, so that the prior is used from the
        first step.

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

    Cost per step: O(K), O(log K) with more than 1,000 arms, and 8 memories of the arm that was played.

    References
    ----------
    Our own. Weights that are multiplied by likelihoods and mixed: Herbster & Warmuth (1998), Tracking the best expert.
    Machine Learning 32. Draws that are never below the mean: May, Korda, Lee & Leslie (2012), Optimistic Bayesian
    sampling in contextual-bandit problems. JMLR 13. Bounded memories: Gupta, Granmo & Agrawala (2011), Thompson
    sampling for dynamic multi-armed bandits. ICMLA. Bounds that shrink with n K / t: Audibert & Bubeck (2009), Minimax
    policies for adversarial and stochastic bandits. COLT.
    """

    name = "mix-ts"
    slots = mix_weights.SLOTS
    functions = PolicyFunctions(
        start=mix_weights.start,
        posterior=posterior,
        idle_posterior=MONOTONE,
        learn=mix_weights.make_learn(likelihood, variance),
        common=mix_weights.mean_of_all,
        optimistic=True,
        params=Params,
    )
