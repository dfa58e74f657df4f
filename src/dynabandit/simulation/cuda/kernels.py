"""The CUDA kernels: the lanes of a warp divide the arms of a replication, or of several replications with few arms.

No algorithm is written here. Lanes call the functions that the CPU calls; this module defines how lanes divide the arms
and exchange values.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import cuda

from dynabandit.core.compilation import compiled_for_cuda, kernel
from dynabandit.core.lanes import LaneGroup
from dynabandit.core.precision import FAST, single
from dynabandit.core.streams import Stream
from dynabandit.environments.base import EnvironmentFunctions, PathArrays, make_select_path, make_write_path
from dynabandit.environments.delays import DelayParams
from dynabandit.environments.reward_laws import RewardFunctions
from dynabandit.policies.base import PolicyFunctions
from dynabandit.policies.choose_arm import SCRATCH_ROWS, Workspace, is_pruned
from dynabandit.simulation.stepper import Block, Paths, Record, Replications, add_switches, make_play_replication

LANES = 32
FULL = 0xFFFFFFFF
NOTHING = -math.inf
MOST_ROUNDS = 8
THREADS = LANES if numba.config.ENABLE_CUDASIM else 4 * LANES  # per block: Numba's simulator has no warps


class GroupShape(NamedTuple):
    """The lanes that divide the arms of a replication; a kernel is compiled for each shape."""

    width: int  # how many lanes, a power of 2
    rounds: int  # how many arms each lane has, a constant for the compiler; 0 if there are too many for that


def group_shape(arms: int) -> GroupShape:
    """Return the shape of the lane group for a number of arms: at most the lanes of a warp."""
    width = min(LANES, 1 << (arms - 1).bit_length())
    rounds = -(-arms // width)
    return GroupShape(width, rounds if rounds <= MOST_ROUNDS else 0)


@functools.cache
def lane_group(shape: GroupShape) -> LaneGroup:
    """Return the lane group of a shape; groups narrower than a warp share it with other replications."""
    width, known_rounds = shape

    if known_rounds:

        @kernel
        def rounds(arms: int) -> int:
            return known_rounds

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
    def top(scores: np.ndarray) -> tuple[float, int, int]:
        best = NOTHING
        first = 0
        ties = 0
        for turn in range(rounds(scores.size)):
            arm = arm_at(0, turn)
            if exists(arm, scores.size):
                if scores[arm] > best:
                    best = scores[arm]
                    first = arm
                    ties = 1
                elif scores[arm] == best:
                    ties += 1
        return best, first, ties

    sync, *others = _simulated(width) if numba.config.ENABLE_CUDASIM else _shuffled(width)
    return LaneGroup(rounds, rounds_between, arm_at, exists, is_leader, sync, top, *others)


def _simulated(width: int) -> tuple[Callable[..., Any], ...]:
    """Return sync, highest, lowest and unique for Numba's simulator: through shared memory, a block being a warp."""

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

    def highest(value: float) -> float:
        return float(max(gather(value)))

    def lowest(arm: int) -> int:
        return int(min(gather(arm)))

    def unique(arm: int, holds: bool, several: bool) -> int:
        held = [int(one) for one in gather(arm if holds else -1) if one >= 0]
        return held[0] if len(held) == 1 and not any(gather(holds and several)) else -1

    return sync, highest, lowest, unique


def _shuffled(width: int) -> tuple[Callable[..., Any], ...]:
    """Return sync, highest, lowest and unique for a real warp; all its lanes take part, whatever their replication."""
    group_of_ones = (1 << width) - 1

    @kernel
    def sync() -> None:
        cuda.syncwarp()

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

    return sync, highest, lowest, unique


def jit(function: Callable[..., None], *, in_single: bool) -> Any:
    """Compile for the GPU, in double precision or in fast single precision."""
    return compiled_for_cuda(single(function), fastmath=FAST) if in_single else compiled_for_cuda(function)


def scratch_rows(functions: PolicyFunctions, *, in_single: bool) -> int:
    """Return how many numbers a decision stores per arm: more than the score only if draws are pruned."""
    return SCRATCH_ROWS if functions.posterior is not None and not in_single else 1


@functools.cache
def play_kernel(
    functions: PolicyFunctions,
    law: RewardFunctions,
    shape: GroupShape,
    *,
    in_single: bool,
    delayed: bool,
    in_tree: bool = False,
) -> Any:
    """Return the CUDA kernel that plays a block of steps; its scratch is in shared memory unless arms are many.

    In single precision a GPU draws all arms faster than it prunes them. With `in_tree` it draws from `trees`.
    """
    pruned = is_pruned(shape.width) and not in_single  # as for its arms: the width is the next power of 2
    play_replication = make_play_replication(
        functions, lane_group(shape), law, pruned=pruned, delayed=delayed, in_tree=in_tree
    )
    width, in_shared = shape.width, shape.rounds > 0
    rows, kind = scratch_rows(functions, in_single=in_single), numba.float32 if in_single else numba.float64
    shared_shape = (THREADS // width * rows, width * max(shape.rounds, 1))

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

    return jit(play, in_single=in_single)


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
def switch_kernel() -> Any:
    """Return the CUDA kernel that counts the switches of the best arm, one thread per replication."""

    def count(means, best, steps, incumbent, switches):  # type: ignore[no-untyped-def]
        row = cuda.grid(1)
        if row < means.shape[0]:
            end = row + 1
            add_switches(means[row:end], best[row:end], steps, incumbent[row:end], switches[row:end])

    return compiled_for_cuda(count)
