"""Limits of a process that computes for others: it gives way to them, and cannot take all memory."""

import contextlib
import os
from importlib import import_module

NICENESS = 10  # of 19
STACK_BYTES = 1 << 26  # for each core: threads and their buffers


def limit_process(most_bytes: int) -> None:
    """Let other processes come first, and limit the memory of this one to so much and what its threads need.

    On systems without such limits nothing happens.
    """
    with contextlib.suppress(AttributeError, OSError):
        os.nice(NICENESS)
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):
        resource = import_module("resource")
        most, hard = most_bytes + STACK_BYTES * (os.cpu_count() or 1), resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
