"""A mistake in a kernel is reported with its file and line, in a few lines."""

import math
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import pytest
from numba.core.errors import ForceLiteralArg, TypingError

from dynabandit.core import kernel_errors
from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.fingerprint import reachable_functions
from dynabandit.core.kernel_errors import KernelError, describe
from tools.laws import INTERPRETED


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
    unknown_field: ("Unknown attribute 'rat' of type Params(float64 x 1)", "params.rat"),
    unknown_function: ("module 'math' has no attribute 'sqroot'", "math.sqroot"),
    missing_argument: ("missing a required argument: 'b'", "add(1.0)"),
    number_and_text: ("found for signature: add(float64, Literal[str](a))", "params.rate + "),
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


# What Numba says about the mistakes, shortened; HERE is where it names the file and the line
HERE = "During: typing of call at {file} ({line})\n"
PIPELINE = "Failed in nopython mode pipeline (step: nopython frontend)\n"
MESSAGES = {
    undefined_name: f"{PIPELINE}\x1b[1m\x1b[1mNameError: name 'matth' is not defined\x1b[0m\nDuring: Pass inference",
    unknown_field: f"{PIPELINE}\x1b[1mUnknown attribute 'rat' of type Params(float64 x 1)\n{HERE}",
    unknown_function: "module 'math' has no attribute 'sqroot'",
    missing_argument: f"{PIPELINE}No implementation of function add found for signature:\n\n >>> add(float64)\n\n"
    f"Rejected as the implementation raised a specific error:\n  TypingError: missing a required argument: 'b'\n{HERE}"
    "During: typing of call at elsewhere.py (7)\n",
    number_and_text: f"{PIPELINE}No implementation of function add found for signature:\n\n >>> "
    f"add(float64, Literal[str](a))\n\n >>> another\n{HERE}",
}


@pytest.mark.parametrize("function", MISTAKES)
def test_a_message_of_numba_becomes_three_lines(function: Any) -> None:
    problem, source = MISTAKES[function]
    line = function.__code__.co_firstlineno + 2
    error = TypingError(MESSAGES[function].format(file=__file__, line=line))

    @kernel
    def caller(params: Any) -> Any:
        matth = rat = sqroot = 1.0
        return add(1.0, 2.0) + function(params) + matth + rat + sqroot

    with pytest.raises(KernelError) as caught, kernel_errors.kernel_errors(caller):
        raise error
    assert caught.value.output == str(error)
    assert caught.value.__suppress_context__
    first, where, shown = str(caught.value).splitlines()
    assert first.startswith(f"cannot compile {function.__name__}: ")
    assert first.endswith(problem)
    assert where == f'  File "{__file__}", line {line}, in {function.__name__}'
    assert shown.startswith("    return ")
    assert source in shown


def test_a_line_outside_of_all_functions_has_a_question_mark_for_their_name() -> None:
    first = undefined_name.__code__.co_firstlineno
    for file, line, name in ((__file__, first - 1, "?"), (__file__, first, "undefined_name"), ("else.py", first, "?")):
        shown = str(describe(HERE.format(file=file, line=line), reachable_functions(undefined_name))).splitlines()
        assert shown[1] == f'  File "{file}", line {line}, in {name}'


def test_a_problem_without_a_signature_or_a_text_is_shown_as_it_is() -> None:
    place = HERE.format(file="a.py", line=1)
    for text in ("No implementation of function add found for signature:", "there is >>> none"):
        assert str(describe(f"{place}{PIPELINE}TypingError: {text}", [])).startswith(f"cannot compile ?: {text}\n")
    nothing = f"{place}{PIPELINE} \n"
    assert str(describe(nothing, [])).startswith(f"cannot compile ?: {nothing}")


@pytest.mark.parametrize(
    "error",
    [TypingError("no line"), NameError("name 'nowhere' is not defined"), ForceLiteralArg({0}), ValueError("another")],
    ids=["no line", "a name that no function has", "part of the compilation", "of another kind"],
)
def test_an_error_that_cannot_be_located_stays_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, kernel_errors.kernel_errors(undefined_name):
        raise error
    assert caught.value is error


@pytest.mark.skipif(INTERPRETED, reason="NUMBA_DISABLE_JIT=1: there is no compiled code")
def test_a_mistake_that_shows_in_this_package_names_the_functions_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    @kernel
    def score(params: Any) -> Any:
        2.0 * params.rate

    @kernel
    def add_score(params: Any) -> Any:
        return 1.0 + score(params)

    def message() -> list[str]:
        with pytest.raises(KernelError) as caught:
            compiled(add_score)(Params(0.5))
        return str(caught.value).splitlines()

    problem, place, source = message()
    assert problem.startswith("cannot compile add_score: ")
    assert problem.endswith("add(float64, none)")
    assert "return 1.0 + score(params)" in source
    monkeypatch.setattr(kernel_errors, "PACKAGE", Path(__file__).parent)  # it is taken for code of this package
    assert message() == [problem, place, source]
    monkeypatch.setattr(score, "__code__", elsewhere(score))
    assert message()[3].endswith(' it must have: score ("users_policy.py")')


def elsewhere(function: Any) -> CodeType:
    """Return the code of a function as if it were in another file."""
    code: CodeType = function.__code__.replace(co_filename="users_policy.py")
    return code
