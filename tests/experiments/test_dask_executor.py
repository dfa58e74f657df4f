"""Runs on a real cluster: a scheduler and workers, processes of their own, on loopback."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest

import dynabandit as db
from dynabandit.experiments import (
    ClusterError,
    CoverageSpec,
    Experiment,
    Named,
    PathSpec,
    Spec,
    Watcher,
    dask_executor,
    run,
    tasks,
)
from dynabandit.experiments.identity import identity
from dynabandit.experiments.pieces import Gathered, bundles
from dynabandit.experiments.plan import make_plan

SMALL = {"horizon": 500, "seed": 3, "times": 4}
WORLD = Named("case-1", {"arms": 3})
FIRST = Experiment(id="first", environment=WORLD, policies=(Named("ucb"), Named("d-ucb")), replications=60, **SMALL)
SECOND = Experiment(id="second", environment=Named("case-3"), policies=(Named("aff-ots"),), replications=130, **SMALL)
PATHS = PathSpec(environment=WORLD, figure="paths", replications=2, horizon=40, seed=3, points=20)
BOUND = CoverageSpec(figure="bound", means=(0.3, 0.5), step_sizes=(0.01,), observations=(2, 20), streams=400)
SPEC = Spec(title="Small", experiments=(FIRST, SECOND), sample_paths=(PATHS,), coverage=(BOUND,))
SOURCE = Path(db.__file__).parents[1]


class Hook(Watcher):
    """Does something once, when enough has been stored."""

    def __init__(self, out, action, stored=1):
        self.out, self.action, self.stored = out, action, stored
        self.left, self.notes, self.acted = 0.0, [], False

    def begin(self, work, figures):
        self.left = work

    def advance(self, work):
        self.left -= work
        if not self.acted and self.left > 0.5 and len(kept(self.out)) >= self.stored:
            self.acted = True
            self.action()

    def note(self, message):
        self.notes.append(message)


def kept(out):
    return {path.name: path.read_bytes() for path in (out / "store").glob("*.result")}


def left_behind(out):
    return [path.name for path in (out / "store").iterdir() if path.suffix != ".result"]


def python(*arguments, source=SOURCE, **options):
    """Start a process that outlives no test."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **options,
    )


def wait_until(event, process):
    """Wait for something that can be seen from outside, while the process runs."""
    while not event():
        try:
            process.wait(timeout=0.005)
        except subprocess.TimeoutExpired:
            continue
        pytest.fail(f"the process ended early with {process.returncode}")


