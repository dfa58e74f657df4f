"""Checks of estimators."""

import math
from collections.abc import Callable

import numpy as np

from dynabandit.estimators import Estimator


def require(condition: object, message: str) -> None:
    """Raise an error that says which rule is violated, unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def starts_empty(make: Callable[[], Estimator]) -> None:
    """A new estimator has no mean and no weight."""
    new = make()
    require(math.isnan(new.mean), "mean must be NaN before the first reward")
    require(new.weight == 0.0, "weight must be 0 before the first reward")


def constant_rewards(make: Callable[[], Estimator]) -> None:
    """Equal rewards have that mean and no variance."""
    for constant in (0.0, 1.0):
        estimate = make()
        for _ in range(50):
            estimate.update(constant)
        require(abs(estimate.mean - constant) < 1e-9, f"mean of rewards that are all {constant} must be {constant}")
        require(abs(estimate.variance) < 1e-9, f"variance of rewards that are all {constant} must be 0")


def _rewards() -> np.ndarray:
    return (np.arange(200) * 7919 % 5 < 2).astype(float)


def stays_in_range(make: Callable[[], Estimator]) -> None:
    """Every number stays in its range, and equal rewards give equal beliefs."""
    first, second = make(), make()
    for n, reward in enumerate(_rewards(), start=1):
        require(first.update(reward) is first, "update must return the estimator")
        second.update(reward)
        require(0.0 <= first.mean <= 1.0, f"mean must stay in [0, 1], got {first.mean} after {n} rewards")
        require(0.0 <= first.forgetting <= 1.0, f"forgetting must stay in [0, 1], got {first.forgetting}")
        require(first.variance >= 0.0, f"variance must not be negative, got {first.variance}")
        require(0.0 < first.weight <= n + 1e-9, f"weight must be in (0, {n}] after {n} rewards, got {first.weight}")
        size = first.effective_size
        require(1.0 - 1e-9 <= size <= n + 1e-9, f"effective_size must be in [1, {n}], got {size}")
    require(first.belief == second.belief, "two estimators with the same rewards must agree")


def rejects_invalid_rewards(make: Callable[[], Estimator]) -> None:
    """An invalid reward raises an error and changes nothing."""
    estimate = make()
    for reward in _rewards():
        estimate.update(reward)
    before = estimate.belief
    domain = estimate.rewards
    for invalid in (math.nan, 1.1 * domain.low - 0.1, 1.1 * domain.high):
        try:
            estimate.update(invalid)
        except (TypeError, ValueError):
            require(estimate.belief == before, f"a rejected reward {invalid} must change nothing")
        else:
            require(False, f"update must reject the reward {invalid}")
