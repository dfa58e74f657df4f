"""The simulator on a GPU: the lanes of a warp share the arms of a replication, or of several where arms are few.

Nothing of an algorithm is written here. A lane calls the very functions that a processor calls; this module only says
how lanes share the arms and meet again.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import cuda

from dynabandit.core.compilation import compiled_for_cuda, kernel
from dynabandit.core.lanes import Walk
from dynabandit.core.precision import FAST, single
from dynabandit.core.streams import Stream
from dynabandit.environments.base import Kernels as EnvironmentKernels, make_path
from dynabandit.policies.base import Kernels
from dynabandit.policies.choose_arm import SCRATCH_ROWS, is_contest
from dynabandit.simulation.stepper import Record, State, add_switches, make_episode

__all__ = [
    "LANES", "THREADS", "Team", "team_for", "path_kernel", "play_kernel", "scratch_rows", "spread_kernel",
    "switch_kernel",
]  # fmt: skip

LANES = 32
FULL = 0xFFFFFFFF
NOTHING = -math.inf
MOST_ROUNDS = 8
THREADS = LANES if numba.config.ENABLE_CUDASIM else 4 * LANES  # of a block: Numba's simulator has no warps


class Team(NamedTuple):
    """Who walks over the arms of a replication: a kernel is compiled for each team."""

    width: int  # a power of 2: how many lanes
    rounds: int  # how often each of them comes by, known to the compiler; 0 where it is too often for that


def team_for(arms: int) -> Team:
    """Return the team for so many arms: all lanes of a warp where arms are many, else just enough."""
    width = min(LANES, 1 << (arms - 1).bit_length())
    rounds = -(-arms // width)
    return Team(width, rounds if rounds <= MOST_ROUNDS else 0)


@functools.cache
def warp(team: Team) -> Walk:
    """Return the walk of a team; several replications share a warp where their teams are small."""
    width, known_rounds = team

    if known_rounds:

        @kernel
        def rounds(arms: int) -> int:
            return known_rounds

    else:

        @kernel
        def rounds(arms: int) -> int:
            return (arms + width - 1) // width

    @kernel
    def turns(start: int, end: int) -> int:
        return (end - start + width - 1) // width

    @kernel
    def place(start: int, turn: int) -> Any:
        # unsigned, so that no index counts from the end
        return np.uint32(start + (cuda.threadIdx.x & (width - 1)) + width * turn)

    @kernel
    def inside(arm: int, end: int) -> bool:
        return arm < end

    @kernel
    def leads() -> bool:
        return cuda.threadIdx.x & (width - 1) == 0

    @kernel
    def top(scores: np.ndarray) -> tuple[float, int, int]:
        best = NOTHING
        first = 0
        ties = 0
        for turn in range(rounds(scores.size)):
            arm = place(0, turn)
            if inside(arm, scores.size):
                if scores[arm] > best:
                    best = scores[arm]
                    first = arm
                    ties = 1
                elif scores[arm] == best:
                    ties += 1
        return best, first, ties

    meet, *others = _simulated(width) if numba.config.ENABLE_CUDASIM else _shuffled(width)
    return Walk(rounds, turns, place, inside, leads, meet, top, *others)


def _simulated(width: int) -> tuple[Callable[..., Any], ...]:
    """Return how lanes meet in Numba's simulator, which has no warps: in shared memory, a block being a warp."""

    def gather(value: Any) -> list[Any]:
        values = cuda.shared.array(LANES, numba.float64)
        values[cuda.threadIdx.x] = value
        cuda.syncthreads()
        group = cuda.threadIdx.x // width * width
        together = values.tolist()[group : group + width]
        cuda.syncthreads()
        return list(together)

    def meet() -> None:
        cuda.syncthreads()

    def highest(value: float) -> float:
        return float(max(gather(value)))

    def lowest(arm: int) -> int:
        return int(min(gather(arm)))

    def only(arm: int, holds: bool, several: bool) -> int:
        held = [int(one) for one in gather(arm if holds else -1) if one >= 0]
        return held[0] if len(held) == 1 and not any(gather(holds and several)) else -1

    return meet, highest, lowest, only


