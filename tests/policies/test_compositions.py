"""Every memory with every rule that makes sense with it, most of them no preset.

Scores are compared with literal formulas, to a relative 1e-9.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from dynabandit.checks import check_policy
from dynabandit.core.compilation import kernel
from dynabandit.policies.base import CONSTANT, MONOTONE, Step
from dynabandit.policies.memories.base import Memory, per_arm
from dynabandit.policies.memories.discount import SCALE, Discount
from dynabandit.policies.memories.sample_mean import SampleMean
from dynabandit.policies.memories.window import GrowingWindow, Window
from dynabandit.policies.part import Setting
from dynabandit.policies.preset import Preset
from dynabandit.policies.rules.base import Rule
from dynabandit.policies.rules.greedy import Greedy
from dynabandit.policies.rules.hoeffding import Hoeffding, KLBound, PrintedHoeffding
from dynabandit.policies.rules.kl_ucb import KLUCB, KLUCBByWidth
from dynabandit.policies.rules.thompson import OptimisticThompson, Thompson
from dynabandit.policies.rules.ucb import UCB
from dynabandit.validation import check_field, number
from oracles.upper_bounds import kl_index
from tools.driver import Driver

TOLERANCE = 1e-9


class Average(NamedTuple):
    """An exponentially weighted mean."""

    mean: float
    weight: float
    discount: float


class FadingParams(NamedTuple):
    discount: float


@kernel
def observe(numbers: Average, reward: float, params: FadingParams) -> Average:
    weight = params.discount * numbers.weight + 1.0
    return Average(numbers.mean + (reward - numbers.mean) / weight, weight, params.discount)


@kernel
def mean(numbers: Average) -> float:
    return numbers.mean


@kernel
def size(numbers: Average) -> float:
    return numbers.weight


@kernel
def fading(numbers: Average) -> float:
    return math.log(numbers.discount) if numbers.weight > 0.0 else 0.0


@dataclass(frozen=True, kw_only=True)
class FadingMean(Memory):
    """An exponentially weighted mean of an arm's own rewards, which fades while the arm is idle.

    Parameters
    ----------
    discount
        The factor of the weights per reward of the arm, and per K idle steps.
    """

    name = "fading-mean"
    kernels = per_arm(Average(0.0, 0.0, 0.0), observe, mean, size, params=FadingParams, fading=fading)

    discount: float = 0.9

    def __post_init__(self) -> None:
        check_field(self, "discount", number, 0.0, 1.0, open_low=True)

    def params(self, setting: Setting) -> FadingParams:
        return FadingParams(self.discount)


# Forgetting soon, and not within the rewards of a test
MEMORIES: dict[str, tuple[Memory, Memory]] = {
    "all": (SampleMean(), SampleMean()),
    "discount": (Discount(discount=0.9), Discount(discount=1.0)),
    "window": (Window(window=20), Window(window=1000)),
    "growing": (GrowingWindow(scale=4.0, capacity=50), GrowingWindow(scale=1000.0, capacity=1000)),
    "fading": (FadingMean(), FadingMean(discount=1.0)),
}
SCORED: dict[str, Rule] = {
    "greedy": Greedy(epsilon=0.2),
    "ucb": UCB(xi=2.4),
    "kl-ucb": KLUCB(loglog=0.5),
    "kl-ucb-by-width": KLUCBByWidth(loglog=0.5),
    "hoeffding": Hoeffding(confidence=0.1),
    "printed-hoeffding": PrintedHoeffding(confidence=0.1),
    "kl-bound": KLBound(confidence=0.1),
}
DRAWN: dict[str, Rule] = {"ts": Thompson(prior=(1, 3)), "ots": OptimisticThompson(prior=(1, 3))}
RULES = {**SCORED, **DRAWN}
GRID = [(memory, rule) for memory in MEMORIES for rule in RULES]
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
# Both rules that draw do so from the same posteriors; without interpretation each policy is compiled
ALL = [(memory, rule) for memory, rule in GRID if rule != "ots" or memory == "fading"]
FEW = [("all", "ots"), ("discount", "hoeffding"), ("window", "kl-ucb"), ("growing", "greedy"), ("fading", "ucb")]


def composed(memory: Memory, rule: Rule) -> Preset:
    """Return a policy of these parts, whose parameters are fixed."""
    own = {
        "name": f"{memory.name}-{rule.name}", "made_of": (memory, rule), "__module__": __name__,
        "__doc__": "A policy.\n\nExamples\n--------\n", "burn_in": int(rule.kernels.family is None),
        "__annotations__": {"burn_in": int},
    }  # fmt: skip
    kind: Any = type("Composed", (Preset,), own)
    policy: Preset = dataclass(frozen=True, kw_only=True)(kind)()
    return policy


def driven(memory: Memory, rule: Rule, arms: int = 3) -> Driver:
    return Driver(composed(memory, rule), arms)


# --- What follows from the parts ----------------------------------------------------------------------------


@pytest.mark.parametrize(("memory", "rule"), GRID)
def test_how_scores_and_posteriors_change_while_an_arm_is_idle_follows_from_the_parts(memory: str, rule: str) -> None:
    functions = composed(MEMORIES[memory][0], RULES[rule]).functions
    indices = {
        "all": {"greedy", "hoeffding", "printed-hoeffding", "kl-bound"},
        "fading": {"greedy", "printed-hoeffding"},  # means do not fade, and the bonus that the paper prints does not
    }
    assert functions.static_index == (rule in indices.get(memory, set()))
    posteriors = {"all": CONSTANT, "fading": MONOTONE}
    assert functions.idle_posterior == (posteriors.get(memory) if rule in DRAWN else None)
    assert (functions.posterior is not None) == (rule in DRAWN)
    assert functions.optimistic == (rule == "ots")


@pytest.mark.filterwarnings("ignore::dynabandit.checks.DocumentationAdvice")
@pytest.mark.parametrize(("memory", "rule"), ALL if INTERPRETED else FEW)
def test_a_composed_policy_passes_the_checks_of_policies(memory: str, rule: str) -> None:
    check_policy(composed(MEMORIES[memory][0], RULES[rule]))


def test_a_mean_that_the_memory_keeps_for_the_rule_has_one_row() -> None:
    assert composed(Discount(discount=0.9), UCB()).slots == ("total", "squares", "count", "mean", "width")
    assert composed(SampleMean(), UCB()).slots == ("total", "squares", "plays", "mean", "width")
    assert composed(Discount(discount=0.9), Greedy()).slots == ("total", "squares", "count", "mean")
    assert composed(Discount(discount=0.9), KLBound()).slots == ("total", "squares", "count", "mean")
    assert composed(FadingMean(), Greedy()).slots == ("mean", "weight", "discount", "stored_mean")


# --- Pending plays ------------------------------------------------------------------------------------------


def score(driver: Driver, arm: int, common: float) -> float:
    """Return the score of an arm at step 50, with this number that all scores share."""
    return float(driver.functions.score(driver.state, arm, driver.step(50)._replace(common=common), driver.params))


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("rule", SCORED)
def test_pending_plays_count_as_data_with_the_same_mean(memory: str, rule: str) -> None:
    before, after = (driven(MEMORIES[memory][1], SCORED[rule]) for _ in range(2))
    before.feed(0, 0.0, 1.0, 0.0, 0.0)
    after.feed(0, 0.0, 1.0, *[0.0] * 2, *[0.25] * 12)
    before.pending[0] = 12
    for common in (0.5, 2.0):
        assert score(before, 0, common) == pytest.approx(score(after, 0, common), rel=1e-12)
    if rule != "greedy":
        assert score(before, 0, 0.5) < score(driven(MEMORIES[memory][1], SCORED[rule]).feed(0, 0, 1, 0, 0), 0, 0.5)


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("rule", DRAWN)
def test_pending_plays_of_an_arm_without_any_reward_count_as_zeros(memory: str, rule: str) -> None:
    before, after = (driven(MEMORIES[memory][1], DRAWN[rule]).feed(1, 0.5) for _ in range(2))
    after.feed(0, *[0.0] * 5)
    before.pending[0] = 5
    before.last_played[0] = after.last_played[0] = 49
    shapes = [one.functions.posterior(one.state, 0, one.step(50), one.params) for one in (before, after)]
    assert shapes[0] == pytest.approx(shapes[1], rel=1e-12)


# --- Against literal formulas -------------------------------------------------------------------------------


class Seen(NamedTuple):
    """The weights and the values of an arm's rewards, and what the logarithm of a bound counts."""

    weights: np.ndarray
    values: np.ndarray
    clock: float

    @property
    def size(self) -> float:
        return math.fsum(self.weights)

    @property
    def mean(self) -> float:
        return math.fsum(self.weights * self.values) / self.size


