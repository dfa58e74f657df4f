"""Experiments on a GPU: Numba's CUDA simulator stands in for one, in a process of its own, at small sizes."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dynabandit as db
from dynabandit.experiments import BackendError, Experiment, PathSpec, ProgressReporter, RunOptions, Spec, run
from dynabandit.experiments.backend_choice import Gpu, choose_backends
from dynabandit.experiments.dask_executor import group_tasks
from dynabandit.experiments.executors import to_compile
from dynabandit.experiments.plan import make_plan
from dynabandit.experiments.tasks import PendingTask
from tools.cudasim import cudasim

TRIAL = Experiment(
    id="trial",
    environment=db.environment("case-1", arms=3),
    policies=(db.policy("ucb"), db.policy("ts")),
    horizon=12,
    replications=2,
    seed=3,
    times=3,
)
LARGE = replace(TRIAL, id="large", horizon=10_000, replications=20_000)
SPEC = Spec(
    title="Trial",
    experiments=(TRIAL,),
    sample_paths=(PathSpec(environment=TRIAL.environment, figure="paths", horizon=12, replications=1),),
)
WHOLE = Spec(title="Both", experiments=(TRIAL, LARGE))
SCRIPT = """
import json, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], str(Path(sys.argv[1]).parent)]
from test_backend_choice import SPEC
from tools.dask_cluster import stored, thread_cluster
from dynabandit.experiments import run
from dynabandit.simulation.cuda import launch

on_device, launched = launch.run, []
launch.run = lambda work, *rest: (launched.append(len(work.policies)), on_device(work, *rest))
out = Path(sys.argv[2])
found = {}
for backend in ("cpu", "cuda"):
    before = set(out.glob("store/*"))
    results = run(SPEC, out, backend=backend)
    found[backend] = {
        "regret": [one.total_regret.tolist() for one in results],
        "made": sorted(path.stem for path in set(out.glob("store/*")) - before),
        "backends": results.metadata["backends"],
        "launched": list(launched),
    }
with thread_cluster(workers=1) as address:
    run(SPEC, out / "cluster", backend="cuda", cluster=address)
