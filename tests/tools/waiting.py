"""Waiting for what other threads and processes do.

A test waits for a fact that stays true once it is true: a count that only grows, a row in a log, a process that has
ended. It never waits for a state that can be over before the test looks.
"""

import threading
import time
from collections.abc import Callable

PATIENCE = 600.0
"""Seconds after which a test gives up: more than any step takes on a busy machine, so that only a hang reaches it."""


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < limit, f"it did not happen in {PATIENCE:.0f} seconds"
        threading.Event().wait(0.005)
