"""Numba's CUDA simulator, in a process of its own.

Numba simulates each lane of a GPU by a thread and asks all threads in turn whether they wait. Here lanes are
coroutines (greenlets): each one runs until it waits for the others, which takes a tenth of the time and is the same in
every run. They take turns in random order, so that a lane which reads what another one writes without waiting for it is
found.

    NUMBA_ENABLE_CUDASIM=1 python tests/tools/cudasim.py FILE [ARGUMENT]...

runs a file in this way.
"""

import os
import random
import runpy
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
from greenlet import getcurrent, greenlet

ORDER = random.Random(1)


def cudasim(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a file, or the code after ``-c``, where the GPU is simulated."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", **variables}
    command = [sys.executable, __file__, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


class Lane(greenlet):  # type: ignore[misc]  # it has no types
    """One thread of a block, with the names by which Numba's simulator knows it."""

    def __init__(self, function: Any, block: Any, thread: Any, number: int) -> None:
        super().__init__(function)
        self.blockIdx, self.threadIdx, self.thread_id = block, thread, number

    def syncthreads(self) -> None:
        """Let the other lanes run until they wait, too, or end."""
        self.parent.switch()


def run_block(manager: Any, grid_point: tuple[int, ...], *arguments: Any) -> None:
    """Run the lanes of a block, in place of `BlockManager.run`."""
    from numba.cuda.simulator.kernelapi import Dim3

    block, points = Dim3(*grid_point), np.ndindex(*manager._block_dim)
    lanes = [Lane(manager._f, block, Dim3(*point), number) for number, point in enumerate(points)]
    given = arguments
    while lanes:
        ORDER.shuffle(lanes)
        for lane in lanes:
            lane.switch(*given)
        given = ()
        lanes = [lane for lane in lanes if not lane.dead]


def shared_array(memory: Any, shape: Any, dtype: Any) -> np.ndarray:
    """Return the shared array of the line that asks for it, in place of `FakeCUDAShared.array`."""
    from numba.cuda.np import numpy_support

    caller = sys._getframe(1)
    line = caller.f_code, caller.f_lineno
    if line not in memory._allocations:
        memory._allocations[line] = np.empty(shape, numpy_support.as_dtype(dtype))
    return memory._allocations[line]


def replace_threads() -> None:
    from numba.cuda.simulator import kernel, kernelapi

    kernel.BlockManager.run = run_block
    kernelapi.FakeCUDAShared.array = shared_array
    kernelapi.threading = SimpleNamespace(current_thread=getcurrent, Lock=threading.Lock)


def need_no_toolkit() -> None:
    """Name a version of the CUDA runtime: numba-cuda asks its library when it is imported, also for the simulator."""
    from cuda.bindings import runtime

    runtime.getLocalRuntimeVersion = lambda: (runtime.cudaError_t.cudaSuccess, 13000)


if __name__ == "__main__":
    need_no_toolkit()
    replace_threads()
    del sys.argv[0]
    if sys.argv[0] == "-c":
        code = sys.argv.pop(1)
        sys.path[0] = ""
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")
