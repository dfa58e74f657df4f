"""The hardware that results were computed on, for their metadata."""

import os
import platform
from pathlib import Path
from typing import Any


def describe_hardware() -> dict[str, Any]:
    """Return the processor, the memory and the operating system of this machine.

    Examples
    --------
    >>> list(describe_hardware())
    ['processor', 'cores', 'memory_bytes', 'system']
    """
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_bytes": _memory(),
        "system": platform.platform(),
    }


def processor() -> str:
    """Return the name of the processor; on Linux it is in a file."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _memory() -> int | None:
    """Return the size of the memory in bytes, if the system tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
