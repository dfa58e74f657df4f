"""KL-UCB: upper confidence bounds from the Kullback-Leibler divergence of Bernoulli distributions."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward
from dynabandit.policies.memories.sample_mean_policy import SampleMeanPolicy
from dynabandit.policies.rules import kl_index
from dynabandit.validation import check_field, number


class Params(NamedTuple):
    loglog: float


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    # Algorithm 1: log t + c log log t, where t steps have been played
    level = math.log(float(max(number - 1, 1)))
    return level + params.loglog * math.log(max(level, 1.0))


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    kl_index.observe(state, arm, reward.value)


@dataclass(frozen=True, kw_only=True)
class KLUCB(SampleMeanPolicy):
    r"""Play the arm whose mean could be the largest, given its rewards: UCB with a tighter bound, above all for means
    near 0 or 1. A baseline for constant means: it never forgets.

    The bound is the largest q with N kl(mean, q) <= log t, which never exceeds 1. For constant means the policy is
    asymptotically optimal.

    Parameters
    ----------
    loglog
        The paper's c in log t + c log log t, at least 0. The theory uses 3, the experiments 0.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.simulate("kl-ucb", db.environment("fixed", means=[0.2, 0.8]), horizon=100, seed=1).total_regret[0] < 10
    np.True_

    Notes
    -----
    The score of an arm with N plays and the sample mean x, after t steps:

    .. math:: \max \left\{ q : N \, \mathrm{kl}(\bar{x}, q) \leq \log t + c \log \log t \right\}

    .. math:: \mathrm{kl}(p, q) = p \log \frac{p}{q} + (1 - p) \log \frac{1 - p}{1 - q}

    Cost per step: O(K), with one root finding per arm.

    References
    ----------
    Garivier & Cappe (2011), The KL-UCB algorithm for bounded stochastic bandits and beyond. COLT.
    """

    name = "kl-ucb"
    slots = kl_index.SLOTS
    functions = PolicyFunctions(start=kl_index.start, score=kl_index.score, learn=learn, common=common, params=Params)

    burn_in: int = 1
    loglog: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "loglog", number, 0.0, math.inf)

    def params(self, arms: int) -> Params:
        return Params(self.loglog)
