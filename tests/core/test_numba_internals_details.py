"""What `core/numba_internals.py` does with parts of Numba, without compiling functions of Python."""

import ctypes
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from llvmlite import binding as llvm
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext
from numba.core.errors import ForceLiteralArg, NumbaError
from numba.core.registry import cpu_target

from dynabandit.core import numba_internals
from dynabandit.core.compilation import kernel
from dynabandit.core.numba_internals import compile_once, has_code_libraries
from tools.waiting import PATIENCE


@kernel
def increase(x: float) -> float:
    return x + 1.0


class Dispatcher:
    """A dispatcher of Numba whose compilations fail with the given errors, one after the other, and then succeed."""

    def __init__(self, *errors: Exception, counts_references: bool | None = False) -> None:
        self.errors, self.attempts = list(errors), 0
        self.targetoptions = {} if counts_references is None else {"_nrt": counts_references}
        self._compiler = SimpleNamespace(_failed_cache={"signature": "error"})

    def compile(self, signature: str) -> str:
        self.attempts += 1
        assert global_compiler_lock.is_locked()
        if self.errors:
            raise self.errors.pop(0)
        return f"code of {signature}"


NO_REFERENCES = [NumbaError(f"{text} for this") for text in numba_internals.ERRORS_WITHOUT_REFERENCES]


@pytest.mark.parametrize("error", NO_REFERENCES, ids=str)
def test_a_function_is_compiled_again_with_references_if_it_needs_them(error: Exception) -> None:
    dispatcher = Dispatcher(error)
    assert compile_once(dispatcher, None) is dispatcher
    assert dispatcher.compile("signature") == "code of signature"
    assert (dispatcher.attempts, dispatcher.targetoptions) == (2, {"_nrt": True})
    assert dispatcher._compiler._failed_cache == {}


@pytest.mark.parametrize(
    ("error", "counts_references"),
    [
        (NumbaError("another error"), False),
        (ForceLiteralArg({0}), False),
        (NO_REFERENCES[0], True),
        (NO_REFERENCES[1], None),
        (ValueError(numba_internals.ERRORS_WITHOUT_REFERENCES[0]), False),
    ],
)
def test_other_errors_are_not_followed_by_a_second_attempt(error: Exception, counts_references: bool | None) -> None:
    dispatcher = Dispatcher(error, counts_references=counts_references)
    compile_once(dispatcher, None)
    with pytest.raises(type(error)) as caught:
        dispatcher.compile("signature")
    assert caught.value is error
    assert dispatcher.attempts == 1
    assert not global_compiler_lock.is_locked()
    assert gc.isenabled()


def test_code_is_generated_as_a_whole_only_inside_of_the_block() -> None:
    context = cpu_target.target_context
    codegen, wrapped = context.codegen(), list[Any]()
    usual = codegen._library_class

    def modified() -> tuple[bool, bool, bool]:
        whole = codegen._library_class is numba_internals.WholeFunctionLibrary
        return whole, "create_cfunc_wrapper" in vars(context), gc.isenabled()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(context), "create_cfunc_wrapper", lambda self, library, *others: wrapped.append(library))
        for collects in (True, False):
            (gc.enable if collects else gc.disable)()
            with suppress(OSError), numba_internals.machine_code_of_whole_functions():
                assert modified() == (True, True, False)
                for name in ("dynabandit.core", "numpy", "dynabandits"):
                    context.create_cfunc_wrapper(name, SimpleNamespace(modname=name), None, None)
                with numba_internals.machine_code_of_whole_functions():
                    assert modified() == (True, True, False)
                assert modified() == (True, True, False)
                raise OSError("an error inside of the block")
            assert modified() == (False, False, collects)
        gc.enable()
        with (
            numba_internals.stop_compiling_when(lambda: False),
            numba_internals.machine_code_of_whole_functions(),
        ):
            assert modified() == (True, True, True)  # in the background
        patched.setattr(numba_internals, "has_code_libraries", lambda: False)
        with numba_internals.machine_code_of_whole_functions():
            assert modified() == (False, False, True)
    assert wrapped == ["numpy", "dynabandits"] * 2
    assert codegen._library_class is usual


