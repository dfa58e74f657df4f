"""Numba's CUDA simulator, in a process of its own."""

import os
import subprocess
import sys


def cudasim(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python where the GPU is simulated; its lanes are threads that take turns, which one core does far faster."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", **variables}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, preexec_fn=_take_one_core
    )


def _take_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})
