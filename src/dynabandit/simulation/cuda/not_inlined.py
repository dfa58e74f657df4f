"""Functions that a CUDA kernel calls instead of containing a copy of their code for each call.

The compiler copies functions into their callers. A kernel of Thompson sampling in double precision then has more code
than fits into the instruction cache of a GPU, and its warps wait for instructions nine tenths of the time.
"""

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numba

from dynabandit.core.compilation import kernel
from dynabandit.core.draws import beta_odds
from dynabandit.core.largest_beta_draw import log_probabilities
from dynabandit.core.special_functions import stirling_error

LONG = (beta_odds, log_probabilities, stirling_error)  # in double precision


def call_on_gpu(function: Any) -> None:
    """Let compiled CUDA kernels call a function, without a copy of its code in the caller."""
    from llvmlite import ir
    from numba.cuda import cgutils
    from numba.cuda.extending import intrinsic, overload

    own = kernel(FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__))

    @intrinsic  # type: ignore[untyped-decorator]
    def call(typing_context: Any, callee: Any, arguments: Any) -> tuple[Any, Callable[..., Any]]:
        signature = callee.get_call_type(typing_context, tuple(arguments), {})

        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            known = {id(one) for one in _calls(builder, ir)}
            result = context.get_function(callee, signature)(builder, cgutils.unpack_tuple(builder, values[1]))
            for one in _calls(builder, ir):
                if id(one) not in known:
                    one.attributes.add("noinline")
            return result

        return signature.return_type(callee, arguments), generate

    names = ", ".join(inspect.signature(function).parameters)
    lines = [f"def compiled({names}):", f"    def call_it({names}):", f"        return call(own, ({names},))"]
    namespace = {"call": call, "own": own, "__name__": function.__module__}
    exec("\n".join([*lines, "    return call_it"]), namespace)
    overload(function)(namespace["compiled"])


def _calls(builder: Any, ir: Any) -> list[Any]:
    """Return the calls of the function that is being built."""
    return [one for block in builder.function.blocks for one in block.instructions if isinstance(one, ir.CallInstr)]


if not numba.config.ENABLE_CUDASIM:
    for long in LONG:
        call_on_gpu(long)
