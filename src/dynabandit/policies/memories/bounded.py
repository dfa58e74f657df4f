"""A bounded memory: each arm remembers about a given number of its latest rewards (section 3.3.2 of the paper)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.policies.base import PolicyState, Reward, Step
from dynabandit.policies.beta_posterior import Prior
from dynabandit.policies.memories import adaptive
from dynabandit.policies.memories.adaptive import Adaptive, AdaptiveParams, AdaptiveState
from dynabandit.policies.memories.base import Estimate, Memory, MemoryKernels, equally_weighted
from dynabandit.policies.part import Setting
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.validation import check_field, number

# The paper's C is called capacity here; the user's parameter is `memory`
A, B = range(2)
ADAPTIVE_SLOTS = (*adaptive.SLOTS, "a", "b", "plays")
PLAYS = ADAPTIVE_SLOTS.index("plays")


class Params(NamedTuple):
    prior: Prior  # which a rule draws from, else 0
    capacity: float


class AdaptiveBoundedParams(NamedTuple):
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
def constant_capacity(state: PolicyState, arm: int, value: float, params: Params) -> float:
    """Return C, a parameter."""
    return params.capacity


@kernel
def capacity_from_variance(estimate: AdaptiveState) -> float:
    """Return C = 4 / s^2 - 1, which is unbounded if the variance is 0."""
    return 4.0 / estimate.variance - 1.0 if estimate.variance > 0.0 else math.inf


@kernel
def capacity_from_weight(estimate: AdaptiveState) -> float:
    """Return C = w - 1."""
    return estimate.w - 1.0


def make_adaptive_capacity(capacity_from: Callable[[AdaptiveState], float]) -> Callable[..., float]:
    """Return capacity(state, arm, value, params), which learns a reward with the adaptive estimator."""

    @inlined_kernel
    def capacity(state: PolicyState, arm: int, value: float, params: AdaptiveBoundedParams) -> float:
        memory = state.memory
        estimate = adaptive.observe(adaptive.load(memory, arm), value, params.estimator)
        adaptive.store(memory, arm, estimate)
        memory[PLAYS, arm] += 1.0
        return params.capacity if memory[PLAYS, arm] <= params.burn_in else capacity_from(estimate)

    return capacity


def make_kernels(slots: tuple[str, ...], capacity: Callable[..., float], params: type) -> MemoryKernels:
    """Return the kernels of a bounded memory with a capacity that is constant, or follows an adaptive estimator.

    The estimate is that of rules without a prior. How the capacity has shrunk the weights of earlier rewards is not
    known: all count as equal.
    """
    first, is_adaptive = slots.index("a"), "plays" in slots

    @kernel
    def start(state: PolicyState, arm: int, params: Any) -> None:
        if is_adaptive:
            adaptive.store(state.memory, arm, adaptive.START)
        state.memory[first, arm] = params.prior.a
        state.memory[first + 1, arm] = params.prior.b

    @kernel
    def estimate(state: PolicyState, arm: int) -> Estimate:
        a, b = state.memory[first, arm], state.memory[first + 1, arm]
        return equally_weighted(a / (a + b) if a + b > 0.0 else math.inf, a + b)

    @inlined_kernel
    def learn(state: PolicyState, arm: int, reward: Reward, params: Any) -> Estimate:
        a, b = state.memory[first, arm], state.memory[first + 1, arm]
        limit = capacity(state, arm, reward.value, params)
        state.memory[first, arm], state.memory[first + 1, arm] = bounded(a, b, reward.value, limit)
        return estimate(state, arm)

    @kernel
    def beta(state: PolicyState, arm: int, step: Step, kept: float, prior: Prior, params: Any) -> tuple[float, float]:
        a, b = state.memory[first, arm], state.memory[first + 1, arm]
        if is_adaptive:
            data = state.memory[PLAYS, arm]
        else:
            data = abs(a - prior.a) + abs(b - prior.b)  # every reward moves the posterior from its prior
        return a, b + assumed_zeros(state, arm, data)

    return MemoryKernels(
        slots=slots,
        start=start,
        learn=learn,
        estimate=estimate,
        laws=(("beta", beta),),
        shares=False,
        params=params,
    )


@dataclass(frozen=True, kw_only=True)
class Bounded(Memory):
    r"""Remember about a given number of the latest rewards of each arm. Use it for steady drift if you know a suitable
    number.

    A reward y of an arm changes its numbers a and b, which begin with the prior of a rule that draws and else with 0:

    .. math:: (a, b) \leftarrow (a + y, \; b + 1 - y) \quad \text{if } a + b < C

    .. math:: (a, b) \leftarrow \frac{C}{C + 1} \, (a + y, \; b + 1 - y) \quad \text{else}

    Parameters
    ----------
    memory
        The paper's C, positive: the number of rewards that a posterior holds before it forgets.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.Bounded(memory=5).parameters
    {'memory': 5.0}

    References
    ----------
    Gupta, Granmo & Agrawala (2011), Thompson sampling for dynamic multi-armed bandits. ICMLA.
    """

    name = "bounded"
    kernels = make_kernels(("a", "b"), constant_capacity, Params)

    memory: float = 10.0

    def __post_init__(self) -> None:
        check_field(self, "memory", number, 0.0, math.inf, open_low=True)

    def params(self, setting: Setting) -> Params:
        return Params(setting.prior, self.memory)

    def forgetting(self, column: np.ndarray, setting: Setting) -> float:
        return self.memory / (self.memory + 1.0) if is_full(column[A] + column[B], self.memory) else 1.0


@dataclass(frozen=True, kw_only=True)
class BoundedByVariance(Adaptive):
    r"""A bounded memory that sets its bound itself, from the estimated variance of the rewards of an arm.

    After the burn-in plays of the arm, the C of `Bounded` follows the variance of adaptive forgetting:

    .. math:: C_t = \frac{4}{s_t^2} - 1

    Parameters
    ----------
    memory
        The initial C, used during the burn-in plays of an arm.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.BoundedByVariance(memory=100).memory
    100.0

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 3.3.2.
    """

    name = "bounded-by-variance"
    first_plays = 10  # so that a variance can be estimated
    kernels: ClassVar[MemoryKernels] = make_kernels(
        ADAPTIVE_SLOTS, make_adaptive_capacity(capacity_from_variance), AdaptiveBoundedParams
    )

    memory: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "memory", number, 0.0, math.inf, open_low=True)

    def params(self, setting: Setting) -> AdaptiveBoundedParams:
        return AdaptiveBoundedParams(self._estimator(), setting.prior, self.memory, float(setting.burn_in))

    def variance(self, column: np.ndarray, mean: float) -> float:
        return mean * (1.0 - mean)


@dataclass(frozen=True, kw_only=True)
class BoundedByWeight(BoundedByVariance):
    r"""A bounded memory that sets its bound itself: short when an arm seems to change, long otherwise.

    After the burn-in plays of an arm, the C of `Bounded` follows the weight of adaptive forgetting:

    .. math:: C_t = w_t - 1

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.BoundedByWeight().memory
    10.0

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 3.3.2.
    """

    name = "bounded-by-weight"
    first_plays = 1
    kernels = make_kernels(ADAPTIVE_SLOTS, make_adaptive_capacity(capacity_from_weight), AdaptiveBoundedParams)