def test_a_thread_waits_for_a_lock_until_it_is_asked_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, attempts = iter([False, False, True]), list[Any]()
    monkeypatch.setattr("time.sleep", attempts.append)

    def acquire(block: bool) -> None:
        attempts.append(block)
        if not block:
            raise BlockingIOError

    with (
        pytest.raises(numba_internals.CompilationStopped),
        numba_internals.stop_compiling_when(lambda: next(asked)),
    ):
        numba_internals._wait_for_lock(acquire)
    assert attempts == [False, 0.05, False, 0.05, False]
    attempts.clear()
    with numba_internals.stop_compiling_when(lambda: True):
        numba_internals._wait_for_lock(attempts.append)  # it is free
    numba_internals._wait_for_lock(acquire)  # a thread that cannot be asked
    assert attempts == [False, True]


def test_the_lock_of_a_folder_is_tried_or_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    asked: list[int] = []
    monkeypatch.setattr(fcntl, "flock", lambda file, operation: asked.append(operation))
    with numba_internals._locked(tmp_path):
        assert asked == [fcntl.LOCK_EX]
    with numba_internals.stop_compiling_when(lambda: False), numba_internals._locked(tmp_path):
        assert asked == [fcntl.LOCK_EX, fcntl.LOCK_UN, fcntl.LOCK_EX | fcntl.LOCK_NB]
    asked.clear()
    with numba_internals._locked(None):
        assert asked == []


def test_the_lock_of_numba_is_held_while_a_function_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = global_compiler_lock
    assert not lock.is_locked()
    with suppress(OSError), numba_internals._compiler_lock():
        assert lock.is_locked()
        held: list[bool] = []

        def try_to_hold() -> None:
            with (
                suppress(numba_internals.CompilationStopped),
                numba_internals.stop_compiling_when(lambda: True),
                numba_internals._compiler_lock(),
            ):
                held.append(True)

        other = threading.Thread(target=try_to_hold)
        other.start()
        other.join(PATIENCE)
        assert held == []
        raise OSError("an error inside of the block")
    assert not lock.is_locked()
    monkeypatch.setattr(numba_internals, "global_compiler_lock", object())
    with numba_internals._compiler_lock():
        assert not lock.is_locked()


def test_functions_that_return_arrays_are_refused() -> None:
    added: list[Any] = []
    models = {name: SimpleNamespace(contains_nrt_meminfo=lambda name=name: name == "array") for name in ("array", "1")}
    dispatcher: Any = SimpleNamespace(
        add_overload=added.append, targetctx=SimpleNamespace(data_model_manager=models), __name__="parts"
    )
    numba_internals.forbid_returned_arrays(dispatcher)
    overloads = [SimpleNamespace(signature=SimpleNamespace(return_type=one)) for one in ("1", "array")]
    dispatcher.add_overload(overloads[0])
    with pytest.raises(TypeError, match="parts returns array: compile it with creates_arrays=True"):
        dispatcher.add_overload(overloads[1])
    assert added == overloads[:1]
    numba_internals.forbid_returned_arrays(increase)  # interpreted: it is the Python function
    assert increase(1.0) == 2.0


def test_a_dispatcher_compiles_in_a_context() -> None:
    entered: list[str] = []

    @contextmanager
    def context() -> Iterator[None]:
        entered.append("entered")
        yield
        entered.append("left")

    def compile_now(signature: str) -> str:
        entered.append(signature)
        return "code"

    dispatcher: Any = SimpleNamespace(compile=compile_now)
    numba_internals.wrap_compilation(dispatcher, context)
    assert dispatcher.compile("signature") == "code"
    assert entered == ["entered", "signature", "left"]
    numba_internals.wrap_compilation(increase, context)
    assert increase(1.0) == 2.0


LLVM = """
declare i64 @inner(i64)
define i64 @{name}(i64 %x) {{
  %y = call i64 @{called}(i64 %x)
  %z = add i64 %y, {amount}
  ret i64 %z
}}
"""
INNER = "define i64 @inner(i64 %x) {\n  %y = mul i64 %x, 3\n  ret i64 %y\n}\n"
WITH_OWN = """
define internal i64 @own(i64 %x) {{
  %y = add i64 %x, {amount}
  ret i64 %y
}}
define i64 @{name}(i64 %x) {{
  %y = call i64 @own(i64 %x)
  ret i64 %y
}}
"""


def library_of(name: str, text: str, *called: Any, kind: Any = numba_internals.WholeFunctionLibrary) -> Any:
    library = kind(cpu_target.target_context.codegen(), name)
    library.add_llvm_module(llvm.parse_assembly(text))
    for other in called:
        library.add_linking_library(other)
    with global_compiler_lock:
        library.finalize()
    return library


