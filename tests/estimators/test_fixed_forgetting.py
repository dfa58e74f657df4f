import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dynabandit.core.compilation import compiled
from dynabandit.estimators import FixedForgetting, SampleMean
from dynabandit.policies.memories.adaptive import AdaptiveState, observe
from oracles import paper as oracle
from tools.laws import assert_mean, size

REWARDS = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40)
FACTORS = st.sampled_from([0.0, 0.3, 0.9, 0.99, 1.0])


def fed(rewards: list[float], forgetting: float) -> FixedForgetting:
    estimate = FixedForgetting(forgetting)
    for reward in rewards:
        estimate.update(reward)
    return estimate


@given(REWARDS, FACTORS)
def test_it_equals_the_weighted_sums_it_stands_for(rewards: list[float], forgetting: float) -> None:
    estimate = fed(rewards, forgetting)
    size_ = oracle.fixed_forgetting_effective_size(rewards, forgetting)
    assert estimate.mean == pytest.approx(oracle.fixed_forgetting_mean(rewards, forgetting), abs=1e-12)
    assert estimate.effective_size == pytest.approx(size_, rel=1e-12)
    assert estimate.weight == pytest.approx(sum(forgetting**age for age in range(len(rewards))), rel=1e-12)
    assert estimate.forgetting == forgetting


@given(REWARDS, FACTORS)
def test_its_variance_is_that_of_equation_10(rewards: list[float], forgetting: float) -> None:
    factors = [forgetting] * len(rewards)
    expected = oracle.variance_of(rewards, factors) if forgetting > 0.0 else 0.0
    assert fed(rewards, forgetting).variance == pytest.approx(expected, abs=1e-11)


@given(REWARDS)
def test_a_factor_of_one_is_the_sample_mean(rewards: list[float]) -> None:
    plain = SampleMean()
    for reward in rewards:
        plain.update(reward)
    assert fed(rewards, 1.0).belief == pytest.approx(plain.belief, abs=1e-12)


@given(REWARDS)
def test_a_factor_of_zero_sees_the_latest_reward_alone(rewards: list[float]) -> None:
    estimate = fed(rewards, 0.0)
    assert (estimate.mean, estimate.variance, estimate.effective_size) == (rewards[-1], 0.0, 1.0)


@given(REWARDS, FACTORS)
def test_compiled_and_interpreted_are_equal_bit_for_bit(rewards: list[float], forgetting: float) -> None:
    estimate = FixedForgetting(forgetting)
    state = estimate.state
    for reward in rewards:
        state = AdaptiveState(*compiled_observe(state, reward, *estimate.params))
    assert state == fed(rewards, forgetting).state


compiled_observe = compiled(observe)


@pytest.mark.parametrize("forgetting", [0.5, 0.9])
def test_the_variance_of_independent_rewards_is_unbiased(forgetting: float) -> None:
    streams = (np.random.default_rng(2).random((size(4000), 8)) < 0.3).astype(float)
    assert_mean(np.array([fed(stream.tolist(), forgetting).variance for stream in streams]), 0.3 * 0.7)


@pytest.mark.parametrize("forgetting", [-0.1, 1.1, math.nan])
def test_a_factor_outside_its_range_is_refused(forgetting: float) -> None:
    with pytest.raises(ValueError, match=rf"forgetting must be a number in \[0, 1\], got {forgetting}"):
        FixedForgetting(forgetting)
