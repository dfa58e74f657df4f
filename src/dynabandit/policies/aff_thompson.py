"""AFF-TS and AFF-OTS: Thompson sampling from a posterior whose data fades, but not its prior."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.errors import keep
from dynabandit.policies import aff_shared
from dynabandit.policies.base import Kernels, Now
from dynabandit.policies.thompson import checked_prior

__all__ = ["AffOTS", "AffTS"]

SLOTS = (*aff_shared.SLOTS, "log_forgetting")
M = SLOTS.index("m")
W = SLOTS.index("w")
LOG_FORGETTING = SLOTS.index("log_forgetting")
PRIOR_A = 4
PRIOR_B = 5


@kernel
def posterior(memory: np.ndarray, arm: int, idle: int, now: Now, parameters: np.ndarray) -> tuple[float, float]:
    """Equations (24) and (25), on the discounted m~ and w~ of (16) and (17)."""
    factor = aff_shared.discount(memory[LOG_FORGETTING, arm], idle, now.arms)
    m = memory[M, arm]
    return parameters[PRIOR_A] + factor * m, parameters[PRIOR_B] + factor * (memory[W, arm] - m)


@kernel
def learn(memory: np.ndarray, shared: np.ndarray, arm: int, reward: float, parameters: np.ndarray) -> None:
    state = aff_shared.observe(memory, arm, reward, parameters)
    memory[LOG_FORGETTING, arm] = aff_shared.log_forgetting(state)


@dataclass(frozen=True, kw_only=True)
class AffTS(aff_shared.Adaptive):
    r"""Thompson sampling from Beta(a + m~, b + w~ - m~), where the data of an idle arm fades.

    Parameters
    ----------
    step_size, floor, loss
        Of the adaptive estimator; see `dynabandit.estimators.AdaptiveForgetting`.
    prior
        The Beta prior of every arm, a pair of positive numbers; it is never forgotten.
    burn_in
        How often each arm is played at first.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-ts", prior=(1, 3)).label
    'aff-ts(prior=(1, 3))'

    Notes
    -----
    The estimator of each arm, updated at its rewards y with the old values on the right, and the factor kept in
    [floor, 1]:

    .. math:: m \leftarrow \lambda m + y, \quad w \leftarrow \lambda w + 1, \quad k \leftarrow \lambda^2 k + 1

    .. math:: \lambda \leftarrow \lambda - \eta \, \frac{\partial}{\partial \lambda} \left( \frac{m}{w} - y \right)^2

    The score is a draw from a posterior whose data, but not its prior, fades while the arm is idle:

    .. math:: \mathrm{Beta}\left( a + \tilde{m}, \; b + \tilde{w} - \tilde{m} \right), \quad (\tilde{m}, \tilde{w}) =
        \lambda^{\mathrm{idle} / K} (m, w)

    Cost of a step: O(K); with many arms, only those that can win are drawn.

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, algorithm 4.
    """

    name: ClassVar[str] = "aff-ts"
    slots: ClassVar[tuple[str, ...]] = SLOTS
    kernels: ClassVar[Kernels] = Kernels(start=aff_shared.start, learn=learn, posterior=posterior)

    prior: tuple[float, float] = (2.0, 2.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, prior=checked_prior(self.prior))

    def numbers(self, arms: int) -> np.ndarray:
        return np.append(super().numbers(arms), self.prior)


@dataclass(frozen=True, kw_only=True)
class AffOTS(AffTS):
    r"""AFF-TS, with a draw below the posterior mean replaced by that mean: the paper's all-round choice.

    Parameters
    ----------
    step_size, floor, loss
        Of the adaptive estimator; see `dynabandit.estimators.AdaptiveForgetting`.
    prior
        The Beta prior of every arm, a pair of positive numbers; it is never forgotten.
    burn_in
        How often each arm is played at first.

    Examples
    --------
    >>> import dynabandit as db
    >>> bandit = db.Bandit("aff-ots", arms=["red", "green"], seed=7)
    >>> bandit.choose()
    'red'

    Notes
    -----
    The estimator of each arm, updated at its rewards y with the old values on the right, and the factor kept in
    [floor, 1]:

    .. math:: m \leftarrow \lambda m + y, \quad w \leftarrow \lambda w + 1, \quad k \leftarrow \lambda^2 k + 1

    .. math:: \lambda \leftarrow \lambda - \eta \, \frac{\partial}{\partial \lambda} \left( \frac{m}{w} - y \right)^2

    The score is the larger of a draw from the posterior and its mean; its data fades while the arm is idle:

    .. math:: \mathrm{Beta}\left( a + \tilde{m}, \; b + \tilde{w} - \tilde{m} \right), \quad (\tilde{m}, \tilde{w}) =
        \lambda^{\mathrm{idle} / K} (m, w)

    Cost of a step: O(K); with many arms, only those that can win are drawn.

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, algorithm 5.
    """

    name: ClassVar[str] = "aff-ots"
    kernels: ClassVar[Kernels] = Kernels(start=aff_shared.start, learn=learn, posterior=posterior, optimistic=True)