def ucb(seen: Seen) -> float:
    return seen.mean + 2.0 * math.sqrt(0.6 * math.log(max(seen.clock, 1.0)) / seen.size)


def kl_ucb(seen: Seen) -> float:
    level = math.log(max(seen.clock, 1.0))
    return float(kl_index(seen.mean, seen.size, level + 0.5 * math.log(max(level, 1.0))))


def hoeffding(seen: Seen) -> float:
    return seen.mean + math.sqrt(-math.log(0.1) / (2.0 * seen.size))


LITERAL: dict[str, Callable[[Seen], float]] = {
    "greedy": lambda seen: seen.mean,
    "ucb": ucb,
    "kl-ucb": kl_ucb,
    "kl-ucb-by-width": kl_ucb,
    "hoeffding": hoeffding,
    "printed-hoeffding": hoeffding,
    "kl-bound": lambda seen: float(kl_index(seen.mean, seen.size, -math.log(0.1))),
}
SMALL = 0.3  # the scale is set back to 1 at the 192nd reward


def seen(memory: str, history: list[tuple[int, float]], arm: int) -> Seen:
    """Return what a memory says about an arm, by its definition; O(t)."""
    rewards = len(history)
    since = np.arange(rewards)[::-1]
    if memory == "discount":
        weights, clock = SMALL**since, math.fsum(SMALL**since)
    elif memory == "window":
        weights, clock = np.where(since < 20, 1.0, 0.0), min(rewards, 20)
    elif memory == "growing":
        latest = math.ceil(min(4.0 * math.sqrt(rewards), rewards, 50))
        weights, clock = np.where(since < latest, 1.0, 0.0), rewards
    else:
        weights, clock = np.ones(rewards), rewards
    own = [place for place in range(rewards) if history[place][0] == arm and weights[place] > 0.0]
    return Seen(weights[own], np.array([history[place][1] for place in own]), float(clock))


