"""Values as JSON writes them."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Return parameters as JSON would: Python numbers for those of NumPy, and lists for tuples and arrays.

    Examples
    --------
    >>> plain({"prior": (2.0, np.float64(1.0))})
    {'prior': [2.0, 1.0]}
    """
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value
