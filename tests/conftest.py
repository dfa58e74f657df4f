import os

import pytest


@pytest.fixture
def scale() -> int:
    """How much larger a sample may be where code is compiled."""
    return 1 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 20
