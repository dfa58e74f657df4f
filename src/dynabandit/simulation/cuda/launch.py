"""The simulator on an NVIDIA GPU: batches of replications that fit into its memory, block after block of steps."""

import math
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from dynabandit.choosing.choose_arm import SCRATCH_ROWS, is_pruned
from dynabandit.choosing.draw_tree import new_draw_trees, tree_shape, uses_draw_tree
from dynabandit.core.records import to_row
from dynabandit.environments import Environment
from dynabandit.environments.base import cells_per_step
from dynabandit.environments.delays import NO_DELAY
from dynabandit.extras import import_extra
from dynabandit.policies import Policy
from dynabandit.simulation.backends import in_single
from dynabandit.simulation.cuda.devices import free_bytes, run_divided
from dynabandit.simulation.cuda.group_shapes import LANES, MANY_PATH_LANES, WARPS, GroupShape, group_shape, in_step
from dynabandit.simulation.in_flight import empty_queue
from dynabandit.simulation.request import Progress, SimulationRequest, distinct_states
from dynabandit.simulation.stepper import Record, part_of

BLOCK_BYTES = 1 << 32  # of means, so that there are few launches
BLOCK_SHARE = 0.125  # of the free memory, if that is less
SHARE_OF_MEMORY = 0.6


def missing() -> str:
    """Return what is missing for a simulation on this machine's GPU; empty if nothing is."""
    try:
        import_extra("numba_cuda", "cuda")
    except ModuleNotFoundError:
        return "needs numba-cuda, which is not installed: pip install 'dynabandit[cuda]'"
    try:
        from numba import cuda
    except RuntimeError as error:  # numba-cuda loads the library of the CUDA runtime when it is imported
        return f"needs the CUDA toolkit, but cannot load it ({_in_one_line(error)}): pip install 'dynabandit[cuda]'"

    if cuda.is_available():
        return ""
    try:
        cuda.current_context()
    except Exception as error:  # any error of the driver
        found = f"found none that works ({_in_one_line(error)})"
        return f"needs an NVIDIA GPU and its driver, but {found}: install NVIDIA's driver, or use backend='cpu'"
    return "needs NVVM of the CUDA toolkit, which was not found beside the GPU: pip install 'dynabandit[cuda]'"


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(" :")


def run(request: SimulationRequest, records: dict[str, Record]) -> None:
    """Run all replications of all policies, divided among all GPUs."""

    def run_part(low: int, high: int, progress: Progress) -> None:
        rows = {label: part_of(record, low, high) for label, record in records.items()}
        _run_on_device(request.part(low, high)._replace(progress=progress), rows)

    run_divided(run_part, request.replications, request.horizon, request.progress)


def _run_on_device(request: SimulationRequest, records: dict[str, Record]) -> None:
    """Run all replications on the active GPU, first the policies in double precision, then those in single."""
    halves = [
        {label: policy for label, policy in request.policies.items() if in_single(policy, request.precision) is single}
        for single in (False, True)
    ]
    share = 1.0 / sum(1 for half in halves if half)
    begun = 0.0
    for single, policies in enumerate(halves):
        if policies:
            part = request._replace(policies=policies, progress=_within(request.progress, begun, share))
            _run(part, {label: records[label] for label in policies}, bool(single))
            begun += share


def _within(progress: Progress, begun: float, share: float) -> Progress:
    """Return the progress of a part of the request, which is this share of the whole."""
    return lambda done, total: progress(int(begun * total + share * done), total)


def _run(request: SimulationRequest, records: dict[str, Record], single: bool) -> None:
    """Run all replications, as many at a time as the GPU's memory holds."""
    kept = max(sum(part[:1].nbytes for part in record[1:]) for record in records.values())
    if request.delay is not None:
        kept += sum(part.nbytes for part in empty_queue(request.delay, request.horizon))
    replications = request.replications
    size = min(replications, fitting(request.environment, request.policies, request.horizon, kept, free_bytes()))
    shape = group_shape(request.environment.arms, size)
    for low in range(0, replications, size):
        high = min(low + size, replications)
        rows = {label: part_of(record, low, high) for label, record in records.items()}
        _Batch(request.part(low, high), rows, shape, single).run(low, replications)


def block_bytes(free: int) -> int:
    """Return how large a block of means may be."""
    return min(BLOCK_BYTES, int(BLOCK_SHARE * free))


