"""All undocumented parts of Numba that dynabandit relies on.

If a Numba release changes or renames one of them, code is compiled as usual, not cached or not as a whole, which costs
time and never gives wrong results. tests/core/test_numba_internals.py then fails and says which part changed.
"""

import gc
import itertools
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from llvmlite import binding as llvm
from numba.core import errors
from numba.core.errors import ForceLiteralArg, NumbaError

try:
    from numba.core.bytecode import FunctionIdentity
except ImportError:  # has_symbol_counter is false
    FunctionIdentity = None
try:
    from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
    from numba.core.compiler import lookup_environment
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.cpu import CPUContext
    from numba.core.registry import cpu_target
except ImportError:  # has_code_libraries is false
    JITCodeLibrary, global_compiler_lock = object, None

SECONDS_BETWEEN_ATTEMPTS = 0.05  # to get a lock
# What Numba says of a function that creates an array, if references to arrays are not counted
ERRORS_WITHOUT_REFERENCES = ("NRT required", "Only accept returning of array passed into the function")
_lock = threading.Lock()


def has_symbol_counter() -> bool:
    """Whether Numba numbers the symbols of compiled functions with the counter that this module replaces."""
    return isinstance(getattr(FunctionIdentity, "_unique_ids", None), itertools.count)


def _number_symbols_from_random_start() -> None:
    """Give the symbols that this process compiles other numbers than those of every other process.

    Numba appends a number to the symbol of a function and counts from 1 in each process. Two closures with the same
    name that different processes compiled would share a symbol, and a process that loads both from the cache would
    silently run one in place of the other.
    """
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(60))


def _reset_in_forked_child() -> None:
    global _lock
    _lock = threading.Lock()  # another thread of the parent may hold it
    _number_symbols_from_random_start()


if has_symbol_counter():
    _number_symbols_from_random_start()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_reset_in_forked_child)


@contextmanager
def cache_directory(config: Any, folder: Path) -> Iterator[None]:
    """Let functions that are decorated inside the block keep their compiled code in `folder`.

    Numba reads `CACHE_DIR` of its global `config` (numba-cuda has its own) when a function is decorated. One lock
    serves all threads and both targets.
    """
    with _lock:
        before = config.CACHE_DIR
        config.CACHE_DIR = str(folder)
        try:
            yield
        finally:
            config.CACHE_DIR = before


def wrap_compilation(dispatcher: Any, context: Callable[[], AbstractContextManager[None]]) -> None:
    """Let a dispatcher compile, or load from the cache, inside a context."""
    compile_or_load = getattr(dispatcher, "compile", None)
    if compile_or_load is None:  # NUMBA_DISABLE_JIT=1: it is the Python function
        return

    def compile_in_context(signature: Any) -> Any:
        with context():
            return compile_or_load(signature)

    dispatcher.compile = compile_in_context


def compile_once(dispatcher: Any, folder: Path | None) -> Any:
    """Return a dispatcher that generates machine code of its function as a whole, in one process at a time.

    Other processes that need the same function wait for its compiled code in `folder` instead of compiling it too. If
    it cannot be compiled without counting references to arrays, as when it creates one, it is compiled with that.
    """
    compile_or_load = getattr(dispatcher, "compile", None)
    if compile_or_load is None:
        return dispatcher

    def compile_whole(signature: Any) -> Any:
        with _locked(folder), _compiler_lock(), messages_without_colours(), machine_code_of_whole_functions():
            try:
                return compile_or_load(signature)
            except (ImportError, AttributeError):  # code on disk names what another version has elsewhere
                for index in () if folder is None else folder.rglob("*.nbi"):
                    index.unlink(missing_ok=True)
                return compile_or_load(signature)
            except ForceLiteralArg:  # a part of how Numba compiles
                raise
            except NumbaError as error:
                needs_references = any(message in str(error) for message in ERRORS_WITHOUT_REFERENCES)
                if not needs_references or dispatcher.targetoptions.get("_nrt", True):
                    raise
            dispatcher.targetoptions["_nrt"] = True
            dispatcher._compiler._failed_cache.clear()
            return compile_or_load(signature)

    dispatcher.compile = compile_whole
    return dispatcher


