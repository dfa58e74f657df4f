"""Runs on real clusters: a scheduler and workers on loopback."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import numpy as np
import psutil  # type: ignore[import-untyped]
import pytest

import dynabandit as db
from dynabandit.experiments import (
    ClusterError,
    CoverageSpec,
    Experiment,
    PathSpec,
    ProgressReporter,
    Spec,
    dask_executor,
    run,
    tasks,
)
from dynabandit.experiments.dask_executor import DaskExecutor, group_tasks
from dynabandit.experiments.machine_fingerprint import machine_fingerprint
from dynabandit.experiments.plan import make_plan
from dynabandit.experiments.result_store import ResultStore
from dynabandit.experiments.tasks import PendingTask
from dynabandit.simulation import engine
from dynabandit.simulation.request import SimulationRequest
from dynabandit.simulation.stepper import Record
from tools.dask_cluster import SOURCE, ProcessCluster, kill, stored, thread_cluster
from tools.waiting import PATIENCE, wait_for

SMALL: dict[str, Any] = {"horizon": 500, "seed": 3, "times": 4}
ENVIRONMENT = db.environment("case-1", arms=3)
FIRST = Experiment(
    id="first", environment=ENVIRONMENT, policies=(db.policy("ucb"), db.policy("ts")), replications=60, **SMALL
)
SECOND = Experiment(
    id="second", environment=db.environment("case-1"), policies=(db.policy("ucb"),), replications=130, **SMALL
)
PATHS = PathSpec(environment=ENVIRONMENT, figure="paths", replications=2, horizon=40, seed=3, points=20)
BOUND = CoverageSpec(figure="bound", means=(0.3, 0.5), step_sizes=(0.01,), observations=(2, 20), streams=400)
SPEC = Spec(title="Small", experiments=(FIRST, SECOND), sample_paths=(PATHS,), coverage=(BOUND,))


class Hook(ProgressReporter):
    """Calls a function once, when enough has been stored."""

    def __init__(self, out: Path, action: Callable[[], object], count: int = 1) -> None:
        self.out, self.action, self.count = out, action, count
        self.left, self.called = 0.0, False
        self.notes: list[str] = []

    def begin(self, cost: float, figures: int) -> None:
        self.left = cost

    def advance(self, cost: float) -> None:
        self.left -= cost
        if not self.called and self.left > 0.5 and len(stored(self.out)) >= self.count:
            self.called = True
            self.action()

    def note(self, message: str) -> None:
        self.notes.append(message)


def incomplete(out: Path) -> list[str]:
    return [path.name for path in (out / "store").iterdir() if path.suffix != ".result"]


def pending_tasks(spec: Spec = SPEC) -> list[PendingTask]:
    return [PendingTask(task, list(task.requests)) for task in make_plan(spec).tasks]


@pytest.fixture(scope="module", autouse=True)
def _patient() -> Iterator[None]:
    """Wait for schedulers and workers as long as a busy machine needs."""
    with pytest.MonkeyPatch.context() as patched, dask.config.set({"distributed.comm.timeouts.connect": PATIENCE}):
        patched.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", f"{PATIENCE:g}s")  # of the processes of clusters
        patched.setattr(dask_executor, "CONNECT_SECONDS", PATIENCE)
        patched.setattr(dask_executor, "FIRST_WORKER_SECONDS", PATIENCE)
        yield


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The results of this machine alone."""
    out = tmp_path_factory.mktemp("alone")
    run(SPEC, out)
    return stored(out)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    """A scheduler whose workers are processes that a test may kill; a test says how many it needs."""
    made = ProcessCluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.stop()


