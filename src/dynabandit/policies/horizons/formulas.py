"""Discounts and windows that follow from a horizon and a number of changes."""

import math


def discount_for(changes: int, horizon: int) -> float:
    """Return the discount of D-UCB for a number of changes; more changes than steps count as one per step."""
    return 1.0 - math.sqrt(min(changes / horizon, 1.0)) / 4.0


def window_for(changes: int, horizon: int) -> int:
    """Return the window of SW-UCB for a number of changes; it is at most the horizon."""
    return min(max(1, round(2.0 * math.sqrt(horizon * math.log(horizon) / changes))), horizon)
