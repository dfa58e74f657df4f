"""DTS: Thompson sampling with a bounded memory, and two ways to let the data set the bound."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.errors import keep, number
from dynabandit.estimators.base import Belief
from dynabandit.policies import aff_shared
from dynabandit.policies.base import Kernels, Now, Policy
from dynabandit.policies.thompson import beta_belief, checked_prior

__all__ = ["DTS", "AffDTS1", "AffDTS2"]

# DTS
A, B = range(2)
PRIOR_A, PRIOR_B, MEMORY = range(3)
# AFF-DTS: behind the estimator's slots and parameters
AFF_SLOTS = (*aff_shared.SLOTS, "a", "b", "plays")
AFF_A = AFF_SLOTS.index("a")
AFF_B = AFF_SLOTS.index("b")
AFF_PLAYS = AFF_SLOTS.index("plays")
AFF_PRIOR_A, AFF_PRIOR_B, AFF_MEMORY, AFF_BURN_IN = range(4, 8)


@kernel
def is_full(total: float, memory_size: float) -> bool:
    """Whether a + b = `total` is at C: it stays there for good, up to rounding that must not be mistaken for room."""
    return total >= memory_size * (1.0 - 1e-9)


@kernel
def is_nearly_full(total: float, memory_size: float) -> bool:
    """The same for numbers of 24 bits, whose error fades by C / (C + 1) in a step: that of C + 1 steps adds up."""
    return total >= memory_size * (1.0 - min(4e-7 * (memory_size + 1.0), 0.5))


is_full.in_single = is_nearly_full  # type: ignore[attr-defined]


@kernel
def bounded(a: float, b: float, reward: float, memory_size: float) -> tuple[float, float]:
    """Take in a reward so that a + b stays at C = `memory_size` once it is there (section 3.3.2)."""
    if not is_full(a + b, memory_size):
        return a + reward, b + (1.0 - reward)
    shrink = memory_size / (memory_size + 1.0)
    return (a + reward) * shrink, (b + (1.0 - reward)) * shrink


@kernel
def start(memory: np.ndarray, shared: np.ndarray, arm: int, parameters: np.ndarray) -> None:
    memory[:, arm] = 0.0
    memory[A, arm] = parameters[PRIOR_A]
    memory[B, arm] = parameters[PRIOR_B]


@kernel
def posterior(memory: np.ndarray, arm: int, idle: int, now: Now, parameters: np.ndarray) -> tuple[float, float]:
    return memory[A, arm], memory[B, arm]


@kernel
def learn(memory: np.ndarray, shared: np.ndarray, arm: int, reward: float, parameters: np.ndarray) -> None:
    memory[A, arm], memory[B, arm] = bounded(memory[A, arm], memory[B, arm], reward, parameters[MEMORY])


@kernel
def aff_start(memory: np.ndarray, shared: np.ndarray, arm: int, parameters: np.ndarray) -> None:
    aff_shared.start(memory, shared, arm, parameters)
    memory[AFF_A, arm] = parameters[AFF_PRIOR_A]
    memory[AFF_B, arm] = parameters[AFF_PRIOR_B]


@kernel
def aff_posterior(memory: np.ndarray, arm: int, idle: int, now: Now, parameters: np.ndarray) -> tuple[float, float]:
    return memory[AFF_A, arm], memory[AFF_B, arm]


@kernel
def variance_learn(memory: np.ndarray, shared: np.ndarray, arm: int, reward: float, parameters: np.ndarray) -> None:
    # C_t = 4 / s_t^2 - 1; without any variance, C is unbounded
    state = aff_shared.observe(memory, arm, reward, parameters)
    size = 4.0 / state.variance - 1.0 if state.variance > 0.0 else math.inf
    remember(memory, arm, reward, size, parameters)


@kernel
def weight_learn(memory: np.ndarray, shared: np.ndarray, arm: int, reward: float, parameters: np.ndarray) -> None:
    # C_t = w_t - 1
    state = aff_shared.observe(memory, arm, reward, parameters)
    remember(memory, arm, reward, state.w - 1.0, parameters)


@kernel
def remember(memory: np.ndarray, arm: int, reward: float, size: float, parameters: np.ndarray) -> None:
    """Update the posterior; the initial C holds during the burn-in plays of the arm."""
    memory[AFF_PLAYS, arm] += 1.0
    if memory[AFF_PLAYS, arm] <= parameters[AFF_BURN_IN]:
        size = parameters[AFF_MEMORY]
    memory[AFF_A, arm], memory[AFF_B, arm] = bounded(memory[AFF_A, arm], memory[AFF_B, arm], reward, size)


@dataclass(frozen=True, kw_only=True)
class DTS(Policy):
    r"""Dynamic Thompson sampling: the posterior remembers about C rewards.

    Parameters
    ----------
    memory
        The paper's C, positive: how many rewards a posterior can hold before it forgets.
    prior
        The Beta prior of every arm, a pair of positive numbers.
    burn_in
        How often each arm is played at first; by default the prior decides from the first step on.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("dts", memory=5).label
    'dts(memory=5)'

    Notes
    -----
    The score is a draw from Beta(a, b). A reward y of the arm changes its posterior by

    .. math:: (a, b) \leftarrow (a + y, \; b + 1 - y) \quad \text{if } a + b < C

    .. math:: (a, b) \leftarrow \frac{C}{C + 1} \, (a + y, \; b + 1 - y) \quad \text{else}

    Cost of a step: O(K); with many arms, only those that can win are drawn.

    References
    ----------
    Gupta, Granmo & Agrawala (2011), Thompson sampling for dynamic multi-armed bandits. ICMLA.
    """

    name: ClassVar[str] = "dts"
    slots: ClassVar[tuple[str, ...]] = ("a", "b")
    kernels: ClassVar[Kernels] = Kernels(start=start, learn=learn, posterior=posterior)

    burn_in: int = 0
    memory: float = 10.0
    prior: tuple[float, float] = (2.0, 2.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        memory = number("memory", self.memory, 0.0, math.inf, open_low=True)
        keep(self, memory=memory, prior=checked_prior(self.prior))

    def numbers(self, arms: int) -> np.ndarray:
        return np.array([*self.prior, self.memory], dtype=float)

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        a, b = column.tolist()
        forgetting = self.memory / (self.memory + 1.0) if is_full(a + b, self.memory) else 1.0
        return beta_belief(a, b, forgetting)


@dataclass(frozen=True, kw_only=True)
class AffDTS(aff_shared.Adaptive):
    """What the two adaptive forms of DTS share."""

    slots: ClassVar[tuple[str, ...]] = AFF_SLOTS

    memory: float = 10.0
    prior: tuple[float, float] = (2.0, 2.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        memory = number("memory", self.memory, 0.0, math.inf, open_low=True)
        keep(self, memory=memory, prior=checked_prior(self.prior))

    def numbers(self, arms: int) -> np.ndarray:
        return np.concatenate([super().numbers(arms), self.prior, [self.memory, self.burn_in]])


@dataclass(frozen=True, kw_only=True)
class AffDTS1(AffDTS):
    r"""DTS whose memory C follows the estimated variance, C = 4 / s^2 - 1.

    Parameters
    ----------
    step_size, floor, loss
        Of the adaptive estimator; see `dynabandit.estimators.AdaptiveForgetting`.
    memory
        The initial C, which holds during the burn-in plays of an arm.
    prior
        The Beta prior of every arm, a pair of positive numbers.
    burn_in
        How often each arm is played at first, so that a variance can be estimated; 10 in the paper.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-dts1", memory=100).burn_in
    10

    Notes
    -----
    The estimator of each arm, updated at its rewards y with the old values on the right, and the factor kept in
    [floor, 1]:

    .. math:: m \leftarrow \lambda m + y, \quad w \leftarrow \lambda w + 1, \quad k \leftarrow \lambda^2 k + 1

    .. math:: \lambda \leftarrow \lambda - \eta \, \frac{\partial}{\partial \lambda} \left( \frac{m}{w} - y \right)^2

    The memory of DTS after the burn-in, with s^2 the adaptive variance:

    .. math:: C_t = \frac{4}{s_t^2} - 1

    Cost of a step: O(K); with many arms, only those that can win are drawn.

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 3.3.2.
    """

    name: ClassVar[str] = "aff-dts1"
    kernels: ClassVar[Kernels] = Kernels(start=aff_start, learn=variance_learn, posterior=aff_posterior)

    burn_in: int = 10


@dataclass(frozen=True, kw_only=True)
class AffDTS2(AffDTS):
    r"""DTS whose memory C follows the weight of the adaptive estimator, C = w - 1.

    Parameters
    ----------
    step_size, floor, loss
        Of the adaptive estimator; see `dynabandit.estimators.AdaptiveForgetting`.
    memory
        The initial C, which holds during the burn-in plays of an arm.
    prior
        The Beta prior of every arm, a pair of positive numbers.
    burn_in
        How often each arm is played at first.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-dts2").burn_in
    1

    Notes
    -----
    The estimator of each arm, updated at its rewards y with the old values on the right, and the factor kept in
    [floor, 1]:

    .. math:: m \leftarrow \lambda m + y, \quad w \leftarrow \lambda w + 1, \quad k \leftarrow \lambda^2 k + 1

    .. math:: \lambda \leftarrow \lambda - \eta \, \frac{\partial}{\partial \lambda} \left( \frac{m}{w} - y \right)^2

    The memory of DTS after the burn-in:

    .. math:: C_t = w_t - 1

    Cost of a step: O(K); with many arms, only those that can win are drawn.

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 3.3.2.
    """

    name: ClassVar[str] = "aff-dts2"
    kernels: ClassVar[Kernels] = Kernels(start=aff_start, learn=weight_learn, posterior=aff_posterior)
