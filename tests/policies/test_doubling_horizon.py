"""Policies whose horizon doubles: the parameters at each step, what stays, and where such a policy can be used."""

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.policies import POLICIES
from dynabandit.policies.horizons.doubling_horizon import HORIZONS
from dynabandit.policies.horizons.tuning_rules import HorizonTuned
from tools.driver import Driver
from tools.interpreted import interpreted

TUNED = [name for name, kind in POLICIES.items() if issubclass(kind, HorizonTuned)]
OPEN: dict[str, dict[str, Any]] = {"changepoint-ts": {"rate": None}}


def doubling(name: str) -> Any:
    return db.policy(name, changes=1, horizon="doubling", **OPEN.get(name, {}))


def horizon_of(step: int) -> int:
    """The smallest power of two from 128 to 2^20 that is at least `step`."""
    return min(max(128, 1 << (step - 1).bit_length()), 2**20)


@pytest.mark.parametrize("name", TUNED)
def test_a_step_has_the_parameters_of_the_smallest_power_of_two_after_it(name: str) -> None:
    policy = doubling(name)
    found, by_hand = Driver(policy, arms=3, seed=4), Driver(replace(policy, horizon=2**20), arms=3, seed=4)
    by_hand.shared[:] = 0.0  # it has room for the largest horizon, but starts with the first one
    for arm in range(3):
        by_hand.functions.start(by_hand.state, arm, replace(policy, horizon=128).params(arms=3))
    rewards = (np.random.default_rng(2).random((300, 3)) < [0.2, 0.5, 0.8]).astype(float)
    for step, arm in found.play(rewards):
        by_hand.params = replace(policy, horizon=horizon_of(step)).params(arms=3)
        assert by_hand.decide(step) == arm, step
        np.testing.assert_array_equal(found.scores, by_hand.scores)
        by_hand.learn(arm, step, rewards[step - 1, arm])


def test_the_first_steps_of_a_simulation_are_those_of_the_shortest_horizon() -> None:
    environment = db.environment("fixed", means=[0.4, 0.5, 0.6])
    policies = [doubling("d-ucb"), db.policy("d-ucb", changes=1, horizon=128)]
    with interpreted():
        found, expected = [db.simulate(one, environment, horizon=60, seed=4, keep="arms").arms for one in policies]
    np.testing.assert_array_equal(found, expected)


def test_the_horizon_stops_at_a_million_steps() -> None:
    driver = Driver(doubling("d-ucb"), arms=2)
    assert len(HORIZONS) == 14
    for step in (1, 127, 128, 129, 256, 257, 2**19, 2**19 + 1, 2**20 + 1, 2**40):
        driver.rewards = step - 2
        driver.feed(0, 1.0)  # arrives at step - 1
        assert HORIZONS[int(driver.shared[0])] == horizon_of(step), step


@pytest.mark.parametrize("name", TUNED)
def test_the_belief_is_that_of_the_policy_with_the_current_horizon(name: str) -> None:
    policy = doubling(name)
    driver = Driver(policy, arms=2).feed(0, *[1.0, 0.0, 0.0, 1.0, 1.0] * 30)
    assert driver.shared[0] == 1.0  # 150 steps
    expected = replace(policy, horizon=256).belief(driver.memory[:, 0], driver.shared[1:])
    assert policy.belief(driver.memory[:, 0], driver.shared) == expected


@pytest.mark.parametrize("name", TUNED)
def test_the_practical_form_needs_nothing_and_can_be_stored_and_used_live(name: str) -> None:
    policy: Any = db.policy(name, **OPEN.get(name, {})).practical()
    assert policy.parameters["horizon"] == "doubling"
    assert policy.left_open == []
    assert policy.tuned(switches=9, horizon=2**20) == policy
    assert policy.practical() == policy
    assert db.policy(name, **policy.parameters) == policy
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert copy.deepcopy(policy) == policy
    assert type(replace(policy, horizon=9)) is POLICIES[name]
    assert isinstance(policy, POLICIES[name])
    bandit = db.Bandit(name, arms=["a", "b"], seed=1, **OPEN.get(name, {}))
    assert bandit.policy == policy


def test_given_parameters_stay_in_the_practical_form() -> None:
    assert db.policy("d-ucb", discount=0.9).practical().label == "d-ucb(discount=0.9)"
    assert db.policy("d-ucb", changes=7).practical().label == "d-ucb(changes=7, horizon=doubling)"
    assert db.policy("d-ucb", horizon=99).practical().label == "d-ucb(changes=1, horizon=99)"
    assert db.policy("ucb").practical() == db.policy("ucb")


def test_a_state_has_room_for_the_longest_window() -> None:
    policy = doubling("sw-ucb")
    assert policy.shared_size() == replace(policy, horizon=2**20).shared_size() + 1
    params = policy.params(2)
    assert params.rows[:: params.width].tolist()[:2] == [50.0, 75.0]  # 2 sqrt(T log T) for T = 128 and 256


def test_another_word_is_no_horizon() -> None:
    with pytest.raises(ValueError, match="horizon must be a whole number of at least 1 or 'doubling', got 'forever'"):
        db.policy("d-ucb", horizon="forever")