class Loopback:
    """A scheduler and its workers."""

    def __init__(self, folder):
        self.folder = folder
        self.workers = []
        self.scheduler = python(
            "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
            "--scheduler-file", folder / "scheduler.json",
        )  # fmt: skip
        wait_until(self._has_address, self.scheduler)

    def _has_address(self):
        try:
            self.address = json.loads((self.folder / "scheduler.json").read_text(encoding="utf-8"))["address"]
        except (FileNotFoundError, json.JSONDecodeError):
            return False
        return True

    def add(self, source=SOURCE):
        """Start a worker; the cluster waits for the first one by itself."""
        worker = python(
            "-m", "distributed.cli.dask_worker", self.address, "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny",
            "--no-dashboard", "--local-directory", self.folder, source=source,
        )  # fmt: skip
        self.workers.append(worker)
        return worker

    def wait_for(self, count):
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=120)

    def stop(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@contextmanager
def loopback(folder, workers):
    made = Loopback(folder)
    try:
        for _ in range(workers):
            made.add()
        if workers:
            made.wait_for(workers)
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What this machine alone finds."""
    out = tmp_path_factory.mktemp("alone")
    run(SPEC, out)
    return kept(out)


@pytest.fixture
def small_tasks(monkeypatch):
    """Tasks so small that there are dozens of them."""
    monkeypatch.setattr(dask_executor, "SMALLEST", 1e4)
    monkeypatch.setattr(dask_executor, "LARGEST", 3e4)
    monkeypatch.setattr(dask_executor, "SCHEDULED", 1.0)


def test_a_cluster_finds_what_one_machine_finds_bit_for_bit(tmp_path, alone, small_tasks):
    with loopback(tmp_path, workers=2) as there:
        results = run(SPEC, tmp_path / "out", cluster=there.address)
    assert kept(tmp_path / "out") == alone
    assert (results.metadata["cluster"], results.metadata["workers"]) == (there.address, 2)
    expected = db.compare(["ucb", "d-ucb"], db.environment("case-1", arms=3), replications=60, **SMALL)
    for label, simulation in expected.items():
        np.testing.assert_array_equal(results.one(experiment="first", label=label).regret, simulation.regret)


def test_a_worker_killed_in_the_middle_costs_nothing_but_time(tmp_path, alone, small_tasks):
    with loopback(tmp_path, workers=2) as there:
        watcher = Hook(tmp_path / "out", there.workers[0].kill)
        run(SPEC, tmp_path / "out", cluster=there.address, watcher=watcher)
        assert watcher.acted
        assert there.workers[0].wait() == -signal.SIGKILL
    assert kept(tmp_path / "out") == alone


def test_a_run_whose_last_worker_died_says_so_and_goes_on_with_the_next(tmp_path, alone, small_tasks, monkeypatch):
    monkeypatch.setattr(dask_executor, "LOOK", 0.05)

    class Replacing(Hook):
        def note(self, message):
            super().note(message)
            there.add()

    with loopback(tmp_path, workers=1) as there:
        watcher = Replacing(tmp_path / "out", there.workers[0].kill)
        run(SPEC, tmp_path / "out", cluster=there.address, watcher=watcher)
    assert watcher.notes == [f"no worker is left at {there.address}; waiting for one to come"]
    assert kept(tmp_path / "out") == alone


def test_a_scheduler_killed_in_the_middle_is_said_and_the_run_resumes(tmp_path, alone, small_tasks, monkeypatch):
    with loopback(tmp_path, workers=2) as there:
        watcher = Hook(tmp_path / "out", there.scheduler.kill, stored=2)
        with pytest.raises(ClusterError, match=f"the scheduler at {there.address} is gone"):
            run(SPEC, tmp_path / "out", cluster=there.address, watcher=watcher)
    stored = kept(tmp_path / "out")
    assert 2 <= len(stored) < len(alone)
    assert stored.items() <= alone.items()
    assert not left_behind(tmp_path / "out")
    computed = []

    def spy(policies, environment, **arguments):
        computed.extend(policies)
        return db.compare(policies, environment, **arguments)

    monkeypatch.setattr(tasks, "compare", spy)
    run(SPEC, tmp_path / "out")
    assert kept(tmp_path / "out") == alone
    assert not {f"{key}.result" for key in computed} & set(stored)


def test_a_local_cluster_finds_the_same_and_leaves_no_process_behind(tmp_path, alone):
    run(SPEC, tmp_path / "out", cluster="local", jobs=2)
    assert kept(tmp_path / "out") == alone
    assert not [child for child in psutil.Process().children() if "spawn_main" in " ".join(child.cmdline())]


def hear_ctrl_c():
    """A process that a shell started in the background would be deaf to it, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_in_a_terminal_stops_a_local_cluster_and_leaves_the_store_whole(tmp_path):
    command = ["compare", "--env", "case-1", "ucb", "--replications", "1000", "--horizon", "60000", "--jobs", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "dynabandit", *command, "--cluster", "local", "--out", str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hear_ctrl_c,
    )
    wait_until(lambda: kept(tmp_path / "out"), process)
    children = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)  # a terminal tells all of its processes
    output, errors = process.communicate()
    assert process.returncode == 130, errors
    *stages, last = errors.splitlines()
    assert stages == ["compiling where that is needed", "simulating 40 units of work on 2 workers"]
    assert last.startswith("dynabandit: stopped. What is done is kept in ")
    assert output == ""
    assert children
    assert not psutil.wait_procs(children, timeout=60)[1]
    assert not left_behind(tmp_path / "out")
    experiment = Experiment(
        id="case-1-arms-2", environment=Named("case-1"), policies=(Named("ucb"),), horizon=60_000, replications=1000
    )
    plan = make_plan(Spec(title="The same", experiments=(experiment,)))
    from dynabandit.experiments.store import Store

    store = Store(tmp_path / "out" / "store")
    whole = {key for task in plan.tasks for key in task.requests if store.load(key) is not None}
    assert {f"{key}.result" for key in whole} == set(kept(tmp_path / "out"))
    assert not store.damaged


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("__init__.py", f'"{db.__version__}"', '"9.9"', f"it has dynabandit 9.9, not {db.__version__}"),
        ("policies/ucb.py", "\n", "\n\n", "its copy of dynabandit has other code under the same version"),
        ("experiments/identity.py", "def identity", "def renamed", "it says .*cannot import name"),
    ],
)
def test_a_worker_with_other_code_is_refused_before_any_work(tmp_path, file, old, new, message):
    other = tmp_path / "other"
    shutil.copytree(SOURCE / "dynabandit", other / "dynabandit", ignore=shutil.ignore_patterns("__pycache__"))
    path = other / "dynabandit" / file
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with loopback(tmp_path, workers=1) as there:
        there.add(source=other)
        there.wait_for(2)
        with pytest.raises(
            ClusterError, match=f"worker tcp://.* would not give the results of this machine: {message}"
        ):
            run(SPEC, tmp_path / "out", cluster=there.address)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["python", "numba", "numpy", "arithmetic"])
