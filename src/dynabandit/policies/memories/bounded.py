"""A bounded memory: each arm remembers about a given number of its latest rewards (section 3.3.2 of the paper)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.policies.base import PolicyState, Reward, Step
from dynabandit.policies.belief import Belief
from dynabandit.policies.beta_posterior import Prior
from dynabandit.policies.memories import adaptive
from dynabandit.policies.memories.adaptive import Adaptive, AdaptiveParams, AdaptiveState
from dynabandit.policies.memories.base import NOBODY, Memory, MemoryKernels, Weights
from dynabandit.policies.part import Setting
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.validation import check_field, number

# The paper's C is called capacity here; the user's parameter is `memory`
A, B = range(2)
ADAPTIVE_SLOTS = (*adaptive.SLOTS, "a", "b", "plays")
ADAPTIVE_A, ADAPTIVE_B, PLAYS = (ADAPTIVE_SLOTS.index(name) for name in ("a", "b", "plays"))


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
def start(state: PolicyState, arm: int, params: Params) -> None:
    """Start with the prior."""
    state.memory[A, arm] = params.prior.a
    state.memory[B, arm] = params.prior.b


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> int:
    """Update a and b with a reward."""
    memory = state.memory
    memory[A, arm], memory[B, arm] = bounded(memory[A, arm], memory[B, arm], reward.value, params.capacity)
    return NOBODY


@kernel
def beta(state: PolicyState, arm: int, step: Step, kept: float, prior: Prior, params: Params) -> tuple[float, float]:
    """Return a and b."""
    a, b = state.memory[A, arm], state.memory[B, arm]
    data = abs(a - prior.a) + abs(b - prior.b)  # every reward moves the posterior from its prior
    return a, b + assumed_zeros(state, arm, data)


def _estimate(first: int) -> dict[str, Any]:
    """Return the kernels `mean`, `size` and `weights` from a and b, which begin in this row, for rules without prior.

    How the capacity has shrunk the weights of earlier rewards is not known: all count as equal.
    """

    @kernel
    def mean(state: PolicyState, arm: int) -> float:
        return state.memory[first, arm] / (state.memory[first, arm] + state.memory[first + 1, arm])

    @kernel
    def size(state: PolicyState, arm: int) -> float:
        return state.memory[first, arm] + state.memory[first + 1, arm]

    @kernel
    def weights(state: PolicyState, arm: int) -> Weights:
        return Weights(size(state, arm), size(state, arm))

    return {"mean": mean, "size": size, "weights": weights}


@kernel
def adaptive_start(state: PolicyState, arm: int, params: AdaptiveBoundedParams) -> None:
    """Start with the first state of the estimator, and with the prior."""
    adaptive.store(state.memory, arm, adaptive.START)
    state.memory[ADAPTIVE_A, arm] = params.prior.a
    state.memory[ADAPTIVE_B, arm] = params.prior.b


@kernel
def adaptive_beta(
    state: PolicyState, arm: int, step: Step, kept: float, prior: Prior, params: AdaptiveBoundedParams
) -> tuple[float, float]:
    """Return a and b."""
    memory = state.memory
    return memory[ADAPTIVE_A, arm], memory[ADAPTIVE_B, arm] + assumed_zeros(state, arm, memory[PLAYS, arm])


@kernel
def capacity_from_variance(estimate: AdaptiveState) -> float:
    """Return C = 4 / s^2 - 1, which is unbounded if the variance is 0."""
    return 4.0 / estimate.variance - 1.0 if estimate.variance > 0.0 else math.inf


@kernel
def capacity_from_weight(estimate: AdaptiveState) -> float:
    """Return C = w - 1."""
    return estimate.w - 1.0


def _adaptive_kernels(capacity_from: Callable[[AdaptiveState], float]) -> MemoryKernels:
    """Return the kernels of a memory whose capacity follows from the adaptive estimator."""

    @inlined_kernel
    def learn_both(state: PolicyState, arm: int, reward: Reward, params: AdaptiveBoundedParams) -> int:
        memory, value = state.memory, reward.value
        estimate = adaptive.observe(adaptive.load(memory, arm), value, params.estimator)
        adaptive.store(memory, arm, estimate)
        memory[PLAYS, arm] += 1.0
        capacity = params.capacity if memory[PLAYS, arm] <= params.burn_in else capacity_from(estimate)
        memory[ADAPTIVE_A, arm], memory[ADAPTIVE_B, arm] = bounded(
            memory[ADAPTIVE_A, arm], memory[ADAPTIVE_B, arm], value, capacity
        )
        return NOBODY

    return MemoryKernels(
        slots=ADAPTIVE_SLOTS,
        start=adaptive_start,
        learn=learn_both,
        laws=(("beta", adaptive_beta),),
        params=AdaptiveBoundedParams,
        **_estimate(ADAPTIVE_A),
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
    kernels = MemoryKernels(
        slots=("a", "b"), start=start, learn=learn, laws=(("beta", beta),), shares=False, params=Params, **_estimate(A)
    )

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
    kernels: ClassVar[MemoryKernels] = _adaptive_kernels(capacity_from_variance)

    memory: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "memory", number, 0.0, math.inf, open_low=True)

    def params(self, setting: Setting) -> AdaptiveBoundedParams:
        return AdaptiveBoundedParams(self._estimator(), setting.prior, self.memory, float(setting.burn_in))

    def belief(self, column: np.ndarray, shared: np.ndarray, setting: Setting) -> Belief:
        return Memory.belief(self, column, shared, setting)


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
    kernels = _adaptive_kernels(capacity_from_weight)
