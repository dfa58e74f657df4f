"""The simulator on the processor: tasks of a few replications, on threads."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from dynabandit.core.streams import Stream, shifted
from dynabandit.environments.base import path_writer
from dynabandit.policies.argmax_tree import new_trees
from dynabandit.policies.choose_arm import SCRATCH_ROWS
from dynabandit.simulation.stepper import Record, count_switches, episodes, part_of
from dynabandit.simulation.work import Work, initial_state

__all__ = ["run", "run_task"]

BLOCK_CELLS = 1 << 17  # means in a block: 1 MB, so that every policy reads them from the cache
MOST_REPLICATIONS = 16  # in a task; more where they are short, fewer where a block would not hold a step of each
STILL_STEPS = 1024  # in a block whose means stand still, and so need one row only


class Cut(NamedTuple):
    """How many steps a block has."""

    rows: int  # where the means may change at every step
    still: int  # at most, where they stand still


class Block(NamedTuple):
    """The means of some steps, with replications in front; the last row goes on to the end of the block."""

    first: int
    steps: int
    means: np.ndarray
    best: np.ndarray


def run(work: Work, records: dict[str, Record], replications: int, threads: int, block: int | None) -> None:
    """Cut the replications into tasks and run them; an exception in one ends all."""
    cells = max(1, BLOCK_CELLS // work.environment.arms)
    most = min(max(MOST_REPLICATIONS, cells // work.horizon), cells)
    rounds = -(-replications // (threads * most))
    size = -(-replications // (threads * rounds))
    steps = max(1, BLOCK_CELLS // (size * work.environment.arms))
    cut = Cut(steps, max(steps, STILL_STEPS)) if block is None else Cut(block, block)
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
                run_task(work, records, *bounds, cut, advance)
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


def run_task(
    work: Work,
    records: dict[str, Record],
    low: int,
    high: int,
    cut: Cut,
    advance: Callable[[int], bool],
) -> None:
    """Run replications low to high of every policy, block after block."""
    arms, count = work.environment.arms, high - low
    source = shifted(work.source, low)
    scratch = np.empty((SCRATCH_ROWS, arms))
    switches = _switches(work, source, count, cut)
    states = {label: initial_state(policy, arms, switches, work.horizon) for label, policy in work.policies.items()}
    trees = {label: new_trees(policy.kernels, count, arms) for label, policy in work.policies.items()}
    tables = {label: policy.kernels.table(arms, work.horizon) for label, policy in work.policies.items()}
    rows = {label: part_of(record, low, high) for label, record in records.items()}
    for block in _blocks(work, source, count, cut):
        cursor = int(np.searchsorted(work.times, block.first))
        for label, policy in work.policies.items():
            episodes(policy.kernels, arms)(
                states[label], rows[label], tables[label], scratch, trees[label], block.means, block.best,
                block.first, block.steps, policy.burn_in, cursor, source,
            )  # fmt: skip
        if not advance(count * block.steps):
            return


def _blocks(work: Work, source: Stream, count: int, cut: Cut) -> Iterator[Block]:
    """Write one block of the paths after the other, each over the one before."""
    world = work.environment
    write = path_writer(world.kernels)
    state = np.zeros((count, len(world.slots), world.arms))
    numbers, table = world.numbers(), world.table()
    rows = min(cut.rows, work.horizon)
    many = np.empty((count, rows, world.arms)), np.empty((count, rows))
    one = np.empty((count, 1, world.arms)), np.empty((count, 1))
    first = 1
    while first <= work.horizon:
        left = work.horizon + 1 - first
        steps, still = min(rows, left), world.still_until(first) + 1 - first
        if still >= steps:
            steps = min(still, cut.still, left)
            write(state, numbers, table, *one, first, 1, source)
            yield Block(first, steps, *one)
        else:
            write(state, numbers, table, *many, first, steps, source)
            yield Block(first, steps, *many)
        first += steps


def _switches(work: Work, source: Stream, count: int, cut: Cut) -> np.ndarray:
    """Count the switches of the best arm on each path, where a policy wants to know."""
    switches = np.zeros(count, dtype=np.int64)
    if work.needs_switches:
        incumbent = np.full(count, -1)
        for block in _blocks(work, source, count, cut):
            rows = min(block.steps, block.means.shape[1])
            count_switches()(block.means, block.best, rows, incumbent, switches)
    return switches
