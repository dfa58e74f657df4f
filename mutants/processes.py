"""Forked processes: a limited number at a time, each of which can send a short text to its parent."""

import contextlib
import math
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

__all__ = ["fork", "run_all", "send"]

Task = TypeVar("Task")
_pipe_to_parent = -1


def send(text: str) -> None:
    """Send a text to the parent of this process."""
    os.write(_pipe_to_parent, text.encode())


def fork(work: Callable[..., int], *arguments: Any) -> tuple[int, int]:
    """Start a process that exits with what `work` returns; return its id and the pipe to read from."""
    global _pipe_to_parent
    read_end, write_end = os.pipe()
    process = os.fork()
    if process:
        os.close(write_end)
        return process, read_end
    status = 3
    try:
        os.setsid()
        os.close(read_end)
        _pipe_to_parent = write_end
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        status = work(*arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def run_all(
    tasks: Iterable[Task], start: Callable[[Task], tuple[int, int]], jobs: int, deadline: float = math.inf
) -> Iterator[tuple[Task, int, str]]:
    """Start a process for each task, `jobs` at a time, and kill those that still run at the deadline.

    Yields each task with the exit status of its process, negative for a signal, and with the text that it sent.
    """
    waiting = iter(tasks)
    running: dict[int, tuple[Task, int]] = {}
    try:
        while time.monotonic() < deadline:
            while len(running) < jobs and (task := next(waiting, None)) is not None:
                process, pipe = start(task)
                running[process] = task, pipe
            if not running:
                return
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                time.sleep(0.01)
                continue
            kill_session(process)  # processes that it may have started
            task, pipe = running.pop(process)
            text = os.read(pipe, 4096).decode(errors="replace")
            os.close(pipe)
            yield task, os.waitstatus_to_exitcode(status), text
    finally:
        for process in running:
            kill_session(process)
            os.waitpid(process, 0)


def kill_session(leader: int) -> None:
    """Kill all processes of a session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
