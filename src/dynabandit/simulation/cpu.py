"""The simulator on the CPU: tasks of a few replications, run by threads."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from dynabandit.choosing.argmax_tree import new_trees
from dynabandit.choosing.choose_arm import new_workspace
from dynabandit.core.interpreted_first import FirstCalls, interpreted_first
from dynabandit.core.records import to_row
from dynabandit.core.streams import Stream, shifted
from dynabandit.environments.base import cells_per_step, compiled_write_paths
from dynabandit.environments.delays import NO_DELAY
from dynabandit.policies import Policy
from dynabandit.simulation.compiled import compiled_count_switches, compiled_play
from dynabandit.simulation.request import SimulationRequest, initial_states
from dynabandit.simulation.stepper import Block, Paths, Record, Replications, part_of

BLOCK_CELLS = 1 << 17  # means per block: 1 MB, so that every policy reads them from the cache
MOST_REPLICATIONS = 16  # per task; more if they are short, fewer if a block would not hold one step of each
TASK_BYTES = 1 << 26  # of a task with more than one replication
MOST_BYTES = 1 << 31  # of all tasks that run at the same time: with many arms not every thread gets one
OTHER_BYTES = 128  # per arm: the workspace, the means, and the environment's state and parameters
SMALL = 10_000  # arms x steps x replications x policies: interpreted code takes less time than compiling
INTERPRETED_CELLS = 250  # arms x steps x replications per block as long as code may be interpreted: it takes 0.1 s
CONSTANT_STEPS = 1024  # per block with constant means, which need one row only


class BlockLimits(NamedTuple):
    """How many steps a block has."""

    changing: int  # if the means may change at every step
    constant: int  # at most, if they are constant


def run(
    request: SimulationRequest, records: dict[str, Record], replications: int, threads: int, block: int | None
) -> None:
    """Divide the replications into tasks and run them; an exception in one task stops all."""
    each = cells_per_step(request.environment)
    cells = max(1, BLOCK_CELLS // each)
    own_bytes = bytes_per_replication(request)
    threads = max(1, min(threads, MOST_BYTES // own_bytes))
    most = min(max(MOST_REPLICATIONS, cells // request.horizon), cells, max(1, TASK_BYTES // own_bytes))
    rounds = -(-replications // (threads * most))
    size = -(-replications // (threads * rounds))
    steps = max(1, BLOCK_CELLS // (size * each))
    limits = BlockLimits(steps, max(steps, CONSTANT_STEPS)) if block is None else BlockLimits(block, block)
    tasks = [(first, min(first + size, replications)) for first in range(0, replications, size)]
    total = replications * request.horizon
    request = request._replace(small=total * each * len(request.policies) <= SMALL)
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
                run_task(request, records, *bounds, limits, report_steps)
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


def _states(request: SimulationRequest, policy: Policy, switches: np.ndarray) -> Replications:
    environment = request.environment
    law, context = environment.reward_functions, environment.context
    return initial_states(policy, environment.arms, switches, request.horizon, law, request.delay, context)


def run_task(
    request: SimulationRequest,
    records: dict[str, Record],
    low: int,
    high: int,
    limits: BlockLimits,
    report_steps: Callable[[int], bool],
) -> None:
    """Run the replications from `low` up to `high` of every policy, block after block."""
    environment, horizon, policies = request.environment, request.horizon, request.policies
    arms, count = environment.arms, high - low
    random = shifted(request.random, low)
    if _may_be_interpreted(request):  # short calls, so that they switch to compiled code soon
        steps = max(1, INTERPRETED_CELLS // (count * arms))
        limits = BlockLimits(min(limits.changing, steps), min(limits.constant, steps))
    switches = _switches(request, random, count, limits)
    delays = NO_DELAY if request.delay is None else request.delay.params(arms)
    states = {label: _states(request, policy, switches) for label, policy in policies.items()}
    spaces = {
        label: new_workspace(policy.functions, arms, horizon)._replace(tree=new_trees(policy.functions, count, arms))
        for label, policy in policies.items()
    }
    rows = {label: part_of(record, low, high) for label, record in records.items()}
    for first, steps, paths in _blocks(request, random, count, limits):
        cursor = int(np.searchsorted(request.times, first))
        for label, policy in policies.items():
            block = Block(first, steps, policy.burn_in, cursor, rows[label].arms.size > 0)
            play_block = _play(request, policy)
            play_block(states[label], rows[label], paths, block, spaces[label], delays, random)
        if not report_steps(count * steps):
            return


def _blocks(
    request: SimulationRequest, random: Stream, count: int, limits: BlockLimits
) -> Iterator[tuple[int, int, Paths]]:
    """Write one block of the paths after the other, each over the previous one; yield first step, steps and means."""
    environment = request.environment
    write = _function(request, compiled_write_paths(environment.functions))
    state = np.zeros((count, environment.state_size(), environment.arms))
    params, table = np.array(environment.params()), environment.table()
    rows = min(limits.changing, request.horizon)
    law = to_row(environment.rewards.params())
    many, one = environment.empty_paths(count, rows), environment.empty_paths(count, 1)
    first = 1
    while first <= request.horizon:
        left = request.horizon + 1 - first
        steps, constant = min(rows, left), environment.constant_until(first) + 1 - first
        if constant >= steps:
            steps = min(constant, limits.constant, left)
            write(state, params, table, one, first, 1, random)
            yield first, steps, Paths(one.means, one.best, law, params, one.features)
        else:
            write(state, params, table, many, first, steps, random)
            yield first, steps, Paths(many.means, many.best, law, params, many.features)
        first += steps


def _switches(request: SimulationRequest, random: Stream, count: int, limits: BlockLimits) -> np.ndarray:
    """Count the switches of the best arm on each path, if a policy needs them."""
    switches = np.zeros(count, dtype=np.int64)
    if request.needs_switches:
        incumbent, add = np.full(count, -1), _function(request, compiled_count_switches())
        for _, steps, paths in _blocks(request, random, count, limits):
            add(paths.means, paths.best, min(steps, paths.means.shape[1]), incumbent, switches)
    return switches


def _play(request: SimulationRequest, policy: Policy) -> Callable[..., None]:
    """Return the function that plays a block of steps of a policy."""
    environment, delayed = request.environment, request.delay is not None
    return _function(
        request, compiled_play(policy.functions, environment.arms, environment.reward_functions, delayed=delayed)
    )


def _may_be_interpreted(request: SimulationRequest) -> bool:
    return any(isinstance(_play(request, policy), FirstCalls) for policy in request.policies.values())


def _function(request: SimulationRequest, function: Callable[..., None]) -> Callable[..., None]:
    """Return a compiled function; if the simulation is small, it need not be compiled yet."""
    return interpreted_first(function) if request.small else function
