"""All undocumented parts of Numba that dynabandit relies on.

If a Numba release changes one of them, code is compiled as before but not cached, which costs time and never gives
wrong results. tests/core/test_numba_internals.py then fails and says which part changed.
"""

import itertools
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from numba.core.bytecode import FunctionIdentity

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


def compile_in_one_process(dispatcher: Any, folder: Path) -> None:
    """Let other processes that need the same function wait for its compiled code instead of compiling it too."""
    wrap_compilation(dispatcher, lambda: _locked(folder / "lock"))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock of a file, if the system and the folder allow it."""
    with ExitStack() as stack:
        with suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(stack.enter_context(path.open("w")), fcntl.LOCK_EX)
        yield


def key_by_signature(dispatcher: Any) -> None:
    """Let the cache of a CUDA dispatcher identify compiled code by signature and GPU alone.

    numba-cuda also hashes the pickled closure, which differs from process to process. The name of the cache folder
    identifies the code and the versions already.
    """
    cache = dispatcher._cache
    if not callable(getattr(cache, "_index_key", None)):
        raise AttributeError("numba-cuda keeps its cache keys elsewhere")
    cache._index_key = lambda signature, codegen: (signature, codegen.magic_tuple())