def forbid_returned_arrays(dispatcher: Any) -> None:
    """Let a dispatcher raise `TypeError` if its function returns an array, also inside of a tuple.

    Without counting references, Python would get the array of the caller in place of a view of it.
    """
    add_overload = getattr(dispatcher, "add_overload", None)
    if add_overload is None:
        return

    def check_and_add(compiled: Any) -> None:
        returned = compiled.signature.return_type
        if dispatcher.targetctx.data_model_manager[returned].contains_nrt_meminfo():
            raise TypeError(f"{dispatcher.__name__} returns {returned}: compile it with creates_arrays=True")
        add_overload(compiled)

    dispatcher.add_overload = check_and_add


class _NoColours:
    """Numba's scheme of colours, without any."""

    def __getattr__(self, name: str) -> Callable[[str], str]:
        return lambda message: message


@contextmanager
def messages_without_colours() -> Iterator[None]:
    """Let Numba write messages without colours.

    For a coloured message it replaces `sys.stdout` for a moment, which another thread may be using or replacing, too.
    """
    module: Any = errors
    before, module._termcolor_inst = getattr(module, "_termcolor_inst", None), _NoColours()
    try:
        yield
    finally:
        module._termcolor_inst = before


@contextmanager
def machine_code_of_whole_functions() -> Iterator[None]:
    """Let Numba generate machine code of a function together with all that it calls, and not also of each of these.

    Numba optimises every function that is called, generates its machine code and then links it into its callers, where
    it is optimised again. Only functions that Python calls need machine code, so this takes half of the time. Garbage
    collections, which would traverse all that Numba keeps, take another 15 %. They are turned off for all threads, so
    not while a thread compiles in the background.
    """
    if not has_code_libraries():
        yield
        return
    with global_compiler_lock:  # Numba compiles with this lock, so no other thread compiles meanwhile
        context = cpu_target.target_context
        codegen = context.codegen()
        if codegen._library_class is WholeFunctionLibrary:  # a compiled function that is being compiled calls another
            yield
            return
        collects = gc.isenabled() and not hasattr(_stopping, "asked")
        before, codegen._library_class = codegen._library_class, WholeFunctionLibrary
        create_wrapper = context.create_cfunc_wrapper

        def create_wrapper_of_others(library: Any, description: Any, *others: Any) -> None:
            # The wrapper is for C and for functions as values, which ours never are
            if description.modname.partition(".")[0] != "dynabandit":
                create_wrapper(library, description, *others)

        context.create_cfunc_wrapper = create_wrapper_of_others
        if collects:
            gc.disable()
        try:
            yield
        finally:
            codegen._library_class = before
            del context.create_cfunc_wrapper
            if collects:
                gc.enable()


class CompilationStopped(BaseException):
    """A thread was asked to stop compiling; not an `Exception`, which Numba would turn into an error of its own."""


_stopping = threading.local()


@contextmanager
def stop_compiling_when(asked: Callable[[], bool]) -> Iterator[None]:
    """Raise `CompilationStopped` if this thread compiles another function, or waits to do so, when `asked` is true."""
    _stopping.asked = asked
    try:
        yield
    finally:
        del _stopping.asked


def _stop_if_asked() -> None:
    if hasattr(_stopping, "asked") and _stopping.asked():
        raise CompilationStopped


def has_code_libraries() -> bool:
    """Whether Numba's code libraries have all on which `WholeFunctionLibrary` relies; those of Numba 0.60 do not."""
    names = (
        "_codegen", "_ensure_finalized", "_final_module", "_finalize_final_module", "_finalized",
        "_get_module_for_linking", "_linking_libraries", "_optimize_final_module", "_raise_if_finalized",
        "_reload_init", "codegen", "finalize", "get_defined_functions", "get_pointer_to_function",
    )  # fmt: skip
    if JITCodeLibrary is object or not hasattr(CPUContext, "create_cfunc_wrapper"):
        return False
    if not hasattr(JITCPUCodegen, "_library_class"):
        return False
    library = JITCodeLibrary(cpu_target.target_context.codegen(), "dynabandit")
    return all(hasattr(library, name) for name in names)


