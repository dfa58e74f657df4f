"""Functions run interpreted until compiled code is ready, with the same results, and a process can end meanwhile."""

import copy
import gc
import math
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import numba
import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock

import dynabandit as db
from dynabandit.bandit.compiled import compiled_choose, compiled_learn
from dynabandit.core import interpreted_first as module, numba_internals
from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.interpreted_first import LARGEST_ARGUMENTS, SETTING, InterpretedUntilCompiled, interpreted_first
from dynabandit.core.streams import uniform
from tools.laws import INTERPRETED
from tools.waiting import PATIENCE, wait_for

needs_compiler = pytest.mark.skipif(INTERPRETED, reason="NUMBA_DISABLE_JIT=1: there is no compiled code")


@kernel
def add(numbers: np.ndarray, x: float) -> float:
    numbers[0] += x / (numbers[0] - 1.0)  # compiled code divides by zero without a warning
    return numbers[0]


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Nothing is compiled, and first calls are interpreted, however long that takes."""
    monkeypatch.setattr(module, "MOST_SECONDS", math.inf)
    monkeypatch.setattr(module, "MOST_SECONDS_TO_STOP", PATIENCE)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv(SETTING, "1")
    monkeypatch.setattr(module, "_first_calls", {})
    monkeypatch.setattr(module, "INTERPRETED_PACKAGES", ("dynabandit", __name__.partition(".")[0]))
    yield
    monkeypatch.setattr(module, "MOST_SECONDS_TO_STOP", PATIENCE)  # a test may have set it
    module._thread.stop()
    module._thread.resume()


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """The class of the threads that this module starts; other modules keep theirs."""
    kind = Mock(side_effect=threading.Thread)
    monkeypatch.setattr(module, "threading", Mock(wraps=threading, Thread=kind))
    return kind


@needs_compiler
def test_a_function_is_interpreted_until_it_is_compiled(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    function: Any = compiled(add)
    calls: Any = interpreted_first(function)
    assert interpreted_first(function) is calls
    with global_compiler_lock:  # the thread cannot compile meanwhile
        assert [calls(np.full(1, start), 2.0) for start in (2.0, 1.0)] == [4.0, np.inf]
        assert (function.signatures, calls.compiled) == ([], False)
        copied: Any = pickle.loads(pickle.dumps(calls))
        assert copied(np.full(1, 2.0), 2.0) == copy.copy(calls)(np.full(1, 2.0), 2.0) == 4.0
    module._thread.wait_for(calls)
    assert calls.compiled
    monkeypatch.setattr(function, "py_func", None)  # which interpreted calls need
    assert calls(np.full(1, 2.0), 2.0) == 4.0
    assert len(function.signatures) == 1  # the thread compiled for the types of the call
    assert interpreted_first(function) is function


@needs_compiler
@pytest.mark.parametrize("reason", ["size", "seconds", "failure"])
def test_a_call_waits_for_compiled_code(fresh: None, monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    function: Any = compiled(add)
    calls: Any = interpreted_first(function)
    if reason == "seconds":
        monkeypatch.setattr(module, "MOST_SECONDS", -1.0)
    if reason == "failure":
        monkeypatch.setattr(InterpretedUntilCompiled, "signature", (numba.types.none,), raising=False)
        calls.__dict__.pop("signature")
        calls(np.full(1, 2.0), 2.0)  # the thread gets a wrong type and fails
        module._thread.wait_for(calls)
    assert calls(np.full(LARGEST_ARGUMENTS + 1 if reason == "size" else 1, 2.0), 2.0) == 4.0
    assert len(function.signatures) == 1


@needs_compiler
def test_a_thread_that_cannot_start_is_no_error(fresh: None, threads: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    function: Any = compiled(add)
    calls: Any = interpreted_first(function)
    threads.side_effect = [Mock(start=Mock(side_effect=RuntimeError("at shutdown"))) for _ in range(2)]
    assert [calls(np.full(1, 2.0), 2.0) for _ in range(2)] == [4.0, 4.0]
    assert threads.call_count == 2
    monkeypatch.setattr(module, "MOST_SECONDS", -1.0)
    assert (function.signatures, calls(np.full(1, 2.0), 2.0)) == ([], 4.0)
    assert len(function.signatures) == 1


def test_the_thread_starts_only_after_every_stop_was_resumed(threads: Mock) -> None:
    """Two threads can fork at the same time: the end of the first fork must not let the thread start."""
    thread, started = module.CompilingThread(), Mock()
    threads.side_effect = lambda **options: Mock(start=started)
    calls = InterpretedUntilCompiled(Mock(signatures=[]))
    for change in (thread.stop, thread.stop, thread.resume):
        change()
        thread.compile(calls)
    assert started.call_count == 0
    thread.resume()
    thread.compile(calls)
    assert started.call_count == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_has_a_list_of_its_own() -> None:
    lock, waiting = module._thread._lock, module._thread._waiting
    child = os.fork()
    if child == 0:
        try:
            forgotten = module._thread._lock is not lock and module._thread._waiting is not waiting
            os._exit(0 if forgotten and module._thread._stops == 0 else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert module._thread._lock is lock
    assert module._thread._stops == 0


class Dispatcher:
    """A function as Numba compiles it, when the test says so."""

    __module__ = __name__

    def __init__(self) -> None:
        self.signatures: list[Any] = []
        self.asked: list[Any] = []
        self.interpreted = 0

    def py_func(self, *arguments: Any) -> str:
        self.interpreted += 1
        assert np.geterr() == dict.fromkeys(["divide", "over", "under", "invalid"], "ignore")
        return "interpreted"

    def compile(self, signature: Any) -> None:
        numba_internals._stop_if_asked()  # as in every step of a compilation
        self.asked.append(signature)
        self.signatures.append(signature)

    def __call__(self, *arguments: Any) -> str:
        if not self.signatures:
            self.compile(None)
        return "compiled"


class Waiting:
    """A thread that compiles when it is waited for."""

    def __init__(self) -> None:
        self.listed: list[InterpretedUntilCompiled] = []

    def compile(self, calls: InterpretedUntilCompiled) -> None:
        self.listed.append(calls)

    def wait_for(self, calls: InterpretedUntilCompiled) -> None:
        assert calls in self.listed
        calls.function.compile(calls.signature)


@pytest.mark.parametrize(
    ("seconds", "size", "expected"),
    [
        (0.0, LARGEST_ARGUMENTS, "interpreted"),
        (0.0, LARGEST_ARGUMENTS + 1, "compiled"),
        (0.5, 1, "interpreted"),
        (0.5625, 1, "compiled"),
    ],
)
def test_calls_are_interpreted_while_they_are_small_and_took_little_time(
    monkeypatch: pytest.MonkeyPatch, seconds: float, size: int, expected: str
) -> None:
    assert LARGEST_ARGUMENTS == 10_000
    thread, times = Waiting(), iter([100.0, 100.0 + seconds])
    monkeypatch.setattr(module, "_thread", thread)
    monkeypatch.setattr(module, "time", Mock(perf_counter=lambda: next(times)))
    calls = InterpretedUntilCompiled(Dispatcher())
    assert (calls.compiled, calls.seconds) == (False, 0.0)
    assert calls(1.0, np.zeros(2)) == "interpreted"
    assert calls.seconds == seconds
    times = iter([0.0, 0.25])
    assert calls(1.0, (np.zeros(size),)) == expected
    assert calls.signature == (numba.float64, numba.float64[::1])  # those of the first call
    assert thread.listed == [calls] * (2 if expected == "interpreted" else 1)
    assert calls.function.interpreted == len(thread.listed)
    assert calls.seconds == (seconds + 0.25 if expected == "interpreted" else seconds)


@pytest.mark.parametrize("known", ["signatures", "compiled"])
def test_compiled_functions_are_called_as_they_are(monkeypatch: pytest.MonkeyPatch, known: str) -> None:
    monkeypatch.setattr(module, "_thread", None)
    calls = InterpretedUntilCompiled(Dispatcher())
    if known == "signatures":
        calls.function.signatures.append(None)
    calls.compiled = known == "compiled"
    assert calls(np.zeros(LARGEST_ARGUMENTS + 1)) == "compiled"


def test_the_thread_compiles_its_list_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SECONDS_TO_STOP", PATIENCE)
    thread, several = module.CompilingThread(), [InterpretedUntilCompiled(Dispatcher()) for _ in range(3)]
    several[1].function.compile = Mock(side_effect=ValueError("wrong"))
    for number, calls in enumerate(several):
        calls.signature = number
    thread.stop()
    for calls in [*several, several[0]]:  # each is listed once
        thread.compile(calls)
    assert (thread._thread, thread._waiting) == (None, several)
    thread.wait_for(several[0])  # nothing to wait for: it would never end
    thread.resume()
    thread.compile(several[0])
    for calls in several:
        thread.wait_for(calls)
    thread.stop()
    assert [calls.compiled for calls in several] == [True, True, True]
    assert [calls.function.asked for calls in (several[0], several[2])] == [[0], [2]]
    assert (thread._waiting, thread._thread) == ([], None)
    thread.resume()
    thread.compile(several[0])  # compiled already
    assert (thread._waiting, thread._thread) == ([], None)


def test_the_thread_is_a_daemon_that_stops_between_two_functions_and_is_joined_for_ten_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    thread, first, second = (
        module.CompilingThread(),
        InterpretedUntilCompiled(Dispatcher()),
        InterpretedUntilCompiled(Dispatcher()),
    )
    began, goes_on = threading.Event(), threading.Event()

    def compile_later(signature: Any) -> None:
        assert threading.current_thread().daemon
        thread.stop()  # by the thread itself, as when it forks: it does not wait for itself
        began.set()
        assert goes_on.wait(PATIENCE)

    monkeypatch.setattr(first.function, "compile", compile_later)
    thread.compile(first)
    thread.compile(second)
    assert began.wait(PATIENCE)
    running = thread._thread
    assert running is not None
    joined = Mock(wraps=lambda seconds: None)
    monkeypatch.setattr(running, "join", joined)
    thread.stop()
    joined.assert_called_once_with(10.0)
    goes_on.set()
    threading.Thread.join(running, PATIENCE)
    assert (first.compiled, second.compiled, thread._thread) == (True, False, None)
    thread.forget()
    assert (thread._waiting, thread._stops) == ([], 0)


def test_a_compilation_ends_at_its_next_step_once_the_thread_is_to_stop() -> None:
    thread, calls = module.CompilingThread(), InterpretedUntilCompiled(Dispatcher())
    compile_now = calls.function.compile

    def stop_and_compile(signature: Any) -> None:
        thread.stop()
        compile_now(signature)

    calls.function.compile = stop_and_compile
    thread.compile(calls)
    thread.wait_for(calls)
    assert (calls.compiled, calls.function.signatures, thread._waiting) == (False, [], [calls])


def test_a_thread_that_may_run_again_before_it_has_ended_compiles_on() -> None:
    thread, calls = module.CompilingThread(), InterpretedUntilCompiled(Dispatcher())
    compile_now = calls.function.compile

    def stop_and_compile(signature: Any) -> None:
        calls.function.compile = compile_now  # at the second attempt
        thread.stop()
        try:
            compile_now(signature)
        finally:
            thread.resume()

    calls.function.compile = stop_and_compile
    thread.compile(calls)
    thread.wait_for(calls)
    assert (calls.compiled, len(calls.function.signatures)) == (True, 1)


def test_a_function_that_is_added_while_the_thread_ends_is_compiled_by_another_thread(threads: Mock) -> None:
    thread, first, second = (
        module.CompilingThread(),
        InterpretedUntilCompiled(Dispatcher()),
        InterpretedUntilCompiled(Dispatcher()),
    )

    class AddingLock:
        """A lock after which the second function is added, once the first one is not in the list any more."""

        def __init__(self) -> None:
            self.lock, self.seen = threading.Lock(), False

        def __enter__(self) -> None:
            self.lock.acquire()

        def __exit__(self, *error: object) -> None:
            ends = first.compiled and not thread._waiting and not self.seen
            self.seen = self.seen or ends
            self.lock.release()
            if ends:
                thread.compile(second)

    thread._lock = cast(Any, AddingLock())
    thread.compile(first)
    wait_for(lambda: second.compiled)
    assert threads.call_count == 2


def test_only_functions_that_are_to_be_compiled_have_first_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "1")
    monkeypatch.setattr(module, "_first_calls", {})
    monkeypatch.setattr(module, "INTERPRETED_PACKAGES", (__name__.partition(".")[0],))
    function, other, done = (cast(Any, Dispatcher()) for _ in range(3))
    monkeypatch.setattr(module, "reachable_functions", lambda one: [add, math.log] if one is other else [add])
    done.signatures.append(None)
    calls: Any = interpreted_first(function)
    assert isinstance(calls, InterpretedUntilCompiled)
    assert interpreted_first(function) is calls
    assert interpreted_first(other) is other  # it refers to a function of another package
    assert interpreted_first(done) is done
    assert interpreted_first(add) is add
    assert calls.__reduce__() == (interpreted_first, (function,))


@needs_compiler
def test_functions_of_other_packages_wait_for_compiled_code(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INTERPRETED_PACKAGES", ("dynabandit",))

    @kernel
    def log(x: float) -> float:
        return math.log(x)  # interpreted, an error if x is 0

    function: Any = compiled(lambda x: log(x))
    assert interpreted_first(function)(0.0) == -np.inf
    assert type(interpreted_first(compiled(uniform))) is InterpretedUntilCompiled


@needs_compiler
@pytest.mark.parametrize("held", ["by another process", "by a thread"])
def test_the_thread_can_be_stopped_while_it_waits_for_a_lock(
    fresh: None, monkeypatch: pytest.MonkeyPatch, held: str
) -> None:
    fcntl = pytest.importorskip("fcntl")
    function: Any = compiled(add)
    calls: Any = interpreted_first(function)
    waits, stop_if_asked = threading.Event(), numba_internals._stop_if_asked

    def note_and_stop_if_asked() -> None:
        waits.set()
        stop_if_asked()

    monkeypatch.setattr(numba_internals, "_stop_if_asked", note_and_stop_if_asked)
    with ExitStack() as stack:
        if held == "by a thread":
            stack.enter_context(global_compiler_lock)
        else:
            file = stack.enter_context((Path(function.stats.cache_path).parent / "lock").open("w"))
            fcntl.flock(file, fcntl.LOCK_EX)
        calls(np.full(1, 2.0), 2.0)
        assert waits.wait(PATIENCE)
        compiling = module._thread._thread
        stopping = threading.Thread(target=module._thread.stop, daemon=True)
        stopping.start()
        stopping.join(PATIENCE)
        assert compiling is not None
        assert (stopping.is_alive(), compiling.is_alive(), calls.compiled) == (False, False, False)
    module._thread.resume()
    calls(np.full(1, 2.0), 2.0)
    module._thread.wait_for(calls)
    assert len(function.signatures) == 1


@needs_compiler
def test_stopping_waits_for_a_limited_time_and_garbage_is_collected_meanwhile(
    fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    function: Any = compiled(add)
    calls: Any = interpreted_first(function)
    compiles, goes_on, generate = threading.Event(), threading.Event(), numba_internals.WholeFunctionLibrary._generate

    def generate_later(library: Any) -> None:
        compiles.set()
        goes_on.wait(PATIENCE)
        generate(library)

    monkeypatch.setattr(numba_internals.WholeFunctionLibrary, "_generate", generate_later)
    monkeypatch.setattr(module, "MOST_SECONDS_TO_STOP", 0.01)
    calls(np.full(1, 2.0), 2.0)
    assert compiles.wait(PATIENCE)
    assert gc.isenabled()
    gc.disable()
    module._thread.stop()
    assert not calls.compiled
    goes_on.set()
    module._thread.wait_for(calls)
    try:
        assert (calls.compiled, gc.isenabled()) == (True, False)  # as it was left
    finally:
        gc.enable()
        module._thread.resume()


def test_the_setting_turns_it_off(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    function: Any = compiled(add)
    assert (interpreted_first(function) is function) == INTERPRETED  # then it is never compiled
    monkeypatch.setenv(SETTING, "0")
    assert interpreted_first(function) is function


@needs_compiler
def test_a_bandit_decides_the_same_before_and_after_the_switch(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for cached in (compiled_choose, compiled_learn):
        monkeypatch.setattr(f"dynabandit.bandit.compiled.{cached.__name__}", cached.__wrapped__)

    def play(bandit: db.Bandit, steps: int) -> list[str]:
        chosen = []
        for _ in range(steps):
            chosen.append(bandit.choose())
            bandit.reward(chosen[-1], float(chosen[-1] == "b"))
        return chosen

    bandit = db.Bandit("eps-greedy", arms=["a", "b", "c"], seed=3, epsilon=0.3)
    first: Any = bandit._choose, bandit._learn
    assert [type(one) for one in first] == [InterpretedUntilCompiled, InterpretedUntilCompiled]
    with global_compiler_lock:
        chosen = play(bandit, 30)
    assert not any(one.function.signatures for one in first)
    chosen += play(bandit, 5)
    for one in first:
        module._thread.wait_for(one)
    assert all(one.function.signatures for one in first)
    chosen += play(bandit, 30)
    expected = db.Bandit("eps-greedy", arms=["a", "b", "c"], seed=3, epsilon=0.3)
    expected._choose, expected._learn = (one.function for one in first)
    assert play(expected, 65) == chosen
    assert expected.to_json() == bandit.to_json()
    bandit.compile()
    assert [bandit._choose, bandit._learn] != list(first)
    assert not isinstance(bandit._choose, InterpretedUntilCompiled)


LEAVES = """
import math, os, sys, threading, time
import dynabandit as db
from dynabandit.core import interpreted_first, numba_internals
check, forked = numba_internals._stop_if_asked, False
def hold_the_thread_until_the_fork():
    compiles = threading.current_thread().name == "dynabandit-compiling"
    while compiles and not forked and interpreted_first._thread._stops == 0:
        time.sleep(0.001)
    check()
numba_internals._stop_if_asked = hold_the_thread_until_the_fork
interpreted_first.MOST_SECONDS, interpreted_first.MOST_SECONDS_TO_STOP = math.inf, 600.0
bandit = db.Bandit("eps-greedy", arms=["a", "b"], seed=1, epsilon=0.5)
for _ in range(9):
    bandit.choose()
compiling = [one.name for one in threading.enumerate() if one.name == "dynabandit-compiling"]
if hasattr(os, "fork") and (child := os.fork()) == 0:
    bandit.compile()  # no lock of the parent's thread is left behind
    os._exit(7)
forked = True
bandit.choose()
print(compiling, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if hasattr(os, "fork") else 7)
db.Bandit("auto", arms=["a", "b"], seed=1).choose()
sys.exit(3)
"""


@needs_compiler
def test_a_process_can_fork_and_exit_while_it_compiles(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), SETTING: "1"}
    run = subprocess.run(
        [sys.executable, "-c", LEAVES], env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (run.returncode, run.stdout, run.stderr) == (3, "['dynabandit-compiling'] 7\n", "")
