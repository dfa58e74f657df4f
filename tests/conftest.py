"""What all tests share: generated cases that are the same on every run, and none that races a clock."""

import os

import pytest
from hypothesis import HealthCheck, settings

from browser import browser, open_page

__all__ = ["browser", "open_page"]

# Tests try the compiled code; tests/core/test_interpreted_first.py tries the switch to it
os.environ.setdefault("DYNABANDIT_INTERPRETED_FIRST", "0")

settings.register_profile(
    "fixed",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fixed")


@pytest.fixture
def scale() -> int:
    """How much larger a sample may be where code is compiled."""
    return 1 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 20
