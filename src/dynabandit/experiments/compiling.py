"""Compilation spread over processes: Numba compiles one function at a time in each.

A worker reads one item a line, compiles it into the cache on disk, and answers with a line. It ends when its
input does, so it outlives no parent.
"""

import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numba

from dynabandit.bandit.serialization import plain
from dynabandit.core.compilation import is_cached
from dynabandit.environments import Environment, environment as make_environment
from dynabandit.environments.base import path_writer
from dynabandit.experiments.coverage import compiled_count, count_exceeded
from dynabandit.experiments.progress import Watcher
from dynabandit.policies import Policy, policy as make_policy
from dynabandit.simulation import compile_policy, is_compiled
from dynabandit.simulation.stepper import episodes

__all__ = ["compile_ahead"]

Item = dict[str, Any]

MOST_WORKERS = 8
WORKER = "from dynabandit.experiments.compiling import serve; serve()"


def compile_ahead(
    policies: Iterable[tuple[Policy, int]],
    environments: Iterable[Environment],
    coverage: bool,
    jobs: int,
    watcher: Watcher,
) -> None:
    """Compile what is not on disk yet, in up to `jobs` processes, this one included.

    A policy comes with a number of arms: some decide in another way where arms are many.
    """
    if numba.config.DISABLE_JIT:
        return
    items = _items(policies, environments, coverage)
    if not items:
        return
    watcher.stage(f"compiling {len(items)} algorithm{'' if len(items) == 1 else 's'}, which happens once")
    todo: queue.SimpleQueue[Item] = queue.SimpleQueue()
    for item in items:
        todo.put(item)
    workers: list[_Worker] = []
    try:
        while len(workers) < min(jobs, MOST_WORKERS, len(items)) - 1:
            workers.append(_Worker(todo))
        with _interrupts_kept() as look:
            for item in _take(todo):
                compile_item(item)
                look()
        for worker in workers:
            worker.join()
    finally:
        for worker in workers:
            worker.stop()


@contextmanager
def _interrupts_kept() -> Iterator[Callable[[], None]]:
    """Keep a Ctrl-C until the function that is given is called, which raises it; a second one is raised at once.

    LLVM calls back into Python when it has compiled, and that is where a Ctrl-C would be raised, printed and lost.
    """
    usual = signal.getsignal(signal.SIGINT)
    if usual is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    kept = []

    def keep(number: int, frame: FrameType | None) -> None:
        kept.append(number)
        if len(kept) > 1:
            raise KeyboardInterrupt

    def look() -> None:
        if kept:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, keep)
    try:
        yield look
    finally:
        signal.signal(signal.SIGINT, usual)


def _items(policies: Iterable[tuple[Policy, int]], environments: Iterable[Environment], coverage: bool) -> list[Item]:
    """List what is to be compiled, each algorithm once whatever its parameters."""
    algorithms = {episodes(policy.kernels, arms): (policy, arms) for policy, arms in policies}
    worlds = {environment.kernels: environment for environment in environments}
    items = [
        {"policy": policy.name, "parameters": plain(policy.parameters), "arms": arms}
        for policy, arms in algorithms.values()
        if not is_compiled(policy, arms)
    ]
    items += [
        {"environment": world.name, "parameters": plain(world.parameters)}
        for world in worlds.values()
        if not is_cached(path_writer(world.kernels))
    ]
    if coverage and not is_cached(compiled_count()):
        items.append({"coverage": True})
    return items


def compile_item(item: Item) -> None:
    """Compile one item of the list."""
    if "policy" in item:
        compile_policy(make_policy(item["policy"], **item["parameters"]), item["arms"])
    elif "environment" in item:
        make_environment(item["environment"], **item["parameters"]).path(horizon=1, seed=0)
    else:
        count_exceeded(0.5, 0.001, (1,), streams=1, number=0, seed=0)


def serve() -> None:
    """Be a worker."""
    for line in sys.stdin:
        compile_item(json.loads(line))
        sys.stdout.write("done\n")
        sys.stdout.flush()


def _take(todo: "queue.SimpleQueue[Item]") -> Iterable[Item]:
    while True:
        try:
            yield todo.get_nowait()
        except queue.Empty:
            return


class _Worker:
    """A process that compiles, and a thread that hands it one item after the other.

    Should the process fail, what it was given is compiled when it is first needed.
    """

    def __init__(self, todo: "queue.SimpleQueue[Item]") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # a Ctrl-C in the terminal is for the parent, which then stops the worker
        )
        self.thread = threading.Thread(target=self._feed, args=(todo,), daemon=True)
        self.thread.start()

    def _feed(self, todo: "queue.SimpleQueue[Item]") -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            for item in _take(todo):
                self.process.stdin.write(json.dumps(item) + "\n")
                self.process.stdin.flush()
                if not self.process.stdout.readline():
                    return
        except OSError:  # the process is gone
            return

    def join(self) -> None:
        """Wait until nothing is left to hand over and the last item is done."""
        self.thread.join()

    def stop(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.thread.join()
        self.process.communicate()