def test_a_library_generates_machine_code_of_all_that_it_calls_when_its_address_is_needed() -> None:
    assert has_code_libraries()
    inner = library_of("inner", INNER)
    texts = [LLVM.format(name=name, called="inner", amount=amount) for name, amount in (("middle", 1), ("other", 2))]
    middle, other = library_of("middle", texts[0], inner), library_of("other", texts[1], inner)
    both = LLVM.format(name="outer", called="middle", amount=5).replace("@inner", "@middle", 1)
    outer = library_of("outer", both, middle, other, inner)
    libraries = [inner, middle, other, outer]
    assert not any(one.has_machine_code for one in libraries)
    assert outer.get_pointer_to_function("unknown") == 0
    outer.codegen.set_env("name", None)  # there is none yet
    assert not outer.has_machine_code
    with pytest.raises(RuntimeError):
        inner.finalize()
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(outer.get_pointer_to_function("outer"))
    assert call(7) == 7 * 3 + 1 + 5
    assert [one.has_machine_code for one in libraries] == [False, False, False, True]
    assert [function.name for function in outer.get_defined_functions()] == ["outer"]  # the others are inlined
    assert other.get_pointer_to_function("other") > 0  # it links the module of `inner` again
    assert outer.codegen is cpu_target.target_context.codegen()
    address = outer.get_pointer_to_function("outer")
    assert address == outer.get_pointer_to_function("outer")
    with pytest.raises(RuntimeError):
        outer.finalize()
    # A library of Numba's own kind links the machine code of all
    usual = library_of("usual", LLVM.format(name="usual", called="inner", amount=9), inner, kind=JITCodeLibrary)
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(usual.get_pointer_to_function("usual"))(2) == 15
    assert inner.has_machine_code
    last = library_of("last", LLVM.format(name="last", called="usual", amount=2).replace("@inner", "@usual", 1), usual)
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(last.get_pointer_to_function("last"))(2) == 17


def test_functions_that_a_library_does_not_export_may_have_the_name_of_others() -> None:
    called = [library_of(name, WITH_OWN.format(name=name, amount=amount)) for name, amount in (("one", 1), ("two", 20))]
    declared = [f"declare i64 @{name}(i64)" for name in ("one", "two")]
    calls = ["%y = call i64 @one(i64 %x)", "%z = call i64 @two(i64 %y)", "ret i64 %z"]
    both = library_of("both", "\n".join([*declared, "define i64 @both(i64 %x) {", *calls, "}"]), *called)
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(both.get_pointer_to_function("both"))(300) == 321


def test_a_library_takes_over_what_those_that_it_calls_load(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = library_of("inner", INNER)
    inner._reload_init.add("loaded")
    text = "@environment = global i64 0\n@other = global i64 0\n" + LLVM.format(name="one", called="inner", amount=1)
    library = library_of("one", text, inner)
    assert library._reload_init == {"loaded"}
    given: list[tuple[str, str]] = []
    monkeypatch.setattr(numba_internals, "lookup_environment", {"environment": "of one"}.get)
    monkeypatch.setattr(library._codegen, "set_env", lambda *arguments: given.append(arguments))
    library.get_pointer_to_function("one")
    assert given == [("environment", "of one")]


@pytest.mark.parametrize("missing", ["library", "wrapper", "class", "method"])
def test_a_numba_with_other_code_libraries_is_recognised(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    assert has_code_libraries()
    if missing == "library":
        monkeypatch.setattr(numba_internals, "JITCodeLibrary", object)
    elif missing == "wrapper":
        monkeypatch.delattr(CPUContext, "create_cfunc_wrapper")
    elif missing == "class":
        monkeypatch.delattr(JITCPUCodegen, "_library_class")
    else:
        monkeypatch.delattr(JITCodeLibrary, "get_pointer_to_function")
    assert not has_code_libraries()


def test_a_thread_that_shall_stop_does_not_finish_a_library() -> None:
    with pytest.raises(numba_internals.CompilationStopped), numba_internals.stop_compiling_when(lambda: True):
        library_of("inner", INNER)
    with numba_internals.stop_compiling_when(lambda: False):
        assert not library_of("inner", INNER).has_machine_code
