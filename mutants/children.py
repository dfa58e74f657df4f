"""Child processes: so many at a time, each with one line to say."""

import contextlib
import math
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

__all__ = ["finished", "fork", "say"]

Task = TypeVar("Task")
_mouth = -1


def say(text: str) -> None:
    """Tell the parent something, from a child."""
    os.write(_mouth, text.encode())


def fork(work: Callable[..., int], *arguments: Any) -> tuple[int, int]:
    """Start a child that does the work and exits with what it returns; give its number and an end of a pipe."""
    global _mouth
    ear, mouth = os.pipe()
    child = os.fork()
    if child:
        os.close(mouth)
        return child, ear
    status = 3
    try:
        os.setsid()
        os.close(ear)
        _mouth = mouth
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        status = work(*arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def finished(
    tasks: Iterable[Task], start: Callable[[Task], tuple[int, int]], jobs: int, until: float = math.inf
) -> Iterator[tuple[Task, int, str]]:
    """Start a child for each task, `jobs` at a time, and kill those that still run at the time `until`.

    Yields each task with the exit status of its child, negative for a signal, and with what the child said.
    """
    waiting = iter(tasks)
    running: dict[int, tuple[Task, int]] = {}
    try:
        while time.monotonic() < until:
            while len(running) < jobs and (task := next(waiting, None)) is not None:
                child, ear = start(task)
                running[child] = task, ear
            if not running:
                return
            child, status = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                time.sleep(0.01)
                continue
            stop(child)  # what it may have started
            task, ear = running.pop(child)
            said = os.read(ear, 4096).decode(errors="replace")
            os.close(ear)
            yield task, os.waitstatus_to_exitcode(status), said
    finally:
        for child in running:
            stop(child)
            os.waitpid(child, 0)


def stop(session: int) -> None:
    """Kill all processes of a child's session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)
