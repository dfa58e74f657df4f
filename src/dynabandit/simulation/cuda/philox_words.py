"""Philox for a GPU: the same numbers as `core.philox`, in words of 32 bits.

A GPU has registers of 32 bits. It multiplies two words in one instruction, but the compiler does not notice that the
64-bit factors in `core.philox` are words, and needs more than twice as many instructions for them.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.philox import MULTIPLIER_0, MULTIPLIER_1, ROUNDS, WEYL_0, WEYL_1, philox, word
from dynabandit.core.precision import keep_in_single


def product(x: int, y: int) -> int:
    """Return the product of two words; a GPU has one instruction for it."""
    return int(x) * int(y)


@kernel
def philox_in_words(c0: int, c1: int, c2: int, c3: int, k0: int, k1: int) -> tuple[int, int, int, int]:
    """Return the four words that `core.philox.philox` returns."""
    w0, w1, w2, w3, key_0, key_1 = word(c0), word(c1), word(c2), word(c3), word(k0), word(k1)
    for _ in range(ROUNDS):
        product_0 = product(word(MULTIPLIER_0), w0)
        product_1 = product(word(MULTIPLIER_1), w2)
        w0 = word((product_1 >> 32) ^ w1 ^ key_0)
        w1 = word(product_1)
        w2 = word((product_0 >> 32) ^ w3 ^ key_1)
        w3 = word(product_0)
        key_0 = word(key_0 + WEYL_0)
        key_1 = word(key_1 + WEYL_1)
    return w0, w1, w2, w3


def _replace_on_gpu() -> None:
    """Let compiled CUDA kernels call `philox_in_words` where they call `philox`."""
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic, overload

    @intrinsic  # type: ignore[untyped-decorator]
    def multiply(typing_context: Any, x: Any, y: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.FunctionType(ir.IntType(64), [ir.IntType(32), ir.IntType(32)])
            return builder.call(ir.InlineAsm(kind, "mul.wide.u32 $0, $1, $2;", "=l,r,r"), arguments)

        return types.uint64(types.uint32, types.uint32), generate

    @overload(product)
    def compiled_product(x, y):  # type: ignore[no-untyped-def]
        return lambda x, y: multiply(np.uint32(x), np.uint32(y))

    @overload(philox)
    def compiled_philox(c0, c1, c2, c3, k0, k1):  # type: ignore[no-untyped-def]
        return lambda c0, c1, c2, c3, k0, k1: philox_in_words(c0, c1, c2, c3, k0, k1)


keep_in_single(philox)
if not numba.config.ENABLE_CUDASIM:
    _replace_on_gpu()
