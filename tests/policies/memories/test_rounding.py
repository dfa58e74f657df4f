"""Where rounding errors could show in the numbers of an arm."""

from typing import Any

import pytest

from dynabandit.policies.compositions import compose
from dynabandit.policies.memories.pooled_moments import is_variance
from dynabandit.policies.memories.sample_mean import Sums
from dynabandit.policies.memories.window import GrowingWindow, Window, retract
from dynabandit.policies.rules.greedy import Greedy
from dynabandit.validation import BOUNDED


def test_a_window_that_lost_its_last_reward_holds_nothing_of_its_rounding() -> None:
    assert retract(Sums(0.3, 0.1, 1.0), 0.3) == (0.0, 0.0, 0.0)
    assert retract(Sums(0.3, 0.05, 2.0), 0.4) == (0.0, 0.0, 1.0)
    assert retract(Sums(2.5, 2.0, 2.0), 0.5) == (1.0, 1.75, 1.0)
    for memory in (Window(window=4), GrowingWindow()):
        assert compose(memory=memory, rule=Greedy()).rewards == BOUNDED, (
            "other rewards may sum to more than their number"
        )


@pytest.mark.parametrize(("function", "share"), [(is_variance, 1e-20), (is_variance.in_single, 1e-11)])  # type: ignore[attr-defined]
@pytest.mark.parametrize("mean", [0.25, 4.0])
def test_a_variance_up_to_a_share_of_the_squared_mean_is_rounding_error(
    function: Any, share: float, mean: float
) -> None:
    assert not function(share * mean * mean, mean)
    assert function(1.01 * share * mean * mean, mean)
