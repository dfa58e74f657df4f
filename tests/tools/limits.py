"""The values next to the ends of an interval of valid ones, on both sides."""

import math
from typing import Any

LAST_STEP, HUGE = 2**32 - 1, 1e300
Values = tuple[Any, ...]


def numbers(low: float, high: float = math.inf, *, opened: str = "") -> tuple[Values, Values]:
    """Return the first and the last number of an interval, and those next to it; `opened` names ends left out."""
    inside = [math.nextafter(low, math.inf) if "low" in opened else low]
    inside += [HUGE if high == math.inf else math.nextafter(high, 0.0) if "high" in opened else high]
    outside = [low if "low" in opened else math.nextafter(low, -math.inf), low - 0.5]
    outside += [high if "high" in opened or high == math.inf else math.nextafter(high, math.inf)]
    return tuple(inside), tuple(outside)


def wholes(low: int, high: int = LAST_STEP) -> tuple[Values, Values]:
    """Return the first two and the last whole number, and those next to them."""
    return (low, low + 1, high), (low - 1, high + 1)


UNIT, POSITIVE_UNIT = numbers(0, 1), numbers(0, 1, opened="low")
POSITIVE, NOT_NEGATIVE = numbers(0, opened="low"), numbers(0)
