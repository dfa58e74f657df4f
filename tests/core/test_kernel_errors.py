"""A mistake in a kernel is reported with its file and line, in a few lines."""

import math
import runpy
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from numba.core.errors import ForceLiteralArg, TypingError

import dynabandit
from dynabandit.core import kernel_errors
from dynabandit.core.compilation import compiled, kernel
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
    assert first == f"cannot compile {function.__name__}: {problem}"
    assert where == f'  File "{__file__}", line {line}, in {function.__name__}'
    assert shown.startswith("    return ")
    assert source in shown


def test_a_line_outside_of_all_functions_has_a_question_mark_for_their_name() -> None:
    first = undefined_name.__code__.co_firstlineno
    found = {line: describe(HERE.format(file=__file__, line=line), undefined_name) for line in (first - 1, first)}
    assert [str(one).splitlines()[1].rpartition(" ")[2] for one in found.values()] == ["?", "undefined_name"]
    found_elsewhere = describe(HERE.format(file="elsewhere.py", line=first), undefined_name)
    assert str(found_elsewhere).splitlines()[1:] == [f'  File "elsewhere.py", line {first}, in ?', "    "]


def test_a_problem_without_a_signature_or_a_text_is_shown_as_it_is() -> None:
    problem = "No implementation of function add found"
    for text in (problem, "there is >>> none"):
        assert str(describe(f"TypingError: {text}\n{HERE.format(file='a.py', line=1)}", add)).startswith(
            f"cannot compile ?: {text}\n"
        )
    place = HERE.format(file="a.py", line=1)
    nothing = f"{place}{PIPELINE} \n"
    assert str(describe(nothing, add)).startswith(f"cannot compile ?: {nothing}")


@pytest.mark.parametrize(
    "error",
    [TypingError("no line"), NameError("name 'nowhere' is not defined"), ForceLiteralArg({0}), ValueError("another")],
    ids=["no line", "a name that no function has", "part of the compilation", "of another kind"],
)
def test_an_error_that_cannot_be_located_stays_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, kernel_errors.kernel_errors(undefined_name):
        raise error
    assert caught.value is error


USERS_KERNELS = """from dynabandit.core.compilation import kernel

@kernel
def score(params):
    2.0 * params.rate

@kernel
def learn(params):
    pass

@kernel
def score_in_tuple(params):
    return (params.rate,)
"""


def test_a_kernel_that_does_not_fit_the_package_is_shown_and_not_the_call_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "users_kernels.py"
    file.write_text(USERS_KERNELS, encoding="utf-8")
    users = runpy.run_path(str(file))
    assert Path(dynabandit.__file__).parent == kernel_errors.PACKAGE
    monkeypatch.setattr(kernel_errors, "PACKAGE", Path(__file__).parent)  # the callers below are taken for its code
    score, update = users["score"], users["learn"]

    def make_add(score: Any) -> Any:
        @kernel
        def add_score(params: Any) -> Any:
            return float(1) + score(params)  # `float` is called too, and is no kernel

        return add_score

    @kernel
    def own(params: Any) -> float:  # a function of the package, which fits
        return params.rate

    add_own, add_score = make_add(own), make_add(score)

    @kernel
    def add_both(params: Any) -> Any:
        return add_own(params) + add_score(params)

    @kernel
    def learn_both(params: Any) -> None:
        update(params, params)

    add_tuple = make_add(users["score_in_tuple"])

    def message(function: Any, place: Any) -> list[str]:
        if INTERPRETED:  # what Numba would say
            line = place.__code__.co_firstlineno + 2
            return str(describe(f"a problem\n{HERE.format(file=__file__, line=line)}", function)).splitlines()
        with pytest.raises(KernelError) as caught:
            compiled(function)(Params(0.5))
        return str(caught.value).splitlines()

    assert message(add_both, add_score) == [
        "cannot compile score: it returns nothing", f'  File "{file}", line 4, in score', "    def score(params):",
    ]  # fmt: skip
    assert message(learn_both, learn_both) == [
        "cannot compile learn: its arguments must be (params, params), got (params)",
        f'  File "{file}", line 8, in learn',
        "    def learn(params):",
    ]
    problem, *rest = message(add_tuple, add_tuple)  # a kernel that fits, and a line with another problem
    assert problem.startswith("cannot compile add_score: ")
    line = add_tuple.__code__.co_firstlineno + 2
    assert rest == [
        f'  File "{__file__}", line {line}, in add_score',
        "    return float(1) + score(params)  # `float` is called too, and is no kernel",
    ]


def returns_early(x: float) -> float | None:
    if x > 0.0:
        return None
    return 2.0


@pytest.mark.parametrize(
    ("function", "expected"),
    [(lambda x: None, True), (lambda x: -x, False), (lambda x: 2.0, False), (returns_early, False)],
)
def test_a_function_returns_nothing_if_no_return_has_a_value(function: Any, expected: bool) -> None:
    assert kernel_errors._returns_nothing(function) is expected
