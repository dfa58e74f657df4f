"""Policies that detect changes: they find them, they find no others, and every arm is looked at."""

import math
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.policies.detectors import glr
from dynabandit.service.domain import warm_start
from oracles import upper_bounds
from tools.driver import Driver

STILL = [0.0, 1.0] * 2000
GLR = {"horizon": 10_000}
ONE_CHANGE = {"changes": 1, "horizon": 10_000}
DETECTORS: dict[str, dict[str, Any]] = {
    "glr-kl-ucb": GLR,
    "glr-kl-ucb-diminishing": GLR,
    "cusum-ucb": ONE_CHANGE,
    "cusum-kl-ucb": ONE_CHANGE,
    "m-ucb": {**ONE_CHANGE, "window": 200},
    "m-kl-ucb": {**ONE_CHANGE, "window": 200},
}
RESTARTS_ALL = ("m-ucb", "m-kl-ucb", "glr-kl-ucb, global")


def detector(name: str) -> Driver:
    name, _, restart = name.partition(", ")
    more = {"restart": restart} if restart else {}
    return Driver(db.policy(name, **DETECTORS[name], **more), arms=3, interpreted=False)


def plays(driver: Driver) -> list[float]:
    return driver.slot("plays").tolist()


@pytest.mark.parametrize("name", [*DETECTORS, "glr-kl-ucb, global"])
def test_a_change_is_found_and_what_was_before_it_forgotten(name: str) -> None:
    driver = detector(name).feed(0, *STILL[:400]).feed(2, *STILL[:10]).feed(1, *STILL[:400])
    needed = 0
    while plays(driver)[1] > 0.0:
        driver.feed(1, 1.0)
        needed += 1
        assert needed < 150
    assert needed > 5
    assert plays(driver) == ([0.0] * 3 if name in RESTARTS_ALL else [400.0, 0.0, 10.0])
    assert driver.slot("mean")[1] == math.inf


@pytest.mark.parametrize("name", DETECTORS)
def test_without_a_change_nothing_is_ever_restarted(name: str) -> None:
    driver = detector(name).feed(1, *STILL)
    assert plays(driver) == [0.0, 4000.0, 0.0]


@pytest.mark.parametrize("reward", [0.0, 1.0])
@pytest.mark.parametrize("name", DETECTORS)
def test_equal_rewards_are_no_change(name: str, reward: float) -> None:
    assert plays(detector(name).feed(1, *[reward] * 3000)) == [0.0, 3000.0, 0.0]


def test_a_late_change_is_found_among_the_few_splits_that_are_kept() -> None:
    policy = db.policy("glr-kl-ucb", horizon=100_000, capacity=8)
    driver = Driver(policy, arms=2, interpreted=False).feed(0, *STILL * 2)
    assert driver.slot("stride")[0] == 10 * 2**7  # 8,000 plays in at most 8 pieces
    assert policy.memory_size() == len(policy.slots) + 8
    driver.feed(0, *[1.0] * 1500)
    assert driver.shared[glr.RESTARTS] == 1.0


def test_the_splits_that_are_kept_are_the_oracles() -> None:
    rewards = np.random.default_rng(5).random(700).round(3)
    driver = Driver(db.policy("glr-kl-ucb", delta=1e-9, scale=0.0, spacing=3, capacity=6), arms=2)
    for n, reward in enumerate(rewards, start=1):
        driver.feed(0, float(reward))
        splits = upper_bounds.glr_candidates(n, 3, 6)
        kept = driver.memory[len(driver.policy.slots) :, 0][: len(splits)]
        assert kept == pytest.approx([rewards[:s].sum() for s in splits], rel=1e-12)


@pytest.mark.parametrize("restarts", [0, 1, 3, 20])
@pytest.mark.parametrize("schedule", ["growing", "constant"])
def test_the_share_of_forced_exploration_grows_with_the_root_of_the_number_of_restarts(
    schedule: str, restarts: int
) -> None:
    policy = db.policy("glr-kl-ucb", horizon=1000, schedule=schedule, changes=5)
    driver = Driver(policy, arms=2)
    driver.shared[glr.RESTARTS] = restarts
    factor = restarts + 1 if schedule == "growing" else 5
    share = 0.1 * math.sqrt(factor * 2 * math.log(1000) / 1000)
    for step in range(1, 200):
        turn = driver.common(step)
        expected = upper_bounds.in_turn(step, 2, share)
        assert (None if turn > 0.0 else int(-turn) - 1) == expected


# --- A Bandit ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("oracle-restart", {}, "needs to be told the true means"),
        (
            "m-ucb",
            {"changes": 1, "horizon": 9, "window": 10**9},
            "would keep 1000000005 numbers of each of 2 arms, but a bandit keeps at most 100000000 in all",
        ),
    ],
)
def test_a_bandit_says_what_it_has_to_be_told(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        db.Bandit(name, arms=["a", "b"], **parameters)


def test_the_service_refuses_a_window_of_any_length() -> None:
    with pytest.raises(
        ValueError,
        match=r"^window must be smaller: policy 'm-ucb' with 2 arms, changes=1, horizon=9, window=10000000 would keep "
        r"20000012 numbers, but at most 4000000 are possible$",
    ):
        warm_start.check_policy_size("m-ucb", {"changes": 1, "horizon": 9, "window": 10**7}, arms=2)


def test_an_arm_that_is_added_counts_its_time_from_then_on() -> None:
    bandit = db.Bandit("glr-kl-ucb", arms=["a", "b"], seed=1, horizon=1000)
    for _ in range(50):
        bandit.reward(bandit.choose(), 0.5)
    bandit.add_arm("c")
    assert bandit.choose() == "c" or bandit.choose() == "c"
    assert bandit._memory[bandit.policy.slots.index("started")].tolist() == [0.0, 0.0, 50.0]
