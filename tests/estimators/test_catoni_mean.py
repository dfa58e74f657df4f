"""Catoni's mean against the literal one, and the limits of its parameters; policies with it have tests of their own."""

import math
from typing import Any

import numpy as np
import pytest

from dynabandit.estimators import CatoniMean
from oracles.robust_ucb import catoni, robust_variance

HEAVY = np.random.default_rng(4).standard_t(1.5, 40).tolist()


@pytest.mark.parametrize("confidence", [1e-6, 0.05, 0.5])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_the_mean_of_the_window_is_the_root_of_its_equation(confidence: float, scale: float) -> None:
    estimate = CatoniMean(window=13, confidence=confidence)
    rewards = [scale * reward for reward in HEAVY]
    for count, reward in enumerate(rewards, start=1):
        latest = rewards[max(count - 13, 0) : count]
        mean, variance, forgetting, size = estimate.update(reward).belief
        assert mean == pytest.approx(catoni(latest, confidence), rel=1e-9, abs=1e-9 * scale)
        assert variance == pytest.approx(robust_variance(latest), rel=1e-9)
        assert (forgetting, size, estimate.weight) == (1.0, len(latest), len(latest))


def test_the_window_and_the_confidence_have_defaults_and_limits() -> None:
    estimate = CatoniMean()
    assert (estimate.window, estimate.confidence) == (100, 0.05)
    assert CatoniMean(window=1).update(3.0).update(5.0).mean == 5.0
    nearly_one = math.nextafter(1.0, 0.0)
    assert CatoniMean(confidence=nearly_one).update(3.0).update(5.0).mean == pytest.approx(4.0)
    wrong: list[dict[str, Any]] = [{"window": 0}, {"confidence": 0.0}, {"confidence": 1.0}, {"confidence": 1.5}]
    for parameters in wrong:
        with pytest.raises(ValueError, match=f"{next(iter(parameters))} must be"):
            CatoniMean(**parameters)
