import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dynabandit as db
from dynabandit.experiments import ProgressReporter, compiling
from dynabandit.experiments.compiling import compile_ahead

POLICIES = ("d-ucb", "ucb", "uniform")
COMPILE = """
import dynabandit as db
from dynabandit.experiments import ProgressReporter
from dynabandit.experiments.compiling import compile_ahead
policies = [(db.policy(name), arms) for name in ("sw-ucb", "uniform") for arms in (2, 50)]
compile_ahead(policies, [db.environment("case-3")], False, jobs=2, reporter=ProgressReporter())
"""
SIMULATE = """
import dynabandit as db
for simulation in db.compare(["sw-ucb", "uniform"], "case-3", horizon=100, replications=3).values():
    print(simulation.policy.name, *(value.hex() for value in simulation.total_regret))
"""


def python(code: str, cache: Path) -> None:
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "NUMBA_CACHE_DIR": str(cache)}, check=True)


def test_a_simulation_runs_with_what_several_processes_compiled_ahead_and_nothing_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    python(COMPILE, tmp_path)
    ahead = set(tmp_path.rglob("*.nbc"))
    assert len(ahead) == 4  # two policies, the environment and the counting of switches
    python(SIMULATE, tmp_path)
    assert set(tmp_path.rglob("*.nbc")) == ahead
    together = capfd.readouterr().out
    exec(SIMULATE)  # here each of them is compiled by this process, or loaded from another cache
    assert capfd.readouterr().out == together


class Recorder(ProgressReporter):
    def __init__(self) -> None:
        self.titles: list[str] = []

    def running(self, title: str) -> None:
        self.titles.append(title)


def test_what_is_on_disk_is_not_compiled_again() -> None:
    db.simulate("ucb", "case-3", horizon=10)
    reporter = Recorder()
    compile_ahead([(db.policy("ucb"), 2)], [db.environment("case-3", arms=7)], False, jobs=2, reporter=reporter)
    assert reporter.titles == []


def test_a_worker_that_dies_costs_nothing_but_time(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []
    monkeypatch.setattr(compiling, "is_compiled", lambda policy, arms: False)
    monkeypatch.setattr(compiling, "compile_item", done.append)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    policies = [(db.policy(name), 2) for name in POLICIES]
    compile_ahead(policies, [], False, jobs=2, reporter=Recorder())
    assert len(done) >= len(policies) - 1  # one may have gone to the worker; it is compiled when it is needed


def test_workers_end_when_this_process_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    workers: list[Any] = []

    class Spy(compiling._Worker):
        def __init__(self, todo: Any) -> None:
            super().__init__(todo)
            workers.append(self)

    def interrupt(item: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compiling, "_Worker", Spy)
    monkeypatch.setattr(compiling, "is_compiled", lambda policy, arms: False)
    monkeypatch.setattr(compiling, "compile_item", interrupt)
    with pytest.raises(KeyboardInterrupt):
        compile_ahead([(db.policy(name), 2) for name in POLICIES], [], False, jobs=3, reporter=Recorder())
    assert len(workers) == 2
    assert all(worker.process.returncode is not None for worker in workers)


@pytest.mark.parametrize("usual", [signal.default_int_handler, signal.SIG_IGN])
def test_ctrl_c_inside_of_llvm_is_not_lost(monkeypatch: pytest.MonkeyPatch, usual: Any) -> None:
    """LLVM calls Python through ctypes, which prints an exception and goes on."""
    begun: list[Any] = []

    def compile_item(item: Any) -> None:
        begun.append(item)
        ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()

    monkeypatch.setattr(compiling, "is_compiled", lambda policy, arms: False)
    monkeypatch.setattr(compiling, "compile_item", compile_item)
    before = signal.signal(signal.SIGINT, usual)
    try:
        policies = [(db.policy(name), 2) for name in POLICIES]
        if usual is signal.SIG_IGN:  # as for a command in the background: it stays deaf
            compile_ahead(policies, [], False, jobs=1, reporter=Recorder())
            assert len(begun) == len(POLICIES)
        else:
            with pytest.raises(KeyboardInterrupt):
                compile_ahead(policies, [], False, jobs=1, reporter=Recorder())
            assert len(begun) == 1
        assert signal.getsignal(signal.SIGINT) is usual
    finally:
        signal.signal(signal.SIGINT, before)
