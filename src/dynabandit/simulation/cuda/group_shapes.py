"""How many lanes of a GPU share the arms of a replication."""

from typing import NamedTuple

import numba

LANES = 32  # of a warp
MOST_ROUNDS = 16
FEW_LANES = 1 << 14  # up to which each warp gets a block, and so a multiprocessor, of its own
MANY_LANES = 1 << 16  # that keep a large GPU busy with policies
MANY_PATH_LANES = 1 << 17  # and with paths, whose kernels need fewer registers
# Warps of a block, and of one that fills a multiprocessor; in Numba's simulator, which has no warps, a block is one
WARPS, WARPS_IN_STEP = (1, 1) if numba.config.ENABLE_CUDASIM else (4, 20)


class GroupShape(NamedTuple):
    """The lanes that divide the arms of a replication, and their blocks; a kernel is compiled for each shape."""

    width: int  # how many lanes, a power of 2
    rounds: int  # how many arms each lane has, a constant for the compiler; 0 if there are too many for that
    threads: int = WARPS * LANES  # per block
    in_step: bool = False  # whether all warps of a block wait for each other, so that they fetch instructions once


def group_shape(arms: int, replications: int, many_lanes: int = MANY_LANES) -> GroupShape:
    """Return the shape of the lane group: the narrowest one that keeps the GPU busy.

    The replications of a warp share the instructions of a step that all lanes of a group would execute alike: rewards,
    learning, the largest score of a group. With few replications, wide groups take less time for a step.

    Examples
    --------
    >>> group_shape(arms=100, replications=10_000)
    GroupShape(width=8, rounds=13, threads=128, in_step=False)
    >>> group_shape(arms=100, replications=100)
    GroupShape(width=32, rounds=4, threads=32, in_step=False)
    """
    width = min(LANES, 1 << (arms - 1).bit_length())
    while width > 1 and replications * width >= 2 * many_lanes and arms <= MOST_ROUNDS * (width // 2):
        width //= 2
    rounds = -(-arms // width)
    warps = 1 if replications * width <= FEW_LANES else WARPS
    return GroupShape(width, rounds if rounds <= MOST_ROUNDS else 0, warps * LANES)


def in_step(shape: GroupShape, replications: int) -> GroupShape:
    """Return the shape for a kernel whose code is larger than the instruction cache of a multiprocessor.

    If its warps are at the same place of the code at the same time, each instruction is fetched once for all of them.
    """
    many = replications * shape.width >= MANY_LANES
    return shape._replace(threads=WARPS_IN_STEP * LANES if many else shape.threads, in_step=True)