def test_a_worker_that_joins_later_is_looked_at_when_it_is_asked(name, monkeypatch):
    monkeypatch.setattr(dask_executor, "_own_address", lambda: "tcp://there:1")
    with pytest.raises(ClusterError, match="worker tcp://there:1, which came later, would not give the results"):
        dask_executor.answer_here([], {**identity(), name: "another"})


def test_no_workers_is_an_error_that_says_what_to_start(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_executor, "PATIENCE", 0.5)
    with loopback(tmp_path, workers=0) as there:
        with pytest.raises(ClusterError, match=f"has no workers; start some with: dask worker {there.address}"):
            run(SPEC, tmp_path / "out", cluster=there.address)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("listening", [False, True])
def test_an_address_that_does_not_answer_is_an_error_within_a_bounded_time(tmp_path, monkeypatch, listening):
    monkeypatch.setattr(dask_executor, "PATIENCE", 0.5)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if listening:
            silent.listen()
        address = "tcp://{}:{}".format(*silent.getsockname())
        with pytest.raises(ClusterError, match=f"no Dask scheduler answers at {address} within 0.5 seconds"):
            run(SPEC, tmp_path / "out", cluster=address)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"cluster": "scheduler"},
            "cluster must be 'local' or an address such as tcp://scheduler:8786, got 'scheduler'",
        ),
        ({"cluster": "tcp://scheduler:8786", "jobs": 2}, "jobs must be left out with cluster"),
        ({"cluster": "local", "backend": "cuda"}, "cluster 'local' needs backend='cpu', got backend='cuda'"),
    ],
)
def test_what_makes_no_sense_on_a_cluster_is_refused(tmp_path, wrong, message):
    with pytest.raises(ValueError, match=message):
        run(SPEC, tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("most", [1.0, 1e4, 1e5, 1e9])
def test_work_cut_into_any_pieces_and_put_together_is_the_same(most, alone):
    work = [(task, list(task.requests)) for task in make_plan(SPEC).tasks]
    gathered = Gathered(work)
    whole = []
    for bundle in bundles(work, most):
        for piece in reversed(bundle):
            whole += gathered.add(piece, piece.task.compute(piece.keys, 1, lambda work: None))
    assert {id(task) for task, _ in whole} == {id(task) for task, _ in work}
    for task, answers in whole:
        computed = task.compute(list(task.requests), 1, lambda work: None)
        for key, arrays in computed.items():
            for name, array in arrays.items():
                assert answers[key][name].dtype == array.dtype
                np.testing.assert_array_equal(answers[key][name], array)


def test_bundles_are_neither_much_larger_nor_much_smaller_than_wished():
    work = [(task, list(task.requests)) for task in make_plan(SPEC).tasks]
    made = list(bundles(work, 5e4))
    costs = [sum(piece.cost for piece in bundle) for bundle in made]
    assert all(5e4 <= cost <= 1e5 for cost in costs[:-1])
