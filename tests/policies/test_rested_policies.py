"""The policies for rested arms: windows, filters, runs and pending plays."""

import math

import numpy as np
import pytest

import dynabandit as db
from dynabandit.policies.whole import r_ed_ucb, rotting, w_swa
from oracles import raw_ucb as raw_ucb_oracle
from tools.driver import Driver


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
