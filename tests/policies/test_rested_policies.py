"""The policies for rested arms against literal implementations of their papers, interpreted.

The oracle follows the history that the policy made. Scores are compared to 1e-7; FEWA and wSWA have no scores in their
papers, only arms that may be played.
"""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dynabandit as db
from dynabandit.policies.base import Policy
from dynabandit.policies.whole import r_ed_ucb, rotting, w_swa
from oracles import fewa as fewa_oracle, r_ed_ucb as r_ed_ucb_oracle, raw_ucb as raw_ucb_oracle, w_swa as w_swa_oracle
from tools.driver import Driver

TOLERANCE = 1e-7
History = list[tuple[int, float]]
ALPHAS, SIGMAS = st.sampled_from([0.06, 0.5, 1.4, 4.0]), st.sampled_from([0.1, 0.5, 1.0])
PARAMETERS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "raw-ucb": {"alpha": ALPHAS, "sigma": SIGMAS},
    "fewa": {"alpha": ALPHAS, "sigma": SIGMAS},
    "w-swa": {
        "alpha": st.sampled_from([0.02, 0.2, 1.0]),
        "sigma": SIGMAS,
        "capacity": st.sampled_from([1, 3, 1000]),
    },
    "r-ed-ucb": {
        "alpha": ALPHAS,
        "sigma": st.sampled_from([0.001, 0.1, 0.5]),
        "epsilon": st.sampled_from([0.1, 0.25, 0.4]),
        "window": st.sampled_from([1, 3, 1000]),
    },
}
each_policy = pytest.mark.parametrize("name", PARAMETERS)


def allowed(policy: Any, history: History, arms: int, step: int, scores: np.ndarray) -> set[int]:
    """The arms that the oracle may play; an index must be that of the oracle, too."""
    if policy.name == "fewa":
        return fewa_oracle.candidates(history, arms, step, policy.alpha, policy.sigma)
    if policy.name == "w-swa":
        return w_swa_oracle.candidates(history, arms, policy.alpha, policy.sigma, policy.capacity)
    if policy.name == "raw-ucb":
        expected = [raw_ucb_oracle.index(history, arm, step, policy.alpha, policy.sigma) for arm in range(arms)]
    else:
        own = policy.alpha, policy.sigma, policy.epsilon, policy.window
        expected = [r_ed_ucb_oracle.index(history, arm, step, *own) for arm in range(arms)]
    np.testing.assert_allclose(scores, expected, rtol=TOLERANCE, atol=TOLERANCE)
    best = max(expected)
    return {arm for arm in range(arms) if expected[arm] == best or best - expected[arm] < TOLERANCE}


