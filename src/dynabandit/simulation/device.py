"""The simulator on an NVIDIA GPU: batches of replications that fit its memory, block after block of steps."""

from collections.abc import Iterator
from typing import Any

import numba
import numpy as np

from dynabandit.errors import extra
from dynabandit.kernels.streams import Stream
from dynabandit.policies import Policy
from dynabandit.policies.decision import SCRATCH_ROWS
from dynabandit.simulation.episodes import Record
from dynabandit.simulation.work import Work, initial_state

__all__ = ["missing", "run"]

BLOCK_BYTES = 1 << 30
SHARE_OF_MEMORY = 0.6
THREADS = 128


def missing() -> str:
    """Say what stands between this machine and a simulation on its GPU; empty where nothing does."""
    try:
        extra("numba_cuda", "cuda")
    except ModuleNotFoundError:
        return "needs numba-cuda, which is not installed: pip install 'dynabandit[cuda]'"
    from numba import cuda

    if cuda.is_available():
        return ""
    try:
        cuda.current_context()
    except Exception as error:  # whatever the driver has to say
        return f"needs an NVIDIA GPU and its driver, but found none that works: {error}"
    return "needs an NVIDIA GPU and its driver, but found none"


def run(work: Work, records: dict[str, Record], replications: int, block: int | None, in_single: bool) -> None:
    """Run all replications, as many at a time as the GPU's memory holds."""
    size = min(replications, _fitting(work, records))
    for low in range(0, replications, size):
        high = min(low + size, replications)
        rows = {
            label: Record(record.times, *(part[low:high] for part in record[1:])) for label, record in records.items()
        }
        source = work.source._replace(replication=work.source.replication + low)
        _Batch(work, rows, source, high - low, block, in_single).run(low, replications)


def _fitting(work: Work, records: dict[str, Record]) -> int:
    """Return how many replications fit into the GPU's memory."""
    from numba import cuda

    if numba.config.ENABLE_CUDASIM:
        return 2**20
    free, _ = cuda.current_context().get_memory_info()
    arms = work.environment.arms
    each = 8 * arms * (len(work.environment.slots) + 2)
    for label, policy in work.policies.items():
        tuned = policy.tuned(1, work.horizon)
        each += 8 * (arms * (tuned.memory_size() + 1 + SCRATCH_ROWS) + tuned.shared_size())
        each += sum(part[:1].nbytes for part in records[label][1:])
    fitting = int((SHARE_OF_MEMORY * free - BLOCK_BYTES) / each)
    if fitting < 1:
        raise MemoryError(f"arms must be fewer: one replication with {arms} arms takes {each} bytes, {free} are free")
    return fitting


class _Batch:
    """Some replications on the GPU."""

    def __init__(
        self,
        work: Work,
        rows: dict[str, Record],
        source: Stream,
        replications: int,
        block: int | None,
        in_single: bool,
    ) -> None:
        from numba import cuda

        from dynabandit.simulation import cuda as kernels

        self.work, self.rows, self.source, self.replications = work, rows, source, replications
        self.kernels, self.in_single = kernels, in_single
        self.float = np.float32 if in_single else np.float64
        arms = work.environment.arms
        fitting = max(1, BLOCK_BYTES // (np.dtype(self.float).itemsize * replications * arms))
        self.steps = min(work.horizon, fitting if block is None else block)
        self.means = cuda.device_array((replications, self.steps, arms), self.float)
        self.best = cuda.device_array((replications, self.steps), self.float)
        self.numbers = self.send(work.environment.numbers())
        self.table = self.send(work.environment.table())
        self.synchronize = cuda.synchronize

    def send(self, array: np.ndarray, *, exact: bool = False) -> Any:
        """Copy an array to the GPU, floats in the precision of the batch unless they are `exact`."""
        from numba import cuda

        kind = self.float if array.dtype == float and not exact else array.dtype
        filled = array if array.size else np.zeros((1,) * array.ndim)  # a GPU has no empty arrays
        return cuda.to_device(np.ascontiguousarray(filled, dtype=kind))

    def run(self, done: int, total: int) -> None:
        """Play all policies on all blocks of steps."""
        switches = self._switches()
        players = {
            label: _Player(self, policy, self.rows[label], switches) for label, policy in self.work.policies.items()
        }
        for first, length in self._blocks():
            for player in players.values():
                player.play(first, length)
            self.synchronize()
            steps = self.replications * (first + length - 1)
            self.work.progress(done * self.work.horizon + steps, total * self.work.horizon)
        for player in players.values():
            player.collect()

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """Fill the means with one block of the paths after the other; yield first step and length."""
        world = self.work.environment
        state = self.send(np.zeros((self.replications, len(world.slots), world.arms)))
        write, reduce = (
            self.kernels.path_kernel(world.kernels, in_single=self.in_single),
            self.kernels.best_writer(in_single=self.in_single),
        )
        grid = -(-self.replications * world.arms // THREADS)
        for first in range(1, self.work.horizon + 1, self.steps):
            length = min(self.steps, self.work.horizon + 1 - first)
            write[grid, THREADS](state, self.numbers, self.table, self.means, first, length, *self.source)
            reduce[self.replications * self.kernels.PARTS, self.kernels.LANES](self.means, self.best, length)
            yield first, length

    def _switches(self) -> np.ndarray:
        """Count the switches of the best arm on each path, where a policy wants to know."""
        switches = np.zeros(self.replications, dtype=np.int64)
        if not self.work.needs_switches:
            return switches
        incumbent, counts = self.send(np.full(self.replications, -1)), self.send(switches)
        grid = -(-self.replications // THREADS)
        for _, length in self._blocks():
            self.kernels.switch_kernel()[grid, THREADS](self.means, self.best, length, incumbent, counts)
        return counts.copy_to_host()


class _Player:
    """One policy of a batch, with its state on the GPU."""

    def __init__(self, batch: _Batch, policy: Policy, row: Record, switches: np.ndarray) -> None:
        arms, horizon = batch.work.environment.arms, batch.work.horizon
        self.batch, self.policy, self.row = batch, policy, row
        self.state = [batch.send(part) for part in initial_state(policy, arms, switches, horizon)]
        self.table = batch.send(policy.kernels.table(arms, horizon))
        self.scratch = batch.send(np.zeros((batch.replications, SCRATCH_ROWS, arms)))
        self.record = [batch.send(part, exact=True) for part in row]

    def play(self, first: int, length: int) -> None:
        """Play a block of steps."""
        batch = self.batch
        cursor = int(np.searchsorted(batch.work.times, first))
        play = batch.kernels.play_kernel(self.policy.kernels, in_single=batch.in_single)
        play[batch.replications, batch.kernels.LANES](
            *self.state, self.table, self.scratch, batch.means, batch.best,
            first, length, self.policy.burn_in, self.record[0], cursor, *self.record[1:],
            self.row.arms.size > 0, *batch.source,
        )  # fmt: skip

    def collect(self) -> None:
        """Bring home what was recorded."""
        for here, there in zip(self.row[1:], self.record[1:], strict=True):
            if here.size:
                here[...] = there.copy_to_host()
