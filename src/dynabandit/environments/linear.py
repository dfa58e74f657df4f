"""Linear rewards whose coefficients change, with a new feature vector for every arm at every step."""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.context import Context
from dynabandit.core.streams import FEATURES, LARGEST_STEP, Stream, normal_pair, uniform_pair, words
from dynabandit.environments.base import Environment, EnvironmentFunctions, EnvironmentStep
from dynabandit.environments.reward_laws import Normal, RewardLaw
from dynabandit.validation import check_field, integer

LARGEST_DIMENSION = 256
TWO_30 = 2.0**30


class Params(NamedTuple):
    segment: np.ndarray


class TurningParams(NamedTuple):
    turning: np.ndarray


@kernel
def normal_vector(target: np.ndarray, role: int, step: int, arm: int, random: Stream) -> None:
    """Write independent standard normal numbers, two per key."""
    for pair in range((target.size + 1) // 2):
        first, second = normal_pair(words(random, role, step, arm, pair))
        target[2 * pair] = first
        if 2 * pair + 1 < target.size:
            target[2 * pair + 1] = second


@kernel
def vector_in_ball(target: np.ndarray, step: int, arm: int, random: Stream) -> None:
    """Write a uniform point of the cube [-1, 1]^d; one outside of the unit ball is moved to its surface.

    Its numbers are multiples of 2^-30. Vectors on the surface then differ in length by more than rounding errors, so
    that a CPU and a GPU agree about which of them is longest.
    """
    square = 0.0
    for pair in range((target.size + 1) // 2):
        first, second = uniform_pair(words(random, FEATURES, step, arm, pair))
        target[2 * pair] = 2.0 * first - 1.0
        square += target[2 * pair] * target[2 * pair]
        if 2 * pair + 1 < target.size:
            target[2 * pair + 1] = 2.0 * second - 1.0
            square += target[2 * pair + 1] * target[2 * pair + 1]
    scale = 1.0 / math.sqrt(max(square, 1.0))
    for place in range(target.size):
        target[place] = math.floor(target[place] * scale * TWO_30 + 0.5) / TWO_30


@kernel
def start(state: np.ndarray, arm: int, step: EnvironmentStep, params: Any) -> None:
    state[0, arm] = 0.0


@kernel
def write_features(state: np.ndarray, row: int, step: EnvironmentStep, params: Any) -> None:
    vector_in_ball(step.features[row], step.number, row, step.random)


@kernel
def advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: Params) -> float:
    segment = min((step.number - 1) // int(params.segment[arm]), step.table.shape[0] - 1)
    product = 0.0
    for i in range(step.table.shape[1]):
        product += step.table[segment, i] * step.features[arm, i]
    return min(max(0.5 * (1.0 + product), 0.0), 1.0)


@kernel
def turning_advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: TurningParams) -> float:
    angle = 0.5 * math.pi * min((step.number - 1) / params.turning[arm], 1.0)
    product = math.cos(angle) * step.features[arm, 0] + math.sin(angle) * step.features[arm, 1]
    return min(max(0.5 * (1.0 + product), 0.0), 1.0)


@dataclass(frozen=True, kw_only=True)
class LinAbrupt(Environment):
    r"""Rewards that are a linear function of the features, whose coefficients jump: the abrupt environment of D-LinUCB,
    for any dimension.

    Parameters
    ----------
    arms
        The number of arms.
    dimension
        The number of features of an arm, at most 256.
    segment
        The number of steps between two jumps.
    rewards
        The reward law; by default normal with mean :math:`\theta_t' x` and standard deviation 1.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environment("lin-abrupt", arms=3, dimension=2).path(horizon=6000, seed=1).shape
    (6000, 3)

    Notes
    -----
    At every step each arm has a new feature vector: a uniform point of the cube :math:`[-1, 1]^d`, or the nearest point
    of the unit ball. The coefficients are the unit vectors :math:`e_1, -e_1, e_2, -e_2, \dots`, each for one segment;
    the last one stays. With 2 features, 50 arms, segments of 1,000 steps and a horizon of 6,000 this is the published
    environment; the law of the features is that of the authors' code, which jumps one step later.

    References
    ----------
    Russac, Vernade & Cappé (2019), Weighted linear bandits for non-stationary environments. NeurIPS.
    """

    name = "lin-abrupt"
    slots = ("unused",)
    functions = EnvironmentFunctions(start, advance, Params, write_features=write_features)

    arms: int = 50
    dimension: int = 2
    segment: int = 1000
    rewards: RewardLaw = field(default=Normal(low=-1.0, high=1.0, deviation=1.0), repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "dimension", integer, 1, LARGEST_DIMENSION)
        check_field(self, "segment", integer, 1, LARGEST_STEP)

    @property
    def context(self) -> Context:
        return Context(self.dimension, per_arm=True)

    def params(self) -> Params:
        return Params(*self.per_arm(self.segment))

    def table(self) -> np.ndarray:
        """Return the coefficients of each segment."""
        return np.stack([sign * row for row in np.eye(self.dimension) for sign in (1.0, -1.0)])


@dataclass(frozen=True, kw_only=True)
class LinSlow(Environment):
    r"""Rewards that are a linear function of the features, whose coefficients turn slowly: the slowly varying
    environment of D-LinUCB.

    Parameters
    ----------
    arms
        The number of arms.
    dimension
        The number of features of an arm, from 2 to 256.
    turning
        The number of steps in which the coefficients turn by a quarter of a circle; then they stay.
    rewards
        The reward law; by default normal with mean :math:`\theta_t' x` and standard deviation 1.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environment("lin-slow", arms=3).path(horizon=6000, seed=1).shape
    (6000, 3)

    Notes
    -----
    The features are those of ``"lin-abrupt"``. The coefficients turn from :math:`e_1` to :math:`e_2`. With 2 features,
    50 arms, 3,000 steps of turning and a horizon of 6,000 this is the published environment; the law of the features is
    that of the authors' code.

    References
    ----------
    Russac, Vernade & Cappé (2019), Weighted linear bandits for non-stationary environments. NeurIPS.
    """

    name = "lin-slow"
    slots = ("unused",)
    functions = EnvironmentFunctions(start, turning_advance, TurningParams, write_features=write_features)

    arms: int = 50
    dimension: int = 2
    turning: int = 3000
    rewards: RewardLaw = field(default=Normal(low=-1.0, high=1.0, deviation=1.0), repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "dimension", integer, 2, LARGEST_DIMENSION)
        check_field(self, "turning", integer, 1, LARGEST_STEP)

    @property
    def context(self) -> Context:
        return Context(self.dimension, per_arm=True)

    def params(self) -> TurningParams:
        return TurningParams(*self.per_arm(self.turning))