class WholeFunctionLibrary(JITCodeLibrary):  # type: ignore[misc]  # Numba has no types
    """The code of one function, whose machine code is generated when its address is needed.

    Before, it has only the LLVM module of this function and a list of the libraries that the function calls.
    """

    has_machine_code = False
    _own_module: Any = None

    @property
    def codegen(self) -> Any:
        """What sets the environment of the function, which exists together with its machine code."""
        return self._codegen if self.has_machine_code else _NoEnvironments()

    def finalize(self) -> None:
        """End the construction of the module, or of everything if this thread shall stop compiling."""
        _stop_if_asked()
        self._raise_if_finalized()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function of the module, or 0 if it has none, like that of a wrapper for Python."""
        self._ensure_finalized()
        if not self.has_machine_code:
            if not any(function.name == name for function in self.get_defined_functions()):
                return 0
            self._generate()
        return int(super().get_pointer_to_function(name))

    def _generate(self) -> None:
        """Link all that the function calls, optimise it together and generate machine code."""
        self._codegen._check_llvm_bugs()
        for module in self._called_modules():
            self._final_module.link_in(module, preserve=True)
        self._optimize_final_module()
        self._final_module.verify()
        self._finalize_final_module()
        for variable in self._final_module.global_variables:
            environment = lookup_environment(variable.name)
            if environment is not None:
                self._codegen.set_env(variable.name, environment)

    def _finalize_final_module(self) -> None:
        super()._finalize_final_module()
        self.has_machine_code = True

    def _called_modules(self) -> list[Any]:
        """Return the modules of all that this function calls, each one after those that call it.

        LLVM links only those functions of a module that are called from what is linked already.
        """
        visited: set[Any] = {self}
        called: list[Any] = []

        def visit(library: Any) -> None:
            if not _has_module_of_all(library):
                for other in library._linking_libraries:
                    if other not in visited:
                        visited.add(other)
                        visit(other)
                        called.append(other)

        visit(self)
        return [
            library._get_module_for_linking() if _has_module_of_all(library) else library._module_of_function()
            for library in reversed(called)
        ]

    def _module_of_function(self) -> Any:
        """Return the module of this function alone, which LLVM may inline and remove."""
        if self._own_module is None:
            self._own_module = self._final_module.clone()
            for function in self._own_module.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.external:
                    function.linkage = "linkonce_odr"
        return self._own_module

    def _get_module_for_linking(self) -> Any:
        """Return the module with all that it calls, for the library of a function that Numba compiles as usual."""
        if not self.has_machine_code:
            self._generate()
        return super()._get_module_for_linking()


def _has_module_of_all(library: Any) -> bool:
    """Whether the module of a library has all that its function calls."""
    return not isinstance(library, WholeFunctionLibrary) or library.has_machine_code


class _NoEnvironments:
    """Stands for Numba's code generator as long as a library has no machine code."""

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: `WholeFunctionLibrary` sets it later."""


@contextmanager
def _locked(folder: Path | None) -> Iterator[None]:
    """Hold the exclusive lock of a folder, if there is one and the system and the folder allow it."""
    with ExitStack() as stack:
        with suppress(ImportError, OSError):
            import fcntl

            if folder is not None:
                file = stack.enter_context((folder / "lock").open("w"))
                _wait_for_lock(lambda block: fcntl.flock(file, fcntl.LOCK_EX | (0 if block else fcntl.LOCK_NB)))
                # Closing the file would not be enough: a process that was forked meanwhile has it open too
                stack.callback(fcntl.flock, file, fcntl.LOCK_UN)
        yield


@contextmanager
def _compiler_lock() -> Iterator[None]:
    """Hold the lock with which Numba compiles, if it is where it was."""
    lock = getattr(global_compiler_lock, "_lock", None)
    if lock is None:  # Numba waits for it
        yield
        return

    def acquire(block: bool) -> None:
        if not lock.acquire(blocking=block):
            raise BlockingIOError

    _wait_for_lock(acquire)
    try:
        yield
    finally:
        lock.release()


def _wait_for_lock(acquire: Callable[[bool], None]) -> None:
    """Acquire a lock; a thread that can be asked to stop compiling, also while it waits.

    `acquire(block)` raises `BlockingIOError` if `block` is false and the lock is not free.
    """
    while hasattr(_stopping, "asked"):
        try:
            acquire(False)
            return
        except BlockingIOError:
            _stop_if_asked()
            time.sleep(SECONDS_BETWEEN_ATTEMPTS)
    acquire(True)


def key_by_signature(dispatcher: Any) -> None:
    """Let the cache of a CUDA dispatcher identify compiled code by signature and GPU alone.

    numba-cuda also hashes the pickled closure, which differs from process to process. The name of the cache folder
    identifies the code and the versions already.
    """
    cache = dispatcher._cache
    if not callable(getattr(cache, "_index_key", None)):
        raise AttributeError("numba-cuda keeps its cache keys elsewhere")
    cache._index_key = lambda signature, codegen: (signature, codegen.magic_tuple())
