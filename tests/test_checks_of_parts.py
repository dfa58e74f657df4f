"""The checks of environments and estimators fail for those that are broken on purpose."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from dynabandit.checks import DocumentationAdvice, check_environment, check_estimator
from dynabandit.core.compilation import kernel
from dynabandit.core.records import NoParams
from dynabandit.core.streams import PATH, uniform
from dynabandit.environments import Environment, EnvironmentFunctions, EnvironmentStep
from dynabandit.estimators import Belief, Estimator, SampleMean

made = itertools.count()

# --- Environments -------------------------------------------------------------------------------------------


@kernel
def start(state: np.ndarray, arm: int, step: EnvironmentStep, params: Any) -> None:
    state[0, arm] = 0.5


@kernel
def any_mean(state: np.ndarray, arm: int, step: EnvironmentStep, params: Any) -> float:
    state[0, arm] = 0.9 * state[0, arm] + 0.1 * uniform(step.random, PATH, step.number, arm)
    return state[0, arm]


@dataclass(frozen=True, kw_only=True)
class ValidEnvironment(Environment):
    """Parameters, Examples, References: what an environment must have."""

    name: ClassVar[str] = "valid"
    slots: ClassVar[tuple[str, ...]] = ("mean",)
    functions: ClassVar[EnvironmentFunctions] = EnvironmentFunctions(start, any_mean)


def test_a_valid_environment_of_the_users_own_passes() -> None:
    check_environment(ValidEnvironment(arms=3))


@kernel
def too_large(state: np.ndarray, arm: int, step: EnvironmentStep, params: Any) -> float:
    return 1.01 * uniform(step.random, PATH, step.number, arm)


class MeansAboveOne(ValidEnvironment):
    """Parameters, Examples, References."""

    functions = EnvironmentFunctions(start, too_large)


@kernel
def drift_in_the_parameters(state: np.ndarray, arm: int, step: EnvironmentStep, params: Any) -> float:
    params.unused[arm] = (params.unused[arm] + 0.1 * uniform(step.random, PATH, step.number, arm)) % 1.0
    return float(params.unused[arm])


class LeaksBetweenReplications(ValidEnvironment):
    """Parameters, Examples, References."""

    functions = EnvironmentFunctions(start, drift_in_the_parameters)


@kernel
def by_the_block(state: np.ndarray, arm: int, step: EnvironmentStep, params: Any) -> float:
    step.table[0, 0] += 1.0  # one call more for each arm and step of all replications
    return float(step.table[0, 0] * 0.37 % 1.0)


class DependsOnTheBlock(ValidEnvironment):
    """Parameters, Examples, References."""

    functions = EnvironmentFunctions(start, by_the_block)

    def table(self) -> np.ndarray:
        return np.zeros((1, 1))


@kernel
def overflowing_mean(state: np.ndarray, arm: int, step: EnvironmentStep, params: Any) -> float:
    return ((step.number + arm) * 6364136223846793005 % 1009) / 1009.0


class MeansThatOverflow(ValidEnvironment):
    """Parameters, Examples, References."""

    functions = EnvironmentFunctions(start, overflowing_mean)


@kernel
def mean_of_the_parameters(state: np.ndarray, arm: int, step: EnvironmentStep, params: Any) -> float:
    return float(params.unused[arm] * 0.01 % 1.0)


class NewAtEveryCall(ValidEnvironment):
    """Parameters, Examples, References."""

    functions = EnvironmentFunctions(start, mean_of_the_parameters)

    def params(self) -> NoParams:
        return NoParams(*self.per_arm(float(next(made))))


class HasNoExamples(ValidEnvironment):
    """Parameters, References."""


class DeclaresConstantMeans(ValidEnvironment):
    """Parameters, Examples, References."""

    def constant_until(self, step: int) -> int:
        return step + step // 50


class EndsBeforeItsStep(ValidEnvironment):
    """Parameters, Examples, References."""

    def constant_until(self, step: int) -> int:
        return step - step // 50


@kernel
def seesaw(value: float, plays: int, arm: int, params: Any) -> float:
    return value * (0.5 if plays % 9 == 8 else 0.9)


class RisesAgain(ValidEnvironment):
    """Parameters, Examples, References."""

    functions = EnvironmentFunctions(start, any_mean, mean=seesaw)


class FallsAgain(ValidEnvironment):
    """Parameters, Examples, References."""

    functions = EnvironmentFunctions(start, any_mean, mean=seesaw, rising=True)


@kernel
def rising_beyond_one(value: float, plays: int, arm: int, params: Any) -> float:
    return value + 0.1 * plays


class RisesBeyondOne(ValidEnvironment):
    """Parameters, Examples, References."""

    functions = EnvironmentFunctions(start, any_mean, mean=rising_beyond_one, rising=True)


BROKEN_ENVIRONMENTS: dict[type[ValidEnvironment], str] = {
    MeansAboveOne: r"every mean must be in \[0, 1\]",
    LeaksBetweenReplications: "the simulator must use the path that environment.path returns",
    DependsOnTheBlock: "the simulator must use the path that environment.path returns",
    MeansThatOverflow: "the path must be the same without compilation",
    NewAtEveryCall: "the parameters must make an equal environment",
    DeclaresConstantMeans: r"constant_until\(50\) is 51, but the means change in between",
    EndsBeforeItsStep: r"constant_until\(50\) must not be before that step, got 49",
    RisesAgain: "with rising=False, no mean may rise",
    FallsAgain: "with rising=True, no mean may fall",
    RisesBeyondOne: r"the means after all numbers of plays must be in \[0, 1\]",
}


@pytest.mark.parametrize(("kind", "message"), BROKEN_ENVIRONMENTS.items())
def test_a_broken_environment_is_caught(kind: type[ValidEnvironment], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_environment(kind(arms=3))


def test_missing_documentation_of_an_environment_is_advice() -> None:
    with pytest.warns(DocumentationAdvice, match="HasNoExamples passed all checks; its docstring has no section Exam"):
        check_environment(HasNoExamples(arms=3))


def test_what_is_no_environment_is_caught() -> None:
    with pytest.raises(AssertionError, match="an environment must be a dataclass derived from Environment"):
        check_environment("case-3")  # type: ignore[arg-type]


# --- Estimators ---------------------------------------------------------------------------------------------


class Altered(SampleMean):
    """A sample mean with one thing wrong."""

    def __init__(self, **wrong: Any) -> None:
        super().__init__()
        self.wrong = wrong

    @property
    def belief(self) -> Belief:
        right = super().belief
        return right._replace(**{name: change(getattr(right, name)) for name, change in self.wrong.items()})


class StartsAtZero(SampleMean):
    @property
    def mean(self) -> float:
        return 0.0 if math.isnan(super().mean) else super().mean


class WeighsTooMuch(SampleMean):
    @property
    def weight(self) -> float:
        return 2.0 * super().weight


class HasWeightAtOnce(SampleMean):
    @property
    def weight(self) -> float:
        return super().weight + 1.0


class ReturnsNothing(SampleMean):
    def update(self, reward: float) -> Any:
        super().update(reward)


class TakesAnything(SampleMean):
    def update(self, reward: float) -> Estimator:
        self.state = self._observe(reward)
        return self


class RefusesTooLate(SampleMean):
    def update(self, reward: float) -> Estimator:
        self.state = self._observe(min(max(reward, 0.0), 1.0) if reward == reward else 0.0)
        if not 0.0 <= reward <= 1.0:
            raise ValueError(reward)
        return self


class IsNeverTheSame(SampleMean):
    def __init__(self) -> None:
        super().__init__()
        self.shift = 1e-6 * next(made)

    @property
    def belief(self) -> Belief:
        right = super().belief
        return right._replace(effective_size=max(1.0, right.effective_size - self.shift))


BROKEN_ESTIMATORS: dict[str, tuple[Callable[[], Estimator], str]] = {
    "starts at 0": (StartsAtZero, "mean must be NaN before the first reward"),
    "starts with a weight": (HasWeightAtOnce, "weight must be 0 before the first reward"),
    "weighs too much": (WeighsTooMuch, r"weight must be in \(0, 1\] after 1 rewards, got 2.0"),
    "returns nothing": (ReturnsNothing, "update must return the estimator"),
    "takes NaN": (TakesAnything, "update must reject the reward nan"),
    "refuses too late": (RefusesTooLate, "a rejected reward nan must change nothing"),
    "is never the same": (IsNeverTheSame, "two estimators with the same rewards must agree"),
    "is biased": (lambda: Altered(mean=lambda mean: 0.9 * mean), "mean of rewards that are all 1.0 must be 1.0"),
    "leaves [0, 1]": (
        lambda: Altered(mean=lambda mean: mean if mean in (0.0, 1.0) else mean + 1.0),
        r"mean must stay in \[0, 1\], got 1",
    ),
    "has a variance of nothing": (
        lambda: Altered(variance=lambda variance: variance + 0.1),
        "variance of rewards that are all 0.0 must be 0",
    ),
    "has a negative variance": (
        lambda: Altered(variance=lambda variance: -variance),
        "variance must not be negative, got -",
    ),
    "forgets too little": (
        lambda: Altered(forgetting=lambda forgetting: 1.1),
        r"forgetting must stay in \[0, 1\], got 1.1",
    ),
    "counts too much": (
        lambda: Altered(effective_size=lambda size: size + 1.0),
        r"effective_size must be in \[1, 1\], got 2.0",
    ),
}


def test_an_estimator_instead_of_its_maker_is_caught() -> None:
    with pytest.raises(AssertionError, match=r"make must make a new estimator, such as .*, got SampleMean\("):
        check_estimator(SampleMean())  # type: ignore[arg-type]


@pytest.mark.parametrize(("make", "message"), BROKEN_ESTIMATORS.values(), ids=BROKEN_ESTIMATORS.keys())
def test_a_broken_estimator_is_caught(make: Callable[[], Estimator], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_estimator(make)
