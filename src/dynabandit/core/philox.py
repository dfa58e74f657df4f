"""Philox4x32-10, the counter-based random number generator.

A counter-based generator is a pure function of a key and a counter. Draws can be made in any order and on any backend
with the same result.

References
----------
Salmon, Moraes, Dror & Shaw (2011), Parallel random numbers: as easy as 1, 2, 3. SC '11.
"""

import numpy as np
from numba.extending import overload

from dynabandit.core.compilation import kernel

MASK = 0xFFFFFFFF
MULTIPLIER_0 = 0xD2511F53
MULTIPLIER_1 = 0xCD9E8D57
WEYL_0 = 0x9E3779B9
WEYL_1 = 0xBB67AE85
ROUNDS = 10


def word(x: int) -> int:
    """Return the lowest 32 bits; in compiled code as a uint32, which a GPU converts to a float much faster."""
    return x & MASK


@overload(word)
def _word(x):  # type: ignore[no-untyped-def]  # Numba compares the signatures, annotations included
    return lambda x: np.uint32(x)


word.compiled_as = _word  # type: ignore[attr-defined]  # included in fingerprints


@kernel
def philox(c0: int, c1: int, c2: int, c3: int, k0: int, k1: int) -> tuple[int, int, int, int]:
    """Return four 32-bit words for a counter of four words and a key of two.

    Of each argument the lowest 32 bits are used. In compiled code a product of two words may overflow a signed 64-bit
    integer; the masks make the result the same as with Python's unbounded integers.

    Examples
    --------
    >>> [hex(word) for word in philox(0, 0, 0, 0, 0, 0)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    c0, c1, c2, c3, k0, k1 = c0 & MASK, c1 & MASK, c2 & MASK, c3 & MASK, k0 & MASK, k1 & MASK
    for _ in range(ROUNDS):
        product_0 = MULTIPLIER_0 * c0
        product_1 = MULTIPLIER_1 * c2
        c0, c1, c2, c3 = (
            ((product_1 >> 32) & MASK) ^ c1 ^ k0,
            product_1 & MASK,
            ((product_0 >> 32) & MASK) ^ c3 ^ k1,
            product_0 & MASK,
        )
        k0 = (k0 + WEYL_0) & MASK
        k1 = (k1 + WEYL_1) & MASK
    return word(c0), word(c1), word(c2), word(c3)
