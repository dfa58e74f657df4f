"""Every parameter of every policy, environment, reward law and estimator, over its whole range: all stays computable.

The ranges are those that error messages name. A value is refused when the object is made, or it works.
"""

import inspect
import math
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from dynabandit import estimators
from dynabandit.bandit.live_policies import accepted_rewards
from dynabandit.core.context import Context
from dynabandit.core.streams import LARGEST_STEP, stream
from dynabandit.environments import CONTEXTUAL_ENVIRONMENTS, ENVIRONMENTS, REWARD_LAWS, RewardStep
from dynabandit.environments.base import make_write_paths
from dynabandit.policies import CONTEXTUAL_POLICIES, POLICIES, Policy
from dynabandit.simulation.step_by_step import StepByStep
from dynabandit.validation import RewardDomain
from tools.draw_budget import DrawBudget, draw_budget
from tools.ready import READY

ARMS, DIMENSION = 3, 2
BETWEEN = (1e-300, 1e-6, 0.5, 7.0, 1e6, 1e300)  # some numbers of all sizes
LARGEST_SIZE = 100_000  # numbers that a policy of this test may keep
MOST_DRAWS = 200  # of a decision or a path's step: far above what any needs
NUMBER = re.compile(r"must be a number in ([\[(])([-+.\de]+), ([-+.\dinfe]+)([\])])")
WHOLE = re.compile(r"must be a whole number of at least (\d+)(?: and at most (\d+))?")
WRONG = math.nan  # of which every message says what would be valid


def range_of(make: Callable[..., Any], name: str) -> list[Any]:
    """Return the lowest and the highest value of a parameter and some between; none if it is no number."""
    with pytest.raises((TypeError, ValueError)) as caught:
        make(**{name: WRONG})
    message = str(caught.value)
    if (found := NUMBER.search(message)) is not None:
        low, high = float(found[2]), float(found[3])
        lowest = math.nextafter(low, math.inf) if found[1] == "(" else low
        highest = min(high, 1.7e308) if found[4] == "]" or high == math.inf else math.nextafter(high, low)
        return sorted({lowest, highest, *(one for one in BETWEEN if lowest < one < highest)})
    if (found := WHOLE.search(message)) is not None:
        least, most = int(found[1]), int(found[2] or LARGEST_STEP)
        return sorted({one for one in (least, least + 1, 6, 50, most) if least <= one <= most})
    return []


@pytest.fixture
def budget() -> Iterator[DrawBudget]:
    with warnings.catch_warnings(), draw_budget() as found:
        warnings.simplefilter("ignore", RuntimeWarning)  # of NumPy's scalars; what matters is the result
        yield found


