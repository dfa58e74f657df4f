"""The simulator on a GPU: one warp a replication, its arms spread over the lanes.

Nothing of an algorithm is written here. A warp calls the very functions that make up a policy or an environment;
this module only says which lane calls what, and finds the largest score across lanes.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import cuda

from dynabandit.environments.base import Kernels as EnvironmentKernels
from dynabandit.kernels.compilation import kernel
from dynabandit.kernels.contest import GROUP, LOSES, challenge, contested, prefixes
from dynabandit.kernels.draws import beta, not_empty
from dynabandit.kernels.precision import single
from dynabandit.kernels.streams import EXPLORED_ARM, REWARD, SCORE, TIE, Stream, uniform
from dynabandit.policies.base import Kernels, Now
from dynabandit.policies.decision import FEW
from dynabandit.simulation.episodes import add_switches

__all__ = ["LANES", "PARTS", "best_writer", "path_kernel", "play_kernel", "switch_kernel"]

LANES = GROUP
PARTS = 8  # warps that share the steps of a replication where steps are independent
FULL = 0xFFFFFFFF
LARGEST_INDEX = 0x7FFFFFFF

if numba.config.ENABLE_CUDASIM:  # Numba's simulator has no warps: a block of one warp meets in shared memory

    def meet() -> None:
        """Wait for the other lanes."""
        cuda.syncthreads()

    def gather(value: float) -> list[float]:
        """Return the values of all lanes."""
        values = cuda.shared.array(LANES, numba.float64)
        values[cuda.threadIdx.x] = value
        cuda.syncthreads()
        together = values.tolist()
        cuda.syncthreads()
        return list(together)

    def largest_of_lanes(value: float) -> float:
        """Return the largest value of all lanes."""
        return max(gather(value))

    def count_lanes(condition: bool) -> int:
        """Return in how many lanes the condition holds."""
        return int(sum(gather(float(condition))))

    def smallest_index(index: int, condition: bool) -> int:
        """Return the smallest index of the lanes where the condition holds."""
        return int(min(gather(float(index) if condition else math.inf)))

else:

    @kernel
    def meet() -> None:
        """Wait for the other lanes."""
        cuda.syncwarp()

    @kernel
    def largest_of_lanes(value: float) -> float:
        """Return the largest value of all lanes."""
        for distance in (16, 8, 4, 2, 1):
            value = max(value, cuda.shfl_xor_sync(FULL, value, distance))
        return value

    @kernel
    def count_lanes(condition: bool) -> int:
        """Return in how many lanes the condition holds."""
        return cuda.popc(cuda.ballot_sync(FULL, condition))

    @kernel
    def smallest_index(index: int, condition: bool) -> int:
        """Return the smallest index of the lanes where the condition holds."""
        least = np.int32(index) if condition else np.int32(LARGEST_INDEX)
        for distance in (16, 8, 4, 2, 1):
            least = min(least, cuda.shfl_xor_sync(FULL, least, distance))
        return int(least)


@kernel
def largest(scores: np.ndarray, lane: int, step: int, source: Stream) -> int:
    """Do what `policies.decision.largest` does, with the lanes of a warp."""
    best = -np.inf
    mine = scores.size
    alone = True
    for arm in range(lane, scores.size, LANES):
        if scores[arm] > best:
            best = scores[arm]
            mine = arm
            alone = True
        elif scores[arm] == best:
            alone = False
    top = largest_of_lanes(best)
    leader = smallest_index(mine, best == top)
    if count_lanes(best == top) == 1 and count_lanes(best == top and not alone) == 0:
        return leader
    ties = 0
    for arm in range(leader, scores.size):
        if scores[arm] == top:
            ties += 1
    skip = min(int(uniform(source, TIE, step, 0) * ties), ties - 1)
    for arm in range(leader, scores.size):
        if scores[arm] == top:
            if skip == 0:
                return arm
            skip -= 1
    return leader


def make_indices(kernels: Kernels) -> Callable[..., None]:
    """Return fill(memory, last, scratch, lane, now, parameters, table, source) for a policy with a `score`."""
    score = kernels.score

    @kernel
    def fill(
        memory: np.ndarray,
        last: np.ndarray,
        scratch: np.ndarray,
        lane: int,
        now: Now,
        parameters: np.ndarray,
        table: np.ndarray,
        source: Stream,
    ) -> None:
        for arm in range(lane, last.size, LANES):
            scratch[0, arm] = score(memory, arm, now.step - 1 - last[arm], now, parameters, table, source)

    return fill


def make_contest(kernels: Kernels) -> Callable[..., None]:
    """Do what `policies.decision.make_contest` does, a group of arms at a time."""
    posterior, optimistic = kernels.posterior, kernels.optimistic
    assert posterior is not None

    @kernel
    def fill(
        memory: np.ndarray,
        last: np.ndarray,
        scratch: np.ndarray,
        lane: int,
        now: Now,
        parameters: np.ndarray,
        table: np.ndarray,
        source: Stream,
    ) -> None:
        arms = last.size
        score, shape_a, shape_b, mean, prefix = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
        largest_mean = -1.0
        favourite = arms
        for arm in range(lane, arms, LANES):
            a, b = not_empty(posterior(memory, arm, now.step - 1 - last[arm], now, parameters))
            shape_a[arm] = a
            shape_b[arm] = b
            mean[arm] = a / (a + b)
            if mean[arm] > largest_mean:
                largest_mean = mean[arm]
                favourite = arm
        if arms <= FEW:
            if lane < arms:
                drawn = beta(shape_a[lane], shape_b[lane], source, SCORE, now.step, lane)
                score[lane] = max(drawn, mean[lane]) if optimistic else drawn
            return
        for eighth in range(lane, (arms + 7) // 8, LANES):
            eight = prefixes(source, SCORE, now.step, eighth)
            for i in range(min(8, arms - 8 * eighth)):
                prefix[8 * eighth + i] = eight[i]
        own_mean = largest_mean
        largest_mean = largest_of_lanes(own_mean)
        favourite = smallest_index(favourite, own_mean == largest_mean)
        meet()
        first = beta(shape_a[favourite], shape_b[favourite], source, SCORE, now.step, favourite)
        if optimistic:
            first = max(first, largest_mean)
        best = first
        for start in range(0, arms, GROUP):
            arm = start + lane
            value = LOSES
            if arm < arms:
                a, b, m = shape_a[arm], shape_b[arm], mean[arm]
                if arm != favourite and contested(a, b, m, best, prefix[arm]):
                    value = challenge(a, b, m, best, prefix[arm], source, SCORE, now.step, arm)
                score[arm] = max(value, m) if optimistic else value
            best = largest_of_lanes(max(best, value))
        if lane == favourite % LANES:
            score[favourite] = first

    return fill


def make_draws(kernels: Kernels) -> Callable[..., None]:
    """Do what `policies.decision.make_draws` does; in single precision a GPU draws faster than it decides."""
    posterior, optimistic = kernels.posterior, kernels.optimistic
    assert posterior is not None

    @kernel
    def fill(
        memory: np.ndarray,
        last: np.ndarray,
        scratch: np.ndarray,
        lane: int,
        now: Now,
        parameters: np.ndarray,
        table: np.ndarray,
        source: Stream,
    ) -> None:
        for arm in range(lane, last.size, LANES):
            a, b = not_empty(posterior(memory, arm, now.step - 1 - last[arm], now, parameters))
            drawn = beta(a, b, source, SCORE, now.step, arm)
            scratch[0, arm] = max(drawn, a / (a + b)) if optimistic else drawn

    return fill


def jit(function: Callable[..., None], *, in_single: bool) -> Any:
    """Compile for the GPU, in double precision or in fast single precision."""
    return cuda.jit(single(function), fastmath=True) if in_single else cuda.jit(function)


@functools.cache
def play_kernel(kernels: Kernels, *, in_single: bool) -> Any:
    """Return the CUDA kernel that plays a block of steps, the counterpart of `episodes.make_episodes`."""
    if kernels.posterior is None:
        fill = make_indices(kernels)
    else:
        fill = make_draws(kernels) if in_single else make_contest(kernels)
    context, explore, learn, reveal = kernels.context, kernels.explore, kernels.learn, kernels.reveal

    def play(  # type: ignore[no-untyped-def]
        all_memory, all_shared, all_last, all_parameters, table, all_scratch, means, best,
        first, steps, burn_in, times, cursor, totals, regret, correct, kept_arms, kept_rewards, keep,
        seed_low, seed_high, first_replication,
    ):  # fmt: skip
        replication = cuda.blockIdx.x
        lane = cuda.threadIdx.x
        memory, shared, last = all_memory[replication], all_shared[replication], all_last[replication]
        parameters, scratch = all_parameters[replication], all_scratch[replication]
        source = Stream(int(seed_low), int(seed_high), int(first_replication + replication))
        arms = last.size
        total = totals[replication]
        mark = cursor
        for offset in range(steps):
            step = first + offset
            truth = means[replication, offset]
            for arm in range(lane, arms, LANES):
                reveal(memory, arm, truth[arm])
            if step <= burn_in * arms:
                chosen = (step - 1) % arms
            else:
                now = Now(step, arms, context(shared, step, parameters))
                fill(memory, last, scratch, lane, now, parameters, table, source)
                meet()
                chosen = largest(scratch[0], lane, step, source)
                if explore(memory, chosen, step - 1 - last[chosen], now, parameters, source):
                    chosen = min(int(uniform(source, EXPLORED_ARM, step, 0) * arms), arms - 1)
            meet()
            gap = best[replication, offset] - truth[chosen]
            total += gap
            if lane == 0:
                last[chosen] = step
                reward = 1.0 if uniform(source, REWARD, step, chosen) < truth[chosen] else 0.0
                learn(memory, shared, chosen, reward, parameters)
                if mark < times.size and times[mark] == step:
                    regret[replication, mark] = total
                    correct[replication, mark] = gap == 0.0
                if keep:
                    kept_arms[replication, step - 1] = chosen
                    kept_rewards[replication, step - 1] = reward
            if mark < times.size and times[mark] == step:
                mark += 1
            meet()
        if lane == 0:
            totals[replication] = total

    return jit(play, in_single=in_single)


@functools.cache
def path_kernel(kernels: EnvironmentKernels, *, in_single: bool) -> Any:
    """Return the CUDA kernel that writes a block of means, a thread for each replication and arm."""
    start, advance = kernels

    def write(  # type: ignore[no-untyped-def]
        state, parameters, table, means, first, steps, seed_low, seed_high, first_replication
    ):
        cell = cuda.grid(1)
        arms = means.shape[2]
        replication = cell // arms
        arm = cell % arms
        if replication < means.shape[0]:
            source = Stream(int(seed_low), int(seed_high), int(first_replication + replication))
            states = state[replication]
            if first == 1:
                start(states, arm, parameters, table, source)
            for step in range(steps):
                means[replication, step, arm] = advance(states, arm, first + step, parameters, table, source)

    return jit(write, in_single=in_single)


@functools.cache
def best_writer(*, in_single: bool) -> Any:
    """Return the CUDA kernel that writes the largest mean of each step."""

    def write(means, best, steps):  # type: ignore[no-untyped-def]
        replication = cuda.blockIdx.x // PARTS
        lane = cuda.threadIdx.x
        for step in range(cuda.blockIdx.x % PARTS, steps, PARTS):
            value = 0.0
            for arm in range(lane, means.shape[2], LANES):
                value = max(value, means[replication, step, arm])
            value = largest_of_lanes(value)
            if lane == 0:
                best[replication, step] = value

    return jit(write, in_single=in_single)


@functools.cache
def switch_kernel() -> Any:
    """Return the CUDA kernel that counts the switches of the best arm, a thread for each replication."""

    @cuda.jit
    def count(means, best, steps, incumbent, switches):  # type: ignore[no-untyped-def]
        replication = cuda.grid(1)
        if replication < means.shape[0]:
            end = replication + 1
            add_switches(
                means[replication:end],
                best[replication:end],
                steps,
                incumbent[replication:end],
                switches[replication:end],
            )

    return count
