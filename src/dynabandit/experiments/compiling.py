"""Compiles in several processes before a run: within a process Numba compiles one function at a time.

A worker process reads one item per line from its input, compiles it into the cache on disk and answers with a line. It
ends at the end of its input, so it does not outlive its parent.

`concurrent.futures.ProcessPoolExecutor` is no replacement: with "spawn" it imports the user's script again in every
worker, and with "fork" it copies a process that has threads.
"""

import json
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import numba

from dynabandit.core.code_cache import is_cached
from dynabandit.core.compilation import compiled_once
from dynabandit.core.json_values import plain
from dynabandit.environments import Environment, environment as make_environment
from dynabandit.environments.base import compiled_write_paths
from dynabandit.experiments.bound_coverage import add_exceeded, count_exceeded
from dynabandit.experiments.progress import ProgressReporter, counted
from dynabandit.experiments.spec import CoverageSpec
from dynabandit.plugins import ENVIRONMENTS, POLICIES, class_or_name, reference_to
from dynabandit.policies import Policy, policy as make_policy, registered_name
from dynabandit.policies.compositions import is_composition
from dynabandit.simulation import compile_policy, is_compiled
from dynabandit.simulation.compiled import compiled_play

Item = dict[str, Any]

MOST_WORKERS = 8
WORKER = "from dynabandit.experiments.compiling import serve; serve()"


def compile_ahead(
    policies: Iterable[tuple[Policy, int]],
    environments: Iterable[Environment],
    coverage: bool,
    jobs: int,
    reporter: ProgressReporter,
) -> None:
    """Compile what is not on disk yet, in up to `jobs` processes including this one.

    Each policy comes with a number of arms: with many arms Thompson policies need other code than with few.
    """
    if numba.config.DISABLE_JIT:
        return
    items = _items(policies, environments, coverage)
    if not items:
        return
    reporter.stage(f"compiling {counted(len(items), 'algorithm')}, which happens once")
    todo = deque(items)
    workers: list[_Worker] = []
    try:
        while len(workers) < min(jobs, MOST_WORKERS, len(items)) - 1:
            workers.append(_Worker(todo))
        with _deferred_interrupts() as raise_interrupt:
            for item in _take(todo):
                compile_item(item)
                raise_interrupt()
        for worker in workers:
            worker.join()
    finally:
        for worker in workers:
            worker.stop()


@contextmanager
def _deferred_interrupts() -> Iterator[Callable[[], None]]:
    """Defer a first Ctrl-C until the function that this yields is called; a second one is raised at once.

    LLVM calls back into Python, and a KeyboardInterrupt that is raised there is printed and lost.
    """
    original = signal.getsignal(signal.SIGINT)
    if original is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    received = []

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            raise KeyboardInterrupt

    def raise_interrupt() -> None:
        if received:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)
    try:
        yield raise_interrupt
    finally:
        signal.signal(signal.SIGINT, original)


def _items(policies: Iterable[tuple[Policy, int]], environments: Iterable[Environment], coverage: bool) -> list[Item]:
    """List what has to be compiled: each algorithm once, whatever its parameters."""
    algorithms = {compiled_play(policy.functions, arms): (policy, arms) for policy, arms in policies}
    by_functions = {environment.functions: environment for environment in environments}
    items = [
        {"policy": reference, "parameters": plain(policy.parameters), "arms": arms}
        for policy, arms in algorithms.values()
        if (reference := _reference(policy)) is not None and not is_compiled(policy, arms)
    ]
    items += [
        {"environment": reference_to(ENVIRONMENTS, type(environment)), "parameters": plain(environment.parameters)}
        for environment in by_functions.values()
        if not is_cached(compiled_write_paths(environment.functions))
    ]
    if coverage and not is_cached(compiled_once(add_exceeded)):
        items.append({"coverage": True})
    return items


def _reference(policy: Policy) -> str | None:
    """Return what other processes find a policy by; None if they cannot import a part of it."""
    kind = type(policy)
    if not is_composition(kind):
        return reference_to(POLICIES, kind)
    memory, rule, *detector = (reference_to(POLICIES, part) for part in kind.made_of)  # type: ignore[attr-defined]
    names = [rule, memory, *detector]
    return None if any("<locals>" in name or name.startswith("__main__:") for name in names) else " + ".join(names)


def compile_item(item: Item) -> None:
    """Compile one item of the list."""
    if "policy" in item:
        name = item["policy"]
        named = registered_name(name) if "+" in name else class_or_name(name, Policy)
        compile_policy(make_policy(named, **item["parameters"]), item["arms"])
    elif "environment" in item:
        kind = class_or_name(item["environment"], Environment)
        make_environment(kind, **item["parameters"]).path(horizon=1, seed=0)
    else:
        smallest = CoverageSpec(figure="bound", means=(0.5,), step_sizes=(0.001,), observations=(1,), streams=1)
        count_exceeded(smallest, 0, 0.001)


def serve() -> None:
    """Compile the items of standard input: the main function of a worker process."""
    for line in sys.stdin:
        compile_item(json.loads(line))
        sys.stdout.write("done\n")
        sys.stdout.flush()


def _take(todo: deque[Item]) -> Iterator[Item]:
    """Remove one item after the other; several threads may do so at once."""
    with suppress(IndexError):
        while True:
            yield todo.popleft()


class _Worker:
    """A process that compiles, and a thread that sends it one item after the other.

    If the process fails, its item is compiled when it is first needed.
    """

    def __init__(self, todo: deque[Item]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C in the terminal goes to the parent alone, which stops the worker
        )
        self.thread = threading.Thread(target=self._send, args=(todo,), daemon=True)
        self.thread.start()

    def _send(self, todo: deque[Item]) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(OSError):  # the process has ended
            for item in _take(todo):
                self.process.stdin.write(json.dumps(item) + "\n")
                self.process.stdin.flush()
                if not self.process.stdout.readline():
                    return

    def join(self) -> None:
        """Wait until all items are taken and the last one of this worker is compiled."""
        self.thread.join()

    def stop(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.thread.join()
        self.process.communicate()
