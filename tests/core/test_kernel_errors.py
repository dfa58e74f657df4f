"""A mistake in a kernel is reported with its file and line, in a few lines."""

import math
import runpy
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dynabandit.core import kernel_errors
from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.kernel_errors import KernelError
from laws import INTERPRETED


class Params(NamedTuple):
    rate: float


@kernel
def add(a: float, b: float) -> float:
    return a + b


@kernel
def undefined_name(params: Any) -> float:
    return matth.sqrt(2.0)  # type: ignore[name-defined] # noqa: F821


@kernel
def unknown_field(params: Any) -> float:
    return 2.0 * params.rat


@kernel
def unknown_function(params: Any) -> float:
    return math.sqroot(2.0)  # type: ignore[attr-defined]


@kernel
def missing_argument(params: Any) -> float:
    return add(1.0)  # type: ignore[call-arg]


@kernel
def number_and_text(params: Any) -> float:
    return params.rate + "a"


MISTAKES = {
    undefined_name: ("name 'matth' is not defined", "matth.sqrt"),
    unknown_field: ("Params has no attribute 'rat'", "params.rat"),
    unknown_function: ("module 'math' has no attribute 'sqroot'", "math.sqroot"),
    missing_argument: ("missing a required argument: 'b'", "add(1.0)"),
    number_and_text: ("there is no add(float64, Literal[str](a))", "params.rate + "),
}


@pytest.mark.skipif(INTERPRETED, reason="NUMBA_DISABLE_JIT=1: there is no compiled code")
@pytest.mark.parametrize("function", MISTAKES)
def test_a_mistake_has_the_file_the_line_and_the_source(function: Any) -> None:
    problem, source = MISTAKES[function]

    @kernel
    def caller(params: Any) -> Any:
        matth = rat = sqroot = 1.0  # locals with the names of the mistakes
        return function(params) + matth + rat + sqroot

    with pytest.raises(KernelError) as caught:
        compiled(caller)(Params(0.5))
    first, where, shown = str(caught.value).splitlines()
    assert first.startswith(f"cannot compile {function.__name__}: ")
    assert problem in first
    line = function.__code__.co_firstlineno + 2
    assert where == f'  File "{__file__}", line {line}, in {function.__name__}'
    assert source in shown
    assert caught.value.__suppress_context__
    assert len(caught.value.output) > 0


USERS_KERNELS = """from dynabandit.core.compilation import kernel

@kernel
def score(params):
    2.0 * params.rate

@kernel
def learn(params):
    pass
"""


@pytest.mark.skipif(INTERPRETED, reason="NUMBA_DISABLE_JIT=1: there is no compiled code")
def test_a_kernel_that_does_not_fit_the_package_is_shown_and_not_the_call_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "users_kernels.py"
    file.write_text(USERS_KERNELS, encoding="utf-8")
    users = runpy.run_path(str(file))
    monkeypatch.setattr(kernel_errors, "PACKAGE", Path(__file__).parent)  # the callers below are taken for its code
    score, update = users["score"], users["learn"]

    @kernel
    def add_score(params: Any) -> Any:
        return 1.0 + score(params)

    @kernel
    def learn_both(params: Any) -> None:
        update(params, params)

    def message(function: Any) -> list[str]:
        with pytest.raises(KernelError) as caught:
            compiled(function)(Params(0.5))
        return str(caught.value).splitlines()

    assert message(add_score) == [
        "cannot compile score: it returns nothing", f'  File "{file}", line 4, in score', "    def score(params):",
    ]  # fmt: skip
    assert message(learn_both) == [
        "cannot compile learn: its arguments must be (params, params), got (params)",
        f'  File "{file}", line 8, in learn',
        "    def learn(params):",
    ]
