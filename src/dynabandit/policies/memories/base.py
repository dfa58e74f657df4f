"""The contract of a memory: what it stores for each arm, how it learns a reward, and what it tells a rule."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, get_type_hints

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.core.context import Context
from dynabandit.core.records import NoParams, column_reader, column_writer
from dynabandit.core.special_functions import exp_negative
from dynabandit.policies.base import CONSTANT, MONOTONE, PolicyState, Reward, Step
from dynabandit.policies.belief import Belief
from dynabandit.policies.beta_posterior import Prior
from dynabandit.policies.part import Part, Setting
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.validation import BOUNDED, RewardDomain

NOBODY = -1  # in place of another arm that a reward changes


class Weights(NamedTuple):
    """The sum of the weights of an arm's rewards, and the sum of their squares; both 0 before the first reward.

    Examples
    --------
    >>> import dynabandit as db
    >>> w, k = db.memories.Weights(10.0, 5.0)
    >>> w * w / k  # the effective size
    20.0
    """

    w: float
    k: float


class Estimate(NamedTuple):
    """What a memory tells about an arm.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.Estimate(mean=0.5, size=2.0, w=2.0, k=2.0, fading=0.0).mean
    0.5
    """

    mean: float  # infinite before the first reward
    size: float  # the number of rewards that a bound counts, in units of `MemoryKernels.unit`; 0 before the first one
    w: float  # the sum of the weights of the rewards
    k: float  # the sum of their squares: the effective size is w^2 / k
    fading: float  # what `MemoryKernels.kept` needs to know, if the weight of an arm fades while it is idle


@kernel
def equally_weighted(mean: float, size: float) -> Estimate:
    """Return the estimate of an arm of whose rewards only the size is known, or that has none."""
    return Estimate(mean if size > 0.0 else math.inf, size, size, size, 0.0)


@kernel
def steps_so_far(state: PolicyState, number: int, params: Any) -> float:
    """Return how many steps were played, at least 1."""
    return float(max(number - 1, 1))


@kernel
def unscaled(state: PolicyState) -> float:
    """Return 1: weights are stored as they are."""
    return 1.0


@kernel
def nothing_in_common(state: PolicyState, number: int, params: Any) -> float:
    """Return 0: arms share nothing that changes with time."""
    return 0.0


@kernel
def only_its_column(state: PolicyState, arm: int) -> None:
    """Forget nothing besides the column of an arm."""


@kernel
def exponential(fading: float, idle: int, arms: int, params: Any) -> float:
    """Return the factor of equations (16) and (17), lambda^(idle / K), from log lambda."""
    return exp_negative(fading * (float(idle) / float(arms)))


class MemoryKernels(NamedTuple):
    """The kernels of a memory.

    The rows of the memory are the first rows of `state.memory`, and its shared numbers the first of `state.shared`.
    `params` is what `Memory.params` returns.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.SampleMean.kernels.slots
    ('total', 'squares', 'plays')
    """

    slots: tuple[str, ...]
    start: Callable[..., None]
    """start(state, arm, params): write the column of an arm without rewards, which is 0 before."""
    learn: Callable[..., Estimate]
    """learn(state, arm, reward, params): learn a reward, and return what `estimate` returns after it."""
    estimate: Callable[..., Estimate]
    """estimate(state, arm): what is known about an arm."""
    laws: tuple[tuple[str, Callable[..., Any]], ...]
    """For each family of draws that the memory has: law(state, arm, step, kept, prior, params), the numbers of the law
    of a score. They are those of `PolicyFunctions.posterior` for "beta", the mean, the variance of a reward and the
    number of rewards, pending plays included, for "moments", and else those that `rules.score_laws` names. `prior` is
    that of the rule, or Prior(0, 0) if it has none."""
    keeps_mean: bool = False
    """Whether the last slot is the mean, infinite before the first reward; a rule that stores the mean uses it."""
    clock: Callable[..., float] = steps_so_far
    """clock(state, number, params): what the logarithm of a bound counts, at least 1."""
    unit: Callable[..., float] = unscaled
    """unit(state): the number by which stored weights are multiplied; 1 unless all arms fade together."""
    fading: bool = False
    """Whether the weight of an arm fades while it is idle; `kept` then reads `Estimate.fading`."""
    kept: Callable[..., float] = exponential
    """kept(fading, idle, arms, params): the share of its weight that an arm keeps while it is idle."""
    drop: Callable[..., int] | None = None
    """drop(state, params): called before `learn`; forget the oldest reward, if there is no room for another one, and
    return its arm, else NOBODY."""
    fade: Callable[..., float] | None = None
    """fade(state, params): called before `learn`; the factor by which the columns of all arms were multiplied, or 1."""
    common: Callable[..., float] = nothing_in_common
    """common(state, number, params): what the laws read as `step.common`."""
    forget: Callable[..., None] = only_its_column
    """forget(state, arm): called before `start` if an arm starts anew; forget what other places keep of its rewards."""
    shares: bool = True
    """Whether the memory reads or writes `state.shared`."""
    counts_rewards: bool = False
    """Whether the first slots are the total, the squares and the number of all rewards of an arm since `start`."""
    params: type = NoParams
    while_idle: str | None = CONSTANT
    """How the numbers of an arm change without its plays and rewards: CONSTANT, MONOTONE, or None in another way."""


@dataclass(frozen=True, kw_only=True)
class Memory(Part):
    """What an arm remembers of its rewards; any rule can decide with any memory that knows what the rule needs.

    Examples
    --------
    >>> import dynabandit as db
    >>> isinstance(db.memories.Window(window=5), db.memories.Memory)
    True
    """

    kernels: ClassVar[MemoryKernels]
    rewards: ClassVar[RewardDomain] = BOUNDED
    needs_double: ClassVar[bool] = False  # whether single precision would overflow or underflow
    has_prior: ClassVar[bool] = False  # whether it has a prior of its own, in place of that of a rule that draws

    @classmethod
    def kernels_for(cls, family: str | None) -> MemoryKernels:
        """Return the kernels for a rule that draws from laws of a family, or None for one that does not draw."""
        return cls.kernels

    def shared_size(self, setting: Setting, family: str | None) -> int:
        """Return how many numbers the memory keeps for all arms together, with the kernels for this family.

        It must not depend on the number of arms, which is 1 in this setting: a `Bandit` gets and loses arms.
        """
        return 0

    def models_shape(self, arms: int, context: Context, family: str | None) -> tuple[int, int]:
        """Return the number of models and the length of each, of a memory that predicts from features."""
        raise NotImplementedError

    def initial_models(self, arms: int, context: Context, family: str | None) -> np.ndarray:
        """Return the models without rewards; those of a rule that draws from a family may need more space."""
        raise NotImplementedError

    def forgetting(self, column: np.ndarray, setting: Setting) -> float:
        """Return the factor by which the next reward of an arm discounts earlier ones."""
        return 1.0

    def belief(self, column: np.ndarray, shared: np.ndarray, setting: Setting) -> Belief:
        """Return what is known about an arm; without rewards the mean is NaN."""
        state = PolicyState(column[:, np.newaxis], shared, np.zeros(1, dtype=np.int64))
        found, forgetting = self.kernels.estimate(state, 0), self.forgetting(column, setting)
        if found.size <= 0.0:
            return Belief(math.nan, 0.0, forgetting, 0.0)
        mean, size = float(found.mean), float(found.size * self.kernels.unit(state))
        return Belief(mean, self.variance(column, mean), forgetting, size)

    def variance(self, column: np.ndarray, mean: float) -> float:
        """Return the estimated variance of a reward of an arm, given its mean."""
        return mean * (1.0 - mean)


def per_arm(
    start: tuple[float, ...],
    observe: Callable[..., Any],
    mean: Callable[[Any], float],
    size: Callable[[Any], float],
    *,
    params: type = NoParams,
    weights: Callable[[Any], Weights] | None = None,
    fading: Callable[[Any], float] | None = None,
) -> MemoryKernels:
    """Return the kernels of a memory that keeps an estimator for each arm, written as functions of its numbers.

    Parameters
    ----------
    start
        The numbers of an arm without rewards: a named tuple of floats.
    observe
        observe(numbers, reward, params): the numbers after a reward.
    mean
        mean(numbers): the estimated mean, after at least one reward.
    size
        size(numbers): the number of equally weighted rewards that are as precise; 0 before the first reward.
    params
        The named tuple that `Memory.params` returns.
    weights
        weights(numbers): the `Weights` of the rewards; by default both sums are the size.
    fading
        fading(numbers): the logarithm of the share of its weight that the arm keeps in K idle steps; by default idle
        arms do not fade.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.Adaptive.kernels.slots[:4]  # made by this function
    ('forgetting', 'm', 'w', 'k')
    """
    return _per_arm(type(start), start, observe, mean, size, params, weights, fading)


@functools.cache  # so that equal memories share their compiled code; tuples of different types may be equal
def _per_arm(
    kind: type,
    start: tuple[float, ...],
    observe: Callable[..., Any],
    mean: Callable[[Any], float],
    size: Callable[[Any], float],
    params: type,
    weights: Callable[[Any], Weights] | None,
    fading: Callable[[Any], float] | None,
) -> MemoryKernels:
    load, store = column_reader(kind), column_writer(kind)
    has_weights, fades = weights is not None, fading is not None

    @kernel
    def start_arm(state: PolicyState, arm: int, params: Any) -> None:
        store(state.memory, arm, start)

    @kernel
    def estimate_of(numbers: Any) -> Estimate:
        own = size(numbers)
        w, k = weights(numbers) if has_weights else Weights(own, own)  # type: ignore[misc]
        faded = fading(numbers) if fades else 0.0  # type: ignore[misc]
        return Estimate(mean(numbers) if w > 0.0 else math.inf, own, w, k, faded)

    @inlined_kernel
    def learn(state: PolicyState, arm: int, reward: Reward, params: Any) -> Estimate:
        numbers = observe(load(state.memory, arm), reward.value, params)
        store(state.memory, arm, numbers)
        return estimate_of(numbers)

    @kernel
    def estimate(state: PolicyState, arm: int) -> Estimate:
        return estimate_of(load(state.memory, arm))

    @kernel
    def beta(state: PolicyState, arm: int, step: Step, kept: float, prior: Prior, params: Any) -> tuple[float, float]:
        numbers = load(state.memory, arm)
        own = size(numbers)
        average = mean(numbers) if own > 0.0 else 0.0
        left = kept * own
        return prior.a + left * average, prior.b + left * (1.0 - average) + assumed_zeros(state, arm, own)

    return MemoryKernels(
        slots=tuple(get_type_hints(kind)),
        start=start_arm,
        learn=learn,
        estimate=estimate,
        laws=(("beta", beta),),
        fading=fades,
        shares=False,
        params=params,
        while_idle=MONOTONE if fades else CONSTANT,
    )
