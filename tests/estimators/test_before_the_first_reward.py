"""What estimators hold before the first reward, and where rounding could show."""

import math
from typing import Any

import numpy as np
import pytest

from dynabandit.estimators import (
    AdaptiveForgetting,
    CatoniMean,
    Estimator,
    FixedForgetting,
    SampleMean,
    SlidingWindow,
    UnitFreeForgetting,
)
from dynabandit.policies.memories.adaptive import (
    START,
    AdaptiveState,
    load,
    make_params,
    moved,
    observe,
    slope,
    store,
)
from dynabandit.policies.memories.pooled_moments import is_variance
from dynabandit.policies.memories.sample_mean import Sums
from dynabandit.policies.memories.window import retract

EMPTY: list[tuple[Estimator, float]] = [
    (SampleMean(), 1.0), (SlidingWindow(3), 1.0), (FixedForgetting(0.9), 0.9), (AdaptiveForgetting(), 1.0),
    (UnitFreeForgetting(), 1.0), (CatoniMean(), 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("estimate", "forgetting"), EMPTY, ids=lambda value: type(value).__name__)
def test_nothing_is_believed_before_the_first_reward(estimate: Estimator, forgetting: float) -> None:
    belief = estimate.belief
    assert math.isnan(belief.mean)
    assert belief[1:] == (0.0, forgetting, 0.0)
    assert estimate.weight == 0.0


def test_adaptive_forgetting_starts_with_a_factor_of_one_and_zeros() -> None:
    assert tuple(START) == (1.0, *[0.0] * 9)
    params = make_params()
    assert tuple(params) == (0.001, False, 0.0, False)
    assert tuple(make_params("variance-scaled", floor=0.25, loss="bernoulli")) == (0.0001, True, 0.25, True)
    assert moved(START, 0.5) == (1.0, 0.5, 1.0, 1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0)
    assert UnitFreeForgetting().update(0.5).state == moved(START, 0.5)  # no step without a variance
    assert AdaptiveForgetting().update(0).update(1).state == observe(observe(START, 0.0, params), 1.0, params)


def test_a_state_is_read_as_it_was_written_in_the_column_of_its_arm() -> None:
    memory = np.arange(36.0).reshape(12, 3)
    state = AdaptiveState(*memory[:10, 1])
    assert load(memory, 1) == state == (1.0, 4.0, 7.0, 10.0, 13.0, 16.0, 19.0, 22.0, 25.0, 28.0)
    before = memory.copy()
    store(memory, 2, state)
    before[:10, 2] = before[:10, 1]
    assert (memory == before).all()


@pytest.mark.parametrize("make", [SampleMean, lambda: SlidingWindow(5), lambda: FixedForgetting(0.9)])
def test_rounding_makes_no_variance_negative(make: type[SampleMean]) -> None:
    for reward in np.linspace(0.01, 0.99, 99).tolist():
        estimate = make()
        for _ in range(12):
            assert 0.0 <= estimate.update(reward).variance < 1e-14


def test_a_window_that_lost_its_last_reward_holds_nothing_of_its_rounding() -> None:
    assert retract(Sums(0.3, 0.1, 1.0), 0.3) == (0.0, 0.0, 0.0)
    assert retract(Sums(0.3, 0.05, 2.0), 0.4) == (0.0, 0.0, 1.0)
    assert retract(Sums(2.5, 2.0, 2.0), 0.5) == (1.0, 1.75, 1.0)


@pytest.mark.parametrize(("function", "share"), [(is_variance, 1e-20), (is_variance.in_single, 1e-11)])  # type: ignore[attr-defined]
@pytest.mark.parametrize("mean", [0.25, 4.0])
def test_a_variance_up_to_a_share_of_the_squared_mean_is_rounding_error(
    function: Any, share: float, mean: float
) -> None:
    assert not function(share * mean * mean, mean)
    assert function(1.01 * share * mean * mean, mean)


def test_a_weight_of_one_has_a_slope_after_everything_was_forgotten() -> None:
    assert slope(AdaptiveState(0.0, 1.0, 1.0, 1.0, 3.0, 2.0, 1.0, 0.0, 0.0, 0.0)) == 1.0
