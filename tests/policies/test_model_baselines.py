"""Policies with a model of changing means: what they learn, and how uncertain they are."""

import math

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.streams import SCORE, normal_pair, words
from dynabandit.policies.whole import kalman_thompson
from dynabandit.policies.whole.kalman_thompson import DRIFTS, predict
from tools.driver import Driver

NAMES = ("kalman-ts", "predictive-sampling")


def test_without_drift_predictive_sampling_is_thompson_sampling() -> None:
    rewards = (np.random.default_rng(3).random((50, 3)) < 0.5).astype(float)
    played = [[arm for _, arm in Driver(db.policy(name, drift=0.0), 3).play(rewards)] for name in NAMES]
    assert played[0] == played[1]


def test_a_mean_that_is_known_has_no_predictive_variance() -> None:
    assert [kalman_thompson.predictive_variance(0.5, 0.0, change, 1.0) for change in (0.0, 0.01)] == [0.0, 0.0]
    assert kalman_thompson.predictive_variance(0.5, 0.125, 0.0, 1.0) == 0.125


def test_more_drift_narrows_the_draws_of_predictive_sampling() -> None:
    widths = []
    for drift in (0.0, 0.01, 0.1, 1.0):
        driver = Driver(db.policy("predictive-sampling", drift=drift), arms=2)
        driver.choose(1)  # without rewards every arm has its prior
        widths.append(abs(driver.scores[0] - 0.5))
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 3 * widths[-1]


def shares(driver: Driver) -> list[float]:
    return [float(share) for share in driver.shared[len(DRIFTS) :]]


def test_the_drift_is_learned_from_all_arms() -> None:
    still, restless = (Driver(db.policy("kalman-ts"), arms=3) for _ in range(2))
    drawn = np.random.default_rng(4).random(600)
    for step in range(600):
        for driver, mean in ((still, 0.5), (restless, 0.5 + 0.45 * math.sin(step / 25))):
            driver.learn(step % 3, step + 1, float(drawn[step] < mean))
    assert sum(shares(still)) == pytest.approx(1.0)
    assert max(still.shared[: len(DRIFTS)]) == 0.0  # so that no weight underflows
    assert sum(shares(still)[:4]) > 0.9
    assert sum(shares(restless)[4:]) > 0.99


def test_a_later_arm_keeps_what_all_arms_have_learnt() -> None:
    policy = db.policy("kalman-ts")
    driver = Driver(policy, arms=2)
    driver.shared[len(DRIFTS) :] = [0.5, 0.5, *[0.0] * (len(DRIFTS) - 2)]  # the others are improbable
    policy.functions.start(driver.state, 1, policy.params(2))
    assert shares(driver)[:2] == [0.5, 0.5]


def test_an_idle_arm_becomes_as_uncertain_as_its_prior_and_not_more() -> None:
    driver = Driver(db.policy("kalman-ts", drift=0.01), arms=2)
    for step in range(1, 51):
        driver.learn(0, step, 1.0)
    normal = normal_pair(words(driver.random, SCORE, 10**6, 0, 0))[0]
    driver.choose(10**6)
    mean = float(driver.memory[1, 0])
    assert mean > 0.95
    assert driver.scores[0] == pytest.approx(mean + normal * math.sqrt(1 / 12))


def test_a_late_reward_of_an_earlier_decision_takes_no_time() -> None:
    early, late = (Driver(db.policy("kalman-ts", drift=0.1), arms=2) for _ in range(2))
    late.learn(0, 9, 1.0)
    before = late.memory[:, 0].copy()
    late.learn(0, 3, 0.0)
    assert late.memory[0, 0] == 9.0
    early.learn(0, 9, 1.0)
    early.learn(0, 9, 0.0)
    np.testing.assert_array_equal(late.memory, early.memory)
    assert late.memory[1, 0] < before[1]


@pytest.mark.parametrize("persistence", [1.0, 0.9])
def test_an_arm_is_predicted_from_the_step_of_its_latest_decision_on(persistence: float) -> None:
    driver = Driver(db.policy("kalman-ts", drift=0.1, persistence=persistence), arms=2)
    driver.learn(0, 9, 1.0)
    mean, variance = driver.memory[1:, 0].tolist()
    expected = [(mean, variance)] * 2  # also at an earlier step
    for _ in range(2):
        mean, variance = 0.5 + persistence * (mean - 0.5), min(persistence**2 * variance + 0.01, 1 / 12)
        expected.append((mean, variance))
    for number, numbers in zip((3, 9, 10, 11), expected, strict=True):
        assert predict(driver.state, 0, 0, number, driver.params) == pytest.approx(numbers, rel=1e-12)


def test_a_belief_fades_towards_the_prior_and_by_its_drift() -> None:
    for drift, forgetting in ((0.1, None), (0.0, 1.0)):
        policy = db.policy("kalman-ts", drift=drift, persistence=0.9)
        driver = Driver(policy, arms=2)
        for step in range(1, 6):
            driver.learn(0, step, 1.0)
        variance = driver.memory[2, 0]
        expected = variance / (0.9**2 * variance + 0.1**2) if forgetting is None else forgetting
        assert policy.belief(driver.memory[:, 0], driver.shared).forgetting == pytest.approx(expected, rel=1e-12)
        assert expected < 0.99 or drift == 0.0


def test_the_belief_is_averaged_over_the_drifts() -> None:
    policy = db.policy("kalman-ts")
    driver = Driver(policy, arms=2)
    assert policy.belief(driver.memory[:, 1], driver.shared) == pytest.approx((0.5, 0.25, 1.0, 3.0))
    for step, reward in enumerate([1.0, 1.0, 0.0, 1.0, 1.0], start=1):
        driver.learn(0, step, reward)
    filters = driver.memory[1:, 0].reshape(-1, 2)
    mean, variance = np.average(filters, axis=0, weights=shares(driver))
    kept = np.average(filters[:, 1] / (filters[:, 1] + np.square(DRIFTS)), weights=shares(driver))
    found = policy.belief(driver.memory[:, 0], driver.shared)
    assert found == pytest.approx((mean, mean * (1 - mean), kept, mean * (1 - mean) / variance))
    assert found.forgetting < 1.0
