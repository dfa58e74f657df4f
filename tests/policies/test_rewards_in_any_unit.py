"""The policies for normal rewards, counts, revenue and heavy tails: in other units, and at the edges."""

import math

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.draws import gamma
from dynabandit.core.streams import SCORE
from dynabandit.policies.base import Policy
from dynabandit.policies.memories.adaptive import LOG_ZERO
from dynabandit.policies.memories.mixture import poisson_likelihood
from oracles import mix_ts
from tools.driver import Driver
from tools.reward_paths import path_of

each_policy_without_a_unit = pytest.mark.parametrize(
    "name",
    ["mix-normal-ts", "mix-revenue-ts", "normal-ts", "aff-normal-ts", "aff-normal-ucb", "aff-revenue-ts", "robust-ucb"],
)


def rewards_for(name: str, steps: int, arms: int, seed: int) -> np.ndarray:
    return path_of(db.policy(name), arms, steps, seed)[1]


@each_policy_without_a_unit
def test_all_rewards_times_a_power_of_two_give_the_same_choices_bit_for_bit(name: str) -> None:
    rewards = rewards_for(name, 90, 3, seed=5)
    runs = {}
    for factor in (1.0, 2.0**-40, 2.0**70):
        driver = Driver(db.policy(name), arms=3, seed=2)
        scores = [
            (arm, driver.scores / (1.0 if "revenue" in name else factor)) for _, arm in driver.play(rewards * factor)
        ]
        runs[factor] = [(arm, score.tobytes()) for arm, score in scores]
    assert runs[1.0] == runs[2.0**-40] == runs[2.0**70]


@each_policy_without_a_unit
def test_all_rewards_times_a_constant_give_the_same_choices(name: str) -> None:
    rewards = rewards_for(name, 90, 3, seed=6)
    chosen = [[arm for _, arm in Driver(db.policy(name), arms=3, seed=3).play(rewards * f)] for f in (1.0, 0.01, 1e30)]
    assert chosen[0] == chosen[1] == chosen[2]


def test_all_rewards_of_mix_normal_ts_plus_a_constant_give_the_same_choices() -> None:
    rewards = rewards_for("mix-normal-ts", 90, 3, seed=6).round()  # so that a shift rounds nothing
    chosen = [
        [arm for _, arm in Driver(db.policy("mix-normal-ts"), arms=3, seed=3).play(rewards + shift)]
        for shift in (0.0, 1e6, -(2.0**40))
    ]
    assert chosen[0] == chosen[1] == chosen[2]


@pytest.mark.parametrize("size", [2.0, 20.0, 1e6])
def test_large_counts_have_the_normal_likelihood_of_the_same_moments(size: float) -> None:
    """Relative to a memory that predicts the count, the two forms agree where one takes over from the other."""
    for mean in (25.0, 30.0, 36.0):
        ratios = [poisson_likelihood(y, mean, size, 0.0) / poisson_likelihood(y, y, size, 0.0) for y in (30.0, 31.0)]
        exact = mix_ts.negative_binomial(30, mean, size, 0.0) / mix_ts.negative_binomial(30, 30, size, 0.0)
        assert ratios[0] == pytest.approx(exact, rel=1e-6)
        exact = mix_ts.negative_binomial(31, mean, size, 0.0) / mix_ts.negative_binomial(31, 31, size, 0.0)
        assert ratios[1] == pytest.approx(exact, rel=0.15)
        assert ratios[1] != pytest.approx(exact, rel=1e-9) or mean == 31.0


@pytest.mark.parametrize(("name", "outlier"), [("mix-normal-ts", 1e100), ("mix-poisson-ts", 2.0**53)])
def test_a_reward_that_no_memory_expects_leaves_finite_scores(name: str, outlier: float) -> None:
    driver = Driver(db.policy(name), arms=2).feed(0, 3.0, 4.0, 3.0, 4.0).feed(1, 2.0, 5.0)
    driver.feed(0, outlier).feed(1, 3.0, outlier, 0.0)
    driver.choose(20)
    assert np.isfinite(driver.scores).all()
    assert np.isfinite(driver.memory).all()


@pytest.mark.parametrize("name", ["aff-normal-ts", "aff-poisson-ts", "aff-revenue-ts"])
def test_an_arm_starts_with_forgetting_factors_of_one_and_zeros(name: str) -> None:
    driver = Driver(db.policy(name), arms=2)
    for slot in driver.policy.slots:
        factor = slot.endswith("forgetting") and not slot.endswith("log_forgetting")
        assert driver.slot(slot).tolist() == [1.0 if factor else 0.0] * 2


def test_an_idle_arm_of_aff_poisson_ts_keeps_the_weight_of_one_count_after_lambda_fell_to_zero() -> None:
    driver = Driver(db.policy("aff-poisson-ts"), arms=2)
    driver.slot("w")[0], driver.slot("m")[0], driver.slot("log_forgetting")[0] = 1.0, 4.0, LOG_ZERO
    driver.last_played[0] = 1
    score = driver.functions.score(driver.state, 0, driver.step(9), driver.params)
    assert score == gamma(0.5 + 4.0, driver.random, SCORE, 9, 0) / (0.1 + 1.0)


@pytest.mark.parametrize("name", ["aff-normal-ucb", "robust-ucb"])
def test_a_variance_of_1e_20_times_the_squared_mean_is_rounding_error(name: str) -> None:
    """Then the variance of the rewards of all arms, here about 1, takes its place."""
    for deviation, rounding in ((0.95e-10, True), (1.05e-10, False)):
        driver = Driver(db.policy(name), arms=2).feed(0, 1.0 - deviation, 1.0, 1.0 + deviation).feed(1, 0.0, 2.0)
        score = driver.functions.score(driver.state, 0, driver.step(6), driver.params)
        assert (abs(float(score) - 1.0) > 0.01) is rounding
        own = 0.0 if rounding else deviation**2
        assert driver.slot("own_variance").tolist() == pytest.approx([own, 2.0], rel=1e-4, abs=0.0)


@pytest.mark.parametrize("policy", [db.policy("aff-normal-ucb", step_size=0), db.policy("robust-ucb")])
def test_pending_plays_count_in_the_bonus(policy: Policy) -> None:
    driver = Driver(policy, arms=3)
    driver.feed(0, 1.0, 3.0, 2.0, 4.0).feed(1, 5.0, 6.0)
    step = driver.step(20)
    for arm, (mean, size) in enumerate([(2.5, 4.0), (5.5, 2.0), (3.5, 1.0)]):  # the third arm has the mean of all
        bonus = driver.functions.score(driver.state, arm, step, driver.params) - mean
        waiting = driver.state._replace(pending=np.full(3, 3))
        later = driver.functions.score(waiting, arm, step, driver.params) - mean
        assert later == pytest.approx(bonus * math.sqrt(size / (size + 3)), rel=1e-3)
