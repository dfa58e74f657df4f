"""The machine that results come from, for their metadata."""

import os
import platform
from pathlib import Path
from typing import Any

__all__ = ["hardware", "processor"]


def hardware() -> dict[str, Any]:
    """Return what this machine is made of.

    Examples
    --------
    >>> list(hardware())
    ['processor', 'cores', 'memory_bytes', 'system']
    """
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_bytes": _memory(),
        "system": platform.platform(),
    }


def processor() -> str:
    """Return the processor's name; Linux keeps it in a file of its own."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _memory() -> int | None:
    """Return the size of the memory in bytes, where the system tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