alone = stored(out)
found["cluster"] = all(alone[name] == content for name, content in stored(out / "cluster").items())
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same spec on both backends, into one folder."""
    done = cudasim("-c", SCRIPT, os.path.dirname(__file__), str(tmp_path_factory.mktemp("out")), NUMBA_DISABLE_JIT="1")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_gpu_finds_the_processors_results(simulated: Any) -> None:
    assert simulated["cuda"]["regret"] == simulated["cpu"]["regret"]
    assert simulated["cuda"]["backends"] == {"trial": "cuda"}
    assert (simulated["cpu"]["launched"], simulated["cuda"]["launched"]) == ([], [2])


def test_a_cluster_of_gpus_finds_what_one_finds(simulated: Any) -> None:
    assert simulated["cluster"]


def test_results_of_each_backend_are_kept_apart_and_sample_paths_are_not(simulated: Any) -> None:
    made = [set(simulated[backend]["made"]) for backend in ("cpu", "cuda")]
    assert [len(keys) for keys in made] == [3, 2]  # two policies, and the path, which is always the processor's
    assert not made[0] & made[1]


def test_what_can_differ_in_a_last_bit_has_an_address_of_its_own() -> None:
    plans = [make_plan(SPEC), *(make_plan(SPEC, {"trial": "cuda"}, precision) for precision in ("double", "single"))]
    keys = [{key for task in plan.simulations for key in task.requests} for plan in plans]
    assert len(set.union(*keys)) == 6


def test_the_processors_addresses_do_not_depend_on_there_being_other_backends(simulated: Any) -> None:
    keys = {key for task in make_plan(SPEC).tasks for key in task.requests}
    assert set(simulated["cpu"]["made"]) == keys


def test_a_gpu_gets_thousands_of_replications_at_a_time() -> None:
    tasks = make_plan(WHOLE, {"trial": "cpu", "large": "cuda"}).simulations
    assert [(task.backend, task.first, task.count) for task in tasks] == [
        ("cpu", 0, 2), ("cuda", 0, 10_000), ("cuda", 10_000, 10_000),
    ]  # fmt: skip


def test_only_what_the_processor_runs_is_compiled_ahead() -> None:
    policies = (db.policy("sw-ucb"),)
    plan = make_plan(
        Spec(
            title="Both", experiments=(TRIAL, replace(LARGE, policies=policies, environment=db.environment("case-3")))
        ),
        {"large": "cuda"},
    )
    compiled, environments, coverage = to_compile([PendingTask(task, list(task.requests)) for task in plan.tasks])
    assert [(policy.name, arms) for policy, arms in compiled] == [("ucb", 3), ("ts", 3)]
    assert [one.name for one in environments] == ["case-1"]
    assert not coverage


def test_policies_are_compiled_ahead_for_bernoulli_rewards_alone() -> None:
    counts = db.environment("case-1", arms=3, rewards="bounded")
    plan = make_plan(Spec(title="Bounded", experiments=(replace(TRIAL, environment=counts),)), {})
    compiled, environments, _ = to_compile([PendingTask(task, list(task.requests)) for task in plan.tasks])
    assert compiled == []
    assert environments == [counts]


ROOM = 1 << 36


@pytest.mark.parametrize(
    ("backend", "gpus", "places"),
    [
        ("cpu", [Gpu("", ROOM)], {"trial": "cpu", "large": "cpu"}),
        ("cuda", [Gpu("", ROOM)], {"trial": "cuda", "large": "cuda"}),
        ("auto", [Gpu("", ROOM)], {"trial": "cpu", "large": "cuda"}),
        ("auto", [Gpu("needs a GPU")], {"trial": "cpu", "large": "cpu"}),
        ("auto", [Gpu("", ROOM), Gpu("needs a GPU", worker="tcp://b:1")], {"trial": "cpu", "large": "cpu"}),
        ("auto", [Gpu("", 1 << 10)], {"trial": "cpu", "large": "cpu"}),
    ],
)
def test_auto_takes_the_gpu_if_there_is_one_and_the_experiment_is_large(
    backend: str, gpus: Sequence[Gpu], places: dict[str, str]
) -> None:
    assert choose_backends(WHOLE, backend, "double", lambda: gpus) == places


def test_nobody_is_asked_for_a_gpu_that_is_not_wanted() -> None:
    def asked() -> Sequence[Gpu]:
        raise AssertionError

    choose_backends(WHOLE, "cpu", "double", asked)
    choose_backends(SPEC, "auto", "double", asked)


def test_a_worker_without_a_gpu_is_named() -> None:
    gpus = [Gpu("", ROOM, "tcp://a:1"), Gpu("needs an NVIDIA GPU", worker="tcp://b:2")]
    with pytest.raises(BackendError, match="worker tcp://b:2: backend 'cuda' needs an NVIDIA GPU"):
        choose_backends(SPEC, "cuda", "double", lambda: gpus)


def test_more_arms_than_a_gpu_can_hold_are_an_error_before_any_work() -> None:
    crowded = replace(TRIAL, environment=db.environment("case-1", arms=10**9), policies=(db.policy("ts"),))
    with pytest.raises(MemoryError, match=r"trial: arms must be fewer: one replication with 1000000000 arms takes \d+"):
        choose_backends(Spec(title="Crowded", experiments=(crowded,)), "cuda", "double", lambda: [Gpu("", ROOM)])


DISCOUNTED = replace(TRIAL, policies=(db.policy("d-ucb"),))
LONG = replace(TRIAL, horizon=2**24 + 1)
CROWDED = replace(TRIAL, environment=db.environment("case-1", arms=2**31), policies=(db.policy("ts"),))


@pytest.mark.parametrize(
    ("experiment", "options", "message"),
    [
        (TRIAL, {"backend": "gpu"}, "^unknown backend 'gpu'. Did you mean 'cpu'. Known: auto, cpu, cuda"),
        (TRIAL, {"precision": "half"}, "^unknown precision 'half'. Known: double, mixed, single"),
        (TRIAL, {"precision": "single"}, "^precision 'single' needs backend='cuda', got backend='cpu'"),
        (TRIAL, {"precision": "single", "backend": "auto"}, "^precision 'single' needs backend='cuda', got .*'auto'"),
        (DISCOUNTED, {"precision": "single", "backend": "cuda"}, "^trial: policy 'd-ucb' needs precision='double'"),
        (LONG, {"precision": "single", "backend": "cuda"}, "^trial: precision 'single' needs a horizon of at most"),
        (CROWDED, {}, "^trial: arms must be at most 2147483647, got 2147483648"),
    ],
)
def test_what_no_machine_could_run_is_refused_before_anything_is_written(
    tmp_path: Path, experiment: Experiment, options: dict[str, Any], message: str
) -> None:
    spec = Spec(title="Wrong", experiments=(experiment,))
    with pytest.raises(ValueError, match=message):
        run(spec, tmp_path / "out", **options)
    with pytest.raises(ValueError, match=message):
        RunOptions(**options).check([spec])
    assert not (tmp_path / "out").exists()


def test_without_a_gpu_the_message_says_what_is_missing_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"backend 'cuda' needs an NVIDIA GPU and its driver, .*: install NVIDIA's"):
        run(SPEC, tmp_path / "out", backend="cuda", reporter=ProgressReporter())
    assert not (tmp_path / "out").exists()


def test_the_policies_of_a_gpu_are_shared_out_only_if_they_take_long() -> None:
    (task, *_) = make_plan(Spec(title="Large", experiments=(LARGE,)), {"large": "cuda"}).simulations
    pending = PendingTask(task, list(task.requests))
    assert list(group_tasks([pending], 1.0)) == [[PendingTask(task, [key])] for key in pending.keys]
    assert list(group_tasks([pending], 1e9)) == [[pending]]
