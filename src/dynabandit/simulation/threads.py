"""The simulator on the processor: tasks of a few replications, on threads."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dynabandit.environments.base import path_writer
from dynabandit.kernels.streams import Stream
from dynabandit.policies.decision import SCRATCH_ROWS
from dynabandit.simulation.episodes import Record, count_switches, episodes
from dynabandit.simulation.work import Work, initial_state

__all__ = ["run"]

BLOCK_CELLS = 1 << 17  # means in a block: 1 MB, so that every policy reads them from the cache
MOST_REPLICATIONS = 16  # in a task


def run(work: Work, records: dict[str, Record], replications: int, threads: int, block: int | None) -> None:
    """Cut the replications into tasks and run them; an exception in one ends all."""
    rounds = -(-replications // (threads * MOST_REPLICATIONS))
    size = -(-replications // (threads * rounds))
    steps = max(1, BLOCK_CELLS // (size * work.environment.arms)) if block is None else block
    tasks = [(first, min(first + size, replications)) for first in range(0, replications, size)]
    total = replications * work.horizon
    done = 0
    lock = threading.Lock()
    stop = threading.Event()

    def advance(amount: int) -> bool:
        nonlocal done
        with lock:
            if not stop.is_set():
                done += amount
                work.progress(done, total)
        return not stop.is_set()

    def task(bounds: tuple[int, int]) -> None:
        try:
            if not stop.is_set():
                _run_task(work, records, *bounds, steps, advance)
        except BaseException:
            stop.set()
            raise

    if threads == 1 or len(tasks) == 1:
        for bounds in tasks:
            task(bounds)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="dynabandit") as pool:
        try:
            for future in [pool.submit(task, bounds) for bounds in tasks]:
                future.result()
        except BaseException:
            stop.set()
            raise


def _run_task(
    work: Work,
    records: dict[str, Record],
    low: int,
    high: int,
    steps: int,
    advance: Callable[[int], bool],
) -> None:
    """Run replications low to high of every policy, block after block."""
    arms, count = work.environment.arms, high - low
    source = work.source._replace(replication=work.source.replication + low)
    means = np.empty((count, min(steps, work.horizon), arms))
    best = np.empty((count, means.shape[1]))
    scratch = np.empty((SCRATCH_ROWS, arms))
    switches = _switches(work, source, means, best)
    states = {label: initial_state(policy, arms, switches, work.horizon) for label, policy in work.policies.items()}
    tables = {label: policy.kernels.table(arms, work.horizon) for label, policy in work.policies.items()}
    rows = {label: Record(record.times, *(part[low:high] for part in record[1:])) for label, record in records.items()}
    for first, length in _blocks(work, source, means, best):
        cursor = int(np.searchsorted(work.times, first))
        for label, policy in work.policies.items():
            episodes(policy.kernels)(
                states[label], rows[label], tables[label], scratch, means, best,
                first, length, policy.burn_in, cursor, source,
            )  # fmt: skip
        if not advance(count * length):
            return


def _blocks(work: Work, source: Stream, means: np.ndarray, best: np.ndarray) -> Iterable[tuple[int, int]]:
    """Fill `means` and `best` with one block of the paths after the other; yield first step and length."""
    world = work.environment
    write = path_writer(world.kernels)
    state = np.zeros((len(means), len(world.slots), world.arms))
    numbers, table = world.numbers(), world.table()
    for first in range(1, work.horizon + 1, means.shape[1]):
        length = min(means.shape[1], work.horizon + 1 - first)
        write(state, numbers, table, means, best, first, length, source)
        yield first, length


def _switches(work: Work, source: Stream, means: np.ndarray, best: np.ndarray) -> np.ndarray:
    """Count the switches of the best arm on each path, where a policy wants to know."""
    switches = np.zeros(len(means), dtype=np.int64)
    if work.needs_switches:
        incumbent = np.full(len(means), -1)
        for _, length in _blocks(work, source, means, best):
            count_switches()(means, best, length, incumbent, switches)
    return switches
