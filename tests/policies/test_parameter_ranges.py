"""Every parameter of every policy, environment, reward law and estimator, over its whole range: all stays computable.

The ranges are those that error messages name. A value is refused when the object is made, or it works.
"""

import math
import warnings
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from dynabandit.bandit.live_policies import accepted_rewards
from dynabandit.core.context import Context
from dynabandit.core.streams import LARGEST_STEP, stream
from dynabandit.environments import REWARD_LAWS, RewardStep
from dynabandit.environments.base import make_write_paths
from dynabandit.policies import POLICIES, Policy
from dynabandit.simulation.step_by_step import StepByStep
from tools.draw_budget import DrawBudget, draw_budget
from tools.parameter_ranges import (
    ALL_POLICIES,
    ESTIMATORS,
    LARGEST_SIZE,
    MADE,
    SMALL,
    extremes,
    parameters_of_estimator,
    range_of,
    ready,
    rewards,
    values_of_environment,
    values_of_policy,
    with_values,
)
from tools.ready import READY

ARMS, DIMENSION = 3, 2
MOST_DRAWS = 200  # of a decision or a path's step: far above what any needs


@pytest.fixture
def budget() -> Iterator[DrawBudget]:
    with warnings.catch_warnings(), draw_budget() as found:
        warnings.simplefilter("ignore", RuntimeWarning)  # of NumPy's scalars; what matters is the result
        yield found


def play(policy: Policy, values: list[float], budget: DrawBudget) -> None:
    """Let a policy decide and learn; its scores, its state and what it believes must be numbers."""
    per_arm = getattr(policy, "model", "separate") in ("shared", "hybrid")
    context = Context(DIMENSION, per_arm=per_arm) if policy.functions.contextual else None
    run = StepByStep(policy, ARMS, len(values), context=context)
    generator = np.random.default_rng(1)
    for number, value in enumerate(values, start=1):
        budget.allow(MOST_DRAWS)
        run.reveal([0.2, 0.5, 0.8])
        if context is not None:
            run.show(generator.standard_normal((ARMS if per_arm else 1, DIMENSION)))
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


@pytest.mark.parametrize("name", ALL_POLICIES)
def test_a_policy_decides_with_every_value_of_every_parameter(name: str, budget: DrawBudget) -> None:
    kind, base = ALL_POLICIES[name], ready(name)
    play(kind(**base), rewards(60), budget)
    for parameter, tried in values_of_policy(name).items():
        made = [one for value in tried if (one := with_values(kind, base, {parameter: value})) is not None]
        assert len(made) >= min(len(tried), 2), f"{parameter}: nearly all of {tried} are refused"
        for policy in made:
            at_end = getattr(policy, parameter) in (tried[0], tried[-1])
            play(policy, rewards(12 if at_end else 6), budget)


HORIZONS = [(changes, horizon) for changes in (1, LARGEST_STEP) for horizon in (1, 2, LARGEST_STEP)]


@pytest.mark.parametrize("name", [name for name, kind in POLICIES.items() if "horizon" in kind.__dataclass_fields__])
def test_a_policy_decides_with_parameters_that_follow_from_every_horizon(name: str, budget: DrawBudget) -> None:
    for changes, horizon in HORIZONS:
        policy = POLICIES[name](changes=changes, horizon=horizon)  # type: ignore[call-arg]
        if ARMS * policy.memory_size() + policy.shared_size() <= LARGEST_SIZE:
            play(policy, rewards(6), budget)


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
    walk(kind(**base), min(kind(**base).longest, 30), budget)
    for parameter, tried in values_of_environment(name).items():
        for value in tried:
            made = with_values(kind, base, {parameter: value})
            if made is not None and getattr(made, "dimension", 0) <= 64:
                walk(made, min(made.longest, 8), budget)


@pytest.mark.parametrize("name", REWARD_LAWS)
def test_a_reward_law_draws_valid_rewards_with_every_value_of_every_parameter(name: str, budget: DrawBudget) -> None:
    kind = REWARD_LAWS[name]
    laws = [kind()]
    for field in fields(kind):
        laws += [with_values(kind, {}, {field.name: value}) for value in range_of(kind, field.name)]
    for law in (one for one in laws if one is not None):
        for number, value in enumerate([0.0, 1e-300, 0.25, 1.0] * 3, start=1):
            budget.allow(MOST_DRAWS)
            drawn = law.functions.draw(value, 0, RewardStep(number, stream(1)), law.params())
            assert law.domain.contains(drawn), f"{law}: {drawn} at {value}"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_estimates_with_every_value_of_every_parameter(name: str) -> None:
    for parameters in parameters_of_estimator(name, DIMENSION):
        estimator: Any = ESTIMATORS[name](**parameters)
        for value in rewards(20):
            if "dimension" in parameters:
                estimator.update([1.0, value], value)
                assert np.isfinite(estimator.predict([1.0, 0.5])).all()
            else:
                estimator.update(value)
                assert not np.isinf(estimator.belief).any()
                assert not math.isnan(estimator.mean)


@pytest.mark.parametrize("law", REWARD_LAWS)
@pytest.mark.parametrize("name", ALL_POLICIES)
def test_a_policy_computes_with_every_reward_that_it_accepts(name: str, law: str, budget: DrawBudget) -> None:
    policy = ALL_POLICIES[name](**READY.get(name, {})).tuned(2, 300)
    if not REWARD_LAWS[law].domain.is_within(policy.rewards):
        pytest.skip("the policy is not for this law")
    found = extremes(accepted_rewards(policy, law))
    smallest = min(one for one in found if one > 0.0)
    patterns = [[found[0], found[-1]], [0.0, smallest], [smallest, found[-1]], found]
    for pattern in patterns:
        play(policy, pattern * (16 // len(pattern) + 1), budget)
