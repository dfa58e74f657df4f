"""The likelihood ratio test finds changes, and finds few where there are none."""

import math

import numpy as np
import pytest

from dynabandit.stats.change_detection import FALSE_ALARM, ChangeDetector, has_change, likelihood_ratio


def log_likelihood(rewards: np.ndarray) -> float:
    p = rewards.mean()
    return float(np.where(rewards > 0.0, math.log(max(p, 1e-300)), math.log(max(1.0 - p, 1e-300))).sum())


def test_the_ratio_is_that_of_the_likelihoods() -> None:
    rewards = (np.random.default_rng(1).random(40) < 0.4).astype(float)
    for split in (1, 10, 39):
        expected = log_likelihood(rewards[:split]) + log_likelihood(rewards[split:]) - log_likelihood(rewards)
        found = likelihood_ratio(split, rewards[:split].sum(), 40, rewards.sum(), rewards.mean())
        assert found == pytest.approx(expected)


def test_a_change_is_some_split_that_reaches_the_threshold() -> None:
    rewards = np.concatenate([np.zeros(20), np.ones(12)])
    sums = rewards.cumsum()[3::4]  # after 4, 8, 12, ... rewards
    summary = (4.0, 32.0, rewards.sum(), rewards.mean())
    largest = max(likelihood_ratio(4 * n + 4, sums[n], *summary[1:]) for n in range(7))
    assert largest == pytest.approx(-log_likelihood(rewards))
    assert has_change(sums, *summary, threshold=largest)
    assert not has_change(sums, *summary, threshold=np.nextafter(largest, math.inf))


@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_equal_rewards_have_no_change(mean: float) -> None:
    assert not has_change(mean * np.arange(10.0, 50.0, 10.0), 10.0, 50.0, 50.0 * mean, mean, threshold=-1.0)


@pytest.mark.parametrize("mean", [0.05, 0.5])
def test_an_arm_that_does_not_change_rarely_raises_an_alarm(mean: float) -> None:
    # 200 arms with 1,000 rewards each: with a rate of 0.01 more than 8 alarms have probability 0.0002
    generator = np.random.default_rng(3)
    alarms = 0
    for _ in range(200):
        detector = ChangeDetector()
        alarms += any(detector.add(float(value), step) for step, value in enumerate(generator.random(1_000) < mean))
    assert alarms <= 8
    assert FALSE_ALARM == 0.01


def test_a_late_change_is_found_after_many_rewards_with_few_blocks() -> None:
    generator = np.random.default_rng(5)
    detector = ChangeDetector()
    values = np.concatenate([generator.random(50_000) < 0.3, generator.random(400) < 0.1])
    found = [change for step, value in enumerate(values) if (change := detector.add(float(value), step))]
    assert len(found) == 1
    assert abs(found[0].since - 50_000) < 100
    assert len(detector.to_list()[0]) < 60


def test_a_restored_detector_continues_where_it_was() -> None:
    one = ChangeDetector()
    values = [0.0] * 100 + [1.0] * 100
    for step, value in enumerate(values[:90]):
        assert one.add(value, step) is None
    other = ChangeDetector.from_list(one.to_list())
    pairs = [(one.add(value, step), other.add(value, step)) for step, value in enumerate(values[90:], start=90)]
    assert all(first == second for first, second in pairs)
    assert any(first is not None for first, _ in pairs)
