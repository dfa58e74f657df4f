"""Policies with a mixture of memories, whose weights are learned: the recommended policies."""

import math
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.draws import beta
from dynabandit.core.special_functions import LARGEST_EXPONENT
from dynabandit.core.streams import SCORE, SECOND, normal_pair, words
from dynabandit.policies.base import Policy, PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.belief import Belief
from dynabandit.policies.memories import mixture
from dynabandit.policies.memories.mixture import COUNT, FIRST, LAST_STEP, MEAN, MEMORIES, Params
from dynabandit.policies.part import Setting
from dynabandit.policies.preset import Preset
from dynabandit.policies.rules import thompson
from dynabandit.validation import REVENUE, set_fields


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


# Of MIX-Revenue-TS: the rows of the amounts, then those of the conversion; `shared` is divided in the same way
REVENUE_SLOTS = (
    *(f"amount_{slot}" for slot in mixture.NORMAL_SLOTS),
    *(f"conversion_{slot}" for slot in mixture.SLOTS),
)
CONVERSION, SHARED_CONVERSION = len(mixture.NORMAL_SLOTS), mixture.NORMAL_SHARED_SIZE
learn_conversion = mixture.Mixture.kernels.learn


@kernel
def conversion_part(state: PolicyState) -> PolicyState:
    """Return the state as that of a policy that learns only whether a reward is positive."""
    memory, shared = state.memory[CONVERSION:], state.shared[SHARED_CONVERSION:]
    return PolicyState(memory, shared, state.last_played, state.pending, state.models)


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    state.memory[:, arm] = 0.0
    mixture.start(state, arm, params)
    mixture.start(conversion_part(state), arm, params)


@kernel
def mean_conversion(state: PolicyState, number: int, params: Params) -> float:
    return mixture.mean_of_all(conversion_part(state), number, params)


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    conversion, size = mixture.mean_and_size_with_zeros(conversion_part(state), arm, step, params, step.common)
    drawn = beta(size * conversion, size * (1.0 - conversion), step.random, SCORE, step.number, arm)
    center, size = mixture.mean_and_size(state, arm, step, params)
    if state.memory[COUNT + MEMORIES - 1, arm] == 0.0:  # no amount yet
        center = mixture.mean_of_numbers(state, step.number, params)
    variance = mixture.normal_noise(state, arm)
    noise, _ = normal_pair(words(step.random, SECOND, step.number, arm, 0))
    # The mean of a log-normal amount
    amount = math.exp(min(center + 0.5 * variance, LARGEST_EXPONENT))
    return amount * max(drawn * math.exp(min(noise * math.sqrt(variance / size), LARGEST_EXPONENT)), conversion)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    is_positive = Reward(1.0 if reward.value > 0.0 else 0.0, reward.decided_at, reward.arrived_at, reward.features)
    learn_conversion(conversion_part(state), arm, is_positive, params)
    if reward.value > 0.0:
        if state.shared[FIRST] == 0.0:
            state.shared[FIRST] = reward.value
        logarithm = math.log(reward.value / state.shared[FIRST])  # so that a change of unit cancels
        mixture.learn_difference(
            state, arm, Reward(logarithm, reward.decided_at, reward.arrived_at, reward.features), params
        )
    # A play without an amount is no idle time
    state.memory[LAST_STEP, arm] = max(state.memory[LAST_STEP, arm], reward.decided_at)


@dataclass(frozen=True, kw_only=True)
class MixRevenueTS(Policy):
    r"""The recommended policy for revenue per visitor: mostly 0, and otherwise amounts of which a few are very large.
    Thompson sampling with memories of several lengths for each arm, whose weights are learned; it needs no tuning.

    `MixTS` for the product of a conversion and the mean of log-normal amounts, both with several memories. All rewards
    times a constant give the same choices.

    Parameters
    ----------
    strength
        The number of rewards, and of amounts, that the priors of each arm count as, in [1e-9, 1e6]. Their means are
        those of the latest rewards and amounts of all arms.
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

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("mix-revenue-ts", strength=2).rewards.description
    '0 or a number in [1e-100, 1e+100]'

    Notes
    -----
    `MixTS` learns whether a reward is positive: its mean is :math:`m_p`, and p is a draw from its Beta law.
    `MixNormalTS` learns the logarithms of the positive rewards: its mean is m, its noise v, and z is a draw from its
    normal law. The score is the mean reward with p and z, or with the means if that is larger:

    .. math:: \max\left( p \, e^{z + v / 2}, \; m_p \, e^{m + v / 2} \right), \quad p \sim \mathrm{Beta}\left( x_p m_p,
        \; x_p (1 - m_p) \right), \quad z \sim N\left( m, \; \frac{v}{x} \right)

    Amounts are measured in units of the first amount of any arm. For its amounts, too, an arm is idle only while it is
    not played.

    Pending plays of an arm without any reward count as rewards of 0.

    Cost per step: O(K), and 16 memories of the arm that was played.

    References
    ----------
    Our own, see `MixTS`.
    """

    name = "mix-revenue-ts"
    rewards = REVENUE
    slots = REVENUE_SLOTS
    functions = PolicyFunctions(start=start, score=score, learn=learn, common=mean_conversion, params=Params)

    burn_in: int = 1
    strength: float = 0.5
    share: float = 0.005
    shared_share: float = 0.0001
    sharpness: float = 2.0
    surplus: float = 0.1
    idle: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, **self._mixture().parameters)  # which checks them

    def _mixture(self) -> mixture.Mixture:
        """Return the mixture of the conversion; that of the amounts has the same parameters."""
        names = (one.name for one in fields(mixture.Mixture))
        return mixture.Mixture(**{name: getattr(self, name) for name in names})

    def params(self, arms: int) -> Params:
        return self._mixture().params(Setting(arms))

    def shared_size(self) -> int:
        return SHARED_CONVERSION + mixture.SHARED_SIZE

    def forgetting(self, column: np.ndarray) -> float:
        return self._mixture().forgetting(column, Setting(1))

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        conversion = self._mixture().belief(column[CONVERSION:], shared[SHARED_CONVERSION:], Setting(1))
        first = float(shared[FIRST])
        if first == 0.0:
            has_rewards = column[CONVERSION + COUNT + MEMORIES - 1] > 0.0
            return conversion._replace(mean=0.0 if has_rewards else math.nan, variance=0.0)
        state = PolicyState(column[:, np.newaxis], shared, np.zeros(1))
        has_amounts = column[COUNT + MEMORIES - 1] > 0.0
        center = float(column[MEAN] if has_amounts else mixture.mean_of_numbers(state, 1, self.params(1)))
        variance = float(mixture.normal_noise(state, 0))
        mean = conversion.mean * first * math.exp(min(center + 0.5 * variance, LARGEST_EXPONENT))
        second = conversion.mean * first**2 * math.exp(min(2.0 * center + 2.0 * variance, LARGEST_EXPONENT))
        return conversion._replace(mean=mean, variance=max(second - mean * mean, 0.0))
