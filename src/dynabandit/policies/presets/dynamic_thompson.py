"""DTS: Thompson sampling with a bounded memory, and two variants that set the bound from the data."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.estimators.adaptive_forgetting import AdaptiveParams
from dynabandit.policies.base import CONSTANT, Policy, PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.beta_posterior import Prior, checked_prior
from dynabandit.policies.memories import aff_shared
from dynabandit.policies.memories.aff_shared import AdaptivePolicy
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.validation import check_field, number, set_fields

# The paper's C is called capacity here; the user's parameter is `memory`
A, B = range(2)
AFF_SLOTS = (*aff_shared.SLOTS, "a", "b", "plays")
AFF_A, AFF_B, AFF_PLAYS = (AFF_SLOTS.index(name) for name in ("a", "b", "plays"))


class Params(NamedTuple):
    prior: Prior
    capacity: float


class AffDTSParams(NamedTuple):
    estimator: AdaptiveParams
    prior: Prior
    capacity: float
    burn_in: float


@kernel
def is_full(total: float, capacity: float) -> bool:
    """Whether a + b = `total` has reached C, where it stays; the tolerance covers rounding."""
    return total >= capacity * (1.0 - 1e-9)


@kernel
def is_full_in_single(total: float, capacity: float) -> bool:
    """The same for 24-bit numbers, whose rounding error decays by C / (C + 1) per step: C + 1 steps add up."""
    return total >= capacity * (1.0 - min(4e-7 * (capacity + 1.0), 0.5))


is_full.in_single = is_full_in_single  # type: ignore[attr-defined]


@kernel
def bounded(a: float, b: float, value: float, capacity: float) -> tuple[float, float]:
    """Update a posterior with a reward so that a + b stays at C = `capacity` once it is there (section 3.3.2)."""
    if not is_full(a + b, capacity):
        return a + value, b + (1.0 - value)
    shrink = capacity / (capacity + 1.0)
    return (a + value) * shrink, (b + (1.0 - value)) * shrink


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    state.memory[A, arm] = params.prior.a
    state.memory[B, arm] = params.prior.b


@kernel
def posterior(state: PolicyState, arm: int, step: Step, params: Params) -> tuple[float, float]:
    a, b = state.memory[A, arm], state.memory[B, arm]
    data = abs(a - params.prior.a) + abs(b - params.prior.b)  # every reward moves the posterior from its prior
    return a, b + assumed_zeros(state, arm, data)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    memory = state.memory
    memory[A, arm], memory[B, arm] = bounded(memory[A, arm], memory[B, arm], reward.value, params.capacity)


@kernel
def aff_start(state: PolicyState, arm: int, params: AffDTSParams) -> None:
    aff_shared.start(state, arm, params)
    state.memory[AFF_A, arm] = params.prior.a
    state.memory[AFF_B, arm] = params.prior.b


@kernel
def aff_posterior(state: PolicyState, arm: int, step: Step, params: AffDTSParams) -> tuple[float, float]:
    memory = state.memory
    return memory[AFF_A, arm], memory[AFF_B, arm] + assumed_zeros(state, arm, memory[AFF_PLAYS, arm])


@kernel
def variance_learn(state: PolicyState, arm: int, reward: Reward, params: AffDTSParams) -> None:
    # C_t = 4 / s_t^2 - 1; if the variance is 0, C is unbounded
    estimate = aff_shared.observe(state, arm, reward.value, params)
    capacity = 4.0 / estimate.variance - 1.0 if estimate.variance > 0.0 else math.inf
    aff_update(state, arm, reward.value, capacity, params)


@kernel
def weight_learn(state: PolicyState, arm: int, reward: Reward, params: AffDTSParams) -> None:
    # C_t = w_t - 1
    estimate = aff_shared.observe(state, arm, reward.value, params)
    aff_update(state, arm, reward.value, estimate.w - 1.0, params)


@kernel
def aff_update(state: PolicyState, arm: int, value: float, capacity: float, params: AffDTSParams) -> None:
    """Update the posterior; the initial C is used during the burn-in plays of the arm."""
    memory = state.memory
    memory[AFF_PLAYS, arm] += 1.0
    if memory[AFF_PLAYS, arm] <= params.burn_in:
        capacity = params.capacity
    memory[AFF_A, arm], memory[AFF_B, arm] = bounded(memory[AFF_A, arm], memory[AFF_B, arm], value, capacity)


@dataclass(frozen=True, kw_only=True)
class DTS(Policy):
    r"""Dynamic Thompson sampling: each arm remembers about a given number of its latest rewards, its memory. Use it for
    steady drift if you know a suitable memory.

    `AffDTS1` and `AffDTS2` set the memory, C, from the data.

    Parameters
    ----------
    memory
        The paper's C, positive: the number of rewards that a posterior holds before it forgets.
    prior
        The Beta prior of each arm, a pair of numbers in [1e-12, 1e12].
    burn_in
        The number of plays of each arm before the policy decides; by default 0, so that the prior is used from the
        first step.

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

    Pending plays of an arm without any reward are added to its b.

    Cost per step: O(K), O(log K) with more than 1,000 arms; see "Thompson sampling with many arms".

    References
    ----------
    Gupta, Granmo & Agrawala (2011), Thompson sampling for dynamic multi-armed bandits. ICMLA.
    """

    name = "dts"
    slots = ("a", "b")
    functions = PolicyFunctions(start=start, learn=learn, posterior=posterior, idle_posterior=CONSTANT, params=Params)

    burn_in: int = 0
    memory: float = 10.0
    prior: tuple[float, float] = (2.0, 2.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "memory", number, 0.0, math.inf, open_low=True)
        set_fields(self, prior=checked_prior(self.prior))

    def params(self, arms: int) -> Params:
        return Params(Prior(*self.prior), self.memory)

    def forgetting(self, column: np.ndarray) -> float:
        return self.memory / (self.memory + 1.0) if is_full(column[A] + column[B], self.memory) else 1.0


@dataclass(frozen=True, kw_only=True)
class OptimisticDTS(DTS):
    r"""Optimistic dynamic Thompson sampling, which explores slightly less: no draw is below the estimated mean of its
    arm. Use it for steady drift if you know a suitable memory.

    A draw below the posterior mean is replaced by the posterior mean. No paper has this combination: the posterior is
    that of `DTS`, the optimistic draw that of `OTS`.

    Parameters
    ----------
    memory
        The paper's C, positive: the number of rewards that a posterior holds before it forgets.
    prior
        The Beta prior of each arm, a pair of numbers in [1e-12, 1e12].
    burn_in
        The number of plays of each arm before the policy decides; by default 0, so that the prior is used from the
        first step.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("odts", memory=5).label
    'odts(memory=5)'

    Notes
    -----
    With the a and b of DTS, the score is

    .. math:: \max\left( \theta, \; \frac{a}{a + b} \right), \quad \theta \sim \mathrm{Beta}(a, b)

    Pending plays of an arm without any reward are added to its b.

    Cost per step: O(K), O(log K) with more than 1,000 arms; see "Thompson sampling with many arms".

    References
    ----------
    Gupta, Granmo & Agrawala (2011), Thompson sampling for dynamic multi-armed bandits. ICMLA. With the draw of May,
    Korda, Lee & Leslie (2012), Optimistic Bayesian sampling in contextual-bandit problems. JMLR 13.
    """

    name = "odts"
    functions = DTS.functions._replace(optimistic=True)


@dataclass(frozen=True, kw_only=True)
class AffDTS(AdaptivePolicy):
    """What the two adaptive variants of DTS share."""

    slots = AFF_SLOTS

    memory: float = 10.0
    prior: tuple[float, float] = (2.0, 2.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "memory", number, 0.0, math.inf, open_low=True)
        set_fields(self, prior=checked_prior(self.prior))

    def params(self, arms: int) -> AffDTSParams:
        return AffDTSParams(self._estimator(), Prior(*self.prior), self.memory, float(self.burn_in))


@dataclass(frozen=True, kw_only=True)
class AffDTS1(AffDTS):
    r"""Dynamic Thompson sampling that sets the memory of each arm itself, from the estimated variance of its rewards.
    It needs no tuning; AFF-DTS2 has less regret in most environments.

    The memory is C = 4 / s^2 - 1; that of `AffDTS2` follows the weight of the estimator.

    Parameters
    ----------
    step_size, floor, loss
        Parameters of the adaptive estimator with the sums m, w and k, see
        `dynabandit.estimators.AdaptiveForgetting`.
    memory
        The initial C, used during the burn-in plays of an arm.
    prior
        The Beta prior of each arm, a pair of numbers in [1e-12, 1e12].
    burn_in
        The number of plays of each arm before the policy decides, so that a variance can be estimated; 10 in the paper.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-dts1", memory=100).burn_in
    10

    Notes
    -----
    The memory of DTS after the burn-in, with s^2 the adaptive variance:

    .. math:: C_t = \frac{4}{s_t^2} - 1

    Pending plays of an arm without any reward are added to its b.

    Cost per step: O(K), O(log K) with more than 1,000 arms; see "Thompson sampling with many arms".

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 3.3.2.
    """

    name = "aff-dts1"
    functions = PolicyFunctions(
        start=aff_start, learn=variance_learn, posterior=aff_posterior, idle_posterior=CONSTANT, params=AffDTSParams
    )

    burn_in: int = 10


@dataclass(frozen=True, kw_only=True)
class AffDTS2(AffDTS):
    r"""Dynamic Thompson sampling that sets the memory of each arm itself: short when the arm seems to change, long
    otherwise. It needs no tuning and is the best of the paper's policies on the leaderboard.

    The memory follows the weight of the adaptive estimator, C = w - 1. Of the paper's policies this one has the least
    regret on the leaderboard, both on average and in its worst environment; the recommended policy is `MixTS`.

    Parameters
    ----------
    step_size, floor, loss
        Parameters of the adaptive estimator with the sums m, w and k, see
        `dynabandit.estimators.AdaptiveForgetting`.
    memory
        The initial C, used during the burn-in plays of an arm.
    prior
        The Beta prior of each arm, a pair of numbers in [1e-12, 1e12].
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-dts2").burn_in
    1

    Notes
    -----
    The memory of DTS after the burn-in:

    .. math:: C_t = w_t - 1

    Pending plays of an arm without any reward are added to its b.

    Cost per step: O(K), O(log K) with more than 1,000 arms; see "Thompson sampling with many arms".

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 3.3.2.
    """

    name = "aff-dts2"
    functions = PolicyFunctions(
        start=aff_start, learn=weight_learn, posterior=aff_posterior, idle_posterior=CONSTANT, params=AffDTSParams
    )
