"""Rules that compare what a regression predicts of the reward of each arm from its features."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import Step
from dynabandit.policies.part import Setting
from dynabandit.policies.rules.base import Rule, RuleKernels
from dynabandit.validation import LARGEST_FACTOR, NORMAL, check_field, number

LEADER, OTHERS = 0, 1  # shared by all arms in SquareCB: the arm with the best prediction, the probability of all others
SMALLEST = 1e-37  # of a probability; also a float32


class Width(NamedTuple):
    width: float


class Bounds(NamedTuple):
    noise: float
    bound: float  # of the norm of the coefficients
    confidence: float


class Rate(NamedTuple):
    scale: float
    exponent: float


@kernel
def bound(mean: float, variance: float, clock: float, step: Step, prior: float, params: Width) -> float:
    """Return an upper confidence bound of fixed width."""
    return mean + params.width * math.sqrt(variance)


@kernel
def radius(weight: float, dimension: int, prior: float, params: Bounds) -> float:
    """Return the radius of the confidence bound for features of norm at most 1; `weight` is that of their squares."""
    growth = dimension * math.log(1.0 + weight / (prior * dimension))
    return math.sqrt(prior) * params.bound + params.noise * math.sqrt(growth - 2.0 * math.log(params.confidence))


@kernel
def ellipsoid_bound(mean: float, variance: float, clock: float, step: Step, prior: float, params: Bounds) -> float:
    """Return the upper confidence bound that follows from bounds of the noise and the coefficients."""
    return mean + radius(clock, step.features.shape[1], prior, params) * math.sqrt(variance)


@kernel
def probability(gap: float, step: Step, params: Rate) -> float:
    """Return the probability of an arm whose prediction is below the best one by `gap`."""
    return 1.0 / (step.arms + params.scale * step.number**params.exponent * gap)


@kernel
def compare(predictions: np.ndarray, shared: np.ndarray, step: Step, params: Rate) -> None:
    """Store the arm with the best prediction, and the probability of all others."""
    leader, others = 0, 0.0
    for arm in range(step.arms):
        if predictions[arm] > predictions[leader]:
            leader = arm
    for arm in range(step.arms):
        if arm != leader:
            others += probability(predictions[leader] - predictions[arm], step, params)
    shared[LEADER], shared[OTHERS] = leader, others


@kernel
def weight(predictions: np.ndarray, shared: np.ndarray, arm: int, step: Step, params: Rate) -> float:
    """Return the probability of an arm."""
    leader = int(shared[LEADER])
    if arm == leader:
        return max(1.0 - shared[OTHERS], SMALLEST)
    return probability(predictions[leader] - predictions[arm], step, params)


@dataclass(frozen=True, kw_only=True)
class WidthBound(Rule):
    r"""Play the arm with the largest prediction, plus a bonus of fixed width for its uncertainty.

    .. math:: x' \theta + w \sqrt{ x' \Lambda^{-1} x }

    Parameters
    ----------
    width
        The width of the confidence bound, at least 0, in units of the reward.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.WidthBound(width=0.5).parameters
    {'width': 0.5}

    References
    ----------
    Li, Chu, Langford & Schapire (2010), A contextual-bandit approach to personalized news article recommendation. WWW.
    """

    name = "width-bound"
    rewards = NORMAL
    kernels = RuleKernels(predicted=bound, params=Width)

    width: float = 1.0

    def __post_init__(self) -> None:
        check_field(self, "width", number, 0.0, LARGEST_FACTOR)

    def params(self, setting: Setting) -> Width:
        return Width(self.width)


@dataclass(frozen=True, kw_only=True)
class EllipsoidBound(Rule):
    r"""Play the arm with the largest prediction, plus a bonus that follows from bounds of the noise and the
    coefficients, for features of norm at most 1.

    Parameters
    ----------
    noise
        The standard deviation of a reward around its mean (or its sub-Gaussian parameter), at least 0.
    bound
        A bound of the norm of the coefficients, at least 0.
    confidence
        The probability that the bound fails, in (0, 1].

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.EllipsoidBound(noise=0.1).parameters
    {'noise': 0.1, 'bound': 1.0, 'confidence': 0.05}

    References
    ----------
    Wang, Zhao & Zhou (2023), Revisiting weighted strategy for non-stationary parametric bandits. UAI.
    """

    name = "ellipsoid-bound"
    rewards = NORMAL
    kernels = RuleKernels(predicted=ellipsoid_bound, reads_clock=True, params=Bounds)

    noise: float = 1.0
    bound: float = 1.0
    confidence: float = 0.05

    def __post_init__(self) -> None:
        check_field(self, "noise", number, 0.0, LARGEST_FACTOR)
        check_field(self, "bound", number, 0.0, LARGEST_FACTOR)
        check_field(self, "confidence", number, 0.0, 1.0, open_low=True)

    def params(self, setting: Setting) -> Bounds:
        return Bounds(self.noise, self.bound, self.confidence)


@dataclass(frozen=True, kw_only=True)
class RandomBound(Rule):
    """Play the arm with the largest confidence bound of random width, the same for all arms: models that arms share are
    then explored together.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.RandomBound().name
    'random-bound'

    References
    ----------
    Vaswani, Mehrabian, Durand & Kveton (2020), Old dog learns new tricks: randomized UCB for bandit problems. AISTATS.
    """

    name = "random-bound"
    rewards = NORMAL
    kernels = RuleKernels(family="common normal")


@dataclass(frozen=True, kw_only=True)
class LinearThompson(Rule):
    """Thompson sampling with features: draw plausible coefficients, and play the arm with the largest prediction.

    Separate models of arms are drawn independently; a model that all arms share is drawn once per step.

    Cost per step: O(d^3) more for a shared model.

    Parameters
    ----------
    width
        The standard deviation of a draw in units of that of the posterior, at least 0.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.LinearThompson(width=0.5).parameters
    {'width': 0.5}

    References
    ----------
    Agrawal & Goyal (2013), Thompson sampling for contextual bandits with linear payoffs. ICML.
    """

    name = "linear-ts"
    rewards = NORMAL
    kernels = RuleKernels(family="coefficients", params=Width)

    width: float = 1.0

    def __post_init__(self) -> None:
        check_field(self, "width", number, 0.0, LARGEST_FACTOR)

    def params(self, setting: Setting) -> Width:
        return Width(self.width)


@dataclass(frozen=True, kw_only=True)
class SquareCB(Rule):
    r"""Play arms at random, the more rarely the further their predicted reward is below the best one.

    Parameters
    ----------
    scale
        The factor of the learning rate, at least 0, for rewards of about 0 to 1; 0 plays at random.
    exponent
        How fast the learning rate grows with the step, in [0, 1].

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.SquareCB(scale=100).parameters
    {'scale': 100.0, 'exponent': 0.5}

    References
    ----------
    Foster & Rakhlin (2020), Beyond UCB: optimal and efficient contextual bandits with regression oracles. ICML.
    """

    name = "square-cb"
    rewards = NORMAL
    kernels = RuleKernels(compare=compare, weight=weight, shared=2, params=Rate)

    scale: float = 10.0
    exponent: float = 0.5

    def __post_init__(self) -> None:
        check_field(self, "scale", number, 0.0, LARGEST_FACTOR)
        check_field(self, "exponent", number, 0.0, 1.0)

    def params(self, setting: Setting) -> Rate:
        return Rate(self.scale, self.exponent)