@pytest.mark.parametrize("memory", ["all", "discount", "window", "growing"])
@pytest.mark.parametrize("rule", RULES)
def test_scores_are_those_of_a_literal_computation(memory: str, rule: str) -> None:
    driver = driven(Discount(discount=SMALL) if memory == "discount" else MEMORIES[memory][0], RULES[rule], arms=4)
    any_number, history, smallest = np.random.default_rng(3), [], 1.0
    for rewards in range(1, 261):
        # The last arm has no reward at first, and later it waits for long
        arm = 3 if rewards in (30, 100, 250) else int(any_number.integers(3))
        value = float(any_number.random())
        driver.feed(arm, value)
        history.append((arm, value))
        smallest = min(smallest, float(driver.shared[SCALE])) if memory == "discount" else smallest
        step = driver.step(rewards + 1)
        for one in range(4) if rewards % 7 == 0 or rewards > 185 else ():
            compare(driver, rule, one, step, seen(memory, history, one))
    if memory == "discount":
        assert smallest < 1e-99
        assert driver.shared[SCALE] > 1e-50, "it was set back"


def compare(driver: Driver, rule: str, arm: int, step: Step, data: Seen) -> None:
    """Compare the score or the posterior of an arm with the literal one, without and with pending plays."""
    functions, unseen = driver.functions, not len(data.weights)
    for pending in (0, 2):
        driver.pending[arm] = pending
        if rule in DRAWN:
            a, b = math.fsum(data.weights * data.values), math.fsum(data.weights * (1 - data.values))
            shapes = functions.posterior(driver.state, arm, step, driver.params)
            assert shapes == pytest.approx((1 + a, 3 + b + (pending if unseen else 0)), rel=TOLERANCE), step.number
        elif unseen and not pending:
            assert functions.score(driver.state, arm, step, driver.params) == math.inf
        else:
            mean = 1 / (1 + pending) if unseen else data.mean
            values, weights = np.append(data.values, [mean] * pending), np.append(data.weights, [1.0] * pending)
            found: Any = functions.score(driver.state, arm, step, driver.params)
            assert found == pytest.approx(LITERAL[rule](Seen(weights, values, data.clock)), rel=TOLERANCE), step.number
    driver.pending[arm] = 0
