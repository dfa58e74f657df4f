"""The replications of a simulation, divided among all GPUs of a machine: one thread for each.

A replication has its own random numbers, so that its result does not depend on where it runs.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba

from dynabandit.simulation.request import Progress

SIMULATED_BYTES = 1 << 36  # of memory, if Numba's simulator replaces a GPU


def all_devices() -> list[Any]:
    """Return the GPUs of this machine that CUDA shows to this process; each is a context manager that activates it."""
    from numba import cuda

    return list(cuda.gpus)


def free_bytes() -> int:
    """Return how much of the active GPU's memory is free."""
    from numba import cuda

    return SIMULATED_BYTES if numba.config.ENABLE_CUDASIM else int(cuda.current_context().get_memory_info()[0])


def least_free_bytes() -> int:
    """Return how much memory is free on the GPU that has the least."""
    free = []
    for device in all_devices():
        with device:
            free.append(free_bytes())
    return min(free)


class _StoppedError(Exception):
    """Another GPU failed, so that this one stops too."""


class _JointProgress:
    """The progress of several parts of a simulation, reported as that of the whole by one thread at a time."""

    def __init__(self, report: Progress, parts: int, total: int) -> None:
        self.report, self.done, self.total = report, [0] * parts, total
        self.lock, self.stopped = threading.Lock(), False

    def of_part(self, part: int) -> Progress:
        """Return the progress function of a part; it raises an error if another part failed."""

        def progress(done: int, total: int) -> None:
            with self.lock:
                if self.stopped:
                    raise _StoppedError
                self.done[part] = done
                try:
                    self.report(sum(self.done), self.total)
                except BaseException:
                    self.stopped = True  # before another thread gets the lock: it is not called again
                    raise

        return progress


def run_divided(
    run_part: Callable[[int, int, Progress], None], replications: int, horizon: int, progress: Progress
) -> None:
    """Call run_part(low, high, progress) for the replications from `low` up to `high` of each GPU.

    There are at most as many parts as replications. An error in one part, or of `progress`, stops the others and is
    raised when all have ended.
    """
    devices = all_devices()[:replications]
    if len(devices) == 1:
        run_part(0, replications, progress)
        return
    joint = _JointProgress(progress, len(devices), replications * horizon)

    def run(part: int) -> None:
        low, high = (replications * bound // len(devices) for bound in (part, part + 1))
        try:
            with devices[part]:
                run_part(low, high, joint.of_part(part))
        except BaseException:
            joint.stopped = True
            raise

    with ThreadPoolExecutor(len(devices), thread_name_prefix="dynabandit-gpu") as pool:
        futures = [pool.submit(run, part) for part in range(len(devices))]
        try:
            errors = [future.exception() for future in futures]
        except BaseException:  # such as a KeyboardInterrupt while this thread waits
            joint.stopped = True
            raise
    failed = [error for error in errors if error is not None]
    if failed:
        error = next((error for error in failed if not isinstance(error, _StoppedError)), failed[0])
        raise error
