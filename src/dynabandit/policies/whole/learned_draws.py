"""Random numbers for `learn`, which receives no random stream.

Some policies decide by chance what to do at later steps. The state must then be a function of the rewards, so that a
log can be replayed. So these numbers have a seed of their own: a hash of all arms and rewards so far.
"""

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LEARN, Stream, uniform, words

HASH_BITS = 24  # which a float32 represents exactly
FRACTIONS = 1_000_000  # of a reward that make a difference


@kernel
def update_hash(shared: np.ndarray, place: int, arm: int, value: float) -> None:
    """Add a reward to the hash at `place`."""
    source = Stream(int(shared[place]), 0, 0)
    shared[place] = float(words(source, LEARN, int(value * FRACTIONS), arm, 1)[0] >> (32 - HASH_BITS))


@kernel
def draw(shared: np.ndarray, place: int, number: int, arm: int) -> float:
    """Return a number in (0, 1) that depends on the hash at `place`, on `number` and on the arm."""
    return uniform(Stream(int(shared[place]), 0, 0), LEARN, number, arm)
