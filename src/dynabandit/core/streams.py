"""Random streams: every draw is a function of its key (seed, replication, role, step, arm, attempt).

Results therefore do not depend on the number of threads, on the block size or on other policies of the same run.
"""

import math
from typing import NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.core.philox import MASK, philox, word
from dynabandit.core.special_functions import cosine_sine
from dynabandit.validation import integer

# Roles: what a draw is for. Their numbers are part of every result: never reuse or renumber one.
START = 1  # the environment at time 0
PATH = 2  # changes of the environment
REWARD = 3  # the reward of the chosen arm
SCORE = 4  # a policy's draw for an arm
TIE = 5  # which of several arms with the largest score
EXPLORE = 6  # whether to explore
EXPLORED_ARM = 7  # which arm to explore
SECOND = 8  # a second draw for an arm, for policies whose score needs two
FEATURES = 9  # the features of an environment with a context
DRAW_TREE = 10  # which arms have the largest draws, see `choosing.draw_tree`
LEARN = 16  # a draw while a reward is learned, see `policies.whole.learned_draws`
DELAY = 32  # when a reward arrives, and whether it is lost
SHARE = 64  # in a Bandit: whether a minimum traffic share decides
REPLAY = 65  # whether a replay accepts a row whose arm was logged with a higher probability than others

LARGEST_STEP = MASK  # of a simulation
LARGEST_LIVE_STEP = 2**48 - 1  # of a live bandit: a step has one word of the key and 16 bits of the word of the role
LARGEST_REPLICATION = MASK
LARGEST_SEED = 2**64 - 1  # a seed is two words
BETWEEN_PLACES = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio: multiples of it are far apart
TO_UNIT_52 = 2.0**-52
BELOW_ONE_SINGLE = 1.0 - 2.0**-24  # the largest float32 below 1
TO_HIGH_20 = 2.0**20
TO_ANGLE_32 = 2.0 * math.pi * 2.0**-32
EIGHTH_TURN = 2**29
BELOW_QUARTER = 2**30 - 1
QUARTER_PI = 0.25 * math.pi


class Stream(NamedTuple):
    """The part of the key that all draws of a replication share: the 64-bit seed in two words, and its number."""

    seed_low: int
    seed_high: int
    replication: int


def stream(seed: int, replication: int = 0) -> Stream:
    """Return the stream of one replication.

    Examples
    --------
    >>> stream(7, replication=3)
    Stream(seed_low=7, seed_high=0, replication=3)
    """
    seed = integer("seed", seed, 0, LARGEST_SEED)
    return Stream(seed & MASK, seed >> 32, integer("replication", replication, 0, LARGEST_REPLICATION))


def seed_of_place(seed: int, place: int) -> int:
    """Return the seed of the choice for a place of a ranking; the first place, 0, has that of the bandit.

    Examples
    --------
    >>> seed_of_place(7, place=0), seed_of_place(7, place=2)
    (7, 4354685564936845361)
    """
    return (seed + place * BETWEEN_PLACES) % (LARGEST_SEED + 1)


@kernel
def shifted(source: Stream, by: int) -> Stream:
    """Return the stream of the replication whose number is larger by `by`.

    Examples
    --------
    >>> shifted(stream(7, replication=3), 2)
    Stream(seed_low=7, seed_high=0, replication=5)
    """
    return Stream(source.seed_low, source.seed_high, source.replication + by)


@kernel
def words(source: Stream, role: int, step: int, arm: int, attempt: int) -> tuple[int, int, int, int]:
    """Return the four words of one key; `attempt`, below 256, counts the proposals of a rejection sampler."""
    # int() because NumPy's scalars warn when a product overflows, as it may in Philox
    purpose = role + (attempt << 8) + (int(step) >> 32 << 16)
    return philox(int(step), int(arm), int(source.replication), purpose, int(source.seed_low), int(source.seed_high))


@kernel
def uniform(source: Stream, role: int, step: int, arm: int) -> float:
    """Return a uniform number in the open interval (0, 1): a multiple of 2**-52 plus 2**-53.

    Examples
    --------
    >>> 0.0 < uniform(stream(1), REWARD, step=1, arm=0) < 1.0
    True
    """
    w0, w1, _, _ = words(source, role, step, arm, 0)
    return unit(w0, w1)


@kernel
def unit(high: int, low: int) -> float:
    """Turn two words into a number in (0, 1) with 52 random bits, which a double represents exactly."""
    return (float(high) * TO_HIGH_20 + float(low >> 12) + 0.5) * TO_UNIT_52


@kernel
def unit_in_single(high: int, low: int) -> float:
    """Turn two words into a float32 in (0, 1); the largest sums would be rounded to 1."""
    return min((float(high) * TO_HIGH_20 + float(low >> 12) + 0.5) * TO_UNIT_52, BELOW_ONE_SINGLE)


unit.in_single = unit_in_single  # type: ignore[attr-defined]


@kernel
def pick(source: Stream, role: int, step: int, arm: int, count: int) -> int:
    """Return a uniformly random whole number from 0 to `count` - 1.

    Examples
    --------
    >>> [pick(stream(1), TIE, step, 0, 3) for step in range(1, 9)]
    [1, 0, 0, 0, 2, 2, 0, 0]
    """
    return int(uniform(source, role, step, arm) * count)


@kernel
def pick_in_single(source: Stream, role: int, step: int, arm: int, count: int) -> int:
    """Return the same from a word of 32 bits: the 24 bits of a float32 would favour some of many numbers."""
    return (words(source, role, step, arm, 0)[0] * count) >> 32


pick.in_single = pick_in_single  # type: ignore[attr-defined]


@kernel
def uniform_pair(four: tuple[int, int, int, int]) -> tuple[float, float]:
    """Return two independent uniform numbers from four words."""
    return unit(four[0], four[1]), unit(four[2], four[3])


@kernel
def normal_pair(four: tuple[int, int, int, int]) -> tuple[float, float]:
    """Return two independent standard normal numbers (Box & Muller, 1958).

    The radius has 52 random bits, so that values beyond 8 standard deviations are possible; the angle has 32.
    """
    radius = math.sqrt(-2.0 * math.log(unit(four[0], four[1])))
    cosine, sine = direction(four[2])
    return radius * cosine, radius * sine


@kernel
def direction(angle: int) -> tuple[float, float]:
    """Return cosine and sine of an angle that is given as a word, in units of 2 pi / 2^32 and increased by half a unit.

    The series is for angles between -pi/4 and pi/4; quarters of a turn are signs and an exchange.
    """
    from_eighth = angle + EIGHTH_TURN
    quarters = (from_eighth >> 30) & 3
    y = (float(word(from_eighth & BELOW_QUARTER)) + 0.5) * TO_ANGLE_32 - QUARTER_PI
    cosine, sine = cosine_sine(y)
    x_size, y_size = (cosine, sine) if quarters & 1 == 0 else (sine, cosine)
    return (-x_size if quarters == 1 or quarters == 2 else x_size), (-y_size if quarters >= 2 else y_size)


@kernel
def direction_in_single(angle: int) -> tuple[float, float]:
    """Return the same with the functions of a GPU, which are single instructions."""
    radians = (float(angle) + 0.5) * TO_ANGLE_32
    return math.cos(radians), math.sin(radians)


direction.in_single = direction_in_single  # type: ignore[attr-defined]