def agrees_with_oracle(policy: Policy, arms: int, steps: int, seed: int, *, fractions: bool = False) -> None:
    drawn = np.random.default_rng(seed)
    means = np.repeat(drawn.random((4, arms)), -(-steps // 4), axis=0)[:steps]
    rewards = means if fractions else (drawn.random((steps, arms)) < means).astype(float)
    driver = Driver(policy, arms, seed)
    history: History = []
    for step, arm in driver.play(rewards):
        if step > policy.burn_in * arms:
            assert arm in allowed(policy, history, arms, step, driver.scores), step
        history.append((arm, float(rewards[step - 1, arm])))


@each_policy
@settings(max_examples=15, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_choice_is_that_of_the_oracle(name: str, data: st.DataObject) -> None:
    policy = db.policy(name, **data.draw(st.fixed_dictionaries(PARAMETERS[name])))
    arms, seed = data.draw(st.integers(2, 5)), data.draw(st.integers(0, 2**32))
    agrees_with_oracle(policy, arms, steps=60, seed=seed)


@each_policy
def test_a_long_run_agrees_with_the_oracle(name: str) -> None:
    policy = db.policy(name, sigma=0.02) if name == "r-ed-ucb" else db.policy(name)
    agrees_with_oracle(policy, arms=3, steps=300, seed=42)


@each_policy
def test_rewards_between_zero_and_one_agree_with_the_oracle(name: str) -> None:
    agrees_with_oracle(db.policy(name), arms=3, steps=70, seed=7, fractions=True)


def test_every_full_window_has_the_mean_of_its_rewards() -> None:
    driver = Driver(db.policy("raw-ucb"), arms=2)
    rewards = np.random.default_rng(5).random(200).tolist()
    for n, reward in enumerate(rewards, start=1):
        driver.feed(0, reward)
        for length, mean in raw_ucb_oracle.window_means(rewards[:n]).items():
            found = rotting.window_mean(driver.memory, 0, length.bit_length() - 1)
            assert found == pytest.approx(mean, abs=1e-12), (n, length)


def test_windows_stop_doubling_at_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotting, "WINDOWS", 3)
    driver = Driver(db.policy("raw-ucb"), arms=2).feed(0, *[1.0] * 20)
    assert driver.memory[rotting.CURRENT : rotting.CURRENT + 4, 0].tolist() == [1.0, 2.0, 4.0, 0.0]
    driver.choose(30)
    assert driver.scores[0] == pytest.approx(1.0 + driver.common(30) / 2.0)


def test_a_window_that_is_not_full_yet_is_not_touched() -> None:
    driver = Driver(db.policy("raw-ucb"), arms=2).feed(0, *[1.0] * 7)
    windows = driver.memory[rotting.CURRENT :, 0].reshape(2, rotting.WINDOWS)
    assert windows[0].tolist() == [1.0, 2.0, 4.0, *[0.0] * 29]
    assert windows[1, 3:].tolist() == [0.0] * 29


def pend(driver: Driver, *counts: int) -> Driver:
    driver.state.pending[:] = counts
    return driver


def test_pending_plays_narrow_every_window_of_raw_ucb() -> None:
    driver = pend(Driver(db.policy("raw-ucb"), arms=3), 2, 2, 0)
    driver.feed(0, 1.0, 0.0)
    driver.choose(9)
    width = 0.5 * math.sqrt(2.0 * 1.4 * math.log(9))
    two = [0.0 + width / math.sqrt(1 + 2), 0.5 + width / math.sqrt(2 + 2)]
    assert driver.scores.tolist() == pytest.approx([min(two), 1 / 3 + width / math.sqrt(2), math.inf])


def test_the_filter_of_fewa_is_empty_while_an_arm_has_no_play() -> None:
    driver = Driver(db.policy("fewa"), arms=2).feed(0, 1.0)
    assert driver.shared[rotting.DEPTH] == 0.0
    driver.feed(1, 1.0)
    assert driver.shared[rotting.DEPTH] == 1.0


def test_pending_plays_count_as_plays_in_fewa() -> None:
    driver = pend(Driver(db.policy("fewa"), arms=3), 0, 5, 0)
    for arm in (0, 2):
        driver.last_played[arm] = 1
        driver.feed(arm, 1.0, 1.0, 1.0)
    driver.choose(20)
    # The second arm passes windows that only its pending plays fill; the filter ends at the window of 4
    assert driver.shared[rotting.DEPTH] == 2.0
    assert driver.scores.tolist() == [-3.0, -5.0, -3.0]
    driver.feed(1, 1.0)  # not enough for the window of 2, which it passes as well
    driver.choose(20)
    assert driver.scores.tolist() == [-3.0, -6.0, -3.0]
    driver.feed(1, 0.0)
    driver.choose(21)
    assert driver.scores.tolist() == [-3.0, 0.0 - 2.0**49, -3.0]


def test_fewa_prefers_arms_that_pass_more_windows_and_a_mean_at_the_threshold_passes() -> None:
    driver = Driver(db.policy("fewa"), arms=4)
    for arm, rewards in enumerate([(0.0, 0.0), (0.0, 0.5), (0.5, 0.5), (1.0, 1.0)]):
        driver.feed(arm, *rewards)
    driver.shared[rotting.DEPTH] = 2.0
    driver.shared[rotting.THRESHOLDS : rotting.THRESHOLDS + 2] = 0.5
    driver.choose(9)
    assert driver.scores.tolist() == [-rotting.FILTERED, 1.0 - rotting.FILTERED, -2.0, -2.0]


def test_pending_plays_end_the_first_phase_of_w_swa() -> None:
    driver = pend(Driver(db.policy("w-swa"), arms=2), 1, 0)
    assert driver.shared[w_swa.WINDOW] == 1.0
    driver.choose(2)
    assert driver.scores.tolist() == [0.5, 1.0 + 1.0]
    driver.shared[w_swa.WINDOW] = 4.0
    driver.feed(0, 1.0)
    driver.choose(3)
    assert driver.scores.tolist() == [1.0 + (4.0 - 1.0 - 1.0), 1.0 + 4.0]


def test_pending_plays_shrink_the_bonus_of_r_ed_ucb() -> None:
    driver = pend(Driver(db.policy("r-ed-ucb"), arms=4), 4, 0, 3, 8)
    driver.feed(0, *[1.0] * 4).feed(1, *[1.0] * 4)
    driver.choose(30)
    width = 0.5 * math.sqrt(10.0 * 2.0 * math.log(30))
    with_pending = 1.0 + width * (30 - 8 + 2 - 1) / 2**1.5
    without = 1.0 + width * (30 - 4 + 1 - 1)
    unseen = 1 / 9 + width * (30 - 8 + 2 - 1) / 2**1.5
    assert driver.scores.tolist() == pytest.approx([with_pending, without, math.inf, unseen])
    eighth = pend(Driver(db.policy("r-ed-ucb"), arms=2), 1, 0).feed(0, *[1.0] * 7)  # whose window is 2
    eighth.choose(30)
    assert eighth.scores[0] == pytest.approx(with_pending)


def test_beliefs_are_the_means_that_the_policies_use() -> None:
    rewards = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0]
    policy = db.policy("r-ed-ucb")
    driver = Driver(policy, arms=2)
    assert math.isnan(policy.belief(driver.memory[:, 0], driver.shared).mean)
    assert policy.belief(driver.memory[:, 0], driver.shared)[1:] == (0.0, 1.0, 0.0)
    driver.feed(0, *rewards[:3])
    assert policy.belief(driver.memory[:, 0], driver.shared) == pytest.approx((2 / 3, 2 / 9, 1.0, 3.0))
    driver.feed(0, *rewards[3:6])
    assert policy.belief(driver.memory[:, 0], driver.shared) == (1.0, 0.0, 1.0, 1.0)
    driver.feed(0, *rewards[6:])
    assert policy.belief(driver.memory[:, 0], driver.shared) == (0.0, 0.0, 1.0, 2.0)
    assert driver.slot("plays")[0] == 8.0
    driver.feed(0, 1.0, 0.5)
    assert policy.belief(driver.memory[:, 0], driver.shared) == (0.75, 0.1875, 1.0, 2.0)
    assert len(policy.slots) == r_ed_ucb.RING


def test_the_belief_of_w_swa_is_its_window_in_this_run() -> None:
    policy = db.policy("w-swa", capacity=2)
    driver = Driver(policy, arms=2).feed(1, 1.0, 1.0)  # the first run has two steps, the second one four
    assert math.isnan(policy.belief(driver.memory[:, 1], driver.shared).mean)
    driver.shared[w_swa.WINDOW] = 2.0
    driver.feed(1, 1.0, 0.5, 0.0)
    assert policy.belief(driver.memory[:, 1], driver.shared) == pytest.approx((0.25, 0.125, 1.0, 2.0))


def test_rounding_errors_do_not_move_the_mean_of_r_ed_ucb_out_of_its_range() -> None:
    policy = db.policy("r-ed-ucb")
    column = np.zeros(policy.memory_size())
    for recent, mean in ((-1e-17, 0.0), (np.nextafter(2.0, 3.0), 1.0)):
        column[:4] = [1.0, 8.0, 2.0, recent]  # total, plays, h and the sum of the latest h rewards
        assert policy.belief(column, np.zeros(0))[:2] == (mean, 0.0)
