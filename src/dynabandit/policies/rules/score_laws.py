"""Random scores whose law is declared, so that the probability of each choice can be computed.

A policy that draws in its `score` defines a function for the numbers of the law, such as the mean and the deviation of
a normal law, and gets its `score` from one of the functions of this module, which return keyword arguments of
`PolicyFunctions`.
"""

import math
from collections.abc import Callable
from typing import Any

from dynabandit.core.compilation import kernel
from dynabandit.core.draws import SMALLEST_SHAPE, gamma
from dynabandit.core.streams import EXPLORE, SCORE, SECOND, normal_pair, uniform, words
from dynabandit.policies.base import Exploration, PolicyState, ScoreLaw, Step

# Families of laws; the numbers of a law are explained in `core.probability_of_largest` and below
BETA, GAMMA, STUDENT, WEIGHTS, COMMON_NORMAL = "Beta", "gamma", "Student", "weights", "common normal"


def normal_scores(law: Callable[..., tuple[float, float]], *, optimistic: bool = False) -> dict[str, Any]:
    """Return `score` and `law` of normal draws; law(state, arm, step, params) returns the mean and the deviation.

    With `optimistic`, a draw below the mean is replaced by the mean.
    """

    @kernel
    def score(state: PolicyState, arm: int, step: Step, params: Any) -> float:
        mean, deviation = law(state, arm, step, params)
        normal, _ = normal_pair(words(step.random, SCORE, step.number, arm, 0))
        return mean + (max(normal, 0.0) if optimistic else normal) * deviation

    @kernel
    def as_student(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float, float]:
        mean, deviation = law(state, arm, step, params)
        return mean, deviation, math.inf

    return {"score": score, "law": ScoreLaw(STUDENT, as_student), "optimistic": optimistic}


def student_scores(law: Callable[..., tuple[float, float, float]]) -> dict[str, Any]:
    """Return `score` and `law` of Student draws: center, scale and degrees of freedom, infinite for a normal law."""

    @kernel
    def score(state: PolicyState, arm: int, step: Step, params: Any) -> float:
        center, scale, freedom = law(state, arm, step, params)
        normal, _ = normal_pair(words(step.random, SECOND, step.number, arm, 0))
        if freedom == math.inf:
            return center + normal * scale
        # A Student number is a normal one divided by sqrt(chi^2 / nu), and chi^2 with nu degrees is 2 gamma(nu / 2)
        chi_squared = 2.0 * gamma(0.5 * freedom, step.random, SCORE, step.number, arm)
        return center + normal * scale * math.sqrt(freedom / chi_squared)

    return {"score": score, "law": ScoreLaw(STUDENT, law)}


def gamma_scores(law: Callable[..., tuple[float, float, float]], *, optimistic: bool = False) -> dict[str, Any]:
    """Return `score` and `law` of gamma draws; law(state, arm, step, params) returns the shape, the rate and the mean.

    With `optimistic`, a draw below the mean is replaced by the mean.
    """

    @kernel
    def score(state: PolicyState, arm: int, step: Step, params: Any) -> float:
        shape, rate, mean = law(state, arm, step, params)
        draw = gamma(shape, step.random, SCORE, step.number, arm) / rate
        return max(draw, mean) if optimistic else draw

    @kernel
    def positive(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float, float]:
        shape, rate, mean = law(state, arm, step, params)
        return max(shape, SMALLEST_SHAPE), rate, mean

    return {"score": score, "law": ScoreLaw(GAMMA, positive), "optimistic": optimistic}


def weighted_scores(weight: Callable[..., float]) -> dict[str, Any]:
    """Return `score` and `law` of an arm that is chosen with a probability proportional to weight(...), positive.

    The score is log(weight) plus a Gumbel number: the largest one belongs to an arm with the right probability.
    """

    @kernel
    def score(state: PolicyState, arm: int, step: Step, params: Any) -> float:
        gumbel = -math.log(-math.log(uniform(step.random, SCORE, step.number, arm)))
        return math.log(weight(state, arm, step, params)) + gumbel

    @kernel
    def as_tuple(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float]:
        return weight(state, arm, step, params), 0.0

    return {"score": score, "law": ScoreLaw(WEIGHTS, as_tuple)}


def common_normal_scores(law: Callable[..., tuple[float, float]]) -> dict[str, Any]:
    """Return `score` and `law` of mean + max(z, 0) deviation, where the normal number z is the same for all arms."""

    @kernel
    def score(state: PolicyState, arm: int, step: Step, params: Any) -> float:
        mean, deviation = law(state, arm, step, params)
        normal, _ = normal_pair(words(step.random, SCORE, step.number, 0, 0))
        return mean + max(normal, 0.0) * deviation

    return {"score": score, "law": ScoreLaw(COMMON_NORMAL, law)}


def random_exploration(chance: Exploration) -> dict[str, Any]:
    """Return `explore` and `exploration`: a random arm with the probability chance(state, leader, step, params)."""

    @kernel
    def explore(state: PolicyState, leader: int, step: Step, params: Any) -> bool:
        return uniform(step.random, EXPLORE, step.number, 0) < chance(state, leader, step, params)

    return {"explore": explore, "exploration": chance}
