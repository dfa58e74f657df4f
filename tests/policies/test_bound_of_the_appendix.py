"""The appendix bounds P(E[mean] - mean >= B) by 0.05: its coverage is measured."""

import numpy as np
import pytest

from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.streams import REWARD, Stream, stream, uniform
from dynabandit.policies.memories import adaptive as adaptive_forgetting
from dynabandit.policies.memories.adaptive import AdaptiveParams
from dynabandit.policies.rules.hoeffding import CONFIDENCE, bonus, level_for

LEVEL = level_for(CONFIDENCE)


@kernel
def exceedances(mean: float, streams: int, observations: int, params: AdaptiveParams, random: Stream) -> int:
    count = 0
    for number in range(streams):
        state = adaptive_forgetting.START
        for step in range(1, observations + 1):
            reward = 1.0 if uniform(random, REWARD, step, number) < mean else 0.0
            state = adaptive_forgetting.observe(state, reward, params)
        if mean - state.mean >= bonus(state.w, state.k, LEVEL):
            count += 1
    return count


@pytest.mark.parametrize("mean", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("observations", [10, 200])
def test_bonus_is_exceeded_in_at_most_one_of_twenty_streams(mean: float, observations: int, scale: int) -> None:
    # A share of at most 0.05 + 4.75 standard deviations: a true share of 0.05 would fail once in a million seeds
    streams = 200 * scale
    params = adaptive_forgetting.make_params(0.001)
    count = compiled(exceedances)(mean, streams, observations, params, stream(11))
    assert count / streams <= 0.05 + 4.75 * np.sqrt(0.05 * 0.95 / streams)
