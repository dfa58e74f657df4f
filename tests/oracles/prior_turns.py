"""How many coefficients of a regression get their prior back with a reward."""

import math


def turns(dimension: int, kept: float) -> int:
    """All of them if less than half of the data are kept; else so many that each keeps about e^-6 of its own."""
    return dimension if kept < 0.5 else min(dimension, 1 + math.floor(dimension * (1 - kept) / (6 * kept)))
