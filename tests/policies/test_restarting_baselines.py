"""R-BOCPD-UCB, MASTER and AdSwitch against literal implementations of their papers, without compiled code."""

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings, strategies as st

import dynabandit as db
from driver import Driver
from dynabandit.policies import learned_draws, master_ucb
from oracles import master, r_bocpd

TOLERANCE = 1e-7
STEPS, ARMS, SEEDS = 120, st.integers(2, 4), st.integers(0, 2**32)


def rewards_of(arms: int, seed: int) -> np.ndarray:
    """Fractional rewards of three pieces with other means, the second near 0; so no two weights or means are equal."""
    drawn = np.random.default_rng(seed)
    means = np.repeat(drawn.random((3, arms)) * [[1.0], [0.0], [1.0]], STEPS // 3, axis=0)
    rewards = (drawn.random((STEPS, arms)) < means).astype(float)
    return 0.9 * rewards + 0.1 * drawn.random((STEPS, arms))


def is_a_largest(expected: list[float], arm: int) -> bool:
    first = max(expected)
    return expected[arm] == first or first - expected[arm] < TOLERANCE


@settings(max_examples=15, deadline=None, derandomize=True, phases=[Phase.generate])
@given(
    parameters=st.fixed_dictionaries(
        {
            "index": st.sampled_from(["kl-ucb", "ucb"]),
            "restart": st.sampled_from(["local", "global"]),
            "rate": st.sampled_from([None, 0.2971, 0.0113]),
            "scale": st.sampled_from([0.0, 0.1, 1.0]),
            "particles": st.sampled_from([2, 3, 8, 64]),
            "horizon": st.sampled_from([127, 5003]),
        }
    ),
    arms=ARMS,
    seed=SEEDS,
)
def test_r_bocpd_ucb_is_its_oracle(parameters: dict[str, Any], arms: int, seed: int) -> None:
    driver = Driver(db.policy("r-bocpd-ucb", **parameters), arms, seed)
    rate = parameters["rate"] or 1 / parameters["horizon"]
    oracle = r_bocpd.Arms(arms, rate, parameters["particles"], parameters["restart"])
    rewards = rewards_of(arms, seed)
    for step, arm in driver.play(rewards):
        turn = oracle.forced(parameters["scale"], parameters["horizon"])
        if step <= arms:
            assert arm == step - 1  # the burn-in
        elif turn is not None:
            assert arm == turn
        else:
            expected = oracle.scores(parameters["index"])
            np.testing.assert_allclose(driver.scores, expected, rtol=TOLERANCE, atol=TOLERANCE)
            assert is_a_largest(expected, arm)
        oracle.observe(arm, float(rewards[step - 1, arm]))


def test_the_detector_finds_a_change_and_no_other() -> None:
    driver = Driver(db.policy("r-bocpd-ucb", horizon=10_000), arms=2).feed(0, *[0.0, 1.0] * 1000)
    assert driver.slot("plays").tolist() == [2000.0, 0.0]
    needed = 0
    while driver.slot("plays")[0] > 0.0:
        driver.feed(0, 1.0)
        needed += 1
    assert 5 < needed < 40


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_equal_rewards_are_no_change(reward: float) -> None:
    assert Driver(db.policy("r-bocpd-ucb", horizon=100), arms=2).feed(0, *[reward] * 500).slot("plays")[0] == 500.0


@settings(max_examples=10, deadline=None, derandomize=True, phases=[Phase.generate])
@given(scale=st.sampled_from([0.0, 0.001, 0.004, 1.0]), horizon=st.sampled_from([1, 127, 5003]), arms=ARMS, seed=SEEDS)
def test_master_ucb_is_its_oracle(scale: float, horizon: int, arms: int, seed: int) -> None:
    driver = Driver(db.policy("master-ucb", scale=scale, horizon=horizon), arms, seed)
    oracle = master.Master(arms, horizon, scale)
    rewards = rewards_of(arms, seed)
    played: tuple[int, float] | None = None
    for step, arm in driver.play(rewards):
        if played is not None:
            oracle.observe(*played, lambda order: learned_draws.draw(driver.shared, master_ucb.HASH, order, 0))
        expected = oracle.scores()
        np.testing.assert_allclose(driver.scores, expected, rtol=TOLERANCE, atol=TOLERANCE)
        assert is_a_largest(expected, arm)
        played = arm, float(rewards[step - 1, arm])
