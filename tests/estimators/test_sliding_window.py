import math
import statistics

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dynabandit.estimators import SampleMean, SlidingWindow
from oracles import paper as oracle

REWARDS = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=60)
WINDOWS = st.integers(1, 12)


@given(REWARDS, WINDOWS)
def test_it_equals_the_plain_statistics_of_the_latest_rewards(rewards: list[float], window: int) -> None:
    estimate = SlidingWindow(window)
    for n, reward in enumerate(rewards, start=1):
        estimate.update(reward)
        recent = rewards[max(0, n - window) : n]
        variance = statistics.variance(recent) if len(recent) > 1 else 0.0
        assert estimate.mean == pytest.approx(oracle.window_mean(rewards[:n], window), abs=1e-12)
        assert estimate.variance == pytest.approx(variance, abs=1e-12)
        assert estimate.weight == estimate.effective_size == len(recent)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=200), WINDOWS)
def test_it_never_drifts_with_rewards_of_zero_and_one(rewards: list[int], window: int) -> None:
    estimate = SlidingWindow(window)
    for reward in rewards:
        estimate.update(reward)
    assert estimate.mean == oracle.window_mean(rewards, window)


@given(REWARDS, WINDOWS)
def test_rounding_moves_no_mean_out_of_its_range(rewards: list[float], window: int) -> None:
    estimate = SlidingWindow(window)
    for reward in [*rewards, *[0.0] * window, *rewards, *[1.0] * window]:
        assert 0.0 <= estimate.update(reward).mean <= 1.0


def test_a_window_of_zeros_has_no_negative_mean() -> None:
    estimate = SlidingWindow(2)
    for reward in (0.1, 0.7, 0.2, 0.0, 0.0):
        estimate.update(reward)
    assert estimate.mean == pytest.approx(0.0, abs=1e-15)
    assert estimate.mean >= 0.0


@given(REWARDS)
def test_a_window_that_is_not_full_is_the_sample_mean(rewards: list[float]) -> None:
    estimate, plain = SlidingWindow(len(rewards)), SampleMean()
    for reward in rewards:
        estimate.update(reward)
        plain.update(reward)
    assert estimate.belief == plain.belief


def test_many_rewards_leave_the_mean_of_the_window() -> None:
    rewards = np.random.default_rng(3).random(20_000)
    estimate = SlidingWindow(50)
    for reward in rewards:
        estimate.update(reward)
    assert estimate.mean == pytest.approx(math.fsum(rewards[-50:]) / 50, abs=1e-11)


@pytest.mark.parametrize(
    ("window", "error"),
    [(0, ValueError), (-3, ValueError), (2.5, TypeError), ("9", TypeError)],
)
def test_a_window_that_is_no_count_is_refused(window: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"window must be a whole number of at least 1, got {window!r}"):
        SlidingWindow(window)  # type: ignore[arg-type]