@pytest.fixture
def _small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups so small that there are dozens of them."""
    monkeypatch.setattr(dask_executor, "SMALLEST_COST", 1e4)
    monkeypatch.setattr(dask_executor, "LARGEST_COST", 3e4)
    monkeypatch.setattr(dask_executor, "LARGEST_COST_PER_THREAD", 1.0)


@pytest.mark.usefixtures("_small_groups")
def test_a_cluster_gives_the_results_of_one_machine_bit_for_bit_though_a_worker_is_killed(
    tmp_path: Path, alone: dict[str, bytes], cluster: ProcessCluster
) -> None:
    first, _ = cluster.prepare(2)
    reporter = Hook(tmp_path / "out", first.kill)
    results = run(SPEC, tmp_path / "out", cluster=cluster.address, reporter=reporter)
    assert reporter.called
    assert first.wait() == -signal.SIGKILL
    assert stored(tmp_path / "out") == alone
    assert (results.metadata["cluster"], results.metadata["workers"]) == (cluster.address, 2)
    expected = db.compare(["ucb", "ts"], ENVIRONMENT, replications=60, **SMALL)
    for label, simulation in expected.items():
        np.testing.assert_array_equal(results.one(experiment="first", label=label).regret, simulation.regret)


@pytest.mark.usefixtures("_small_groups")
def test_a_run_whose_last_worker_died_reports_it_and_continues_with_the_next(
    tmp_path: Path, alone: dict[str, bytes], cluster: ProcessCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "POLL_SECONDS", 0.05)

    class Replacing(Hook):
        def note(self, message: str) -> None:
            super().note(message)
            cluster.add()

    (only,) = cluster.prepare(1)
    reporter = Replacing(tmp_path / "out", only.kill)
    run(SPEC, tmp_path / "out", cluster=cluster.address, reporter=reporter)
    assert reporter.notes == [f"the scheduler at {cluster.address} has no workers any more; waiting for one"]
    assert stored(tmp_path / "out") == alone


@pytest.mark.usefixtures("_small_groups")
def test_a_scheduler_killed_during_a_run_is_reported_and_the_run_resumes_without_it(
    tmp_path: Path, alone: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = ProcessCluster(tmp_path)
    try:
        cluster.prepare(1)
        reporter = Hook(tmp_path / "out", cluster.scheduler.kill, count=2)
        with pytest.raises(ClusterError, match=f"the connection to the scheduler at {cluster.address} is lost"):
            run(SPEC, tmp_path / "out", cluster=cluster.address, reporter=reporter)
    finally:
        cluster.stop()
    before = stored(tmp_path / "out")
    assert 2 <= len(before) < len(alone)
    assert before.items() <= alone.items()
    assert not incomplete(tmp_path / "out")
    computed: list[str] = []

    def spy(request: SimulationRequest) -> dict[str, Record]:
        computed.extend(request.policies)
        return engine.run(request)

    monkeypatch.setattr(tasks, "simulate", spy)
    run(SPEC, tmp_path / "out")
    assert stored(tmp_path / "out") == alone
    assert not {f"{key}.result" for key in computed} & set(before)


def test_a_local_cluster_gives_the_same_and_leaves_no_process_behind(tmp_path: Path, alone: dict[str, bytes]) -> None:
    before = psutil.Process().children()
    run(SPEC, tmp_path / "out", cluster="local", jobs=1)
    assert stored(tmp_path / "out") == alone
    left = [child for child in psutil.Process().children() if child not in before]
    assert not [child for child in left if "spawn_main" in " ".join(child.cmdline())]


def accept_ctrl_c() -> None:
    """Undo that a shell lets background processes ignore Ctrl-C, which their children inherit."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_in_a_terminal_stops_a_local_cluster_and_leaves_the_store_complete(tmp_path: Path) -> None:
    replications = 20_000  # it would take minutes, and more on a busy machine
    command = ["compare", "--env", "case-1", "ucb", "--replications", str(replications), "--horizon", "60000"]
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tools.held_command",
            *command,
            "--jobs",
            "1",
            "--cluster",
            "local",
            "--out",
            tmp_path / "out",
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(Path(__file__).parents[1])])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=accept_ctrl_c,
    )
    wait_for(lambda: stored(tmp_path / "out") or process.poll() is not None)
    children = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all processes of the session
    output, errors = process.communicate()
    assert process.returncode == 130, errors
    *stages, last = errors.splitlines()
    assert stages == ["compiling on the workers, where that is needed", "simulating 800 tasks on 1 worker"]
    assert last.startswith("dynabandit: stopped. Finished results are stored in ")
    assert output == ""
    assert children
    assert not psutil.wait_procs(children, timeout=PATIENCE)[1]
    assert not incomplete(tmp_path / "out")
    experiment = Experiment(
        id="case-1-arms-2",
        environment=db.environment("case-1"),
        policies=(db.policy("ucb"),),
        horizon=60_000,
        replications=replications,
    )
    store = ResultStore(tmp_path / "out" / "store")
    keys = [key for one in pending_tasks(Spec(title="The same", experiments=(experiment,))) for key in one.keys]
    assert {f"{key}.result" for key in keys if store.load(key) is not None} == set(stored(tmp_path / "out"))
    assert not store.damaged