def rewards(count: int) -> list[float]:
    """Return zeros, then ones, then both in turn."""
    return [0.0] * count + [1.0] * count + [0.0, 1.0] * (count // 2)


def play(policy: Policy, values: list[float], budget: DrawBudget) -> None:
    """Let a policy decide and learn; its scores, its state and what it believes must be numbers."""
    context = Context(DIMENSION, per_arm=False) if policy.functions.contextual else None
    run = StepByStep(policy, ARMS, len(values), context=context)
    generator = np.random.default_rng(1)
    for number, value in enumerate(values, start=1):
        budget.allow(MOST_DRAWS)
        run.reveal([0.2, 0.5, 0.8])
        if context is not None:
            run.show(generator.standard_normal((1, DIMENSION)))
        arm = run.choose(number)
        assert 0 <= arm < ARMS
        assert not np.isnan(run.scores).any(), f"step {number}: {run.scores}"
        run.state.last_played[arm] = number
        run.learn(arm, number, value)
    state = run.state
    for part in (state.memory, state.shared, *([] if state.models is None else [state.models])):
        assert not np.isnan(part).any()
    for arm in range(ARMS):
        belief = policy.belief(state.memory[:, arm], state.shared)
        assert not np.isinf(belief).any(), belief


def with_value(kind: Any, base: dict[str, Any], name: str, value: Any) -> Any:
    """Return an object, or None if it is refused: alone, with the other parameters, or because it would be huge."""
    try:
        made = kind(**{**base, name: value})
        if isinstance(made, Policy):
            made.params(ARMS)
            if ARMS * made.memory_size() + made.shared_size() > LARGEST_SIZE:
                return None
    except ValueError:
        return None
    return made


@pytest.mark.parametrize("name", [*POLICIES, *CONTEXTUAL_POLICIES])
def test_a_policy_decides_with_every_value_of_every_parameter(name: str, budget: DrawBudget) -> None:
    kind = {**POLICIES, **CONTEXTUAL_POLICIES}[name]
    base = kind(**READY.get(name, {})).tuned(2, 300).parameters
    play(kind(**base), rewards(60), budget)
    for field in fields(kind):
        if field.name in ("burn_in", "horizon", "changes"):  # a burn-in is not the policy's; the others make parameters
            continue
        if field.name == "prior" and isinstance(base["prior"], tuple):
            tried: list[Any] = [(1e-12, 1e-12), (1e-12, 1e12), (1e12, 1e-12), (1e12, 1e12)]
        else:
            tried = range_of(lambda **given: kind(**{**base, **given}), field.name)
        made = [one for one in (with_value(kind, base, field.name, value) for value in tried) if one is not None]
        assert len(made) >= min(len(tried), 2), f"{field.name}: nearly all of {tried} are refused"
        for policy in made:
            at_end = getattr(policy, field.name) in (tried[0], tried[-1])
            play(policy, rewards(12 if at_end else 6), budget)


HORIZONS = [(changes, horizon) for changes in (1, LARGEST_STEP) for horizon in (1, 2, LARGEST_STEP)]


@pytest.mark.parametrize("name", [name for name, kind in POLICIES.items() if "horizon" in kind.__dataclass_fields__])
def test_a_policy_decides_with_parameters_that_follow_from_every_horizon(name: str, budget: DrawBudget) -> None:
    for changes, horizon in HORIZONS:
        policy = POLICIES[name](changes=changes, horizon=horizon)  # type: ignore[call-arg]
        if ARMS * policy.memory_size() + policy.shared_size() <= LARGEST_SIZE:
            play(policy, rewards(6), budget)


SMALL: dict[str, dict[str, Any]] = {
    "fixed": {"means": (0.2, 0.5, 0.8)},
    "piecewise": {"starts": (1, 4), "means": ((0.2, 0.8), (0.8, 0.2))},
    "exponential-clock": {"rates": (0.1, 0.2), "low": (0.1, 0.2), "high": (0.9, 0.8)},
    "path": {"means": ((0.2, 0.8),) * 8},
    "recorded": {"means": ((0.2, 0.8),) * 8},
}
NEEDS_DATA = ("recorded", "recorded-contexts", "digits", "image-segments", "phishing", "bananas", "prompts", "flights")
MADE = {name: kind for name, kind in {**ENVIRONMENTS, **CONTEXTUAL_ENVIRONMENTS}.items() if name not in NEEDS_DATA}


def walk(environment: Any, steps: int, budget: DrawBudget) -> None:
    """Write a path of an environment; its means must be in [0, 1]."""
    arms = environment.arms
    state, paths = np.zeros((1, environment.state_size(), arms)), environment.empty_paths(1, steps)
    budget.allow(MOST_DRAWS * steps * arms)
    write = make_write_paths(environment.functions)
    write(state, np.array(environment.params()), environment.table(), paths, 1, steps, stream(1))
    assert ((paths.means >= 0.0) & (paths.means <= 1.0)).all()
    assert np.isfinite(paths.features).all()


@pytest.mark.parametrize("name", MADE)
def test_an_environment_has_means_with_every_value_of_every_parameter(name: str, budget: DrawBudget) -> None:
    kind, base = MADE[name], SMALL.get(name, {})
    steps = min(kind(**base).longest, 30)
    walk(kind(**base), steps, budget)
    for field in fields(kind):
        if field.name in ("rewards", "arms") or not field.init:
            continue
        for value in range_of(lambda **given: kind(**{**base, **given}), field.name):
            made = with_value(kind, base, field.name, value)
            if made is not None and getattr(made, "dimension", 0) <= 64:
                walk(made, min(made.longest, 8), budget)


@pytest.mark.parametrize("name", REWARD_LAWS)
def test_a_reward_law_draws_valid_rewards_with_every_value_of_every_parameter(name: str, budget: DrawBudget) -> None:
    kind = REWARD_LAWS[name]
    laws = [kind()]
    for field in fields(kind):
        laws += [with_value(kind, {}, field.name, value) for value in range_of(kind, field.name)]
    for law in (one for one in laws if one is not None):
        for number, value in enumerate([0.0, 1e-300, 0.25, 1.0] * 3, start=1):
            budget.allow(MOST_DRAWS)
            drawn = law.functions.draw(value, 0, RewardStep(number, stream(1)), law.params())
            assert law.domain.contains(drawn), f"{law}: {drawn} at {value}"


@pytest.mark.parametrize("name", [name for name in estimators.__all__ if name[0].isupper()])
def test_an_estimator_estimates_with_every_value_of_every_parameter(name: str) -> None:
    kind = getattr(estimators, name)
    if not (inspect.isclass(kind) and hasattr(kind, "update")) or kind is estimators.Estimator:
        return
    known = {key for key in inspect.signature(kind).parameters if key not in ("loss", "dimension")}
    base: dict[str, Any] = {"dimension": DIMENSION} if "dimension" in inspect.signature(kind).parameters else {}
    needed = {"forgetting": 0.9, "window": 5}
    base |= {key: value for key, value in needed.items() if key in known}
    tried = [base] + [
        {**base, key: value}
        for key in known
        for value in range_of(lambda **given: kind(**{**base, **given}), key)
        if not isinstance(value, int) or value < LARGEST_SIZE
    ]
    for parameters in tried:
        estimator: Any = kind(**parameters)
        for value in rewards(20):
            if "dimension" in base:
                estimator.update([1.0, value], value)
                assert np.isfinite(estimator.predict([1.0, 0.5])).all()
            else:
                estimator.update(value)
                assert not np.isinf(estimator.belief).any()
                assert not math.isnan(estimator.mean)


def extremes(domain: RewardDomain) -> list[float]:
    """Return the smallest and the largest rewards of a domain, and some that are tiny or huge."""
    sizes = (5e-324, 1e-300, 1e-100, 1e-50, 1e-6, 1.0, 30.0, 31.0, 1e6, 1e15, 1e50, 1e100, 1e300)
    found = [domain.low, domain.high, 0.0, *sizes, *(-size for size in sizes)]
    return sorted({one for one in found if domain.contains(one)})


@pytest.mark.parametrize("law", REWARD_LAWS)
@pytest.mark.parametrize("name", [*POLICIES, *CONTEXTUAL_POLICIES])
def test_a_policy_computes_with_every_reward_that_it_accepts(name: str, law: str, budget: DrawBudget) -> None:
    kind = {**POLICIES, **CONTEXTUAL_POLICIES}[name]
    policy = kind(**READY.get(name, {})).tuned(2, 300)
    if not REWARD_LAWS[law].domain.is_within(policy.rewards):
        pytest.skip("the policy is not for this law")
    found = extremes(accepted_rewards(policy, law))
    smallest = min(one for one in found if one > 0.0)
    patterns = [[found[0], found[-1]], [0.0, smallest], [smallest, found[-1]], found]
    for pattern in patterns:
        play(policy, pattern * (16 // len(pattern) + 1), budget)
