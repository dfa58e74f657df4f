"""How many lanes of a GPU share the arms of a replication."""

from typing import NamedTuple

LANES = 32  # of a warp
MOST_ROUNDS = 16
MANY_LANES = 1 << 16  # that keep a large GPU busy with policies
MANY_PATH_LANES = 1 << 17  # and with paths, whose kernels need fewer registers


class GroupShape(NamedTuple):
    """The lanes that divide the arms of a replication; a kernel is compiled for each shape."""

    width: int  # how many lanes, a power of 2
    rounds: int  # how many arms each lane has, a constant for the compiler; 0 if there are too many for that


def group_shape(arms: int, replications: int, many_lanes: int = MANY_LANES) -> GroupShape:
    """Return the shape of the lane group: the narrowest one that keeps the GPU busy.

    The replications of a warp share the instructions of a step that all lanes of a group would execute alike: rewards,
    learning, the largest score of a group. With few replications, wide groups take less time for a step.

    Examples
    --------
    >>> group_shape(arms=100, replications=10_000), group_shape(arms=100, replications=100)
    (GroupShape(width=8, rounds=13), GroupShape(width=32, rounds=4))
    """
    width = min(LANES, 1 << (arms - 1).bit_length())
    while width > 1 and replications * width >= 2 * many_lanes and arms <= MOST_ROUNDS * (width // 2):
        width //= 2
    rounds = -(-arms // width)
    return GroupShape(width, rounds if rounds <= MOST_ROUNDS else 0)