def test_a_worker_with_other_code_is_refused_before_any_task(tmp_path: Path, cluster: ProcessCluster) -> None:
    other = tmp_path / "other"
    shutil.copytree(SOURCE / "dynabandit", other / "dynabandit", ignore=shutil.ignore_patterns("__pycache__"))
    with open(other / "dynabandit" / "policies" / "ucb.py", "a", encoding="utf-8") as file:
        file.write("\n")
    cluster.prepare(0)
    worker = cluster.add(source=other)
    cluster.wait_for(1)
    with pytest.raises(ClusterError, match=r"worker tcp://.*: its copy of dynabandit has other code under the same"):
        run(SPEC, tmp_path / "out", cluster=cluster.address)
    kill(worker)
    assert not (tmp_path / "out").exists()


class FakeClient:
    """Reports versions and fingerprints as the client of a cluster with one worker does."""

    def __init__(self, scheduler: dict[str, str], versions: dict[str, str], fingerprint: Any) -> None:
        same = {name: machine_fingerprint()[name] for name in ("python", "dynabandit", "numba", "numpy")}
        self.versions = {
            "scheduler": {"packages": {**same, **scheduler}},
            "workers": {"tcp://there:1": {"packages": {**same, **versions}}},
        }
        self.fingerprint = fingerprint

    def wait_for_workers(self, count: int, timeout: float) -> None:
        pass

    def get_versions(self, packages: list[str]) -> Any:
        return self.versions

    def run(self, function: Any, on_error: str) -> Any:
        return {"tcp://there:1": self.fingerprint}


@pytest.mark.parametrize(
    ("scheduler", "versions", "fingerprint", "message"),
    [
        ({"python": "2.7.1"}, {}, {}, r"the scheduler would not give .*: it has python 2\.7, not"),
        ({}, {"dynabandit": "9.9"}, {}, rf"worker tcp://there:1 .*: it has dynabandit 9\.9, not {db.__version__}"),
        ({}, {"numba": None}, {}, "worker tcp://there:1 .*: it has no numba"),
        ({}, {}, {"arithmetic": "x"}, "worker tcp://there:1 .*: its C library or processor gives other last digits"),
        ({}, {}, ImportError("cannot import it"), "worker tcp://there:1 .*: it reports cannot import it"),
    ],
)
def test_whatever_differs_from_this_machine_is_refused(
    scheduler: dict[str, str], versions: dict[str, str], fingerprint: Any, message: str
) -> None:
    with pytest.raises(ClusterError, match=message):
        DaskExecutor(FakeClient(scheduler, versions, fingerprint), "tcp://there:8786").check_workers()


@pytest.mark.parametrize("name", ["python", "numba", "numpy", "arithmetic"])
def test_a_worker_that_joins_later_is_checked_when_it_gets_its_first_task(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "_worker_address", lambda: "tcp://there:1")
    with pytest.raises(ClusterError, match="worker tcp://there:1, which joined later, would not give the results"):
        dask_executor.compute_on_worker([], {**machine_fingerprint(), name: "another"})


def test_a_cluster_without_workers_is_an_error_that_says_what_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "FIRST_WORKER_SECONDS", 0.5)
    with thread_cluster(workers=0) as address:
        with pytest.raises(ClusterError, match=f"has no workers; start some with: dask worker {address}"):
            run(SPEC, tmp_path / "out", cluster=address)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("listening", [False, True])
def test_an_address_that_does_not_answer_is_an_error_within_a_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listening: bool
) -> None:
    monkeypatch.setattr(dask_executor, "CONNECT_SECONDS", 0.5)
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
def test_options_that_do_not_fit_a_cluster_are_refused(tmp_path: Path, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(SPEC, tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("cost", [1.0, 1e4, 1e5, 1e9])
def test_groups_of_any_cost_have_every_result_once_and_give_the_same(cost: float) -> None:
    pending = pending_tasks()
    parts = [part for group in group_tasks(pending, cost) for part in group]
    assert sorted(key for part in parts for key in part.keys) == sorted(key for task, keys in pending for key in keys)
    found = {key: arrays for task, keys in parts for key, arrays in task.compute(keys, 1, lambda cost: None).items()}
    for task, keys in pending:
        for key, arrays in task.compute(keys, 1, lambda cost: None).items():
            for name, array in arrays.items():
                assert found[key][name].dtype == array.dtype
                np.testing.assert_array_equal(found[key][name], array)


def test_groups_have_the_wanted_cost_and_at_most_one_result_more() -> None:
    pending, wanted = pending_tasks(), 5e4
    groups = list(group_tasks(pending, wanted))
    costs = [sum(part.cost for part in group) for group in groups]
    assert min(costs[:-1]) >= wanted
    assert max(costs) < wanted + max(task.cost(keys[:1]) for task, keys in pending)
