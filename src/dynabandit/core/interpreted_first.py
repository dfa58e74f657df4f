"""First decisions without a wait: a function runs interpreted while a thread compiles it, and compiled from then on.

Only a `Bandit` uses it, because its caller waits for one decision. Simulations compile first.

Interpreted and compiled code of this package compute the same numbers, so nothing but the speed changes. Functions of
other packages may not: interpreted, `1.0 / 0.0` and `math.log(0.0)` raise an error, compiled they are infinite. These
wait for compiled code.

The thread works through a list, one function after the other. It ends before the process exits or forks: a thread that
is inside of LLVM then could crash the process, or leave locks behind that the child waits for. What was not finished is
compiled again when it is needed.
"""

import atexit
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import numba
import numpy as np

from dynabandit.core.fingerprint import reachable_functions
from dynabandit.core.numba_internals import CompilationStopped, stop_compiling_when

Function = TypeVar("Function", bound=Callable[..., Any])

SETTING = "DYNABANDIT_INTERPRETED_FIRST"  # the environment variable; 0 makes every first call wait for compiled code
LARGEST_ARGUMENTS = 10_000  # numbers in arrays; with more, interpreted code may take longer than compiling
MOST_SECONDS = 0.5  # of interpreted calls of a function; then a call waits for the rest of the compilation
MOST_SECONDS_TO_STOP = 10.0  # LLVM takes at most a few to optimise a function, during which the thread cannot end
INTERPRETED_PACKAGES = ("dynabandit",)


def interpreted_first(function: Function) -> Function:
    """Return a function of `compiled` in a form that need not be compiled when it is first called.

    It is the function itself if it is compiled already, or never will be, or refers to functions of other packages. The
    thread also loads compiled code on disk.
    """
    if os.environ.get(SETTING) == "0" or getattr(function, "signatures", True):
        return function
    if function not in _first_calls:
        _first_calls[function] = InterpretedUntilCompiled(function) if _is_of_this_package(function) else function
    return cast(Function, _first_calls[function])


def _is_of_this_package(function: Callable[..., Any]) -> bool:
    """Whether a function and all that it refers to are defined in this package."""
    return all(str(each.__module__).partition(".")[0] in INTERPRETED_PACKAGES for each in reachable_functions(function))


class InterpretedUntilCompiled:
    """Calls a function that is being compiled."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.compiled = False
        self.seconds = 0.0
        self.signature: Any = None

    def __reduce__(self) -> Any:
        return interpreted_first, (self.function,)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function, interpreted if it is not compiled yet."""
        if self.compiled or self.function.signatures:
            return self.function(*arguments)
        if self.seconds > MOST_SECONDS or numbers_in(arguments) > LARGEST_ARGUMENTS:
            _thread.wait_for(self)
            return self.function(*arguments)  # compiles it, unless the thread did
        if self.signature is None:
            self.signature = tuple(numba.typeof(argument) for argument in arguments)
        _thread.compile(self)
        began = time.perf_counter()
        with np.errstate(all="ignore"):  # as in compiled code
            result = self.function.py_func(*arguments)
        self.seconds += time.perf_counter() - began
        return result


def numbers_in(value: Any) -> int:
    """Return how many numbers the arrays of arguments have, those in tuples included.

    Examples
    --------
    >>> numbers_in((np.zeros((2, 3)), (np.zeros(4), 5)))
    10
    """
    if isinstance(value, tuple):
        return sum(map(numbers_in, value))
    return value.size if isinstance(value, np.ndarray) else 0


class CompilingThread:
    """A thread that compiles the functions of a list and then ends."""

    _waiting: list[InterpretedUntilCompiled]
    _thread: threading.Thread | None
    _stops: int  # how often `stop` was called without a `resume`: processes can fork in several threads at once

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start with an empty list and without a thread: a forked process has no other threads."""
        self._lock = threading.Lock()
        self._waiting, self._thread, self._stops = [], None, 0

    def compile(self, calls: InterpretedUntilCompiled) -> None:
        """Add a function to the list, and start the thread if it does not run."""
        with self._lock:
            if calls not in self._waiting and not calls.compiled:
                self._waiting.append(calls)
            if self._thread is None and self._waiting and self._stops == 0:
                self._thread = threading.Thread(target=self._run, name="dynabandit-compiling", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # the interpreter is about to exit, or there are no threads
                    self._thread = None

    def wait_for(self, calls: InterpretedUntilCompiled) -> None:
        """Wait until a function is compiled if it is in the list."""
        while calls in self._waiting and not calls.compiled and (thread := self._thread) is not None:
            thread.join(0.05)

    def stop(self) -> None:
        """End the thread after the step of the compilation that runs; if that takes very long, return before."""
        with self._lock:  # not while the thread is being started
            self._stops += 1
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(MOST_SECONDS_TO_STOP)

    def resume(self) -> None:
        """Allow the thread to run again if every `stop` was followed by this; the next call of a function starts it."""
        with self._lock:
            self._stops -= 1

    def _run(self) -> None:
        with stop_compiling_when(lambda: self._stops > 0):
            while (calls := self._next()) is not None:
                with suppress(CompilationStopped):  # `_next` ends the thread, unless it was allowed to run again
                    with suppress(Exception):  # the next call compiles the function again, and raises the error
                        calls.function.compile(calls.signature)
                    calls.compiled = True

    def _next(self) -> InterpretedUntilCompiled | None:
        """Return what to compile next; if there is nothing, the thread ends.

        `_thread` is removed with the lock that `compile` holds: otherwise it could add a function to the list of a
        thread that has found the list empty.
        """
        with self._lock:
            self._waiting = [calls for calls in self._waiting if not calls.compiled]
            if self._waiting and self._stops == 0:
                return self._waiting[0]
            self._thread = None
            return None


_first_calls: dict[Any, Any] = {}  # by function: `InterpretedUntilCompiled`, or the function itself
_thread = CompilingThread()
atexit.register(_thread.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_thread.stop, after_in_parent=_thread.resume, after_in_child=_thread.forget)
