"""The CUDA kernels: the lanes of a warp divide the arms of a replication, or of several replications with few arms.

No algorithm is written here. Lanes call the functions that the CPU calls; this module defines how lanes divide the arms
and exchange values.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import cuda

from dynabandit.choosing.choose_arm import SCRATCH_ROWS, Workspace
from dynabandit.core.compilation import compiled_for_cuda, kernel
from dynabandit.core.lanes import LaneGroup
from dynabandit.core.precision import FAST, single
from dynabandit.core.streams import Stream
from dynabandit.environments.base import EnvironmentFunctions, PathArrays, make_select_path, make_write_path
from dynabandit.environments.delays import DelayParams
from dynabandit.environments.reward_laws import RewardFunctions
from dynabandit.policies.base import PolicyFunctions
from dynabandit.simulation.code_versions import device_version
from dynabandit.simulation.cuda import not_inlined, philox_words  # noqa: F401  # they change how kernels are compiled
from dynabandit.simulation.cuda.group_shapes import LANES, GroupShape
from dynabandit.simulation.stepper import Block, Paths, Record, Replications, add_changes, make_play_replication

FULL = 0xFFFFFFFF
NOTHING = -math.inf
REGISTERS = 96  # per thread: 20 warps then share the registers of a multiprocessor, which hides the latency of memory
SHARED_BYTES = 48 << 10  # of shared memory that a block can have


@functools.cache
def lane_group(shape: GroupShape) -> LaneGroup:
    """Return the lane group of a shape; groups narrower than a warp share it with other replications."""
    width, known_rounds = shape.width, shape.rounds

    if known_rounds:

        @kernel
        def rounds(arms: int) -> Any:
            return np.int32(known_rounds)  # loops with 32-bit counters take fewer instructions

    else:

        @kernel
        def rounds(arms: int) -> int:
            return (arms + width - 1) // width

    @kernel
    def rounds_between(start: int, end: int) -> int:
        return (end - start + width - 1) // width

    @kernel
    def arm_at(start: int, turn: int) -> Any:
        # unsigned, so that no index is taken from the end
        return np.uint32(start + (cuda.threadIdx.x & (width - 1)) + width * turn)

    @kernel
    def exists(arm: int, end: int) -> bool:
        return arm < end

    @kernel
    def is_leader() -> bool:
        return cuda.threadIdx.x & (width - 1) == 0

    @kernel
    def top(scores: np.ndarray) -> Any:
        best = NOTHING
        first, ties = np.uint32(0), np.int32(0)
        for turn in range(rounds(scores.size)):
            arm = arm_at(0, turn)
            if exists(arm, scores.size):
                if scores[arm] > best:
                    best = scores[arm]
                    first, ties = arm, np.int32(1)
                elif scores[arm] == best:
                    ties = np.int32(ties + 1)
        return best, first, ties

    sync, votes, highest, lowest, unique = (
        _simulated(width) if numba.config.ENABLE_CUDASIM else _shuffled(width, shape.in_step)
    )

    @kernel
    def marked(scores: np.ndarray, start: int, end: int) -> Any:
        marks = np.uint32(0)
        for turn in range(rounds_between(start, end)):
            arm = arm_at(start, turn)
            marks = np.uint32(marks | (votes(exists(arm, end) and scores[arm] >= 0.0) << (width * turn)))
        return marks

    @kernel
    def marked_rounds(marks: int, start: int, end: int) -> int:
        return (cuda.popc(marks) + width - 1) // width

    @kernel
    def marked_arm(marks: int, start: int, turn: int) -> Any:
        # of the type of the incumbent, so that what is called for both is compiled once
        return np.int64(start + place_of_bit(marks, (cuda.threadIdx.x & (width - 1)) + width * turn))

    @kernel
    def count(holds: bool) -> Any:
        return cuda.popc(votes(holds))

    @kernel
    def nth(arm: int, holds: bool, place: int) -> Any:
        # the lanes of a round have successive arms
        return arm - (cuda.threadIdx.x & (width - 1)) + place_of_bit(votes(holds), place)

    return LaneGroup(
        rounds, rounds_between, arm_at, exists, is_leader, sync, top, highest, lowest, unique,
        marked, marked_rounds, marked_arm, count, nth,
    )  # fmt: skip


@kernel
def place_of_bit(bits: Any, place: int) -> int:
    """Return the place of a bit of a word before which `place` bits are set, and which is set too; 32 if none is."""
    for _ in range(place):
        if bits != 0:
            bits = np.uint32(bits & (bits - np.uint32(1)))
    return cuda.ffs(bits) - 1 if bits != 0 else LANES


def _simulated(width: int) -> tuple[Callable[..., Any], ...]:
    """Return sync, votes, highest, lowest and unique for Numba's simulator: through shared memory, a block is a warp.

    votes(holds) is a word with a bit for each lane of the group.
    """

    def gather(value: Any) -> list[Any]:
        values = cuda.shared.array(LANES, numba.float64)
        values[cuda.threadIdx.x] = value
        cuda.syncthreads()
        group = cuda.threadIdx.x // width * width
        together = values.tolist()[group : group + width]
        cuda.syncthreads()
        return list(together)

    def sync() -> None:
        cuda.syncthreads()

    def votes(holds: bool) -> Any:
        return np.uint32(sum(int(one) << lane for lane, one in enumerate(gather(holds))))

    def highest(value: float) -> float:
        return float(max(gather(value)))

    def lowest(arm: int) -> int:
        return int(min(gather(arm)))

    def unique(arm: int, holds: bool, several: bool) -> int:
        held = [int(one) for one in gather(arm if holds else -1) if one >= 0]
        return held[0] if len(held) == 1 and not any(gather(holds and several)) else -1

    return sync, votes, highest, lowest, unique


def _shuffled(width: int, in_step: bool) -> tuple[Callable[..., Any], ...]:
    """Return the same for a real warp: all its lanes take part, whatever their replication, in `votes` a group."""
    group_of_ones = (1 << width) - 1

    @kernel
    def sync() -> None:
        if in_step:
            cuda.syncthreads()
        else:
            cuda.syncwarp()

    @kernel
    def votes(holds: bool) -> Any:
        group = np.uint32(cuda.laneid & ~(width - 1))
        return np.uint32((cuda.ballot_sync(group_of_ones << group, holds) >> group) & group_of_ones)

    @kernel
    def highest(value: float) -> float:
        distance = width >> 1
        while distance > 0:
            value = max(value, cuda.shfl_xor_sync(FULL, value, distance))
            distance >>= 1
        return value

    @kernel
    def lowest(arm: int) -> Any:
        least = np.int32(arm)
        distance = width >> 1
        while distance > 0:
            least = min(least, cuda.shfl_xor_sync(FULL, least, distance))
            distance >>= 1
        return least

    @kernel
    def unique(arm: int, holds: bool, several: bool) -> Any:
        group = np.int32(cuda.laneid & ~(width - 1))
        holders = (cuda.ballot_sync(FULL, holds) >> group) & group_of_ones
        doubles = (cuda.ballot_sync(FULL, holds and several) >> group) & group_of_ones
        found = cuda.shfl_sync(FULL, np.int32(arm), group + cuda.ffs(holders) - 1)
        return found if cuda.popc(holders) == 1 and doubles == 0 else np.int32(-1)

    return sync, votes, highest, lowest, unique


def jit(function: Callable[..., None], *, in_single: bool, **options: Any) -> Any:
    """Compile for the GPU, in double precision or in fast single precision."""
    if in_single:
        return compiled_for_cuda(single(function), device_code=device_version(), fastmath=FAST, **options)
    return compiled_for_cuda(function, device_code=device_version(), **options)


def scratch_is_shared(shape: GroupShape, rows: int, *, in_single: bool) -> bool:
    """Whether the scratch of the replications of a block fits into shared memory."""
    return 0 < shape.threads * shape.rounds * rows * (4 if in_single else 8) <= SHARED_BYTES


@functools.cache
def play_kernel(
    functions: PolicyFunctions,
    law: RewardFunctions,
    shape: GroupShape,
    *,
    in_single: bool,
    pruned: bool,
    delayed: bool,
    in_tree: bool = False,
) -> Any:
    """Return the CUDA kernel that plays a block of steps; its scratch is in shared memory if it fits.

    With `in_tree` it draws from `trees`.
    """
    play_replication = make_play_replication(
        functions, lane_group(shape), law, pruned=pruned, delayed=delayed, in_tree=in_tree
    )
    width, rows = shape.width, SCRATCH_ROWS if pruned or in_tree else 1
    in_shared, kind = scratch_is_shared(shape, rows, in_single=in_single), numba.float32 if in_single else numba.float64
    shared_shape = (shape.threads // width * rows, width * max(shape.rounds, 1))

    def play(  # type: ignore[no-untyped-def]
        memory, shared, last_played, plays, optimal, params, pending, queue, settling, models,
        times, total, regret, correct, arms, rewards, table, scratch, trees, means, best, features, law_params,
        environment,
        delay_law, window, rule, low, high, lost, sample,
        first, steps, burn_in, cursor, keep, seed_low, seed_high, first_replication,
    ):  # fmt: skip
        row = cuda.grid(1) // width
        if row < means.shape[0]:
            if in_shared:
                begin = cuda.threadIdx.x // width * rows
                own = cuda.shared.array(shared_shape, kind)[begin : begin + rows]
            else:
                own = scratch[row]
            stored = trees[row] if in_tree else own
            states = Replications(memory, shared, last_played, plays, optimal, params, pending, queue, settling, models)
            delays = DelayParams(delay_law, window, rule, low, high, lost, sample)
            record = Record(times, total, regret, correct, arms, rewards)
            block, space = Block(first, steps, burn_in, cursor, keep), Workspace(own, stored, table, table[:0])
            random = Stream(int(seed_low), int(seed_high), int(first_replication + row))
            paths = Paths(means, best, law_params, environment, features)
            play_replication(states, record, paths, block, space, delays, row, random)

    return jit(play, in_single=in_single, max_registers=REGISTERS)


@functools.cache
def path_kernel(functions: EnvironmentFunctions, shape: GroupShape, *, in_single: bool) -> Any:
    """Return the CUDA kernel that writes a block of means."""
    write_path, select, width = make_write_path(functions, lane_group(shape)), make_select_path(functions), shape.width

    def write(  # type: ignore[no-untyped-def]
        state, params, table, means, best, features, first, steps, seed_low, seed_high, first_replication
    ):
        row = cuda.grid(1) // width
        if row < means.shape[0]:
            random = Stream(int(seed_low), int(seed_high), int(first_replication + row))
            path = select(PathArrays(means, best, features), row)
            write_path(state[row], params, table, path, first, steps, random)

    return jit(write, in_single=in_single)


@functools.cache
def spread_kernel() -> Any:
    """Return the CUDA kernel that copies to every replication the row of its index."""

    def spread(rows, index, copies):  # type: ignore[no-untyped-def]
        cell = cuda.grid(1)
        size = copies.shape[1]
        if cell < copies.shape[0] * size:
            copies[cell // size, cell % size] = rows[index[cell // size], cell % size]

    return compiled_for_cuda(spread)


@functools.cache
def change_kernel() -> Any:
    """Return the CUDA kernel that counts the changes of the best arm, one thread per replication."""

    def count(means, best, steps, incumbent, changes):  # type: ignore[no-untyped-def]
        row = cuda.grid(1)
        if row < means.shape[0]:
            end = row + 1
            add_changes(means[row:end], best[row:end], steps, incumbent[row:end], changes[row:end])

    return compiled_for_cuda(count)
