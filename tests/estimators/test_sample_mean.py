import statistics

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dynabandit.core.compilation import compiled
from dynabandit.estimators import SampleMean
from dynabandit.policies.memories.sample_mean import START, Sums, load, observe

REWARDS = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=60)
compiled_observe = compiled(observe)


@given(REWARDS)
def test_it_equals_the_textbook_mean_and_variance(rewards: list[float]) -> None:
    estimate = SampleMean()
    for reward in rewards:
        estimate.update(reward)
    variance = statistics.variance(rewards) if len(rewards) > 1 else 0.0
    assert estimate.mean == pytest.approx(statistics.fmean(rewards), abs=1e-12)
    assert estimate.variance == pytest.approx(variance, abs=1e-12)
    assert estimate.weight == estimate.effective_size == len(rewards)
    assert estimate.forgetting == 1.0


@given(REWARDS)
def test_compiled_and_interpreted_are_equal_bit_for_bit(rewards: list[float]) -> None:
    fast = slow = START
    for reward in rewards:
        fast, slow = Sums(*compiled_observe(fast, reward, 0.0)), observe(slow, reward, 0.0)
    assert fast == slow


def test_a_state_is_read_from_the_column_of_its_arm() -> None:
    memory = np.arange(12.0).reshape(4, 3)
    assert load(memory, 1) == Sums(total=1.0, squares=4.0, plays=7.0)