def _shuffled(width: int) -> tuple[Callable[..., Any], ...]:
    """Return how the lanes of a real warp meet; all lanes of the warp come along, whatever their replication."""
    group_of_ones = (1 << width) - 1

    @kernel
    def meet() -> None:
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
    def only(arm: int, holds: bool, several: bool) -> Any:
        group = np.int32(cuda.laneid & ~(width - 1))
        holders = (cuda.ballot_sync(FULL, holds) >> group) & group_of_ones
        doubles = (cuda.ballot_sync(FULL, holds and several) >> group) & group_of_ones
        found = cuda.shfl_sync(FULL, np.int32(arm), group + cuda.ffs(holders) - 1)
        return found if cuda.popc(holders) == 1 and doubles == 0 else np.int32(-1)

    return meet, highest, lowest, only


def jit(function: Callable[..., None], *, in_single: bool) -> Any:
    """Compile for the GPU, in double precision or in fast single precision."""
    return compiled_for_cuda(single(function), fastmath=FAST) if in_single else compiled_for_cuda(function)


def scratch_rows(kernels: Kernels, *, in_single: bool) -> int:
    """Return how many numbers a decision notes down for each arm: more than its score only in a contest."""
    return SCRATCH_ROWS if kernels.posterior is not None and not in_single else 1


@functools.cache
def play_kernel(kernels: Kernels, team: Team, *, in_single: bool) -> Any:
    """Return the CUDA kernel that plays a block of steps, with its scratch in shared memory unless arms are many.

    In single precision a GPU draws every arm faster than it decides whose draw can be spared.
    """
    contest = is_contest(team.width) and not in_single  # as its arms do: the width is the next power of 2
    episode, width, in_shared = make_episode(kernels, warp(team), contest=contest), team.width, team.rounds > 0
    rows, kind = scratch_rows(kernels, in_single=in_single), numba.float32 if in_single else numba.float64
    shared_shape = (THREADS // width * rows, width * max(team.rounds, 1))

    def play(  # type: ignore[no-untyped-def]
        memory, shared, last, parameters, times, total, regret, correct, arms, rewards,
        table, scratch, means, best, first, steps, burn_in, cursor, keep, seed_low, seed_high, first_replication,
    ):  # fmt: skip
        row = cuda.grid(1) // width
        if row < means.shape[0]:
            if in_shared:
                begin = cuda.threadIdx.x // width * rows
                own = cuda.shared.array(shared_shape, kind)[begin : begin + rows]
            else:
                own = scratch[row]
            state = State(memory, shared, last, parameters)
            record = Record(times, total, regret, correct, arms, rewards)
            source = Stream(int(seed_low), int(seed_high), int(first_replication + row))
            episode(state, record, table, own, own, means, best, row, first, steps, burn_in, cursor, keep, source)

    return jit(play, in_single=in_single)


@functools.cache
def path_kernel(kernels: EnvironmentKernels, team: Team, *, in_single: bool) -> Any:
    """Return the CUDA kernel that writes a block of means."""
    write_path, width = make_path(kernels, warp(team)), team.width

    def write(  # type: ignore[no-untyped-def]
        state, parameters, table, means, best, first, steps, seed_low, seed_high, first_replication
    ):
        row = cuda.grid(1) // width
        if row < means.shape[0]:
            source = Stream(int(seed_low), int(seed_high), int(first_replication + row))
            write_path(state[row], parameters, table, means[row], best[row], first, steps, source)

    return jit(write, in_single=in_single)


@functools.cache
def spread_kernel() -> Any:
    """Return the CUDA kernel that gives every replication its copy of a row."""

    def spread(rows, index, copies):  # type: ignore[no-untyped-def]
        cell = cuda.grid(1)
        size = copies.shape[1]
        if cell < copies.shape[0] * size:
            copies[cell // size, cell % size] = rows[index[cell // size], cell % size]

    return compiled_for_cuda(spread)


@functools.cache
def switch_kernel() -> Any:
    """Return the CUDA kernel that counts the switches of the best arm, a thread for each replication."""

    def count(means, best, steps, incumbent, switches):  # type: ignore[no-untyped-def]
        row = cuda.grid(1)
        if row < means.shape[0]:
            end = row + 1
            add_switches(means[row:end], best[row:end], steps, incumbent[row:end], switches[row:end])

    return compiled_for_cuda(count)