def fitting(environment: Environment, policies: Mapping[str, Policy], horizon: int, kept: int, free: int) -> int:
    """Return how many replications fit into `free` bytes if each keeps `kept` bytes per policy besides its state."""
    arms, counts = environment.arms, int(environment.reward_functions.observes_plays)
    context = environment.context
    each = 8 * arms * (environment.state_size() + 2) + kept * len(policies)
    for policy in policies.values():
        tuned = policy.tuned(1, horizon)
        each += 8 * (arms * (tuned.memory_size() + 2 + 2 * counts + SCRATCH_ROWS) + tuned.shared_size())
        if uses_draw_tree(policy.functions, arms):
            each += 8 * math.prod(tree_shape(arms))
        if policy.functions.contextual and context is not None:
            each += 8 * math.prod(tuned.models_shape(arms, context))
    count = int((SHARE_OF_MEMORY * free - block_bytes(free)) / each)
    if count < 1:
        raise MemoryError(
            f"arms must be fewer: one replication with {arms} arms takes {each} bytes of the GPU's memory, "
            f"of {free} bytes that are free"
        )
    return count


class _Batch:
    """Some replications on the GPU: as many as requested, plus those that fill the last warp."""

    def __init__(self, request: SimulationRequest, rows: dict[str, Record], shape: GroupShape, in_single: bool) -> None:
        from numba import cuda

        from dynabandit.simulation.cuda import kernels

        self.request, self.rows, block = request, rows, request.block
        self.cuda, self.kernels, self.in_single = cuda, kernels, in_single
        self.float = np.float32 if in_single else np.float64
        arms = request.environment.arms
        self.shape = shape
        self.replications = _round_up(request.replications, LANES // shape.width)
        step_bytes = np.dtype(self.float).itemsize * self.replications * cells_per_step(request.environment)
        fitting = max(1, block_bytes(free_bytes()) // step_bytes)
        self.steps = min(request.horizon, fitting if block is None else block)
        self.means = self.empty((self.steps, arms))
        self.best = self.empty((self.steps,))
        context = request.environment.context
        self.features = self.empty(
            (1, 1, 1) if context is None else (self.steps, context.rows(arms), context.dimension)
        )
        self.params = self.send(np.array(request.environment.params()))
        self.table = self.send(request.environment.table())
        self.law = self.send(to_row(request.environment.rewards.params()))

    def empty(self, shape: tuple[int, ...], kind: Any = None) -> Any:
        """Return an uninitialised array on the GPU, with one row per replication."""
        return self.cuda.device_array((self.replications, *shape), kind or self.float)

    def send(self, array: np.ndarray, *, exact: bool = False) -> Any:
        """Copy an array to the GPU, floats in the precision of the batch unless they are `exact`."""
        kind = self.float if array.dtype == float and not exact else array.dtype
        filled = array if array.size else np.zeros((1,) * array.ndim)  # a GPU has no empty arrays
        return self.cuda.to_device(np.ascontiguousarray(filled, dtype=kind))

    def spread(self, rows: np.ndarray, index: Any, *, exact: bool = False) -> Any:
        """Return an array on the GPU with the row of its index for each replication."""
        on_device = self.send(rows, exact=exact)
        copies = self.empty(rows.shape[1:], on_device.dtype)
        size = math.prod(rows.shape[1:])
        flat = on_device.reshape(len(rows), size), index, copies.reshape(self.replications, size)
        self.kernels.spread_kernel()[self.launch(size)](*flat)
        return copies

    def launch(self, each: int, threads: int = WARPS * LANES) -> tuple[int, int]:
        """Return the number of blocks, and of threads per block, that give each replication `each` threads."""
        return -(-self.replications * each // threads), threads

    def run(self, done: int, total: int) -> None:
        """Play all policies on all blocks of steps."""
        changes, blocks = self._changes(), self._blocks()
        begun = next(blocks)  # the GPU computes the first means while the states are made
        players = {
            label: _Player(self, policy, self.rows[label], changes) for label, policy in self.request.policies.items()
        }
        launched: list[tuple[Any, int]] = []  # blocks that have not been reported: the event of their end, and the step
        done_before = done * self.request.horizon
        for first, length in chain([begun], blocks):
            for player in players.values():
                player.play(first, length)
            ended = self.cuda.event()
            ended.record()
            launched.append((ended, first + length - 1))
            if len(launched) > 1:  # the GPU has work to do while this thread waits and launches the next block
                self._report(*launched.pop(0), done_before, total)
        for player in players.values():
            player.prepare_collecting()
        self._report(*launched.pop(), done_before, total)
        for player in players.values():
            player.collect()

    def _report(self, ended: Any, steps: int, done_before: int, total: int) -> None:
        """Wait for the end of a block of all policies, and report the progress."""
        ended.synchronize()
        self.request.progress(done_before + self.request.replications * steps, total * self.request.horizon)

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """Fill the means with one block of the paths after the other; yield first step and length."""
        environment = self.request.environment
        state = self.empty((environment.state_size(), environment.arms))
        shape = group_shape(environment.arms, self.replications, MANY_PATH_LANES)
        write = self.kernels.path_kernel(environment.functions, shape, in_single=self.in_single)
        horizon, random = self.request.horizon, self.request.random
        for first in range(1, horizon + 1, self.steps):
            length = min(self.steps, horizon + 1 - first)
            write[self.launch(shape.width, shape.threads)](
                state, self.params, self.table, self.means, self.best, self.features, first, length, *random
            )
            yield first, length

    def _changes(self) -> np.ndarray:
        """Count the changes of the best arm on each path, if a policy needs them."""
        changes = np.zeros(self.replications, dtype=np.int64)
        if not self.request.needs_changes:
            return changes
        incumbent, counts = self.send(np.full(self.replications, -1)), self.send(changes)
        for _, length in self._blocks():
            self.kernels.change_kernel()[self.launch(1)](self.means, self.best, length, incumbent, counts)
        return counts.copy_to_host()


class _Player:
    """One policy of a batch, with its state on the GPU."""

    def __init__(self, batch: _Batch, policy: Policy, row: Record, changes: np.ndarray) -> None:
        arms, horizon = batch.request.environment.arms, batch.request.horizon
        self.batch, self.policy, self.row = batch, policy, row
        law, delay = batch.request.environment.reward_functions, batch.request.delay
        context = batch.request.environment.context
        states, index = distinct_states(policy, arms, changes, horizon, law, delay, context)
        index_on_device = batch.send(index)
        self.state = [
            batch.spread(part, index_on_device, exact=name == "optimal")
            if part.size
            else batch.empty((1,) * (part.ndim - 1), part.dtype)
            for name, part in states._asdict().items()
        ]
        self.delays = [
            batch.send(part) if isinstance(part, np.ndarray) else part
            for part in (NO_DELAY if delay is None else delay.params(arms))
        ]
        self.table = batch.send(policy.functions.table(arms, horizon))
        # In single precision a GPU draws all arms faster than it prunes them
        in_tree = uses_draw_tree(policy.functions, arms) and not batch.in_single
        pruned = policy.functions.posterior is not None and is_pruned(arms) and not batch.in_single
        self.shape = in_step(batch.shape, batch.replications) if pruned and not in_tree else batch.shape
        self.kernel = batch.kernels.play_kernel(
            policy.functions, law, self.shape,
            in_single=batch.in_single, pruned=pruned, delayed=delay is not None, in_tree=in_tree,
        )  # fmt: skip
        no_tree, one_for_all = np.zeros((1, 1, 1)), np.zeros(batch.replications, dtype=np.int64)
        self.trees = batch.spread(new_draw_trees(1, arms), batch.send(one_for_all)) if in_tree else batch.send(no_tree)
        rows = SCRATCH_ROWS if pruned or in_tree else 1
        shared = batch.kernels.scratch_is_shared(self.shape, rows, in_single=batch.in_single)
        self.scratch = batch.send(np.zeros((1, 1, 1))) if shared else batch.empty((rows, arms))
        total = batch.send(np.zeros(batch.replications), exact=True)
        parts = [batch.empty(part.shape[1:] if part.size else (1,), part.dtype) for part in row[2:]]
        self.record = [batch.send(row.times), total, *parts]

    def play(self, first: int, length: int) -> None:
        """Play a block of steps."""
        batch, request = self.batch, self.batch.request
        cursor = int(np.searchsorted(request.times, first))
        self.kernel[batch.launch(self.shape.width, self.shape.threads)](
            *self.state, *self.record, self.table, self.scratch, self.trees, batch.means, batch.best, batch.features,
            batch.law, batch.params, *self.delays, first, length, self.policy.burn_in, cursor, request.keeps_steps,
            *request.random,
        )  # fmt: skip

    def prepare_collecting(self) -> None:
        """Write to the arrays of the record, so that the system gives them memory while the GPU is busy."""
        for array in self.row[1:]:
            array.fill(0)

    def collect(self) -> None:
        """Copy back what was recorded."""
        for host, device in zip(self.row[1:], self.record[1:], strict=True):
            if host.size:
                device[: len(host)].copy_to_host(host)


def _round_up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple
