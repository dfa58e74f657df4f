"""The simulator on the CPU: tasks of a few replications, run by threads."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from dynabandit.choosing.argmax_tree import new_trees
from dynabandit.choosing.choose_arm import Workspace, new_workspace
from dynabandit.core.compilation import compiled_once
from dynabandit.core.records import to_row
from dynabandit.environments.base import cells_per_step, compiled_write_paths
from dynabandit.environments.delays import NO_DELAY
from dynabandit.policies import Policy
from dynabandit.simulation.compiled import compiled_play
from dynabandit.simulation.request import SimulationRequest, initial_states
from dynabandit.simulation.stepper import Block, Paths, Record, Replications, add_changes, part_of

BLOCK_CELLS = 1 << 17  # means per block: 1 MB, so that every policy reads them from the cache
MOST_REPLICATIONS = 16  # per task; more if they are short, fewer if a block would not hold one step of each
TASK_BYTES = 1 << 26  # of a task with more than one replication
MOST_BYTES = 1 << 31  # of all tasks that run at the same time: with many arms not every thread gets one
OTHER_BYTES = 128  # per arm: the workspace, the means, and the environment's state and parameters
CONSTANT_STEPS = 1024  # per block with constant means, which need one row only


class BlockLimits(NamedTuple):
    """How many steps a block has."""

    changing: int  # if the means may change at every step
    constant: int  # at most, if they are constant


def run(request: SimulationRequest, records: dict[str, Record]) -> None:
    """Divide the replications into tasks and run them; an exception in one task stops all."""
    replications, block = request.replications, request.block
    each = cells_per_step(request.environment)
    cells = max(1, BLOCK_CELLS // each)
    own_bytes = bytes_per_replication(request)
    threads = max(1, min(request.threads, MOST_BYTES // own_bytes))
    most = min(max(MOST_REPLICATIONS, cells // request.horizon), cells, max(1, TASK_BYTES // own_bytes))
    rounds = -(-replications // (threads * most))
    size = -(-replications // (threads * rounds))
    steps = max(1, BLOCK_CELLS // (size * each))
    limits = BlockLimits(steps, max(steps, CONSTANT_STEPS)) if block is None else BlockLimits(block, block)
    tasks = [(first, min(first + size, replications)) for first in range(0, replications, size)]
    total = replications * request.horizon
    done = 0
    lock = threading.Lock()
    stop = threading.Event()

    def report_steps(amount: int) -> bool:
        nonlocal done
        with lock:
            if not stop.is_set():
                done += amount
                try:
                    request.progress(done, total)
                except BaseException:
                    stop.set()  # before another thread gets the lock: progress is not called again
                    raise
        return not stop.is_set()

    def task(bounds: tuple[int, int]) -> None:
        try:
            if not stop.is_set():
                rows = {label: part_of(record, *bounds) for label, record in records.items()}
                run_task(request.part(*bounds), rows, limits, report_steps)
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


def bytes_per_replication(request: SimulationRequest) -> int:
    """Return about how much memory a replication takes while it runs, with all policies."""
    arms = request.environment.arms
    total = OTHER_BYTES * arms
    for policy in request.policies.values():
        states = _states(request, policy, np.zeros(1, dtype=np.int64))
        total += sum(part.nbytes for part in states) + new_trees(policy.functions, 1, arms).nbytes
    return total


def _states(request: SimulationRequest, policy: Policy, changes: np.ndarray) -> Replications:
    environment = request.environment
    law, context = environment.reward_functions, environment.context
    return initial_states(policy, environment.arms, changes, request.horizon, law, request.delay, context)


class _PolicyRun(NamedTuple):
    """What it takes to play a block of steps with one policy."""

    play: Callable[..., None]
    states: Replications
    record: Record
    space: Workspace
    burn_in: int


def run_task(
    request: SimulationRequest, records: dict[str, Record], limits: BlockLimits, report_steps: Callable[[int], bool]
) -> None:
    """Run the replications of every policy, block after block."""
    environment, horizon, count = request.environment, request.horizon, request.replications
    arms, law, delay = environment.arms, environment.reward_functions, request.delay
    changes = _count_changes(request, limits)
    delays = NO_DELAY if delay is None else delay.params(arms)
    runs = [
        _PolicyRun(
            compiled_play(policy.functions, arms, law, delayed=delay is not None),
            _states(request, policy, changes),
            records[label],
            new_workspace(policy.functions, arms, horizon)._replace(tree=new_trees(policy.functions, count, arms)),
            policy.burn_in,
        )
        for label, policy in request.policies.items()
    ]
    for first, steps, paths in _blocks(request, limits):
        cursor = int(np.searchsorted(request.times, first))
        for play, states, record, space, burn_in in runs:
            block = Block(first, steps, burn_in, cursor, request.keeps_steps)
            play(states, record, paths, block, space, delays, request.random)
        if not report_steps(count * steps):
            return


def _blocks(request: SimulationRequest, limits: BlockLimits) -> Iterator[tuple[int, int, Paths]]:
    """Write one block of the paths after the other, each over the previous one; yield first step, steps and means."""
    environment, count = request.environment, request.replications
    write = compiled_write_paths(environment.functions)
    state = np.zeros((count, environment.state_size(), environment.arms))
    params, table = np.array(environment.params()), environment.table()
    rows = min(limits.changing, request.horizon)
    law = to_row(environment.rewards.params())
    many, single = environment.empty_paths(count, rows), environment.empty_paths(count, 1)
    first = 1
    while first <= request.horizon:
        left = request.horizon + 1 - first
        steps, constant = min(rows, left), environment.constant_until(first) + 1 - first
        if constant >= steps:
            steps = min(constant, limits.constant, left)
            write(state, params, table, single, first, 1, request.random)
            yield first, steps, Paths(single.means, single.best, law, params, single.features)
        else:
            write(state, params, table, many, first, steps, request.random)
            yield first, steps, Paths(many.means, many.best, law, params, many.features)
        first += steps


def _count_changes(request: SimulationRequest, limits: BlockLimits) -> np.ndarray:
    """Count the changes of the best arm on each path, if a policy needs them."""
    changes = np.zeros(request.replications, dtype=np.int64)
    if request.needs_changes:
        incumbent, add = np.full(request.replications, -1), compiled_once(add_changes)
        for _, steps, paths in _blocks(request, limits):
            add(paths.means, paths.best, min(steps, paths.means.shape[1]), incumbent, changes)
    return changes
