"""MIX-Poisson-TS: Thompson sampling from a mixture of memories, for counts."""

import math
from dataclasses import dataclass

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.estimators.base import Belief
from dynabandit.policies.base import PolicyFunctions, PolicyState, Step
from dynabandit.policies.memories import mix_weights
from dynabandit.policies.memories.mix_weights import ALL_COUNT, ALL_TOTAL, MixPolicy, Params
from dynabandit.policies.presets import mix_normal_ts
from dynabandit.policies.presets.mix_normal_ts import LEAST_EXPONENT
from dynabandit.policies.rules.score_laws import gamma_scores
from dynabandit.validation import COUNTS

LARGE_COUNT = 30.0  # above, the law of a count is nearly normal


@kernel
def mean_of_all(state: PolicyState, number: int, params: Params) -> float:
    return (state.shared[ALL_TOTAL] + 0.5) / (state.shared[ALL_COUNT] + 1.0)  # never 0


@kernel
def likelihood(value: float, mean: float, size: float, noise: float) -> float:
    """Return the negative binomial probability of a count, divided by the Poisson probability at the mean `value`."""
    if value > LARGE_COUNT:
        return mix_normal_ts.likelihood(value, mean, size, mean) * math.sqrt(value / mean)
    shape = mean * size
    exponent = value - shape * math.log1p(1.0 / size)
    if value > 0.0:
        exponent += value * math.log(mean * size / ((size + 1.0) * value))
    for k in range(int(value)):
        exponent += math.log1p(k / shape)
    return math.exp(max(exponent, LEAST_EXPONENT))


@kernel
def variance(mean: float, noise: float) -> float:
    return mean


@kernel
def law(state: PolicyState, arm: int, step: Step, params: Params) -> tuple[float, float, float]:
    mean, size = mix_weights.estimate_with_zeros(state, arm, step, params, step.common)
    return size * mean, size, mean


@dataclass(frozen=True, kw_only=True)
class MixPoissonTS(MixPolicy):
    r"""The recommended policy for counts, such as sales, visits or items. Thompson sampling with memories of several
    lengths for each arm, whose weights are learned; it needs no tuning.

    `MixTS` for rewards 0, 1, 2, ...

    Parameters
    ----------
    strength
        The number of counts that the prior of each arm counts as, in [1e-9, 1e6]. Its mean is that of the latest counts
        of all arms.
    share
        The share of its weights that an arm takes over from all arms after each of its counts, in [0, 1].
    shared_share
        The share of the weights of all arms that is spread evenly after each count, in [0, 1].
    sharpness
        The factor by which the draws are narrower than the posterior, as if there were so many times the counts.
    surplus
        How much narrower the draws of an arm become with its share of the remembered counts of all arms, at least 0.
    idle
        How much the memories of an idle arm forget, at least 0: in K steps as much as with this number of counts.
    burn_in
        The number of plays of each arm before the policy decides.

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

    Pending plays of an arm without a count are taken as zeros.

    Cost per step: O(K), and 8 memories of the arm that was played, each with up to 30 logarithms.

    References
    ----------
    Our own, see `MixTS`.
    """

    name = "mix-poisson-ts"
    rewards = COUNTS
    slots = mix_weights.SLOTS
    functions = PolicyFunctions(
        start=mix_weights.start, common=mean_of_all, params=Params,
        learn=mix_weights.make_learn(likelihood, variance, mean_of_all),
        **gamma_scores(law, optimistic=True),
    )  # fmt: skip

    burn_in: int = 1
    strength: float = 0.5

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        mean, size = self.mean_and_size(column, shared, mean_of_all)
        return Belief(mean, mean, self.forgetting(column), size)  # the variance of a Poisson count is its mean
